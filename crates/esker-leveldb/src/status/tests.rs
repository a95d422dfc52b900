use super::Status;
use esker::Error;
use std::path::PathBuf;

#[test]
fn errors_begin_with_their_kind_and_keep_the_phrases_that_programs_look_for() {
    let path = || PathBuf::from("/p");
    let cases = [
        (
            Error::Missing { path: path() },
            "Invalid argument: /p: does not exist (create_if_missing is false)",
        ),
        (
            Error::exists(&path(), "a database"),
            "Invalid argument: /p: exists (error_if_exists is true)",
        ),
        (
            Error::Locked { path: path() },
            "IO error: lock /p/LOCK: already held by this or another process",
        ),
    ];
    for (error, text) in cases {
        assert_eq!(Status::from(error).0, text);
    }
    let damage = Error::corruption(&path(), 7, "block", "odd");
    assert!(Status::from(&damage).0.starts_with("Corruption: "));
    assert!(Status::from(damage.poisoning()).0.starts_with("Corruption: "));
    assert!(Status::from(Error::Closed).0.starts_with("IO error: "));
    assert!(Status::from(Error::KeyTooLong { len: 9, max: 8 }).0.starts_with("Invalid argument: "));
    assert_eq!(
        Status::mismatch("a", "b").0,
        "Invalid argument: a does not match existing comparator : b"
    );
}

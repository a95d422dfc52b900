use super::{fits, listing};

#[test]
fn another_format_is_told_with_what_to_do() {
    let known = rustdoc_types::FORMAT_VERSION;
    assert_eq!(fits(&format!("{{\"root\":1,\"format_version\":{known}}}")), Ok(()));
    let error = fits("{\"format_version\": 1}").unwrap_err();
    assert!(error.contains("rustdoc writes format 1 of its JSON"), "{error}");
    assert!(error.contains("crates/xtask/Cargo.toml"), "{error}");
    assert!(fits("{}").is_err());
}

#[test]
fn what_is_no_description_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = format!("{{\"format_version\":{}}}", rustdoc_types::FORMAT_VERSION);
    std::fs::write(file.path(), text).unwrap();
    assert!(listing(file.path()).unwrap_err().starts_with("cannot read "));
}

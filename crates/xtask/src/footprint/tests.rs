use super::{median, packages};

#[test]
fn packages_are_counted_once_and_without_the_program() {
    let listed = "program v0.0.0 (/p)\nesker v0.1.0 (/e)\nlog v0.4.1\nzstd v0.13.0\nlog v0.4.1\n\n";
    assert_eq!(packages("esker", listed), ("0.1.0".to_owned(), 3));
    assert_eq!(packages("nothing", "program v0.0.0 (/p)\n"), ("–".to_owned(), 0));
}

#[test]
fn the_median_is_of_the_sorted_times() {
    assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
    assert!(median([].into_iter()).is_nan());
}

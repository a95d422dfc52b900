use super::*;

fn offered(before: &str) -> (usize, Vec<String>) {
    let names = ["default", "users", "used words", "0x"];
    candidates(before, || names.map(str::to_owned).to_vec())
}

#[test]
fn commands_are_completed_at_the_beginning() {
    assert_eq!(offered("sc"), (0, vec!["scan".to_owned()]));
    assert_eq!(offered("  qu"), (2, vec!["quit".to_owned()]));
    assert_eq!(offered("ge").1, ["get"]);
    assert_eq!(offered("x").1, [""; 0]);
    // All of them, with the two that stand for close.
    assert_eq!(offered("").1.len(), HELP.len() + 2);
}

#[test]
fn keyspaces_are_completed_behind_use_and_drop() {
    assert_eq!(offered("use us"), (4, vec!["users".to_owned(), "\"used words\"".to_owned()]));
    assert_eq!(offered("drop  \"use"), (6, vec!["\"used words\"".to_owned()]));
    assert_eq!(offered("use used w"), (4, vec!["\"used words\"".to_owned()]));
    assert_eq!(offered("use 0"), (4, vec!["\"0x\"".to_owned()]));
    assert_eq!(offered("use ").1.len(), 4);
    assert_eq!(offered("get us"), (6, vec![]));
}

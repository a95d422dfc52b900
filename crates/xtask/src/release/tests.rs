use super::differing;

const OWN: &str = "[workspace.package]\nversion = \"0.2.0\"\n\n[workspace.dependencies]\n\
                   esker = { version = \"0.2.0\", path = \"crates/esker\" }\n\
                   esker-testkit = { path = \"crates/esker-testkit\" }\n";
const BINDINGS: &str = "[package]\nversion = \"0.2.0\"\n";
const CHANGES: &str = "# Changes\n\n## 0.2.0 (today)\n\n## 0.1.0\n";

#[test]
fn one_version_everywhere_is_fine() {
    assert_eq!(differing("0.2.0", OWN, BINDINGS, CHANGES), [""; 0]);
}

#[test]
fn each_place_that_was_forgotten_is_named() {
    let found = differing("0.3.0", OWN, BINDINGS, CHANGES);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("Cargo.toml: esker = "), "{found:?}");
    assert!(found[1].starts_with("bindings/python/Cargo.toml"), "{found:?}");
    assert_eq!(found[2], "CHANGELOG.md has no section ## 0.3.0");
}

#[test]
fn a_version_is_not_taken_for_one_that_begins_alike() {
    let found = differing("0.2", OWN, "version = \"0.2\"\n", CHANGES);
    assert!(found.contains(&"CHANGELOG.md has no section ## 0.2".to_owned()), "{found:?}");
}

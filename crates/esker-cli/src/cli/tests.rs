use super::*;

mod pages;

fn parsed(line: &str) -> Result<Cli, Failure> {
    parse(std::iter::once("esker").chain(line.split(' ')).map(OsString::from).collect())
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_an_example_and_json() {
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        if name == "bench" {
            continue; // Has its own tests.
        }
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Example") && help.contains(&format!("esker {name}")), "{name}");
        assert!(command.get_about().is_some(), "{name}");
        let json = command.get_arguments().any(|argument| argument.get_id() == "json");
        // What these print is for one reader, which reads no JSON.
        assert!(json || matches!(name, "completions" | "man"), "{name}");
    }
}

#[test]
fn what_is_not_understood_is_one_line_with_a_remedy() {
    for (line, named) in [
        ("get dir", "<KEY>"),
        ("get dir key --nonsense", "--nonsense"),
        ("get dir 0x1", "0x1"),
        ("scan dir --limit many", "many"),
        ("put dir k v --durability safe", "safe"),
        ("stats dir --memory lots", "lots"),
    ] {
        let failure = parsed(line).unwrap_err();
        let message = failure.to_string();
        assert_eq!(failure.exit_code(), 2, "{line}: {message}");
        assert!(message.contains(named), "{line}: {message}");
        let name = line.split(' ').next().unwrap();
        assert!(message.ends_with(&format!("see `esker {name} --help`")), "{line}: {message}");
        assert!(!message.contains('\n'), "{line}: {message}");
    }
    let message = parsed("frobnicate").unwrap_err().to_string();
    assert!(message.contains("frobnicate") && message.ends_with("see `esker --help`"), "{message}");
}

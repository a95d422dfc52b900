//! How lines of pages become words.

use super::*;

fn page(text: &str) -> Page {
    Page { name: "page.md".to_owned(), text: text.to_owned() }
}

/// The commands of a page, each as its line and its text.
fn told(text: &str) -> Vec<(usize, String)> {
    page(text).commands().iter().map(|command| (command.line, command.text())).collect()
}

#[track_caller]
fn check(text: &str, expected: &[(usize, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(at, text)| (*at, (*text).to_owned())).collect();
    assert_eq!(told(text), expected);
}

#[test]
fn lines_that_go_on_are_one_command() {
    check("    esker a \\\n        --b c\n    esker d\n", &[(1, "esker a --b c"), (3, "esker d")]);
    let text = "    (4) esker a --w x,\n          y,z\n          --n 1\n\n    (5) esker b\n";
    check(text, &[(1, "esker a --w x,y,z --n 1"), (5, "esker b")]);
}

#[test]
fn what_is_not_for_the_program_is_left_out() {
    check("    $ esker a > out 2>&1 # why\n", &[(1, "esker a")]);
    check("    esker a --w x (8 of 1024), in turns\n", &[(1, "esker a --w x")]);
    check("    esker a x,y, in turns\n", &[(1, "esker a x,y")]);
    check("    A_1=\"b c\" D= cargo e\n", &[(1, "cargo e")]);
    let command = page("    A_1=\"b c\" D= cargo e\n").commands().remove(0);
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(command.environment, [set("A_1", "b c"), set("D", "")]);
}

#[test]
fn lists_pipelines_and_choices_are_cut() {
    check(
        "    esker a; esker b | less && esker c\n",
        &[(1, "esker a"), (1, "esker b"), (1, "less"), (1, "esker c")],
    );
    check(
        "    esker a 'b;c' x|y z|w|v\n",
        &[(1, "esker a b;c x z"), (1, "esker a b;c y w"), (1, "esker a b;c y v")],
    );
    check(
        "`valgrind --tool=x esker a …`\n",
        &[(1, "esker a …"), (1, "valgrind --tool=x esker a …")],
    );
}

#[test]
fn sentences_and_blocks_are_told_apart() {
    let text = "Say `esker a\n[--b]` or `c\\|d`.\n\n- item\n  `esker FILES…`\n\n```rust\n`no`\n```\n\n    esker e\n";
    let page = page(text);
    let found: Vec<_> = page
        .commands()
        .iter()
        .map(|command| (command.line, command.in_block, command.text()))
        .collect();
    let expected = [
        (11, true, "esker e"),
        (1, false, "esker a --b"),
        (2, false, "c"),
        (2, false, "d"),
        (5, false, "esker FILES"),
    ];
    assert_eq!(found, expected.map(|(at, block, text)| (at, block, text.to_owned())));
    let blocks: Vec<_> =
        page.blocks().into_iter().map(|block| (block.line, block.language)).collect();
    assert_eq!(blocks, [(7, Some("rust".to_owned())), (11, None)]);
}

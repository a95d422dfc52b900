//! No function stands twice: where two do the same, word for word, one is called from both places.

use crate::lexer::{blank_comments, is_word, item_len, line_of, words};
use crate::source::{Source, all_crates, none_of};
use std::collections::BTreeMap;

/// Shorter bodies may be alike: their sharing would take more than it saves.
const BODY_LINES_MIN: usize = 6;
const BODY_CHARACTERS_MIN: usize = 200;

/// A function: its name, where it stands, and its body without comments and white space.
struct Function {
    place: String,
    body: String,
}

/// The functions of a file that are long enough to count.
fn functions(source: &Source) -> Vec<Function> {
    let whole = blank_comments(&source.text);
    let mut found = Vec::new();
    for at in words(&source.shipped, "fn") {
        let item = &source.shipped[at..at + item_len(&source.shipped.as_bytes()[at..])];
        let name = item[2..].trim_start();
        let name = &name[..name.bytes().take_while(|&byte| is_word(byte)).count()];
        let Some(open) = body(item).filter(|_| !name.is_empty()) else { continue };
        let lines = item[open + 1..item.len() - 1].lines();
        let lines = lines.filter(|line| !line.trim().is_empty()).count();
        let mut body = whole[at + open..at + item.len()].to_owned();
        body.retain(|c| !c.is_whitespace());
        if lines >= BODY_LINES_MIN && body.len() >= BODY_CHARACTERS_MIN {
            let place = format!("{}:{} {name}", source.name, line_of(&source.text, at));
            found.push(Function { place, body });
        }
    }
    found
}

/// Where the body of a function begins, if it has one.
fn body(item: &str) -> Option<usize> {
    let mut depth = 0_i32;
    item.bytes().position(|byte| {
        depth += i32::from(b"([".contains(&byte)) - i32::from(b")]".contains(&byte));
        byte == b'{' && depth == 0
    })
}

/// The groups of functions with the same body.
fn twins(sources: &[Source]) -> Vec<String> {
    let mut by_body: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Function { place, body } in sources.iter().flat_map(functions) {
        by_body.entry(body).or_default().push(place);
    }
    let groups = by_body.into_values().filter(|places| places.len() > 1);
    groups.map(|places| places.join(" and ")).collect()
}

#[test]
fn no_function_stands_twice() {
    none_of("these functions have the same body: write it once", twins(&all_crates()));
}

#[test]
fn twins_are_alike_but_for_comments_and_white_space() {
    let source = |name: &str, body: &str| {
        let text = format!("fn {name}<const N: usize>(a: [u8; {{ N }}]) -> usize {{\n{body}}}\n");
        Source::of(format!("crates/x/src/{name}.rs"), text)
    };
    let line = "    println!(\"one of several lines of a body\", a);\n";
    let long = line.repeat(BODY_LINES_MIN);
    let commented = long.replacen('\n', " // why\n", 1).replace("    p", "\tp");
    let found = twins(&[source("a", &long), source("b", &commented)]);
    assert_eq!(found, ["crates/x/src/a.rs:1 a and crates/x/src/b.rs:1 b"]);
    let other = long.replacen("several", "many", 1);
    assert_eq!(twins(&[source("a", &long), source("b", &other)]), [""; 0]);
    let short = line.repeat(BODY_LINES_MIN - 1);
    assert_eq!(twins(&[source("a", &short), source("b", &short)]), [""; 0]);
}

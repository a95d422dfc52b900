//! The pages of the documentation: their blocks, and the commands that they tell a reader to type.
//!
//! A page shows commands in indented blocks and between backquotes. Here they become words, as a
//! shell would make them: lines that go on are joined, labels such as `(3)`, comments and remarks in
//! parentheses are left out, redirections too, and a list or a pipeline is cut into its commands.
//! Where a page writes several forms into one, as in `--num 20K|200K`, each becomes a command of
//! its own. Whoever asks knows what the words mean.

mod words;

#[cfg(test)]
mod tests;

pub use words::Command;

use std::fs;
use std::path::Path;

/// The page that tells what was: a command that it names may be gone.
pub const HISTORY: &str = "CHANGELOG.md";

/// A page, named by its path below the root of the workspace.
pub struct Page {
    /// Its path, with `/` between names.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// What stands between two fences, or lines that are indented by four spaces or more.
pub struct Block {
    /// The number of its first line, or of the fence above it.
    pub line: usize,
    /// What the fence says behind its backquotes; none for an indented block.
    pub language: Option<String>,
    /// Its lines. Those of an indented block keep their indentation.
    pub lines: Vec<String>,
}

/// All pages below the root of the workspace, in order. Build output is passed over.
pub fn pages(root: &Path) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(dir) = pending.pop() {
        let entries = fs::read_dir(&dir).expect("a directory of the sources can be read");
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name == "target" || name.starts_with('.') || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                pending.push(path);
            } else if name.ends_with(".md") {
                let below = path.strip_prefix(root).unwrap_or(&path);
                let name = below.to_string_lossy().replace('\\', "/");
                let text = fs::read_to_string(&path).expect("a page is UTF-8");
                pages.push(Page { name, text });
            }
        }
    }
    pages.sort_by(|one, other| one.name.cmp(&other.name));
    pages
}

/// How many spaces a line begins with.
fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

impl Page {
    /// The blocks, in order.
    pub fn blocks(&self) -> Vec<Block> {
        self.parts().0
    }

    /// The commands in blocks, then those in sentences.
    pub fn commands(&self) -> Vec<Command> {
        let (blocks, prose) = self.parts();
        let indented = blocks.iter().filter(|block| block.language.is_none());
        let shown = indented.flat_map(Block::commands);
        shown
            .chain(spans(&prose).iter().flat_map(|(at, text)| words::commands(*at, text, false)))
            .collect()
    }

    /// The blocks, and all lines with those of blocks left empty.
    fn parts(&self) -> (Vec<Block>, Vec<&str>) {
        let lines: Vec<&str> = self.text.lines().collect();
        let (mut blocks, mut prose) = (Vec::new(), lines.clone());
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at];
            let empty_above = at == 0 || lines[at - 1].trim().is_empty();
            let (begin, end, after, language) = if is_fence(line) {
                let inside = lines[at + 1..].iter().take_while(|line| !is_fence(line)).count();
                let language = line.trim().trim_start_matches('`').to_owned();
                (at + 1, at + 1 + inside, at + 2 + inside, Some(language))
            } else if indentation(line) >= 4 && empty_above && !line.trim().is_empty() {
                let of_block = |line: &&&str| indentation(line) >= 4 || line.trim().is_empty();
                let mut end = at + lines[at..].iter().take_while(of_block).count();
                while lines[end - 1].trim().is_empty() {
                    end -= 1;
                }
                (at, end, end, None)
            } else {
                at += 1;
                continue;
            };
            let after = after.min(lines.len());
            let owned = lines[begin..end].iter().map(|line| (*line).to_owned()).collect();
            blocks.push(Block { line: at + 1, language, lines: owned });
            prose[at..after].fill("");
            at = after;
        }
        (blocks, prose)
    }
}

impl Block {
    /// The lines with those that go on joined, and the number of the first of each.
    pub fn joined(&self) -> Vec<(usize, String)> {
        let mut joined: Vec<(usize, String, usize)> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let (text, indentation) = (line.trim(), indentation(line));
            let Some((_, last, first)) = joined.last_mut() else {
                joined.push((self.line + at, text.to_owned(), indentation));
                continue;
            };
            let deeper = indentation > *first;
            if let Some(open) = last.strip_suffix('\\') {
                *last = format!("{open}{text}");
            } else if deeper && text.starts_with("--") {
                *last = format!("{last} {text}");
            } else if deeper && last.ends_with(',') {
                last.push_str(text);
            } else {
                joined.push((self.line + at, text.to_owned(), indentation));
            }
        }
        joined.into_iter().map(|(line, text, _)| (line, text)).collect()
    }

    /// The commands of the block. What is no command comes as words, too.
    pub fn commands(&self) -> Vec<Command> {
        self.joined().iter().flat_map(|(line, text)| words::commands(*line, text, true)).collect()
    }
}

/// What stands between backquotes in these lines, each with the number of its line. A span ends with its
/// paragraph.
fn spans(lines: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (at, line) in lines.iter().enumerate() {
        if line.trim().is_empty() {
            open = None;
            continue;
        }
        for (place, piece) in line.split('`').enumerate() {
            if place > 0 {
                match open.take() {
                    Some((at, text)) => found.push((at, text.replace("\\|", "|"))),
                    None => open = Some((at + 1, String::new())),
                }
            }
            if let Some((_, text)) = &mut open {
                text.push_str(piece);
            }
        }
        if let Some((_, text)) = &mut open {
            text.push(' ');
        }
    }
    found
}

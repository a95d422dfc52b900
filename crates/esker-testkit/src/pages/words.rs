//! From a line to words, as far as the pages need a shell.

/// A command of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The number of the line where it begins.
    pub line: usize,
    /// Whether it stands in a block; otherwise it stands in a sentence, which may leave out what it
    /// is not about.
    pub in_block: bool,
    /// The variables that are set for it.
    pub environment: Vec<(String, String)>,
    /// The program and its arguments. A `…` that stands alone is left as it is.
    pub words: Vec<String>,
}

impl Command {
    /// The arguments for the program `esker`, if the command runs it: by its name or path, or by cargo, which
    /// runs it unless another package is named.
    pub fn arguments_of_esker(&self) -> Option<&[String]> {
        match self.words.first()?.as_str() {
            "cargo" if self.words.get(1).is_some_and(|word| word == "run") => {
                let at = self.words.iter().position(|word| word == "--")?;
                let other = self.words[..at].iter().any(|word| word == "-p");
                (!other).then_some(&self.words[at + 1..])
            }
            "esker" | "target/release/esker" => Some(&self.words[1..]),
            _ => None,
        }
    }

    /// The command as one line, to tell of it.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// Programs that run another: what they run is a command of its own.
const RUN_ANOTHER: [&str; 2] = ["valgrind", "perf"];

/// A word, or what ends a command.
enum Piece {
    Word(String),
    End,
}

/// The commands of a line.
pub fn commands(line: usize, text: &str, in_block: bool) -> Vec<Command> {
    let text = without_label(text);
    let mut commands = Vec::new();
    let mut words = Vec::new();
    for piece in pieces(text).into_iter().chain([Piece::End]) {
        match piece {
            Piece::Word(word) => words.push(word),
            Piece::End => {
                let words = std::mem::take(&mut words);
                commands.extend(
                    forms(&words).into_iter().flat_map(|words| parted(line, words, in_block)),
                );
            }
        }
    }
    commands
}

/// Without a prompt, and without a label such as `(12)`.
fn without_label(text: &str) -> &str {
    let text = text.trim();
    let text = text.strip_prefix("$ ").unwrap_or(text);
    let labelled = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    match labelled {
        Some((label, rest)) if label.bytes().all(|byte| byte.is_ascii_digit()) => rest.trim_start(),
        _ => text,
    }
}

/// The words of a line, up to a comment or a remark in parentheses. What output or input is led to is left out.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if matches!(first, '#' | '(') {
            break;
        }
        if let Some(after) = ["&&", "||", "|", ";"].iter().find_map(|end| rest.strip_prefix(end)) {
            pieces.push(Piece::End);
            rest = after.trim_start();
            continue;
        }
        let (word, after) = word(rest);
        rest = after.trim_start();
        let led = word.trim_start_matches(|c: char| c.is_ascii_digit());
        if let Some(target) = led.strip_prefix(['>', '<']) {
            if target.trim_start_matches('>').is_empty() {
                rest = self::word(rest).1.trim_start();
            }
            continue;
        }
        // Brackets tell what may be left out.
        let plain = word.trim_matches(['[', ']']);
        let (plain, prose) = match plain.strip_suffix(',') {
            Some(plain) if !plain.is_empty() => (plain, true),
            _ => (plain, false),
        };
        let plain = if plain == "…" {
            plain
        } else {
            plain.trim_end_matches('…').trim_end_matches(',')
        };
        if !plain.is_empty() {
            pieces.push(Piece::Word(plain.to_owned()));
        }
        if prose {
            break;
        }
    }
    pieces
}

/// The first word, without its quotation marks, and what follows it.
fn word(text: &str) -> (String, &str) {
    let (mut word, mut quote) = (String::new(), None);
    for (at, c) in text.char_indices() {
        match quote {
            Some(mark) if c == mark => quote = None,
            Some(_) => word.push(c),
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if c.is_whitespace() || c == ';' => return (word, &text[at..]),
            None => word.push(c),
        }
    }
    (word, "")
}

/// The forms of a command in which words offer a choice: the first of every choice, the second, and
/// so on to the end of the longest.
fn forms(words: &[String]) -> Vec<Vec<String>> {
    let choices: Vec<Vec<&str>> = words.iter().map(|word| word.split('|').collect()).collect();
    let longest = choices.iter().map(Vec::len).max().unwrap_or(0);
    let form = |form: usize| {
        choices.iter().map(|choice| choice[form.min(choice.len() - 1)].to_owned()).collect()
    };
    (0..longest).map(form).collect()
}

/// A command without its variables and, if it runs another, that one as well.
fn parted(line: usize, words: Vec<String>, in_block: bool) -> Vec<Command> {
    let variable = |word: &str| {
        let (name, value) = word.split_once('=')?;
        let named = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        (!name.is_empty() && name.bytes().all(named)).then(|| (name.to_owned(), value.to_owned()))
    };
    let environment: Vec<_> = words.iter().map_while(|word| variable(word)).collect();
    let words = words[environment.len()..].to_vec();
    let mut commands = Vec::new();
    if words.first().is_some_and(|program| RUN_ANOTHER.contains(&program.as_str()))
        && let Some(at) = words.iter().skip(1).position(|word| word == "esker")
    {
        let words = words[at + 1..].to_vec();
        commands.push(Command { line, in_block, environment: Vec::new(), words });
    }
    if !words.is_empty() || !environment.is_empty() {
        commands.push(Command { line, in_block, environment, words });
    }
    commands
}

//! Tokens: how keys, values and names stand in the lines of a dump's text form.
//!
//! Keys and values are arbitrary bytes, lines are not. A token is therefore plain where its bytes
//! are printable ASCII that nothing else could be mistaken for, and hexadecimal after `0x`
//! everywhere else. The way back is exact: `decode(encode(bytes)) == bytes` for all bytes.
//!
//! Bytes that begin with `0x`, `#` or `@`, and a lone `-`, are written in hexadecimal too. These
//! rules are part of the format of dumps; what the command line prints and takes is in `word`.

use esker::internals::base::limits::VALUE_BYTES_MAX;
use std::fmt;

#[cfg(test)]
mod tests;

/// Why a token cannot be decoded.
///
/// # Example
/// ```
/// use esker_port::token::{TokenError, decode};
/// let Err(TokenError::Malformed(what)) = decode(b"0xf") else { panic!("one digit is too few") };
/// assert!(what.contains("0xf"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenError {
    /// It does not follow the grammar; the text names the token and what would be right.
    Malformed(String),
    /// It asks for a made-up value that no database would take: see [`crate::word::make_up`].
    TooLarge {
        /// The length that it asks for.
        len: u64,
    },
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => write!(f, "{what}"),
            Self::TooLarge { len } => write!(
                f,
                "the value has {len} bytes, the limit is {VALUE_BYTES_MAX}: ask for a shorter one"
            ),
        }
    }
}

/// Writes `bytes` as a token.
///
/// # Example
/// ```
/// use esker_port::token::encode;
/// assert_eq!(encode(b"apple"), "apple");
/// assert_eq!(encode(b"two words"), "0x74776f20776f726473");
/// ```
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    encode_to(bytes, &mut text);
    text
}

/// Appends `bytes` as a token.
///
/// # Example
/// ```
/// let mut line = String::from("get ");
/// esker_port::token::encode_to(&[0, 255], &mut line);
/// assert_eq!(line, "get 0x00ff");
/// ```
pub fn encode_to(bytes: &[u8], text: &mut String) {
    let mut shape = Shape::default();
    shape.see(bytes);
    text.push_str(shape.prefix());
    shape.encode_to(bytes, text);
}

/// Whether bytes that come in pieces make a plain token.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// The first bytes.
    start: Vec<u8>,
    /// Whether a byte is not printable.
    odd: bool,
    len: u64,
}

impl Shape {
    /// Takes the next piece into account.
    pub fn see(&mut self, piece: &[u8]) {
        let missing = 2_usize.saturating_sub(self.start.len());
        self.start.extend(piece.iter().take(missing));
        self.odd |= !piece.iter().all(u8::is_ascii_graphic);
        self.len += piece.len() as u64;
    }

    fn is_plain(&self) -> bool {
        let signs = [b"0x".as_slice(), b"#", b"@"];
        let taken = self.start == b"-" && self.len == 1
            || signs.iter().any(|sign| self.start.starts_with(sign));
        self.len > 0 && !self.odd && !taken
    }

    /// What stands before the bytes.
    pub fn prefix(&self) -> &'static str {
        if self.is_plain() { "" } else { "0x" }
    }

    /// Appends a piece.
    pub fn encode_to(&self, piece: &[u8], text: &mut String) {
        if self.is_plain() {
            text.extend(piece.iter().map(|&byte| char::from(byte)));
        } else {
            digits_to(piece, text);
        }
    }
}

/// Reads a token that stands for a key or a name.
///
/// # Example
/// ```
/// use esker_port::token::decode;
/// assert_eq!(decode(b"apple")?, b"apple");
/// assert_eq!(decode(b"0x00ff")?, [0, 255]);
/// # Ok::<(), esker_port::token::TokenError>(())
/// ```
pub fn decode(token: &[u8]) -> Result<Vec<u8>, TokenError> {
    let Some(digits) = token.strip_prefix(b"0x") else { return Ok(token.to_vec()) };
    let bytes = digits.chunks(2).map(|pair| match *pair {
        [high, low] => Some(nibble(high)? << 4 | nibble(low)?),
        _ => None,
    });
    bytes
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(|| malformed(token, "after 0x stands an even number of hexadecimal digits"))
}

/// Appends the hexadecimal digits of `bytes`.
pub(crate) fn digits_to(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.reserve(2 * bytes.len());
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// The refusal of a token, with what would be right.
pub(crate) fn malformed(token: &[u8], remedy: &str) -> TokenError {
    // Values may be secret and long: only the start of the token is repeated.
    let shown: String =
        token.iter().take(16).map(|&byte| byte.escape_ascii().to_string()).collect();
    let more = if token.len() > 16 { "…" } else { "" };
    TokenError::Malformed(format!("bad token {shown}{more}: {remedy}"))
}

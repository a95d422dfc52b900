//! Tokens: how keys, values and names stand in one line of text.
//!
//! Keys and values are arbitrary bytes, lines of the shell are not. A token is therefore plain
//! where its bytes are printable ASCII that nothing else could be mistaken for, and hexadecimal
//! after `0x` everywhere else. The way back is exact: `decode(encode(bytes)) == bytes` for all
//! bytes, which scripts and the crash tests rely on.
//!
//! Three signs have a meaning at the start of a token, so bytes that begin with them are always
//! written in hexadecimal: `0x` itself, `#` (a made-up value of a given length) and `@` (a
//! snapshot). A lone `-` means "no bound", so it is written in hexadecimal too.

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
    /// It asks for a made-up value that no database would take.
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

/// Writes `bytes` as the first token of a line of data. The words that begin the closing line of
/// an answer are written in hexadecimal, so that a key called `ok` cannot be mistaken for the end
/// of a scan.
///
/// # Example
/// ```
/// assert_eq!(esker_port::token::encode_first(b"ok"), "0x6f6b");
/// ```
pub fn encode_first(bytes: &[u8]) -> String {
    if bytes == b"ok" || bytes == b"err" { hexadecimal(bytes) } else { encode(bytes) }
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

/// Reads a token that stands for the value of `key`: `#N` makes up `N` bytes.
///
/// # Example
/// ```
/// use esker_port::token::decode_value;
/// assert_eq!(decode_value(b"red", b"apple")?, b"red");
/// assert_eq!(decode_value(b"#1000", b"apple")?.len(), 1000);
/// # Ok::<(), esker_port::token::TokenError>(())
/// ```
pub fn decode_value(token: &[u8], key: &[u8]) -> Result<Vec<u8>, TokenError> {
    let Some(digits) = token.strip_prefix(b"#") else { return decode(token) };
    let len = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok());
    let len = len.ok_or_else(|| malformed(token, "after # stands the value's length in bytes"))?;
    if len > VALUE_BYTES_MAX {
        return Err(TokenError::TooLarge { len });
    }
    Ok(pseudo_random(len, key))
}

/// Reads a token that stands for a bound: `-` is none.
///
/// # Example
/// ```
/// use esker_port::token::decode_bound;
/// assert_eq!(decode_bound(b"-")?, None);
/// assert_eq!(decode_bound(b"apple")?, Some(b"apple".to_vec()));
/// # Ok::<(), esker_port::token::TokenError>(())
/// ```
pub fn decode_bound(token: &[u8]) -> Result<Option<Vec<u8>>, TokenError> {
    if token == b"-" { Ok(None) } else { decode(token).map(Some) }
}

/// The made-up value of `len` bytes for `key`: a SplitMix64 stream, eight little-endian bytes at
/// a time, that starts at the FNV-1a hash of the key plus the length. Scripts in any language can
/// compute it again to check what they read.
///
/// # Example
/// ```
/// use esker_port::token::pseudo_random;
/// assert_eq!(pseudo_random(100, b"apple"), pseudo_random(100, b"apple"));
/// assert_ne!(pseudo_random(100, b"apple"), pseudo_random(100, b"pear"));
/// ```
pub fn pseudo_random(len: u64, key: &[u8]) -> Vec<u8> {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut state = hash.wrapping_add(len);
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while (bytes.len() as u64) < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    bytes.truncate(len as usize);
    bytes
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::from("0x");
    digits_to(bytes, &mut text);
    text
}

fn digits_to(bytes: &[u8], text: &mut String) {
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

fn malformed(token: &[u8], remedy: &str) -> TokenError {
    // Values may be secret and long: only the start of the token is repeated.
    let shown: String =
        token.iter().take(16).map(|&byte| byte.escape_ascii().to_string()).collect();
    let more = if token.len() > 16 { "…" } else { "" };
    TokenError::Malformed(format!("bad token {shown}{more}: {remedy}"))
}

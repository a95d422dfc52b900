//! The lines of the text form.
//!
//! A line begins with a word; keys, values and names are tokens. Each frame ends with a line
//! `check`, whose number covers all bytes of the stream before that line.

use super::frame::{Entries, Frame, KeyspaceInfo, Totals};
use super::{Header, VERSION};
use crate::token;
use esker::internals::base::limits::{KEY_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};
use std::fmt::Write as _;
use std::time::Duration;

/// The first word of the first line.
pub const MAGIC: &[u8] = b"esker-dump ";
/// A line has at most this many bytes: the largest entry in hexadecimal, and the words around it.
pub const LINE_BYTES_MAX: u64 = 2 * (VALUE_BYTES_MAX + KEY_BYTES_MAX as u64) + 64;

const ODD: &str = "a line is not as it is written";

/// The lines of the header.
pub fn header(header: &Header) -> String {
    format!(
        "esker-dump {VERSION}\ndump {:032x}\ndatabase {:032x}\nposition {}\nselection {:016x}\n",
        u128::from_be_bytes(header.dump),
        u128::from_be_bytes(header.database),
        header.position,
        header.selection,
    )
}

/// Reads one of the header's lines behind the first; they stand in this order.
pub fn header_line(index: usize, line: &[u8], header: &mut Header) -> Result<(), &'static str> {
    let line = std::str::from_utf8(line).map_err(|_| ODD)?;
    let (word, rest) = line.split_once(' ').ok_or(ODD)?;
    let id = || u128::from_str_radix(rest, 16).map(u128::to_be_bytes).map_err(|_| ODD);
    match (index, word) {
        (0, "dump") => header.dump = id()?,
        (1, "database") => header.database = id()?,
        (2, "position") => header.position = rest.parse().map_err(|_| ODD)?,
        (3, "selection") => header.selection = u64::from_str_radix(rest, 16).map_err(|_| ODD)?,
        _ => return Err(ODD),
    }
    Ok(())
}

/// How many lines follow the first in a header.
pub const HEADER_LINES: usize = 4;

/// The lines of a frame.
pub fn frame(frame: &Frame, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = match frame {
        Frame::Keyspace(info) => {
            let _ = write!(out, "keyspace {}", token::encode(info.name.as_bytes()));
            let names = [("comparator", &info.comparator), ("operator", &info.merge_operator)];
            for (word, name) in names {
                if let Some(name) = name {
                    let _ = write!(out, " {word} {}", token::encode(name.as_bytes()));
                }
            }
            if let Some(ttl) = info.ttl_millis() {
                let _ = write!(out, " ttl {ttl}");
            }
            out.push('\n');
            Ok(())
        }
        Frame::Entries(entries) => {
            for (key, value) in entries.iter() {
                out.push_str("+ ");
                token::encode_to(key, out);
                out.push(' ');
                token::encode_to(value, out);
                out.push('\n');
            }
            Ok(())
        }
        Frame::End(totals) => writeln!(
            out,
            "end keyspaces {} entries {} bytes {} content {:016x}",
            totals.keyspaces, totals.entries, totals.bytes, totals.content
        ),
    };
}

/// Adds a line to the frame that is being read. A frame holds entries, or one other line.
pub fn line(line: &[u8], frame: &mut Option<Frame>) -> Result<(), &'static str> {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    match (words.as_slice(), &mut *frame) {
        ([b"+", key, value], None | Some(Frame::Entries(_))) => {
            let entry = frame.get_or_insert_with(|| Frame::Entries(Entries::default()));
            let Frame::Entries(entries) = entry else { return Err(ODD) };
            let key = token::decode(key).map_err(|_| ODD)?;
            let value = token::decode(value).map_err(|_| ODD)?;
            if key.len() > KEY_BYTES_MAX || value.len() as u64 > VALUE_BYTES_MAX {
                return Err("a key or value is longer than any can be");
            }
            entries.push(&key, &value);
            if entries.body().len() > super::BODY_BYTES_MAX {
                return Err("a frame is longer than any can be");
            }
        }
        ([b"keyspace", name, properties @ ..], None) => {
            *frame = Some(Frame::Keyspace(keyspace(name, properties)?));
        }
        ([b"end", rest @ ..], None) => *frame = Some(Frame::End(totals(rest)?)),
        _ => return Err(ODD),
    }
    Ok(())
}

fn keyspace(name: &[u8], properties: &[&[u8]]) -> Result<KeyspaceInfo, &'static str> {
    let mut info = KeyspaceInfo::named(self::name(name)?, None);
    for property in properties.chunks(2) {
        match property {
            [b"comparator", name] if info.comparator.is_none() => {
                info.comparator = Some(self::name(name)?);
            }
            [b"operator", name] if info.merge_operator.is_none() => {
                info.merge_operator = Some(self::name(name)?);
            }
            [b"ttl", millis] if info.ttl.is_none() => {
                let millis = std::str::from_utf8(millis).map_err(|_| ODD)?;
                info.ttl = Some(Duration::from_millis(millis.parse().map_err(|_| ODD)?));
            }
            _ => return Err("a keyspace has a property that is not known"),
        }
    }
    Ok(info)
}

fn name(token: &[u8]) -> Result<String, &'static str> {
    let name = token::decode(token).map_err(|_| ODD)?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err("a name has 1 to 255 bytes");
    }
    String::from_utf8(name).map_err(|_| "a name is not UTF-8")
}

fn totals(words: &[&[u8]]) -> Result<Totals, &'static str> {
    let number = |bytes: &[u8], radix| {
        let text = std::str::from_utf8(bytes).map_err(|_| ODD)?;
        u64::from_str_radix(text, radix).map_err(|_| ODD)
    };
    let [b"keyspaces", keyspaces, b"entries", entries, b"bytes", bytes, b"content", content] =
        words
    else {
        return Err(ODD);
    };
    Ok(Totals {
        keyspaces: number(keyspaces, 10)?,
        entries: number(entries, 10)?,
        bytes: number(bytes, 10)?,
        content: number(content, 16)?,
    })
}

//! Events as lines of JSON.
//!
//! An event is one object on one line: `time`, `seq` and `event` come first, then the fields of its
//! kind. Numbers are whole, durations are in microseconds, a field without a value is left out.
//! Texts are cut at [`TEXT_MAX`] bytes, so a line has a bounded length.

use std::fmt::Write;
use std::time::Duration;

/// Longer texts are cut.
pub const TEXT_MAX: usize = 1024;

/// A value of a field.
pub(super) trait Field {
    /// What follows the name of such a field in JSON.
    const SUFFIX: &'static str = "";

    /// Encodes the value.
    fn encode(&self, out: &mut String);

    /// Whether the field is left out.
    fn is_absent(&self) -> bool {
        false
    }

    /// The value as `tracing` takes it.
    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_;

    /// Encodes the field as a member, after a comma.
    fn member(&self, name: &str, out: &mut String) {
        if self.is_absent() {
            return;
        }
        out.push_str(",\"");
        out.push_str(name);
        out.push_str(Self::SUFFIX);
        out.push_str("\":");
        self.encode(out);
    }
}

impl Field for u64 {
    fn encode(&self, out: &mut String) {
        // Writing into a string does not fail.
        let _ = write!(out, "{self}");
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        *self
    }
}

impl Field for bool {
    fn encode(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        *self
    }
}

impl Field for Duration {
    const SUFFIX: &'static str = "_us";

    fn encode(&self, out: &mut String) {
        micros(self).encode(out);
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        micros(self)
    }
}

impl Field for &'static str {
    fn encode(&self, out: &mut String) {
        text(self, out);
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        *self
    }
}

impl Field for String {
    fn encode(&self, out: &mut String) {
        text(self, out);
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        self.as_str()
    }
}

impl<F: Field> Field for Option<F> {
    const SUFFIX: &'static str = F::SUFFIX;

    fn encode(&self, out: &mut String) {
        if let Some(value) = self {
            value.encode(out);
        }
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        self.as_ref().map(Field::traced)
    }
}

/// An object of durations.
impl Field for Vec<(&'static str, Duration)> {
    const SUFFIX: &'static str = "_us";

    fn encode(&self, out: &mut String) {
        out.push('{');
        for (index, (name, duration)) in self.iter().enumerate() {
            out.push_str(if index > 0 { ",\"" } else { "\"" });
            out.push_str(name);
            out.push_str("\":");
            duration.encode(out);
        }
        out.push('}');
    }

    #[cfg(feature = "tracing")]
    fn traced(&self) -> impl tracing::Value + '_ {
        tracing::field::debug(self)
    }
}

fn micros(duration: &Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Encodes a text, cut at [`TEXT_MAX`] bytes.
fn text(text: &str, out: &mut String) {
    out.push('"');
    let fits = |(at, character): &(usize, char)| at + character.len_utf8() <= TEXT_MAX;
    for (_, character) in text.char_indices().take_while(fits) {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            // Control characters, and what some readers take for the end of a line.
            odd if odd.is_control() || ['\u{2028}', '\u{2029}'].contains(&odd) => {
                let _ = write!(out, "\\u{:04x}", u32::from(odd));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

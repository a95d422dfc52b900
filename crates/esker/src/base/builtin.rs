//! Built-in merge operators. They need not be registered: the engine knows their names.

use crate::base::{Associative, AssociativeOperator, MergeOperator, OperatorResult};
use std::sync::Arc;

/// The built-in operator with this name, if there is one.
pub fn builtin(name: &str) -> Option<Arc<dyn MergeOperator>> {
    Some(match name {
        CounterU64::NAME => Arc::new(Associative(CounterU64)),
        CounterI64::NAME => Arc::new(Associative(CounterI64)),
        Max::NAME => Arc::new(Associative(Max)),
        _ => Arc::new(Associative(Append::named(name)?)),
    })
}

macro_rules! counter {
    ($(#[$meta:meta])* $type:ident, $number:ty, $name:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $type;

        impl $type {
            /// The name of the operator.
            pub const NAME: &'static str = $name;

            /// A number as a value or operand.
            pub fn encode(number: $number) -> [u8; 8] {
                number.to_le_bytes()
            }

            /// The number that a value holds; `None` unless it has 8 bytes.
            pub fn decode(value: &[u8]) -> Option<$number> {
                value.try_into().ok().map(<$number>::from_le_bytes)
            }
        }

        impl AssociativeOperator for $type {
            fn name(&self) -> &str {
                Self::NAME
            }

            fn merge(&self, _: &[u8], existing: &[u8], operand: &[u8]) -> OperatorResult<Vec<u8>> {
                let (Some(a), Some(b)) = (Self::decode(existing), Self::decode(operand)) else {
                    let lengths = (existing.len(), operand.len());
                    let (value, operand) = lengths;
                    let what = format!("a counter has 8 bytes, not {value} and {operand}");
                    return Err(what.into());
                };
                Ok(a.wrapping_add(b).to_le_bytes().to_vec())
            }

            fn check_operand(&self, operand: &[u8]) -> OperatorResult<()> {
                match Self::decode(operand) {
                    Some(_) => Ok(()),
                    None => Err(format!("a counter has 8 bytes, not {}", operand.len()).into()),
                }
            }
        }
    };
}

counter! {
    /// Adds unsigned 64-bit numbers, stored little-endian; wraps around at 2^64.
    ///
    /// # Example
    /// ```
    /// use esker::{CounterU64, KeyspaceOptions};
    /// # let dir = std::env::temp_dir().join(format!("esker-doc-u64-{}", std::process::id()));
    /// let db = esker::Db::open(&dir)?;
    /// let visits = db.keyspace_with("visits", KeyspaceOptions::merging(CounterU64::NAME))?;
    /// visits.merge("home", CounterU64::encode(1))?;
    /// visits.merge("home", CounterU64::encode(2))?;
    /// assert_eq!(visits.get("home")?.as_deref().and_then(CounterU64::decode), Some(3));
    /// # db.close()?; std::fs::remove_dir_all(&dir).ok();
    /// # Ok::<(), esker::Error>(())
    /// ```
    CounterU64, u64, "esker.counter-u64"
}

counter! {
    /// Adds signed 64-bit numbers, stored little-endian; wraps around at both ends.
    CounterI64, i64, "esker.counter-i64"
}

/// Keeps the greatest value in byte order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Max;

impl Max {
    /// The name of the operator.
    pub const NAME: &'static str = "esker.max";
}

impl AssociativeOperator for Max {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn merge(&self, _: &[u8], existing: &[u8], operand: &[u8]) -> OperatorResult<Vec<u8>> {
        Ok(existing.max(operand).to_vec())
    }
}

/// Appends operands, with a separator in between.
///
/// # Example
/// ```
/// use esker::{Append, KeyspaceOptions};
/// # let dir = std::env::temp_dir().join(format!("esker-doc-append-{}", std::process::id()));
/// let db = esker::Db::open(&dir)?;
/// let tags = db.keyspace_with("tags", KeyspaceOptions::merging(Append::new(", ").name()))?;
/// tags.merge("page", "red")?;
/// tags.merge("page", "round")?;
/// assert_eq!(tags.get("page")?.as_deref(), Some(&b"red, round"[..]));
/// # db.close()?; std::fs::remove_dir_all(&dir).ok();
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Append {
    separator: Vec<u8>,
    name: String,
}

impl Append {
    const PREFIX: &'static str = "esker.append:";
    /// Longer separators are cut, so that the name stays within its limit.
    const SEPARATOR_BYTES_MAX: usize = 64;

    /// An operator that puts `separator` between operands. Only its first 64 bytes are used.
    pub fn new(separator: impl AsRef<[u8]>) -> Self {
        let separator = separator.as_ref();
        let separator = separator[..separator.len().min(Self::SEPARATOR_BYTES_MAX)].to_vec();
        let hex: String = separator.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { separator, name: format!("{}{hex}", Self::PREFIX) }
    }

    /// The name of the operator, which contains the separator in hexadecimal digits.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operator with this name, if it is one.
    fn named(name: &str) -> Option<Self> {
        let hex = name.strip_prefix(Self::PREFIX)?.as_bytes();
        if !hex.len().is_multiple_of(2) || hex.len() > 2 * Self::SEPARATOR_BYTES_MAX {
            return None;
        }
        let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let separator = hex.chunks_exact(2).map(byte).collect::<Option<Vec<u8>>>()?;
        Some(Self::new(separator)).filter(|append| append.name == name)
    }
}

impl AssociativeOperator for Append {
    fn name(&self) -> &str {
        &self.name
    }

    fn merge(&self, _: &[u8], existing: &[u8], operand: &[u8]) -> OperatorResult<Vec<u8>> {
        Ok([existing, &self.separator, operand].concat())
    }
}

#[cfg(test)]
mod tests;

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

/// Adds unsigned 64-bit numbers, stored little-endian; wraps around at 2^64.
///
/// # Example
/// ```
/// use esker::{CounterU64, KeyspaceOptions};
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// let visits = db.keyspace_with("visits", KeyspaceOptions::merging(CounterU64::NAME))?;
/// visits.merge("home", CounterU64::encode(1))?;
/// visits.merge("home", CounterU64::encode(2))?;
/// assert_eq!(visits.get("home")?.as_deref().and_then(CounterU64::decode), Some(3));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CounterU64;

impl CounterU64 {
    /// The name of the operator.
    pub const NAME: &'static str = "esker.counter-u64";

    /// A number as a value or operand.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::CounterU64::encode(258), [2, 1, 0, 0, 0, 0, 0, 0]);
    /// ```
    pub fn encode(number: u64) -> [u8; 8] {
        number.to_le_bytes()
    }

    /// The number that a value holds; `None` unless it has 8 bytes.
    ///
    /// # Example
    /// ```
    /// use esker::CounterU64;
    /// assert_eq!(CounterU64::decode(&[2, 1, 0, 0, 0, 0, 0, 0]), Some(258));
    /// assert_eq!(CounterU64::decode(b"258"), None);
    /// ```
    pub fn decode(value: &[u8]) -> Option<u64> {
        value.try_into().ok().map(u64::from_le_bytes)
    }
}

/// Adds signed 64-bit numbers, stored little-endian; wraps around at both ends.
///
/// # Example
/// ```
/// use esker::{CounterI64, KeyspaceOptions};
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let stock = db.keyspace_with("stock", KeyspaceOptions::merging(CounterI64::NAME))?;
/// stock.merge("nails", CounterI64::encode(100))?;
/// stock.merge("nails", CounterI64::encode(-30))?;
/// assert_eq!(stock.get_with("nails", CounterI64::decode)?, Some(Some(70)));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CounterI64;

impl CounterI64 {
    /// The name of the operator.
    pub const NAME: &'static str = "esker.counter-i64";

    /// A number as a value or operand.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::CounterI64::encode(-1), [255; 8]);
    /// ```
    pub fn encode(number: i64) -> [u8; 8] {
        number.to_le_bytes()
    }

    /// The number that a value holds; `None` unless it has 8 bytes.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::CounterI64::decode(&[255; 8]), Some(-1));
    /// ```
    pub fn decode(value: &[u8]) -> Option<i64> {
        value.try_into().ok().map(i64::from_le_bytes)
    }
}

macro_rules! adds {
    ($type:ident) => {
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

adds!(CounterU64);
adds!(CounterI64);

/// Keeps the greatest value in byte order.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// use esker::{KeyspaceOptions, Max};
/// let latest = db.keyspace_with("latest", KeyspaceOptions::merging(Max::NAME))?;
/// latest.merge("backup", "2025-03-01")?;
/// latest.merge("backup", "2025-01-31")?; // Came late, and changes nothing.
/// assert_eq!(latest.get("backup")?, Some(b"2025-03-01".to_vec()));
/// # Ok::<(), esker::Error>(())
/// ```
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
/// # let dir = tempfile::tempdir().unwrap();
/// let db = esker::Db::open(&dir)?;
/// let tags = db.keyspace_with("tags", KeyspaceOptions::merging(Append::new(", ").name()))?;
/// tags.merge("page", "red")?;
/// tags.merge("page", "round")?;
/// assert_eq!(tags.get("page")?.as_deref(), Some(&b"red, round"[..]));
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
    ///
    /// # Example
    /// ```
    /// use esker::{Append, AssociativeOperator};
    /// let words = Append::new(" ");
    /// assert_eq!(words.merge(b"key", b"one", b"two")?, b"one two");
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// ```
    pub fn new(separator: impl AsRef<[u8]>) -> Self {
        let separator = separator.as_ref();
        let separator = separator[..separator.len().min(Self::SEPARATOR_BYTES_MAX)].to_vec();
        let hex: String = separator.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { separator, name: format!("{}{hex}", Self::PREFIX) }
    }

    /// The name of the operator, which contains the separator in hexadecimal digits.
    ///
    /// # Example
    /// ```
    /// assert_eq!(esker::Append::new(",").name(), "esker.append:2c");
    /// ```
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

//! Merge operators: how an operand changes a value. Operators are known by name.

use crate::error::{Error, Result};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// The result of user code, which may return any error with `?`.
///
/// # Example
/// ```
/// fn number(operand: &[u8]) -> esker::OperatorResult<i64> {
///     Ok(std::str::from_utf8(operand)?.parse()?) // Any error will do.
/// }
/// assert!(number(b"12").is_ok() && number(b"a dozen").is_err());
/// ```
pub type OperatorResult<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How operands change a value: `Keyspace::merge` writes an operand without reading, and readers
/// and compactions apply it later.
///
/// The same arguments must always give the same result, for as long as the name is stored, and an
/// operator must not read or change anything else. It may be called from any thread, at any time,
/// and more than once for the same operands. Readers of the key get its errors and panics as
/// errors; the operands are kept until an operator accepts them.
///
/// # Example
/// ```
/// use esker::{MergeOperator, OperatorResult};
/// /// Keeps the last three values.
/// struct LastThree;
/// impl MergeOperator for LastThree {
///     fn name(&self) -> &str { "last-three" }
///     fn full_merge(
///         &self,
///         _key: &[u8],
///         existing: Option<&[u8]>,
///         operands: &[&[u8]],
///     ) -> OperatorResult<Option<Vec<u8>>> {
///         let old = existing.into_iter().flat_map(|old| old.split(|byte| *byte == b' '));
///         let all: Vec<&[u8]> = old.chain(operands.iter().copied()).collect();
///         Ok(Some(all[all.len().saturating_sub(3)..].join(&b' ')))
///     }
/// }
/// # let dir = tempfile::tempdir().unwrap();
/// let mut options = esker::Options::default();
/// options.merge_operators.push(std::sync::Arc::new(LastThree));
/// let db = esker::Db::open_with(&dir, options)?;
/// let logins = db.keyspace_with("logins", esker::KeyspaceOptions::merging("last-three"))?;
/// for day in ["mon", "tue", "wed", "thu"] {
///     logins.merge("anna", day)?;
/// }
/// assert_eq!(logins.get("anna")?.as_deref(), Some(&b"tue wed thu"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
pub trait MergeOperator: Send + Sync + 'static {
    /// The name that is stored with the keyspace and looked up at open; 1 to 255 bytes.
    fn name(&self) -> &str;

    /// Applies `operands` (at least one, from old to new) to the value `existing` of `key`, and
    /// returns the new value. `Ok(None)`: the key then has no value.
    ///
    /// # Errors
    /// What is wrong with the operands; readers get it as `Error::MergeFailed`.
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> OperatorResult<Option<Vec<u8>>>;

    /// Checks whether an operand can be applied at all. Writes call this first, so the writer gets
    /// the error of a malformed operand, not every later reader of the key. By default every
    /// operand passes.
    ///
    /// # Errors
    /// What is wrong with it; the writer gets it as `Error::MergeFailed`.
    ///
    /// # Example
    /// ```
    /// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
    /// use esker::{CounterU64, Error, KeyspaceOptions};
    /// let visits = db.keyspace_with("visits", KeyspaceOptions::merging(CounterU64::NAME))?;
    /// // This operator refuses what is not a number of eight bytes.
    /// assert!(matches!(visits.merge("home", "one"), Err(Error::MergeFailed { .. })));
    /// assert_eq!(visits.get("home")?, None);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn check_operand(&self, operand: &[u8]) -> OperatorResult<()> {
        let _ = operand;
        Ok(())
    }

    /// One operand with the effect of `operands` (at least two, from old to new), if there is one.
    /// It saves space where the value is not available.
    ///
    /// # Example
    /// ```
    /// use esker::{Associative, CounterU64, MergeOperator};
    /// let (two, three) = (CounterU64::encode(2), CounterU64::encode(3));
    /// let sum = Associative(CounterU64).partial_merge(b"key", &[&two, &three]);
    /// assert_eq!(sum, Some(CounterU64::encode(5).to_vec()));
    /// ```
    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let _ = (key, operands);
        None
    }
}

/// An associative merge operator, whose operands are values. [`Associative`] makes a
/// [`MergeOperator`] of it.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use esker::{Associative, AssociativeOperator, OperatorResult};
/// /// Keeps the longest value.
/// struct Longest;
/// impl AssociativeOperator for Longest {
///     fn name(&self) -> &str { "longest" }
///     fn merge(&self, _: &[u8], existing: &[u8], operand: &[u8]) -> OperatorResult<Vec<u8>> {
///         Ok(if operand.len() > existing.len() { operand } else { existing }.to_vec())
///     }
///     fn check_operand(&self, operand: &[u8]) -> OperatorResult<()> {
///         if operand.is_empty() { Err("an empty name is no name".into()) } else { Ok(()) }
///     }
/// }
/// let mut options = esker::Options::default();
/// options.merge_operators.push(std::sync::Arc::new(Associative(Longest)));
/// let db = esker::Db::open_with(&dir, options)?;
/// let names = db.keyspace_with("names", esker::KeyspaceOptions::merging("longest"))?;
/// names.merge("1", "Ann")?;
/// names.merge("1", "Ann Smith")?;
/// assert!(names.merge("1", "").is_err());
/// assert_eq!(names.get("1")?, Some(b"Ann Smith".to_vec()));
/// # Ok::<(), esker::Error>(())
/// ```
pub trait AssociativeOperator: Send + Sync + 'static {
    /// As [`MergeOperator::name`].
    fn name(&self) -> &str;

    /// Applies `operand` to `existing`. If there is no value, the operand becomes the value.
    ///
    /// # Errors
    /// As [`MergeOperator::full_merge`].
    fn merge(&self, key: &[u8], existing: &[u8], operand: &[u8]) -> OperatorResult<Vec<u8>>;

    /// As [`MergeOperator::check_operand`].
    ///
    /// # Errors
    /// What is wrong with the operand.
    fn check_operand(&self, operand: &[u8]) -> OperatorResult<()> {
        let _ = operand;
        Ok(())
    }
}

/// An [`AssociativeOperator`] as a [`MergeOperator`].
///
/// # Example
/// ```
/// use esker::{Associative, AssociativeOperator, MergeOperator, OperatorResult};
/// struct Longest;
/// impl AssociativeOperator for Longest {
///     fn name(&self) -> &str { "longest" }
///     fn merge(&self, _: &[u8], existing: &[u8], operand: &[u8]) -> OperatorResult<Vec<u8>> {
///         Ok(if operand.len() > existing.len() { operand } else { existing }.to_vec())
///     }
/// }
/// let operator = Associative(Longest);
/// assert_eq!(operator.full_merge(b"k", None, &[b"a", b"bcd", b"ef"])?.as_deref(), Some(&b"bcd"[..]));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Associative<T>(pub T);

impl<T: AssociativeOperator> MergeOperator for Associative<T> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> OperatorResult<Option<Vec<u8>>> {
        let mut rest = operands.iter();
        let first = existing.or_else(|| rest.next().copied()).map(<[u8]>::to_vec);
        let Some(mut value) = first else { return Ok(None) };
        for operand in rest {
            value = self.0.merge(key, &value, operand)?;
        }
        Ok(Some(value))
    }

    fn check_operand(&self, operand: &[u8]) -> OperatorResult<()> {
        self.0.check_operand(operand)
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        // Operands that cannot be combined are kept; readers of the key get the error.
        self.full_merge(key, None, operands).ok().flatten()
    }
}

/// The merge operator of a keyspace, behind a guard that catches its panics (R15).
pub struct Operator {
    keyspace: String,
    name: String,
    code: Option<Arc<dyn MergeOperator>>,
}

impl Operator {
    /// The operator called `name` of a keyspace; without code it combines nothing. An empty name
    /// means that the keyspace has none.
    pub fn new(keyspace: &str, name: &str, code: Option<Arc<dyn MergeOperator>>) -> Self {
        Self { keyspace: keyspace.to_owned(), name: name.to_owned(), code }
    }

    /// The stored name; empty if there is none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the operator's code was given.
    pub fn is_there(&self) -> bool {
        self.code.is_some()
    }

    /// The error of a keyspace whose operator was not given.
    pub fn missing(&self) -> Error {
        let (keyspace, operator) = (self.keyspace.clone(), self.name.clone());
        Error::MergeOperatorMissing { keyspace, operator }
    }

    fn guarded<T>(&self, call: impl FnOnce(&dyn MergeOperator) -> T) -> Result<T> {
        let code = self.code.as_deref().ok_or_else(|| self.missing())?;
        std::panic::catch_unwind(AssertUnwindSafe(|| call(code))).map_err(|_| {
            let what = format!("merge operator {:?} of keyspace {:?}", self.name, self.keyspace);
            Error::UserCodePanicked { what }
        })
    }

    /// See [`MergeOperator::full_merge`].
    pub fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        let merged = self.guarded(|code| code.full_merge(key, existing, operands))?;
        merged.map_err(|error| self.failed(&*error))
    }

    /// See [`MergeOperator::check_operand`]. Without the operator's code every operand passes.
    pub fn check_operand(&self, operand: &[u8]) -> Result<()> {
        // Seeded: a malformed operand is accepted and makes its key unreadable.
        bug!("base_operands_not_checked", return Ok(()));
        if !self.is_there() {
            return Ok(());
        }
        let checked = self.guarded(|code| code.check_operand(operand))?;
        checked.map_err(|error| self.failed(&*error))
    }

    fn failed(&self, error: &dyn std::error::Error) -> Error {
        Error::MergeFailed {
            keyspace: self.keyspace.clone(),
            operator: self.name.clone(),
            detail: error.to_string(),
        }
    }

    /// See [`MergeOperator::partial_merge`]; a panic means that there is no such operand.
    pub fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        self.guarded(|code| code.partial_merge(key, operands)).ok().flatten()
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Operator").field(&self.name).finish()
    }
}

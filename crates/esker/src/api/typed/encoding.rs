//! How types become bytes.
//!
//! Keys keep their order: `a < b` exactly if the bytes of `a` are less than those of `b`. Unsigned numbers have their
//! greatest byte first, signed ones also have their sign bit inverted, and floating-point numbers have the order of
//! `total_cmp`. A string that is the last part of a key is stored as it is; one behind which something follows ends
//! with two zero bytes, and each zero byte within it is followed by 0xFF, as in the tuple layer of FoundationDB
//! (<https://apple.github.io/foundationdb/data-modeling.html#tuples>).

/// How a type is stored as a key, or as a part of one.
///
/// A type of a program implements [`KeyCodec::write`] and [`KeyCodec::read`] with those of its parts, one after the
/// other.
///
/// # Example
/// ```
/// use esker::{KeyCodec, Typed};
/// #[derive(Debug, PartialEq)]
/// struct Reading {
///     sensor: u16,
///     second: u64,
/// }
/// impl KeyCodec for Reading {
///     fn write(&self, out: &mut Vec<u8>) {
///         self.sensor.write(out);
///         self.second.write(out);
///     }
///     fn read(bytes: &mut &[u8]) -> Option<Self> {
///         Some(Self { sensor: u16::read(bytes)?, second: u64::read(bytes)? })
///     }
/// }
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let readings = Typed::<Reading, f32>::new(db.keyspace("readings")?);
/// readings.insert(Reading { sensor: 2, second: 0 }, 20.5)?;
/// assert_eq!(readings.first()?, Some((Reading { sensor: 2, second: 0 }, 20.5)));
/// # Ok::<(), esker::Error>(())
/// ```
pub trait KeyCodec: Sized {
    /// Appends the bytes, behind which others may follow.
    fn write(&self, out: &mut Vec<u8>);

    /// Takes the bytes of one value from the front; `None`: they are not those of this type.
    fn read(bytes: &mut &[u8]) -> Option<Self>;

    /// Appends the bytes, behind which nothing follows.
    ///
    /// # Example
    /// ```
    /// use esker::KeyCodec;
    /// let (mut part, mut last) = (Vec::new(), Vec::new());
    /// "a".to_owned().write(&mut part);
    /// "a".to_owned().write_last(&mut last);
    /// assert_eq!((&part[..], &last[..]), (&b"a\0\0"[..], &b"a"[..]));
    /// ```
    fn write_last(&self, out: &mut Vec<u8>) {
        self.write(out);
    }

    /// Reads what [`KeyCodec::write_last`] wrote; it takes all bytes.
    ///
    /// # Example
    /// ```
    /// use esker::KeyCodec;
    /// let mut bytes = &b"text"[..];
    /// assert_eq!(String::read_last(&mut bytes).as_deref(), Some("text"));
    /// assert!(bytes.is_empty());
    /// ```
    fn read_last(bytes: &mut &[u8]) -> Option<Self> {
        Self::read(bytes)
    }

    /// Reads a whole key; `None`: it is not one of this type, or something is left behind it.
    ///
    /// # Example
    /// ```
    /// use esker::KeyCodec;
    /// assert_eq!(u16::read_key(&[1, 2]), Some(258));
    /// assert_eq!(u16::read_key(&[1, 2, 3]), None);
    /// ```
    fn read_key(mut bytes: &[u8]) -> Option<Self> {
        let key = Self::read_last(&mut bytes)?;
        bytes.is_empty().then_some(key)
    }
}

/// How a type is stored as a value. Whatever can be a key can also be a value; a type of a program implements this
/// where its values need no order, for instance with a serialization library.
///
/// # Example
/// ```
/// use esker::{Typed, ValueCodec};
/// #[derive(Debug, PartialEq)]
/// struct Point(f64, f64);
/// impl ValueCodec for Point {
///     fn write_value(&self, out: &mut Vec<u8>) {
///         out.extend_from_slice(format!("{} {}", self.0, self.1).as_bytes());
///     }
///     fn read_value(bytes: &[u8]) -> Option<Self> {
///         let (x, y) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
///         Some(Self(x.parse().ok()?, y.parse().ok()?))
///     }
/// }
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let places = Typed::<String, Point>::new(db.keyspace("places")?);
/// places.insert("here", Point(1.5, -2.0))?;
/// assert_eq!(places.get("here")?, Some(Point(1.5, -2.0)));
/// # Ok::<(), esker::Error>(())
/// ```
pub trait ValueCodec: Sized {
    /// Appends the bytes.
    fn write_value(&self, out: &mut Vec<u8>);

    /// Reads a whole value; `None`: it is not one of this type.
    fn read_value(bytes: &[u8]) -> Option<Self>;
}

impl<T: KeyCodec> ValueCodec for T {
    fn write_value(&self, out: &mut Vec<u8>) {
        self.write_last(out);
    }

    fn read_value(bytes: &[u8]) -> Option<Self> {
        Self::read_key(bytes)
    }
}

/// What can be given as a key of type `K`: a `K`, a reference to one, a `&str` for a `String`, a `&[u8]` for a
/// `Vec<u8>`.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let ages = esker::Typed::<String, u8>::new(db.keyspace("ages")?);
/// let ann = "ann".to_owned();
/// ages.insert(&ann, 31)?;
/// assert_eq!(ages.get("ann")?, ages.get(ann)?);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait KeyFor<K> {
    /// Appends the bytes of the key.
    ///
    /// # Example
    /// ```
    /// use esker::KeyFor;
    /// let mut bytes = Vec::new();
    /// KeyFor::<String>::write_key(&"ann", &mut bytes);
    /// assert_eq!(bytes, b"ann");
    /// ```
    fn write_key(&self, out: &mut Vec<u8>);
}

impl<K: KeyCodec> KeyFor<K> for K {
    fn write_key(&self, out: &mut Vec<u8>) {
        self.write_last(out);
    }
}

impl<K: KeyCodec> KeyFor<K> for &K {
    fn write_key(&self, out: &mut Vec<u8>) {
        self.write_last(out);
    }
}

impl KeyFor<String> for &str {
    fn write_key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

impl KeyFor<Vec<u8>> for &[u8] {
    fn write_key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

/// What can be given as a value of type `V`: a `V`, a reference to one, a `&str` for a `String`, a `&[u8]` for a
/// `Vec<u8>`.
///
/// # Example
/// ```
/// # let dir = tempfile::tempdir().unwrap(); let db = esker::Db::open(&dir)?;
/// let names = esker::Typed::<u32, String>::new(db.keyspace("names")?);
/// names.insert(1, "ann")?;
/// names.insert(2, "bob".to_owned())?;
/// # Ok::<(), esker::Error>(())
/// ```
pub trait ValueFor<V> {
    /// Appends the bytes of the value.
    ///
    /// # Example
    /// ```
    /// use esker::ValueFor;
    /// let mut bytes = Vec::new();
    /// ValueFor::<String>::write_value(&"ann", &mut bytes);
    /// assert_eq!(bytes, b"ann");
    /// ```
    fn write_value(&self, out: &mut Vec<u8>);
}

impl<V: ValueCodec> ValueFor<V> for V {
    fn write_value(&self, out: &mut Vec<u8>) {
        ValueCodec::write_value(self, out);
    }
}

impl<V: ValueCodec> ValueFor<V> for &V {
    fn write_value(&self, out: &mut Vec<u8>) {
        ValueCodec::write_value(*self, out);
    }
}

impl ValueFor<String> for &str {
    fn write_value(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

impl ValueFor<Vec<u8>> for &[u8] {
    fn write_value(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

/// Takes bytes of a fixed number from the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl KeyCodec for $type {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                take(bytes).map(Self::from_be_bytes)
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64, u128);

/// Types that are stored as an unsigned number of the same order.
macro_rules! through {
    ($($type:ty as $number:ty: $to:expr, $from:expr;)*) => {$(
        impl KeyCodec for $type {
            fn write(&self, out: &mut Vec<u8>) {
                let to: fn($type) -> $number = $to;
                to(*self).write(out);
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let from: fn($number) -> Option<$type> = $from;
                <$number>::read(bytes).and_then(from)
            }
        }
    )*};
}

through! {
    i8 as u8: |n| n as u8 ^ (1 << 7), |n| Some((n ^ (1 << 7)) as i8);
    i16 as u16: |n| n as u16 ^ (1 << 15), |n| Some((n ^ (1 << 15)) as i16);
    i32 as u32: |n| n as u32 ^ (1 << 31), |n| Some((n ^ (1 << 31)) as i32);
    i64 as u64: |n| n as u64 ^ (1 << 63), |n| Some((n ^ (1 << 63)) as i64);
    i128 as u128: |n| n as u128 ^ (1 << 127), |n| Some((n ^ (1 << 127)) as i128);
    // Of negative numbers all bits are inverted: the greater their amount, the less they are.
    f32 as u32: |x| x.to_bits() ^ (((x.to_bits() as i32 >> 31) as u32) | 1 << 31),
        |n| Some(f32::from_bits(n ^ ((((n ^ 1 << 31) as i32 >> 31) as u32) | 1 << 31)));
    f64 as u64: |x| x.to_bits() ^ (((x.to_bits() as i64 >> 63) as u64) | 1 << 63),
        |n| Some(f64::from_bits(n ^ ((((n ^ 1 << 63) as i64 >> 63) as u64) | 1 << 63)));
    bool as u8: |yes| u8::from(yes), |n| (n < 2).then_some(n == 1);
    char as u32: |c| u32::from(c), char::from_u32;
}

impl<const N: usize> KeyCodec for [u8; N] {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes)
    }
}

impl KeyCodec for () {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

/// Appends bytes behind which others may follow.
fn write_delimited(bytes: &[u8], out: &mut Vec<u8>) {
    for part in bytes.split_inclusive(|byte| *byte == 0) {
        out.extend_from_slice(part);
        if part.ends_with(&[0]) {
            out.push(0xFF);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

impl KeyCodec for Vec<u8> {
    fn write(&self, out: &mut Vec<u8>) {
        write_delimited(self, out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let mut read = Vec::new();
        loop {
            let zero = bytes.iter().position(|byte| *byte == 0)?;
            let (part, rest) = bytes.split_at(zero);
            read.extend_from_slice(part);
            let (mark, rest) = rest.split_first_chunk::<2>()?;
            *bytes = rest;
            match mark {
                [0, 0] => return Some(read),
                [0, 0xFF] => read.push(0),
                _ => return None,
            }
        }
    }

    fn write_last(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn read_last(bytes: &mut &[u8]) -> Option<Self> {
        Some(std::mem::take(bytes).to_vec())
    }
}

impl KeyCodec for String {
    fn write(&self, out: &mut Vec<u8>) {
        write_delimited(self.as_bytes(), out);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Vec::read(bytes)?).ok()
    }

    fn write_last(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read_last(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Vec::read_last(bytes)?).ok()
    }
}

/// `None` is less than every value.
impl<T: KeyCodec> KeyCodec for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        match bool::read(bytes)? {
            true => T::read(bytes).map(Some),
            false => Some(None),
        }
    }

    fn write_last(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write_last(out);
        }
    }

    fn read_last(bytes: &mut &[u8]) -> Option<Self> {
        match bool::read(bytes)? {
            true => T::read_last(bytes).map(Some),
            false => Some(None),
        }
    }
}

/// Tuples: all parts but the last are written so that something may follow.
macro_rules! tuples {
    ($(([$($part:ident $at:tt),*] $last:ident $end:tt))*) => {$(
        impl<$($part: KeyCodec,)* $last: KeyCodec> KeyCodec for ($($part,)* $last,) {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$at.write(out);)*
                self.$end.write(out);
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($part::read(bytes)?,)* $last::read(bytes)?,))
            }

            fn write_last(&self, out: &mut Vec<u8>) {
                $(self.$at.write(out);)*
                self.$end.write_last(out);
            }

            fn read_last(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($part::read(bytes)?,)* $last::read_last(bytes)?,))
            }
        }
    )*};
}

tuples! {
    ([] A 0)
    ([A 0] B 1)
    ([A 0, B 1] C 2)
    ([A 0, B 1, C 2] D 3)
    ([A 0, B 1, C 2, D 3] E 4)
    ([A 0, B 1, C 2, D 3, E 4] F 5)
}

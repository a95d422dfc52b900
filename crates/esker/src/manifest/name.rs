//! The names of manifest files.
//!
//! A manifest is named `MANIFEST-` and its number in at least six digits. Superblocks, successor
//! records and the end mark of the log refer to a manifest by this number.

use crate::base::NumberedName;

const NAME: NumberedName = NumberedName { prefix: "MANIFEST-", digits: 6, suffix: "" };

/// The file name of manifest `number`.
pub fn manifest_name(number: u64) -> String {
    NAME.of(number)
}

/// The number in a manifest's file name.
pub fn parse_manifest_name(name: &str) -> Option<u64> {
    NAME.number(name)
}

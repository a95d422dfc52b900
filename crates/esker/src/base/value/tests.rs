use super::*;
use crate::base::{MergeOperator, OperatorResult};
use std::sync::Arc;

struct Concat;

impl MergeOperator for Concat {
    fn name(&self) -> &str {
        "concat"
    }

    fn full_merge(
        &self,
        _: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> OperatorResult<Option<Vec<u8>>> {
        Ok(Some([existing.unwrap_or(b"-"), &operands.concat()].concat()))
    }
}

fn expiring(expiry: Millis, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    join(expiry, value, &mut out);
    out
}

#[test]
fn a_stored_value_is_taken_apart_as_it_was_joined() {
    let stored = expiring(77, b"value");
    assert_eq!(split(Kind::ExpiringPut, &stored), (Some(77), &b"value"[..]));
    assert_eq!(split(Kind::ExpiringMerge, &stored), (Some(77), &b"value"[..]));
    assert_eq!(split(Kind::Put, &stored), (None, &stored[..]));
    assert_eq!(split(Kind::ExpiringPut, b"short"), (Some(0), &b""[..]));
    assert!(expired(Some(77), 77) && !expired(Some(77), 76) && !expired(None, Millis::MAX));
}

#[test]
fn operands_are_applied_from_old_to_new_and_expire_each_for_itself() {
    let operator = Operator::new("k", "concat", Some(Arc::new(Concat)));
    let mut operands = Operands::default();
    operands.push(9, Kind::Merge, b"c");
    operands.push(8, Kind::ExpiringMerge, &expiring(50, b"b"));
    operands.push(7, Kind::Merge, b"a");
    let read = |operands: &Operands, base, time| {
        operands.read(&operator, b"key", base, time).expect("the operator works")
    };
    assert_eq!(read(&operands, Some(b"0"), 49), Some(b"0abc".to_vec()));
    assert_eq!(read(&operands, Some(b"0"), 50), Some(b"0ac".to_vec()));
    assert_eq!(read(&operands, None, 50), Some(b"-ac".to_vec()));
    assert_eq!(operands.drop_expired(49), 0);
    assert_eq!(operands.drop_expired(50), 1);
    assert_eq!((operands.len(), operands.get(1)), (2, (7, None, &b"a"[..])));
    operands.clear();
    assert_eq!(read(&operands, Some(b"0"), 49), Some(b"0".to_vec()));
    assert_eq!(read(&operands, None, 49), None);
}

#[test]
fn an_operator_that_panics_or_is_missing_gives_a_typed_error() {
    struct Wild;
    impl MergeOperator for Wild {
        fn name(&self) -> &str {
            "wild"
        }
        fn full_merge(
            &self,
            _: &[u8],
            _: Option<&[u8]>,
            _: &[&[u8]],
        ) -> OperatorResult<Option<Vec<u8>>> {
            panic!("on purpose")
        }
        fn partial_merge(&self, _: &[u8], _: &[&[u8]]) -> Option<Vec<u8>> {
            panic!("on purpose")
        }
    }
    use crate::error::ErrorKind;
    let wild = Operator::new("k", "wild", Some(Arc::new(Wild)));
    let error = wild.full_merge(b"", None, &[b"x"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCodePanicked);
    assert_eq!(wild.partial_merge(b"", &[b"x", b"y"]), None);
    let missing = Operator::new("k", "gone", None);
    let error = missing.full_merge(b"", None, &[b"x"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MergeOperatorMissing);
    assert!(error.to_string().contains("\"gone\""));
}

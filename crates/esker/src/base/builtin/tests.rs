use super::*;

fn full(name: &str, existing: Option<&[u8]>, operands: &[&[u8]]) -> OperatorResult<Vec<u8>> {
    let operator = builtin(name).expect("it is known");
    assert_eq!(operator.name(), name);
    Ok(operator.full_merge(b"key", existing, operands)?.expect("there is a value"))
}

#[test]
fn counters_add_and_wrap() {
    let number = CounterU64::encode;
    let sum = full(CounterU64::NAME, Some(&number(5)), &[&number(2), &number(u64::MAX)]);
    assert_eq!(CounterU64::decode(&sum.expect("a sum")), Some(6));
    let number = CounterI64::encode;
    let sum = full(CounterI64::NAME, None, &[&number(5), &number(-7)]);
    assert_eq!(CounterI64::decode(&sum.expect("a sum")), Some(-2));
    assert!(full(CounterI64::NAME, Some(b"text"), &[&number(1)]).is_err());
}

#[test]
fn the_greatest_value_stays() {
    assert_eq!(full(Max::NAME, Some(b"b"), &[b"a", b"c", b"ba"]).expect("a value"), b"c");
    assert_eq!(full(Max::NAME, Some(b"b"), &[b"a"]).expect("a value"), b"b");
}

#[test]
fn append_tells_its_separator_in_its_name() {
    for separator in [&b""[..], b",", b"\x00\xff", &[b'x'; 64]] {
        let append = Append::new(separator);
        let whole = full(append.name(), Some(b"a"), &[b"b", b"c"]).expect("a value");
        assert_eq!(whole, [b"a", separator, b"b", separator, b"c"].concat());
    }
    assert_eq!(full("esker.append:", None, &[b"b", b"c"]).expect("a value"), b"bc");
    for wrong in ["esker.append", "esker.append:2", "esker.append:2C", "esker.append:+1", "max"] {
        assert!(builtin(wrong).is_none(), "{wrong}");
    }
}

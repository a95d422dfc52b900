//! Figures as people read them.
//!
//! Numbers get separators between thousands or a unit that fits, and lists get their "and". The page
//! and the tables in Markdown use the same functions, so both write a figure in the same way.

use super::figure::Measure;
use serde_json::Value;

/// A whole number with separators, a small one with three digits.
pub fn number(value: f64) -> String {
    match value {
        value if value >= 1_000.0 => grouped(value),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 0.1 || value == 0.0 => format!("{value:.2}"),
        value if value >= 0.001 => format!("{value:.4}"),
        value if value >= 1e-6 => {
            // Two digits that mean something.
            let places = (2.0 - value.log10()).floor().clamp(0.0, 8.0) as usize;
            format!("{value:.places$}")
        }
        value => format!("{value:.1e}"),
    }
}

/// A figure with its unit.
pub fn with_unit(measure: Measure, value: f64) -> String {
    format!("{} {}", number(value), measure.unit()).trim_end().to_owned()
}

/// A number at an axis.
pub fn short(value: f64) -> String {
    let (value, letter) = match value {
        value if value >= 1e9 => (value / 1e9, "G"),
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e3 => (value / 1e3, "K"),
        value => (value, ""),
    };
    let text = match value {
        value if value >= 10.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    };
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{letter}")
}

/// A ratio, with three digits that mean something.
pub fn ratio(value: f64) -> String {
    match value {
        value if value >= 1_000.0 => format!("{}×", grouped(value)),
        value if value >= 100.0 => format!("{value:.0}×"),
        value if value >= 10.0 => format!("{value:.1}×"),
        value if value >= 0.1 => format!("{value:.2}×"),
        value => format!("{value:.4}×"),
    }
}

/// `1 round`, `3 rounds`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `a, b and c`.
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// A setting or a fact about a machine: bytes as sizes, absent as such.
pub fn value(name: &str, value: &Value) -> String {
    let bytes = name.ends_with("memory") || name.ends_with("bytes");
    match value {
        Value::Null => "not set".into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_u64(), bytes) {
            (Some(size), true) => self::size(size),
            (Some(whole), false) => grouped(whole as f64),
            (None, _) => number.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| self::value(name, item)).collect();
            items.join(", ")
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields: Vec<String> = fields
                .map(|(name, field)| format!("{name} {}", self::value(name, field)))
                .collect();
            fields.join(", ")
        }
    }
}

/// The name of a setting in words.
pub fn name(name: &str) -> String {
    name.replace('_', " ")
}

fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 30 => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        bytes if bytes >= 1 << 20 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        bytes => format!("{} bytes", grouped(bytes as f64)),
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_keep_what_matters_of_them() {
        let cases = [
            (723_393.17, "723,393"),
            (1_000.0, "1,000"),
            (999.4, "999"),
            (12.345, "12.3"),
            (1.243_98, "1.24"),
            (0.001_81, "0.0018"),
            (0.0, "0.00"),
            (0.000_134, "0.00013"),
            (1e-7, "1.0e-7"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
        let cases = [
            (0.25, "0.25"),
            (100.0, "100"),
            (2_500.0, "2.5K"),
            (1e6, "1M"),
            (3e7, "30M"),
            (0.0, "0"),
        ];
        for (value, expected) in cases {
            assert_eq!(short(value), expected);
        }
        assert_eq!([ratio(1.237), ratio(0.0123), ratio(123.4)], ["1.24×", "0.0123×", "123×"]);
    }

    #[test]
    fn settings_read_as_words() {
        assert_eq!(value("memory", &json!(6_319_128_576_u64)), "5.9 GiB");
        assert_eq!(value("num", &json!(100_000)), "100,000");
        assert_eq!(value("duration", &Value::Null), "not set");
        assert_eq!(value("workloads", &json!(["fillseq", "readseq"])), "fillseq, readseq");
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}

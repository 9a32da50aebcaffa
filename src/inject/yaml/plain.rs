//! Scalars without quotes.

use serde_json::{Number, Value};

/// A plain scalar as kubectl reads it: by YAML 1.1, as in goyaml.v2/resolve.go of sigs.k8s.io/yaml. So
/// `0644` and `0o644` are 420, and `yes` is true.
pub(super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "false" | "False" | "FALSE" | "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let digits = text.replace('_', "");
    integer(&digits).or_else(|| float(&digits))
}

/// Parses an integer as Go does, where `0` before other digits means octal.
fn integer(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (base, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // Otherwise a second sign would be one of the digits.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    let value = u64::from_str_radix(digits, base).ok()?;
    if text.starts_with('-') {
        return Some(Number::from(0i64.checked_sub_unsigned(value)?));
    }
    Some(Number::from(value))
}

/// Parses a float such as `1.5`, `.5`, `1e3`; not `inf`. One without a fraction is written as an
/// integer, as kubectl sends it.
fn float(text: &str) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !text.chars().all(|one| one.is_ascii_digit() || "+-.eE".contains(one)) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is small")]
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

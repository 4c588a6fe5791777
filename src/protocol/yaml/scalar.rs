//! What a scalar without quotes means: the types of YAML 1.1 as PyYAML recognises them.

use serde_json::{Number, Value};

/// The tags of scalars that JSON can follow.
pub const TAGS: &[&str] = &["str", "int", "float", "bool", "null", "timestamp"];

/// The value of a plain scalar without a tag.
pub fn implicit(text: &str) -> Value {
    if is_null(text) {
        return Value::Null;
    }
    if let Some(truth) = boolean(text) {
        return Value::Bool(truth);
    }
    let number = match text.as_bytes()[0] {
        b'0'..=b'9' | b'+' | b'-' | b'.' => int(text).or_else(|| float(text)),
        _ => None,
    };
    number.map_or_else(|| Value::from(text), Value::Number)
}

/// The value of a scalar with one of [`TAGS`]; `None` when the text is not of that type.
pub fn tagged(tag: &str, text: &str) -> Option<Value> {
    match tag {
        "null" => Some(Value::Null),
        "bool" => boolean(&text.to_ascii_lowercase()).map(Value::Bool),
        "int" => int(text).map(Value::Number),
        "float" => float(text)
            .or_else(|| number(&text.replace('_', "").parse().ok()?))
            .map(Value::Number),
        _ => Some(Value::from(text)),
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// Whether there is at least one character, and all are digits of this base or underscores.
fn are_digits(text: &str, base: u32) -> bool {
    !text.is_empty() && text.chars().all(|c| c == '_' || c.is_digit(base))
}

/// `0b1`, `017` (octal), `0x1f`, `1_000`, `1:30` (base 60), each with a sign or without; `0o17` is text.
fn int(text: &str) -> Option<Number> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if text == "0" {
        return Some(0.into());
    }
    if let Some(digits) = text
        .strip_prefix("0b")
        .filter(|digits| are_digits(digits, 2))
    {
        return based(negative, digits, 2);
    }
    if let Some(digits) = text
        .strip_prefix("0x")
        .filter(|digits| are_digits(digits, 16))
    {
        return based(negative, digits, 16);
    }
    if let Some(digits) = text.strip_prefix('0') {
        return are_digits(digits, 8).then(|| based(negative, text, 8))?;
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match text.split_once(':') {
        None if are_digits(text, 10) => based(negative, text, 10),
        Some((first, rest)) if are_digits(first, 10) && rest.split(':').all(is_sixtieth) => {
            let value = sixtieths(first, rest);
            // Whole below 2^53, so that the float says it exactly.
            if value < 9_007_199_254_740_992.0 {
                let value = value as i64;
                Some(if negative { -value } else { value }.into())
            } else {
                number(&if negative { -value } else { value })
            }
        }
        _ => None,
    }
}

/// The digits of a whole number in a base. What no 64 bits hold becomes a float, as in JSON.
fn based(negative: bool, digits: &str, base: u32) -> Option<Number> {
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    if digits.is_empty() {
        return None;
    }
    if !negative && let Ok(value) = u64::from_str_radix(&digits, base) {
        return Some(value.into());
    }
    let signed = if negative {
        format!("-{digits}")
    } else {
        digits
    };
    if let Ok(value) = i64::from_str_radix(&signed, base) {
        return Some(value.into());
    }
    let value = if base == 10 {
        signed.parse().ok()?
    } else {
        let sum = signed.chars().filter_map(|c| c.to_digit(base));
        let sum = sum.fold(0.0, |sum: f64, digit| {
            sum * f64::from(base) + f64::from(digit)
        });
        if negative { -sum } else { sum }
    };
    number(&value)
}

/// `1.5`, `.5`, `1.`, `1.5e+3`, `1:30.5` (base 60). An exponent needs a dot before it and a sign.
fn float(text: &str) -> Option<Number> {
    let signed = text.starts_with(['+', '-']);
    let (negative, body) = (text.starts_with('-'), &text[usize::from(signed)..]);
    let (whole, rest) = body.split_once('.')?;
    if let Some((first, more)) = whole.split_once(':') {
        let fits = starts_with_digit(first)
            && are_digits(first, 10)
            && more.split(':').all(is_sixtieth)
            && (rest.is_empty() || are_digits(rest, 10));
        if !fits {
            return None;
        }
        let fraction: f64 = format!("0.{}", rest.replace('_', "")).parse().ok()?;
        let value = sixtieths(first, more) + fraction;
        return number(&if negative { -value } else { value });
    }
    let (fraction, exponent) = match rest.split_once(['e', 'E']) {
        Some((fraction, exponent)) => (fraction, Some(exponent)),
        None => (rest, None),
    };
    let whole_fits = match whole {
        // A fraction alone takes no sign.
        "" => !signed && starts_with_digit(fraction),
        _ => starts_with_digit(whole) && are_digits(whole, 10),
    };
    let fraction_fits = fraction.is_empty() || are_digits(fraction, 10);
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    if !(whole_fits && fraction_fits && exponent_fits) {
        return None;
    }
    number(&text.replace('_', "").parse().ok()?)
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// A place of base 60: 0 to 59, in one or two digits.
fn is_sixtieth(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
}

fn sixtieths(first: &str, rest: &str) -> f64 {
    let first = first.replace('_', "").parse().unwrap_or(f64::INFINITY);
    rest.split(':').fold(first, |sum: f64, place| {
        sum * 60.0 + place.parse::<f64>().unwrap_or(0.0)
    })
}

/// A float that JSON can hold.
fn number(value: &f64) -> Option<Number> {
    Number::from_f64(*value)
}

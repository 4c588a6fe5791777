//! Numbers as the reference's language writes them: `5`, `1.0`, `1e+16`, `1e-05`.

use serde_json::Number;

/// The decimal form of a number. Integers are written out; floats have a point or an exponent.
pub fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_text(float),
        _ => number.to_string(),
    }
}

/// The shortest digits that read back as the same double, laid out as Python lays them out: an exponent of two digits at
/// least, from 1e16 on and below 1e-4 (B-2).
fn float_text(float: f64) -> String {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let plain = format!("{float}");
        return if plain.contains('.') {
            plain
        } else {
            format!("{plain}.0")
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (text, expected) in [
            ("5", "5"),
            ("-5", "-5"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.0", "1.0"),
            ("-0.0", "-0.0"),
            ("-0", "-0.0"),
            ("0.1", "0.1"),
            ("1e15", "1000000000000000.0"),
            ("9999999999999998.0", "9999999999999998.0"),
            ("1e16", "1e+16"),
            ("1.25e22", "1.25e+22"),
            ("1e100", "1e+100"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.5e-7", "1.5e-07"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ] {
            let number: Number = serde_json::from_str(text).expect("a number");
            assert_eq!(number_text(&number), expected, "{text}");
        }
    }
}

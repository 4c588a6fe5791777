//! Times as they cross the ABI: RFC 3339 in UTC with microseconds.

use std::fmt;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

const DAY: i64 = 86_400_000_000;

impl Timestamp {
    /// Reads `YYYY-MM-DDTHH:MM:SS[.fraction]Z`; `None` for anything else. Years 1 to 9999.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_suffix('Z')?;
        let (main, fraction) = rest
            .split_once('.')
            .map_or((rest, ""), |(main, f)| (main, f));
        let bytes = main.as_bytes();
        if bytes.len() != 19
            || (bytes[4], bytes[7], bytes[10], bytes[13], bytes[16])
                != (b'-', b'-', b'T', b':', b':')
            || rest.ends_with('.')
            || fraction.len() > 9
            || !fraction.bytes().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let number = |range: std::ops::Range<usize>| -> Option<i64> {
            let digits = main.get(range)?;
            digits
                .bytes()
                .all(|b| b.is_ascii_digit())
                .then(|| digits.parse().ok())?
        };
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        if year < 1 || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = days_from_civil(year, month, day);
        if civil_from_days(days) != (year, month, day) {
            return None;
        }
        let micros: i64 = format!("{fraction:0<6}")[..6].parse().ok()?;
        Some(Timestamp(
            days * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros,
        ))
    }
}

impl Timestamp {
    /// The 27 characters of a time in years 0 to 9999; `None` beyond them. Every event has a time, and digit by digit costs
    /// a tenth of what the formatter does.
    fn digits(self) -> Option<[u8; 27]> {
        let (days, in_day) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        let (seconds, micros) = (in_day / 1_000_000, in_day % 1_000_000);
        if !(0..=9999).contains(&year) {
            return None;
        }
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        // Two digits at a time, on small numbers: half of the divisions, and cheap ones.
        let mut pair = |at: usize, value: i64| {
            let value = value as u8;
            text[at] += value / 10;
            text[at + 1] += value % 10;
        };
        pair(0, year / 100);
        pair(2, year % 100);
        pair(5, month);
        pair(8, day);
        pair(11, seconds / 3600);
        pair(14, seconds / 60 % 60);
        pair(17, seconds % 60);
        pair(20, micros / 10_000);
        pair(22, micros / 100 % 100);
        pair(24, micros % 100);
        Some(text)
    }

    /// Adds the time to a text.
    pub fn push_to(self, out: &mut String) {
        let digits = self.digits();
        match digits.as_ref().map(|digits| std::str::from_utf8(digits)) {
            Some(Ok(digits)) => out.push_str(digits),
            _ => out.push_str(&self.to_string()),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(digits) = self.digits() {
            return f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?);
        }
        let (days, in_day) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        let (seconds, micros) = (in_day / 1_000_000, in_day % 1_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z"
        )
    }
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar, counted in eras of 400 years from March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_agree_over_leap_days_and_eras() {
        for text in [
            "1970-01-01T00:00:00.000000Z",
            "2000-02-29T23:59:59.999999Z",
            "2026-01-01T00:00:00.000001Z",
            "1969-12-31T23:59:59.000000Z",
            "0001-01-01T00:00:00.000000Z",
            "9999-12-31T23:59:59.999999Z",
        ] {
            let time = Timestamp::parse(text).expect(text);
            assert_eq!(time.to_string(), text);
        }
        assert_eq!(
            Timestamp::parse("1970-01-02T00:00:00Z"),
            Some(Timestamp(DAY))
        );
        assert_eq!(
            Timestamp::parse("1970-01-01T00:00:01.5Z"),
            Some(Timestamp(1_500_000))
        );
    }

    #[test]
    fn what_is_no_utc_time_is_refused() {
        for text in [
            "",
            "Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T00:00:00.1234567890Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00+00:00",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}

//! JSON: the members of an object, or what a list holds. The text is scanned, no values are built.

use super::{LINE_CHARS, MAX_NAMES, NAME_CHARS, count_of, more, names, shown};
use crate::protocol::error::ErrorCode;
use crate::protocol::scan::{self, RawStr, Scanner, Type};

/// Most characters of a number or word that is shown.
const VALUE_CHARS: usize = 24;
/// How many elements of a list are looked at for what it holds.
const SAMPLE: usize = 100;

/// Lines about the one object or list that `text` is; `None` when it is neither.
pub(super) fn describe(text: &str) -> Option<String> {
    let text = text.trim_ascii_start();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let value = match scan::document(text) {
        Ok(value) => value,
        Err(error) if error.code == ErrorCode::JsonDepth => {
            return Some("JSON that is nested too deeply to look into.".to_owned());
        }
        Err(_) => return None,
    };
    match Type::of(value) {
        Type::Object => Some(object(value)),
        _ => Some(list(value)),
    }
}

fn object(value: &str) -> String {
    let mut lines = Vec::new();
    let mut count = 0;
    each_member(value, |name, member| {
        count += 1;
        if count <= MAX_NAMES {
            let name = shown(name.raw, NAME_CHARS);
            lines.push(format!("- {name}: {}", told(member)));
        }
    });
    let head = count_of(count, "member", "members");
    let rest = more(count, lines.len());
    let mut out = format!("A JSON object with {head}.");
    for line in lines {
        out.push('\n');
        out.push_str(&line);
    }
    if !rest.is_empty() {
        out.push_str("\n-");
        out.push_str(&rest);
    }
    out
}

fn list(value: &str) -> String {
    let mut count = 0;
    let mut types = [0_usize; 6];
    let mut first = None;
    each_element(value, |element| {
        count += 1;
        if count <= SAMPLE {
            types[Type::of(element) as usize] += 1;
            first.get_or_insert(element);
        }
    });
    let mut out = format!(
        "A JSON list with {}.",
        count_of(count, "element", "elements")
    );
    let kinds: Vec<String> = TYPES
        .iter()
        .zip(types)
        .filter(|(_, count)| *count > 0)
        .map(|((one, many), count)| count_of(count, one, many))
        .collect();
    match count {
        0 => return out,
        count if count > SAMPLE => {
            out.push_str(&format!("\nThe first {SAMPLE}: {}.", kinds.join(", ")));
        }
        _ => out.push_str(&format!("\nAmong them: {}.", kinds.join(", "))),
    }
    if let Some(first) = first {
        match Type::of(first) {
            Type::Object => out.push_str(&format!("\nThe first is {}.", told(first))),
            _ => out.push_str(&format!("\nThe first: {}", shown(first, LINE_CHARS))),
        }
    }
    out
}

/// Names of the types, in the order of [`Type`].
const TYPES: [(&str, &str); 6] = [
    ("null", "nulls"),
    ("truth value", "truth values"),
    ("number", "numbers"),
    ("text", "texts"),
    ("list", "lists"),
    ("object", "objects"),
];

/// A value in a few words.
fn told(value: &str) -> String {
    match Type::of(value) {
        Type::Null | Type::Bool | Type::Number => shown(value, VALUE_CHARS),
        Type::String => {
            let raw = RawStr::of(value).map_or("", |text| text.raw);
            let chars = raw.chars().count();
            format!("text of {}", count_of(chars, "character", "characters"))
        }
        Type::Array => {
            let mut count = 0;
            each_element(value, |_| count += 1);
            format!("list of {count}")
        }
        Type::Object => {
            let mut count = 0;
            let mut known = Vec::new();
            each_member(value, |name, _| {
                count += 1;
                if known.len() < MAX_NAMES {
                    known.push(name.raw);
                }
            });
            match count {
                0 => "an empty object".to_owned(),
                _ => format!("an object with {}", names(known.into_iter(), count)),
            }
        }
    }
}

/// The members of an object that the scanner has passed.
fn each_member<'a>(value: &'a str, mut see: impl FnMut(RawStr<'a>, &'a str)) {
    let mut scanner = Scanner::new(value);
    let mut first = true;
    if scanner.enter_object().is_err() {
        return;
    }
    while let Ok(Some(name)) = scanner.member(first) {
        first = false;
        match scanner.value() {
            Ok(member) => see(name, member),
            Err(_) => return,
        }
    }
}

/// The elements of a list that the scanner has passed.
fn each_element<'a>(value: &'a str, mut see: impl FnMut(&'a str)) {
    let mut scanner = Scanner::new(value);
    let mut first = true;
    if scanner.enter_array().is_err() {
        return;
    }
    while let Ok(true) = scanner.element(first) {
        first = false;
        match scanner.value() {
            Ok(element) => see(element),
            Err(_) => return,
        }
    }
}

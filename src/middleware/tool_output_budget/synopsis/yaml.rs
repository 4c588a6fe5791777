//! YAML: its top keys. Told by the form of its lines; no document is parsed, so that there is nothing to expand.

use super::{MAX_NAMES, NAME_CHARS, count_of, more, shown};

/// Lines at the beginning by which YAML is told.
const SAMPLE: usize = 200;

/// Lines about a mapping or a list of mappings; `None` when the lines have another form.
pub(super) fn describe(text: &str) -> Option<String> {
    is_yaml(text).then_some(())?;
    let mut keys: Vec<String> = Vec::new();
    let (mut count, mut items) = (0, 0);
    let mut lines = text.lines().filter(|line| !is_empty(line)).peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("- ") {
            items += 1;
        } else if let Some((key, value)) = key(line) {
            count += 1;
            if keys.len() < MAX_NAMES {
                let below = lines.peek().copied().unwrap_or_default();
                let kind = match value {
                    "" if below.trim_start().starts_with("- ") => "list",
                    "" if below.starts_with(' ') => "mapping",
                    value if value.starts_with(['|', '>']) => "text",
                    _ => "value",
                };
                keys.push(format!("{} ({kind})", shown(key, NAME_CHARS)));
            }
        }
    }
    let mut out = "YAML".to_owned();
    if count > 0 {
        let listed = keys.join(", ");
        let more = more(count, keys.len());
        let head = count_of(count, "top key", "top keys");
        out.push_str(&format!(", {head}: {listed}{more}"));
    }
    if items > 0 {
        let head = count_of(items, "item", "items");
        out.push_str(&format!(", {head} at the top"));
    }
    Some(out)
}

/// Whether the first lines are keys, items and what is indented below them, no key twice, and something more than one pair.
fn is_yaml(text: &str) -> bool {
    let mut keys: Vec<&str> = Vec::new();
    let mut nested = false;
    for line in text
        .lines()
        .filter(|line| !is_empty(line))
        .take(SAMPLE)
        .map(str::trim_end)
    {
        if matches!(line, "---" | "...") {
            keys.clear();
        } else if line.starts_with([' ', '-']) {
            let inner = line.trim_start_matches([' ', '-']);
            let is_item = line.starts_with([' ']) || line.starts_with("- ") || line == "-";
            if !is_item {
                return false;
            }
            nested |= key(inner).is_some();
        } else if let Some((key, _)) = key(line) {
            if keys.contains(&key) {
                return false;
            }
            keys.push(key);
        } else {
            return false;
        }
    }
    keys.len() >= 2 || nested
}

fn is_empty(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// The key that a line begins with, and what stands behind its colon.
fn key(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = match line.chars().next()? {
        quote @ ('"' | '\'') => {
            let end = line[1..].find(quote)? + 2;
            (&line[..end], &line[end..])
        }
        _ => {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '$');
            let end = line.find(|c| !is_part(c))?;
            line.split_at(end)
        }
    };
    let value = rest.strip_prefix(':')?;
    let is_key = !key.is_empty() && (value.is_empty() || value.starts_with([' ', '\t']));
    is_key.then(|| (key, value.trim()))
}

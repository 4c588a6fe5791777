//! Text of no other form: its size in lines, and its headings.

use super::{MAX_NAMES, NAME_CHARS, count_of, line_count, more, shown};

/// Lines about a text.
pub(super) fn describe(text: &str) -> String {
    let longest = text.lines().map(str::len).max().unwrap_or_default();
    let mut out = format!(
        "Text, {}, the longest of {longest} bytes.",
        count_of(line_count(text), "line", "lines")
    );
    let mut listed = Vec::new();
    let mut count = 0;
    for (place, line) in text.lines().enumerate() {
        if let Some(heading) = heading(line) {
            count += 1;
            if listed.len() < MAX_NAMES {
                let heading = shown(heading, NAME_CHARS);
                listed.push(format!("{heading} (line {})", place + 1));
            }
        }
    }
    if !listed.is_empty() {
        let more = more(count, listed.len());
        out.push_str(&format!("\nHeadings: {}{more}", listed.join(", ")));
    }
    out
}

/// The heading that a line of Markdown is.
fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let text = rest.strip_prefix(' ')?.trim();
    ((1..=6).contains(&level) && !text.is_empty()).then_some(text)
}

//! What a document is about, at a glance: its headings with their lines, or how it begins.
//!
//! Source: DeerFlow `utils/file_outline.py`. Reads one text once; what is found is bounded, whatever the text.

/// Most headings (MW-UPL-3).
const MAX_HEADINGS: usize = 50;
/// Longest heading, in characters.
const MAX_TITLE_CHARS: usize = 200;
/// Most lines of a beginning.
const MAX_PREVIEW_LINES: usize = 5;
/// Longest beginning, in characters.
const MAX_PREVIEW_CHARS: usize = 2000;

/// Words that begin a heading which is only set in bold.
const STRUCTURAL: [&str; 8] = [
    "ITEM", "PART", "SECTION", "SCHEDULE", "EXHIBIT", "APPENDIX", "ANNEX", "CHAPTER",
];

/// What is told of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// Line, counted from 1, and text of the headings.
    pub headings: Vec<(u64, String)>,
    /// Whether there are more.
    pub has_more: bool,
    /// The first lines that are not blank, where there are no headings.
    pub preview: Vec<String>,
}

/// The outline of a Markdown text. What is no text has none.
pub(super) fn outline(bytes: &[u8]) -> Outline {
    let mut found = Outline::default();
    if bytes.contains(&0) {
        return found;
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut fence: Option<(char, usize)> = None;
    for (place, line) in text.lines().enumerate() {
        if let Some(open) = fence {
            if closes(line, open) {
                fence = None;
            }
            continue;
        }
        fence = opened(line);
        if fence.is_some() {
            continue;
        }
        let Some(title) = heading(line).filter(|title| !title.is_empty()) else {
            continue;
        };
        if found.headings.len() == MAX_HEADINGS {
            found.has_more = true;
            break;
        }
        found
            .headings
            .push((place as u64 + 1, clipped(&title, MAX_TITLE_CHARS)));
    }
    if found.headings.is_empty() {
        found.preview = preview(text);
    }
    found
}

fn preview(text: &str) -> Vec<String> {
    let mut left = MAX_PREVIEW_CHARS;
    let mut lines = Vec::new();
    let filled = text.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in filled.take(MAX_PREVIEW_LINES) {
        let shown = clipped(line, left);
        left = left.saturating_sub(shown.chars().count());
        let is_cut = shown.len() != line.len();
        lines.push(shown);
        if is_cut || left == 0 {
            break;
        }
    }
    lines
}

/// At most `max` characters; a text that is cut ends with an ellipsis.
fn clipped(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(max.saturating_sub(1)).collect();
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// The line without up to three spaces before it; more are code.
fn dedented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= 3).then_some(text)
}

/// The mark and the length of a fence that begins a block of code.
fn opened(line: &str) -> Option<(char, usize)> {
    let text = dedented(line)?;
    let mark = text
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = text.trim_start_matches(mark);
    let length = text.len() - rest.len();
    (length >= 3 && (mark == '~' || !rest.contains('`'))).then_some((mark, length))
}

fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    dedented(line).is_some_and(|text| {
        let rest = text.trim_start_matches(mark);
        text.len() - rest.len() >= length && rest.trim().is_empty()
    })
}

/// The text of a heading, if the line is one: of the Markdown kind, or set in bold as converters of documents leave it.
fn heading(line: &str) -> Option<String> {
    let text = dedented(line).filter(|text| !text.starts_with('\t'))?;
    let text = text.trim_end();
    if text.starts_with('#') {
        let title = text.trim_start_matches('#');
        let level = text.len() - title.len();
        let is_apart = title.is_empty() || title.starts_with([' ', '\t']);
        return (level <= 6 && is_apart).then(|| plain(without_closing(title.trim())));
    }
    let spans = bold_spans(text)?;
    match spans.as_slice() {
        [only] => {
            let first = only.split(|c: char| !c.is_ascii_alphanumeric()).next();
            let is_structural = first.is_some_and(|word| STRUCTURAL.contains(&word));
            let is_loud = |c: char| matches!(c, 'A'..='Z' | '0'..='9' | ' ' | '.' | ',' | '-');
            (is_structural && only.chars().all(is_loud)).then(|| only.trim().to_owned())
        }
        [number, title, ..] if spans.len() <= 4 => {
            let mut chars = number.chars();
            let begins = chars
                .next()
                .is_some_and(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
            let is_number = begins && chars.all(|c| c.is_ascii_digit() || c == '.');
            // The head of a table of figures is no heading.
            let is_figure = title.starts_with(|c: char| c.is_ascii_digit())
                && title
                    .chars()
                    .all(|c| c.is_ascii_digit() || " .,-–—/:()%".contains(c));
            (is_number && !is_figure).then(|| spans.join(" "))
        }
        _ => None,
    }
}

/// The texts of a line that is made of nothing but bold spans.
fn bold_spans(line: &str) -> Option<Vec<&str>> {
    let mut rest = line;
    let mut spans = Vec::new();
    while !rest.is_empty() {
        let inner = rest.strip_prefix("**")?;
        let (span, after) = inner.split_once("**")?;
        if span.is_empty() || span.contains('*') || spans.len() == 5 {
            return None;
        }
        spans.push(span);
        rest = after.trim_start();
    }
    (!spans.is_empty()).then_some(spans)
}

/// The title without the `#` that may close it.
fn without_closing(title: &str) -> &str {
    let open = title.trim_end_matches('#');
    match open.len() < title.len() && (open.is_empty() || open.ends_with([' ', '\t'])) {
        true => open.trim_end(),
        false => title,
    }
}

/// The title without the marks of bold around all of it.
fn plain(title: &str) -> String {
    match bold_spans(title) {
        Some(spans) => spans.join(" "),
        None => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(text: &str) -> Vec<(u64, String)> {
        outline(text.as_bytes()).headings
    }

    #[test]
    fn upl_3_headings_are_found_with_their_lines() {
        let text = "\u{feff}# One\n\ntext\n   ## Two ##\n### **Three** **four**\n#### C#\n#5 no\n\
                    ####### no\n    # code\n\t# code\n#\n**ITEM 1. BUSINESS**\n**Item 2**\n**bold** words\n\
                    **3.2** **Attention**\n**2023** **2022**\n**PARTY**\n";
        let found = [
            (1, "One"),
            (4, "Two"),
            (5, "Three four"),
            (6, "C#"),
            (12, "ITEM 1. BUSINESS"),
            (15, "3.2 Attention"),
        ];
        assert_eq!(
            titles(text),
            found.map(|(line, title)| (line, title.to_owned()))
        );
    }

    #[test]
    fn upl_3_code_has_no_headings() {
        let text = "```sh\n# no\n````\n# one\n~~~\n# no\n```\n~~~~\n# two\n``` a`b\n# three\n```\n# never closed\n";
        let found: Vec<u64> = titles(text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(found, [4, 9, 11]);
    }

    #[test]
    fn upl_3_what_is_told_is_bounded() {
        let many = "# x\n".repeat(MAX_HEADINGS + 1);
        let found = outline(many.as_bytes());
        assert_eq!((found.headings.len(), found.has_more), (MAX_HEADINGS, true));
        let exact = outline("# x\n".repeat(MAX_HEADINGS).as_bytes());
        assert!(!exact.has_more);
        let long = titles(&format!("# {}", "ä".repeat(5000)));
        assert_eq!(long[0].1.chars().count(), MAX_TITLE_CHARS);
        let lines = outline(b"a\n\n b \nc\nd\ne\nf\n");
        assert_eq!(lines.preview, ["a", "b", "c", "d", "e"]);
        let wide = outline("ä".repeat(100_000).as_bytes());
        assert_eq!(wide.preview.len(), 1);
        assert_eq!(wide.preview[0].chars().count(), MAX_PREVIEW_CHARS);
        let two = format!("{}\n{}\nz", "x".repeat(1999), "y".repeat(9));
        assert_eq!(outline(two.as_bytes()).preview[1], "…");
    }

    #[test]
    fn upl_3_what_is_no_text_has_no_outline() {
        assert_eq!(outline(b"# a\0b"), Outline::default());
        assert_eq!(outline(b""), Outline::default());
        assert_eq!(outline(b"\xff\xfe# \xffx\n# y").headings.len(), 1);
    }
}

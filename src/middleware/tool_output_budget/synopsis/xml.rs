//! XML: the root and the elements below it. Tags are paired; nothing is expanded or fetched, and a DOCTYPE is passed over.

use indexmap::IndexMap;
use memchr::memchr;

use super::{MAX_NAMES, NAME_CHARS, count_of, more, shown};

/// Deeper nesting is not looked into.
const MAX_DEPTH: usize = 1_000;
/// Most different names that are counted.
const MAX_COUNTED: usize = 200;
/// Longest name of an element, in bytes.
const MAX_NAME: usize = 200;

#[derive(Default)]
struct Outline<'a> {
    /// The elements that are open here.
    open: Vec<&'a str>,
    root: Option<&'a str>,
    elements: usize,
    depth: usize,
    /// How often a name comes, in the order of their first places.
    names: IndexMap<&'a str, usize>,
}

/// Lines about the one element that `text` is; `None` when it is none, or its tags do not pair.
pub(super) fn describe(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with('<') || !text.ends_with('>') {
        return None;
    }
    let mut outline = Outline::default();
    let mut at = 0;
    while let Some(before) = memchr(b'<', &text.as_bytes()[at..]) {
        if outline.open.is_empty() && !text[at..at + before].trim().is_empty() {
            return None;
        }
        at += before;
        let rest = &text[at..];
        at += if rest.starts_with("<!--") {
            after(rest, "-->")?
        } else if rest.starts_with("<![CDATA[") {
            after(rest, "]]>")?
        } else if rest.starts_with("<?") {
            after(rest, "?>")?
        } else if rest.starts_with("<!") {
            end_of_tag(rest, true)?
        } else {
            outline.tag(rest)?
        };
    }
    let whole = outline.open.is_empty() && text[at..].trim().is_empty();
    let root = outline.root.filter(|_| whole)?;
    let listed: Vec<String> = outline
        .names
        .iter()
        .take(MAX_NAMES)
        .map(|(name, count)| format!("{} ({count})", shown(name, NAME_CHARS)))
        .collect();
    Some(format!(
        "XML, root {}, {}, {} deep.\nElements: {}{}",
        shown(root, NAME_CHARS),
        count_of(outline.elements, "element", "elements"),
        outline.depth,
        listed.join(", "),
        more(outline.names.len(), listed.len()),
    ))
}

impl<'a> Outline<'a> {
    /// Passes the tag that `rest` begins with; its length.
    fn tag(&mut self, rest: &'a str) -> Option<usize> {
        let closes = rest.starts_with("</");
        let name = name(&rest[1 + usize::from(closes)..])?;
        let length = end_of_tag(rest, false)?;
        if closes {
            return (self.open.pop() == Some(name)).then_some(length);
        }
        if self.open.is_empty() && self.root.replace(name).is_some() {
            // A second root.
            return None;
        }
        self.elements += 1;
        self.depth = self.depth.max(self.open.len() + 1);
        if self.names.len() < MAX_COUNTED || self.names.contains_key(name) {
            *self.names.entry(name).or_default() += 1;
        }
        if !rest[..length].ends_with("/>") {
            self.open.push(name);
        }
        (self.open.len() <= MAX_DEPTH).then_some(length)
    }
}

fn after(rest: &str, end: &str) -> Option<usize> {
    memchr::memmem::find(rest.as_bytes(), end.as_bytes()).map(|at| at + end.len())
}

/// The name at the beginning; `None` when there is none.
fn name(text: &str) -> Option<&str> {
    let is_first = |c: char| c.is_alphabetic() || c == '_' || c == ':';
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.');
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let name = &text[..end];
    (name.starts_with(is_first) && name.len() <= MAX_NAME).then_some(name)
}

/// Length of the tag that `rest` begins with, quoted texts and, with `brackets`, what stands in brackets passed over.
fn end_of_tag(rest: &str, brackets: bool) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0_usize;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'[') if brackets => depth += 1,
            (None, b']') if brackets => depth = depth.saturating_sub(1),
            (None, b'>') if depth == 0 => return Some(at + 1),
            // A tag in a tag.
            (None, b'<') if !brackets => return None,
            (None, _) => {}
        }
    }
    None
}

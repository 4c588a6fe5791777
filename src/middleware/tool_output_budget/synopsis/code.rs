//! Source text: what it defines, and where. Told by the words and line ends that languages share.

use super::{NAME_CHARS, count_of, line_count, more, shown};

/// Lines at the beginning by which code is told.
const SAMPLE: usize = 400;
/// Most definitions that are listed.
const MAX_DEFINITIONS: usize = 25;
/// Longest line that is looked at, in bytes.
const MAX_LINE: usize = 1_000;

/// Words that may stand before one that defines.
const BEFORE: &[&str] = &[
    "pub",
    "export",
    "default",
    "async",
    "static",
    "public",
    "private",
    "protected",
    "final",
    "abstract",
    "unsafe",
    "virtual",
    "inline",
    "override",
];
/// Words that define what follows them.
const DEFINES: &[&str] = &[
    "def",
    "class",
    "fn",
    "func",
    "function",
    "struct",
    "enum",
    "trait",
    "impl",
    "interface",
    "mod",
    "module",
    "namespace",
    "type",
];
/// How lines of code begin, besides definitions.
const BEGINS: &[&str] = &[
    "import ", "from ", "use ", "#include", "#define", "package ", "//", "/*", "* ", "@", "return",
    "if ", "if(", "for ", "for(", "while ", "else", "let ", "const ", "var ",
];

/// Lines about source text; `None` when the text does not look like one.
pub(super) fn describe(text: &str) -> Option<String> {
    is_code(text).then_some(())?;
    let mut listed = Vec::new();
    let mut count = 0;
    for (place, line) in text.lines().enumerate() {
        if let Some(name) = definition(line) {
            count += 1;
            if listed.len() < MAX_DEFINITIONS {
                listed.push(format!("{} (line {})", shown(name, NAME_CHARS), place + 1));
            }
        }
    }
    Some(format!(
        "Code, {}, {}: {}{}",
        count_of(line_count(text), "line", "lines"),
        count_of(count, "definition", "definitions"),
        listed.join(", "),
        more(count, listed.len()),
    ))
}

/// Whether the first lines define two things at least, and two in five of them have the form of code.
fn is_code(text: &str) -> bool {
    let (mut lines, mut alike, mut defined) = (0, 0, 0);
    let filled = text.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in filled.take(SAMPLE) {
        lines += 1;
        let defines = definition(line).is_some();
        let ends = line.ends_with(['{', '}', ';', ':', '(', ')', ',']);
        let begins = BEGINS.iter().any(|begin| line.starts_with(begin));
        defined += usize::from(defines);
        alike += usize::from(defines || ends || begins);
    }
    defined >= 2 && alike * 5 >= lines * 2
}

/// The name that a line defines.
fn definition(line: &str) -> Option<&str> {
    let line = line.trim();
    if line.len() > MAX_LINE || !line.ends_with(['{', '}', ';', ':', '(', ')', ',']) {
        return None;
    }
    let mut words = line.split_ascii_whitespace();
    let mut word = words.next()?;
    while BEFORE.contains(&word) || word.starts_with("pub(") {
        word = words.next()?;
    }
    if !DEFINES.contains(&word) {
        return None;
    }
    let name = words.next()?;
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | ':');
    let end = name.find(|c| !is_part(c)).unwrap_or(name.len());
    let name = name[..end].trim_end_matches(':');
    (!name.is_empty()).then_some(name)
}

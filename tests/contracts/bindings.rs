//! Every function of the header is used by every binding, but for those of a list that may only shrink.

use std::collections::BTreeSet;
use std::path::Path;

use crate::header;
use crate::repository::{files, read, root};

/// Functions that a binding does not use: lines `language function`.
const UNCOVERED: &str = "tests/contracts/bindings_uncovered.txt";

/// A binding and the endings of its sources that speak to the library.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("cpp", &[".hpp", ".cpp"]),
    ("go", &[".go", ".c", ".h"]),
    ("node", &[".c", ".h"]),
];

/// Whether a file is part of what a user of the binding gets.
fn is_of_the_binding(file: &Path) -> bool {
    let apart = [
        "tests",
        "test",
        "bench",
        "conformance",
        "build",
        "node_modules",
    ];
    let mut folders = file.iter().map(|part| part.to_string_lossy());
    !folders.any(|part| apart.contains(&&*part)) && !file.to_string_lossy().ends_with("_test.go")
}

/// Blanks comments and texts out. C before Go's `import "C"` is a comment to Go: there block comments stay.
fn code(source: &str, block_comments: bool) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") && !block_comments {
            rest[2..].find("*/").map_or(rest.len(), |at| at + 4)
        } else if first == '"' {
            end_of_text(rest)
        } else {
            code.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        code.push(' ');
        rest = &rest[skipped..];
    }
    code
}

fn end_of_text(text: &str) -> usize {
    let mut escaped = true; // the quote that begins it does not end it
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return at + 1,
            '\n' => return at,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

/// Whether the function's name stands in the code, as a whole word. Where block comments are part of the code it must be
/// called there, since options of cgo name functions too.
fn uses(code: &str, function: &str, must_be_called: bool) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    code.match_indices(function).any(|(at, _)| {
        let after = &code[at + function.len()..];
        !code[..at].ends_with(is_word)
            && !after.starts_with(is_word)
            && (!must_be_called || after.starts_with('('))
    })
}

/// `language function` for every function that a binding does not use.
fn uncovered() -> BTreeSet<String> {
    let mut uncovered = BTreeSet::new();
    for (language, endings) in LANGUAGES {
        let folder = format!("bindings/{language}");
        if !root().join(&folder).is_dir() {
            eprintln!("skipped: there is no {folder}");
            continue;
        }
        let is_go = *language == "go";
        let sources: Vec<String> = endings
            .iter()
            .flat_map(|ending| files(&folder, ending))
            .filter(|file| is_of_the_binding(file))
            .map(|file| code(&read(file), is_go))
            .collect();
        let missing = header::functions()
            .into_iter()
            .filter(|function| !sources.iter().any(|code| uses(code, function, is_go)));
        uncovered.extend(missing.map(|function| format!("{language} {function}")));
    }
    uncovered
}

#[test]
fn every_binding_uses_every_function_but_those_of_the_list() {
    let list = read(UNCOVERED);
    let listed: BTreeSet<String> = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let found = uncovered();
    let is_there = |entry: &&String| {
        let language = entry.split(' ').next().unwrap_or_default();
        root().join("bindings").join(language).is_dir()
    };
    let new: Vec<_> = found.difference(&listed).collect();
    let old: Vec<_> = listed.difference(&found).filter(is_there).collect();
    assert!(
        new.is_empty(),
        "functions of the header that a binding does not use: {new:?}"
    );
    assert!(old.is_empty(), "take these out of {UNCOVERED}: {old:?}");
}

#[test]
fn names_in_comments_texts_and_options_of_cgo_do_not_count() {
    let c = code(
        "fawn_a(x); // fawn_b(\n/* fawn_c() */ f(\"fawn_d(\\\"\", fawn_e);",
        false,
    );
    let found =
        ["fawn_a", "fawn_b", "fawn_c", "fawn_d", "fawn_e"].map(|name| uses(&c, name, false));
    assert_eq!(found, [true, false, false, false, true]);
    let go = code(
        "/*\n#cgo noescape fawn_a\nint f(void) { return fawn_b(); }\n*/\n// fawn_c()\nC.fawn_d()",
        true,
    );
    let found = ["fawn_a", "fawn_b", "fawn_c", "fawn_d"].map(|name| uses(&go, name, true));
    assert_eq!(found, [false, true, false, true]);
    assert!(!uses("fawn_thread_open_all", "fawn_thread_open", false));
}

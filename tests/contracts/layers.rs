//! Imports go downwards only: what each module under `src` may name is in one table.

use crate::repository::{files, read};
use crate::rust_source::{code_only, line_of};

/// A module and what it may import, lowest first. Itself is always allowed.
const LAYERS: &[(&str, &[&str])] = &[
    ("os", &[]),
    ("protocol", &[]),
    ("state", &["protocol"]),
    ("ports", &["protocol", "state"]),
    ("skills", &["protocol", "state", "ports"]),
    // A prompt lists skills.
    ("prompt", &["protocol", "state", "ports", "skills"]),
    (
        "subagents",
        &["protocol", "state", "ports", "prompt", "skills"],
    ),
    ("tools", BELOW_TOOLS),
    // Beside the tools, not above: a hook may name a built-in tool.
    (
        "middleware",
        &[
            "protocol",
            "state",
            "ports",
            "prompt",
            "skills",
            "subagents",
            "tools",
        ],
    ),
    (
        "agent",
        &[
            "protocol",
            "state",
            "ports",
            "prompt",
            "skills",
            "subagents",
            "tools",
            "middleware",
        ],
    ),
    // Adapters implement ports; the parser of skills is theirs too, to read skill folders.
    ("adapters", &["protocol", "state", "ports", "skills", "os"]),
    (
        "runtime",
        &[
            "protocol",
            "state",
            "ports",
            "prompt",
            "skills",
            "subagents",
            "tools",
            "middleware",
            "agent",
            "adapters",
            "os",
        ],
    ),
    // State for reducing without a runtime; no ports, no adapters: the ABI decides nothing.
    ("ffi", &["protocol", "state", "agent", "runtime", "os"]),
];

const BELOW_TOOLS: &[&str] = &[
    "protocol",
    "state",
    "ports",
    "prompt",
    "skills",
    "subagents",
];

/// Modules that may know which async runtime there is.
const ASYNC: &[&str] = &["adapters", "runtime"];

/// The module that a file belongs to: `src/state/delta.rs` and `src/os.rs` give "state" and "os".
fn module_of(path: &std::path::Path) -> String {
    let part = path
        .components()
        .nth(1)
        .unwrap()
        .as_os_str()
        .to_string_lossy();
    part.trim_end_matches(".rs").to_owned()
}

/// Every `crate::x` that the code names, with where it stands; `crate::{x, y}` gives both.
fn named_modules(code: &str) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if !rest.starts_with('{') {
            named.push((at, first_word(rest)));
            continue;
        }
        let inside = &rest[1..crate::rust_source::closing(rest, 0)];
        let mut depth = 0;
        let parts = inside.split(|c| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            c == ',' && depth == 0
        });
        let parts = parts.map(|part| first_word(part.trim()));
        named.extend(parts.filter(|part| !part.is_empty()).map(|part| (at, part)));
    }
    named
}

fn first_word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

#[test]
fn modules_import_only_what_lies_below_them() {
    let mut wrong = Vec::new();
    for file in files("src", ".rs") {
        let module = module_of(&file);
        if module == "lib" {
            continue;
        }
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == module) else {
            panic!(
                "{} is in no layer: add {module:?} to the table",
                file.display()
            );
        };
        let code = code_only(&read(&file));
        for (at, named) in named_modules(&code) {
            if named != module && !allowed.contains(&named.as_str()) {
                let line = line_of(&code, at);
                wrong.push(format!(
                    "{}:{line}: {module} imports {named}",
                    file.display()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "imports against the layers:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn relative_imports_stay_inside_their_module() {
    // `use super::x` at the top of `src/a/mod.rs` or `src/a.rs` would leave the module unseen by the check above.
    for file in files("src", ".rs") {
        let depth = file.components().count() - 1 - usize::from(file.ends_with("mod.rs"));
        let leaving = format!("use {}", "super::".repeat(depth));
        for (line, text) in code_only(&read(&file)).lines().enumerate() {
            let leaves = depth > 0 && text.trim_start_matches("pub ").starts_with(&leaving);
            assert!(!leaves, "{}:{}: say crate:: here", file.display(), line + 1);
        }
    }
}

#[test]
fn only_the_outer_layers_know_the_async_runtime() {
    for file in files("src", ".rs") {
        if ASYNC.contains(&module_of(&file).as_str()) {
            continue;
        }
        let code = code_only(&read(&file));
        if let Some(at) = code.find("tokio::") {
            panic!(
                "{}:{}: tokio below the runtime",
                file.display(),
                line_of(&code, at)
            );
        }
    }
}

#[test]
fn braces_and_paths_are_read() {
    let code = "use crate::{a, b::{c, d}, e::f}; crate::g::h(); $crate::i; mycrate::j";
    let names: Vec<_> = named_modules(code)
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(names, ["a", "b", "e", "g"]);
}

//! Rules of the source that a reader relies on: guards, `unsafe`, printing, first lines, nothing of anybody's machine.

use crate::repository::{files, read, root, tracked};
use crate::rust_source::{closing, code_only, line_of, without_tests};

/// Every source file with its code only.
fn sources() -> impl Iterator<Item = (String, String, String)> {
    let all = files("src", ".rs");
    // Modules that only tests have, each in a file of its own.
    let of_tests: Vec<_> = all.iter().flat_map(|file| test_files(file)).collect();
    let shipped = all.into_iter().filter(move |file| !of_tests.contains(file));
    shipped.map(|file| {
        let source = read(&file);
        let code = code_only(&source);
        (file.display().to_string(), source, code)
    })
}

/// The files of the modules that a file has for tests alone.
fn test_files(file: &std::path::Path) -> Vec<std::path::PathBuf> {
    let source = read(file);
    let marked = source.split("#[cfg(test)]\n").skip(1);
    let names = marked.filter_map(|rest| {
        let line = rest.lines().next()?.trim_start_matches("pub(crate) ");
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    names
        .map(|name| file.with_file_name(format!("{name}.rs")))
        .collect()
}

#[test]
fn every_exported_function_is_one_call_into_the_guard() {
    let mut count = 0;
    for (file, _, code) in sources() {
        for (at, _) in code.match_indices("#[unsafe(no_mangle)]") {
            count += 1;
            let function = at + code[at..].find("fn ").unwrap();
            let name = code[function + 3..].split('(').next().unwrap();
            let open = function + code[function..].find('{').unwrap();
            let body = code[open + 1..closing(&code, open)].trim();
            // Before the guard only out-parameters may be wrapped, which touches nothing.
            let mut rest = body;
            while let Some(after) = rest.strip_prefix("let ") {
                let (statement, more) = after.split_once(';').unwrap();
                assert!(
                    statement.ends_with(" = unsafe { Out::new(out) }")
                        || statement.ends_with(" = unsafe { Out::new(err) }"),
                    "{file}: {name} does something before its guard: {statement}"
                );
                rest = more.trim_start();
            }
            assert!(
                rest.starts_with("guard::"),
                "{file}: {name} does not begin with its guard"
            );
            let end = rest.find('(').map(|open| closing(rest, open) + 1).unwrap();
            let after = rest[end..].trim();
            assert!(
                after.is_empty() || after == ";",
                "{file}: {name} goes on after its guard"
            );
        }
        if !file.starts_with("src/ffi") {
            assert!(!code.contains("no_mangle"), "{file} exports a symbol");
        }
    }
    assert!(count >= 31, "only {count} exported functions were found");
}

#[test]
fn unsafe_is_in_two_places_and_each_block_says_why() {
    for (file, source, code) in sources() {
        let allowed = file.starts_with("src/ffi") || file == "src/os.rs";
        let lines: Vec<&str> = source.lines().collect();
        for (at, _) in code
            .match_indices("unsafe {")
            .chain(code.match_indices("unsafe impl"))
        {
            let line = line_of(&code, at);
            assert!(
                allowed,
                "{file}:{line}: unsafe outside src/ffi and src/os.rs"
            );
            // Up through the statement that the block is part of, to the comment above it.
            let above = lines[..line].iter().rev().take(8);
            let reason = above
                .clone()
                .position(|line| line.trim_start().starts_with("// SAFETY: "));
            assert!(reason.is_some(), "{file}:{line}: no SAFETY comment above");
        }
        if !allowed {
            assert!(!code.contains("unsafe fn"), "{file}: an unsafe function");
        }
    }
}

#[test]
fn nothing_panics_prints_or_is_left_open() {
    let words = [
        ".unwrap()",
        "println!",
        "eprintln!",
        "print!(",
        "eprint!(",
        "todo!",
        "unimplemented!",
        "dbg!",
        "process::exit",
        "process::abort",
        "set_var(",
        "remove_var(",
        "set_current_dir(",
    ];
    let is_tests = |file: &str| file.ends_with("/tests.rs");
    for (file, _, code) in sources().filter(|(file, ..)| !is_tests(file)) {
        let code = without_tests(&code);
        for word in words {
            if let Some(at) = code.find(word) {
                panic!(
                    "{file}:{}: {word} has no place in the library",
                    line_of(&code, at)
                );
            }
        }
    }
}

#[test]
fn no_signal_handler_is_installed() {
    for (file, _, code) in sources() {
        for word in [
            "tokio::signal",
            "libc::sigaction",
            "libc::signal(",
            "signal_hook",
        ] {
            if let Some(at) = code.find(word) {
                panic!(
                    "{file}:{}: {word}: signals belong to the host",
                    line_of(&code, at)
                );
            }
        }
    }
}

/// Tags without authority: parts of a block that mark data (SAN-4), and HTML that is read.
const PLAIN_TAGS: &[&str] = &[
    "description",
    "location",
    "name",
    "skill",
    "skill_content",
    "title",
    "user_request",
];

#[test]
fn outside_text_cannot_use_a_tag_that_the_library_writes() {
    // Tags pair, so it is enough to look for those that close; outside of texts Rust has none (PR-1, P1).
    let mut found = 0;
    let writers = ["src/prompt", "src/skills", "src/tools", "src/middleware"];
    let told = sources().filter(|(file, ..)| writers.iter().any(|part| file.starts_with(part)));
    for (file, source, _) in told {
        let end = source
            .find("#[cfg(test)]\nmod tests")
            .unwrap_or(source.len());
        for (line, text) in source[..end].lines().enumerate() {
            if text.trim_start().starts_with("//") {
                continue;
            }
            for (at, _) in text.match_indices("</") {
                let name: String = text[at + 2..]
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-')
                    .collect();
                if name.is_empty() {
                    continue;
                }
                let blocked = fawn::prompt::sanitize::BLOCKED_TAGS.contains(&&*name);
                assert!(
                    blocked || PLAIN_TAGS.contains(&&*name),
                    "{file}:{}: </{name}> is not in src/prompt/sanitize.rs::BLOCKED_TAGS",
                    line + 1
                );
                found += 1;
            }
        }
    }
    assert!(found >= 25, "only {found} tags were found");
}

#[test]
fn every_file_says_first_what_it_is_for() {
    let folders = ["src", "tests", "benches", "examples", "fuzz"];
    for file in folders.iter().flat_map(|folder| files(folder, ".rs")) {
        if file.components().any(|part| part.as_os_str() == "target") {
            continue;
        }
        let source = read(&file);
        let first = source.lines().next().unwrap_or_default();
        let says = first
            .strip_prefix("//! ")
            .is_some_and(|text| text.len() > 10);
        assert!(
            says,
            "{}: the first line does not say what the file is for",
            file.display()
        );
    }
}

#[test]
fn nothing_names_a_machine_or_a_registry() {
    let Some(files) = tracked() else {
        eprintln!("skipped: not a git work tree");
        return;
    };
    // In pieces, so that this file does not name them either.
    let registries = [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("pythonhosted", ".org"),
        concat!("npmjs", ".org"),
        concat!("npmjs", ".com"),
        concat!("proxy.golang", ".org"),
        concat!("repo1.maven", ".org"),
        concat!("deb.debian", ".org"),
    ];
    let machine = [
        concat!("/", "work/"),
        concat!("/", "root/"),
        concat!("/", "tmp/"),
        concat!("/", "home/"),
        concat!("/", "Users/"),
        concat!("/", "farm/"),
    ];
    let mut found = Vec::new();
    for file in files {
        let name = file.to_string_lossy();
        // Written by tools, which put their sources in.
        if name.ends_with(".lock") || name.ends_with("lock.json") || name.ends_with("go.sum") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else {
            continue; // not text
        };
        for (line, content) in text.lines().enumerate() {
            let absolute = |path: &str| {
                content.match_indices(path).any(|(at, _)| {
                    let before = content[..at].chars().next_back();
                    // Part of a longer path or address is not absolute.
                    !before.is_some_and(|c| c.is_alphanumeric() || "._-/~$}*".contains(c))
                })
            };
            let registry = registries.iter().find(|host| content.contains(**host));
            if let Some(what) = registry.or_else(|| machine.iter().find(|path| absolute(path))) {
                found.push(format!("{name}:{}: {what}", line + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "names of a machine or a registry:\n{}",
        found.join("\n")
    );
}

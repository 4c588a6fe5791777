//! The programs in the README and in each binding's page are files that are built and run as they stand there.

use crate::languages::Language;
use crate::programs::root;

/// The fenced blocks of a Markdown text.
fn blocks(markdown: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in markdown.lines() {
        match (&mut open, line.starts_with("```")) {
            (None, true) => open = Some(String::new()),
            (None, false) => {}
            (Some(_), true) => blocks.extend(open.take()),
            (Some(block), false) => {
                block.push_str(line);
                block.push('\n');
            }
        }
    }
    blocks
}

fn read(path: &str) -> String {
    let text = std::fs::read_to_string(root().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn readme_runs(language: Language) {
    if !language.is_ready() {
        return;
    }
    let program = language.example("readme");
    let source = read(&program);
    let page = format!("bindings/{}/README.md", language.folder());
    for readme in ["README.md", &page] {
        assert!(
            blocks(&read(readme)).contains(&source),
            "{readme} does not show {program} as it is"
        );
    }
    let printed = language.build(&program).run(&[]);
    assert!(!printed.is_empty(), "{program} prints nothing");
}

#[test]
fn the_program_of_the_cpp_readme_runs() {
    readme_runs(Language::Cpp);
}

#[test]
fn the_program_of_the_go_readme_runs() {
    readme_runs(Language::Go);
}

#[test]
fn the_program_of_the_node_readme_runs() {
    readme_runs(Language::Node);
}

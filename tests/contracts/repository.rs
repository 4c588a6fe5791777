//! The files of the repository, and the one switch that rewrites the generated ones.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file, named from the root.
pub fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether generated files are to be rewritten rather than compared.
pub fn update() -> bool {
    std::env::var_os("UPDATE").is_some_and(|value| value == "1")
}

/// Compares a generated file with what it should be, or rewrites it.
pub fn in_step(path: &str, right: &str) {
    let file = root().join(path);
    if update() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, right).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    if let Some(at) = first_difference(&found, right) {
        panic!(
            "{path} is not in step, from line {at} on.\n  found:  {:?}\n  should: {:?}\n\
             Run: UPDATE=1 cargo test --test contracts",
            found.lines().nth(at - 1).unwrap_or("(nothing)"),
            right.lines().nth(at - 1).unwrap_or("(nothing)"),
        );
    }
}

fn first_difference(found: &str, right: &str) -> Option<usize> {
    if found == right {
        return None;
    }
    let same = found.lines().zip(right.lines()).take_while(|(a, b)| a == b);
    Some(same.count() + 1)
}

/// Every file under `folder` with this ending, by name.
pub fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Every file that is or would be tracked. `None` outside a git work tree, such as in a source archive.
pub fn tracked() -> Option<Vec<PathBuf>> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let names = String::from_utf8(listed.stdout).unwrap();
    let paths = names.split('\0').filter(|name| !name.is_empty());
    Some(
        paths
            .map(PathBuf::from)
            .filter(|path| root().join(path).is_file())
            .collect(),
    )
}

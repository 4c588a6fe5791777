//! The shared library shows `fawn_*` and nothing else, has its name, and stays when it is closed.

use std::path::PathBuf;

use crate::elf::{self, SharedLibrary};
use crate::header;
use crate::repository::{in_step, update};

/// The shared library that was built together with this test. Cargo leaves it in the folder of the test's own
/// executable; only `cargo build` copies it one folder up.
fn library_file() -> PathBuf {
    let name = format!(
        "{}fawn{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    let executable = std::env::current_exe().unwrap();
    let folder = executable.parent().unwrap();
    let candidates = [folder.join(&name), folder.join("..").join(&name)];
    let found = candidates.iter().find(|path| path.is_file());
    let Some(found) = found else {
        panic!(
            "there is no {name} in {} or above it: was it built as a cdylib?",
            folder.display()
        );
    };
    found.clone()
}

/// What the library says about itself. `None`, with a message, where libraries are not ELF files.
fn library() -> Option<SharedLibrary> {
    let library = elf::read(&library_file());
    if library.is_none() {
        eprintln!("skipped: the shared library of this platform is not a 64-bit ELF file");
    }
    library
}

#[test]
fn exports_are_the_functions_of_the_header_and_of_the_golden_list() {
    let Some(library) = library() else { return };
    in_step(
        "tests/contracts/symbols.txt",
        &(library.exports.join("\n") + "\n"),
    );
    if !update() {
        assert_eq!(library.exports, header::functions());
    }
}

#[test]
fn library_has_its_soname_and_is_never_unloaded() {
    let Some(library) = library() else { return };
    assert_eq!(library.soname.as_deref(), Some("libfawn.so.0"));
    assert!(library.nodelete, "not linked with -z nodelete");
}

#[test]
fn library_needs_the_c_runtime_only() {
    let Some(library) = library() else { return };
    let system = [
        "libc.",
        "libm.",
        "libgcc_s.",
        "ld-linux",
        "libpthread.",
        "libdl.",
        "librt.",
    ];
    let foreign = |name: &&String| !system.iter().any(|known| name.starts_with(known));
    let foreign: Vec<_> = library.needed.iter().filter(foreign).collect();
    assert!(
        foreign.is_empty(),
        "a host would need these as well: {foreign:?}"
    );
}

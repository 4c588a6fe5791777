//! Programs of other languages: the library that they are linked to, how they are started, and how long they may take.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A program that runs longer hangs. A build takes up to a minute on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether a switch of the environment is on.
pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| value == "1")
}

/// A folder for what tests make.
pub fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("bindings")
        .join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A folder with nothing in it.
pub fn empty_scratch(name: &str) -> PathBuf {
    let _ = std::fs::remove_dir_all(scratch(name));
    scratch(name)
}

/// A folder with the library that cargo built with this test, under the two names that linker and loader look for.
pub fn library_folder() -> PathBuf {
    static FOLDER: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let make = || {
        let name = format!(
            "{}fawn{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        );
        let executable = std::env::current_exe().unwrap();
        let folder = executable.parent().unwrap();
        let candidates = [folder.join(&name), folder.join("..").join(&name)];
        let library = candidates.iter().find(|path| path.is_file());
        let library = library.unwrap_or_else(|| panic!("there is no {name} beside this test"));
        let library = library.canonicalize().unwrap();
        let folder = empty_scratch("lib");
        for name in ["libfawn.so", "libfawn.so.0"] {
            std::os::unix::fs::symlink(&library, folder.join(name)).unwrap();
        }
        folder
    };
    FOLDER.get_or_init(make).clone()
}

/// A command that finds header and library by the variables that every binding's build takes, and by the loader's own.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env("FAWN_INCLUDE_DIR", root().join("include"))
        .env("FAWN_LIB_DIR", library_folder())
        // cargo puts its own folders on this path, and what an earlier build left there would come before an rpath.
        .env("LD_LIBRARY_PATH", library_folder())
        .stdin(Stdio::null());
    // Programs that speak to a model do so if these are set.
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "FAWN_MODEL"] {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end. Panics with what it said if that is no success, or takes too long.
pub fn output(what: &str, command: &mut Command) -> String {
    let output = finished(what, command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{what}: {}\n{}{said}",
        output.status,
        tail(&String::from_utf8_lossy(&output.stdout)),
    );
    String::from_utf8(output.stdout).unwrap_or_else(|_| panic!("{what} printed what is not UTF-8"))
}

fn finished(what: &str, command: &mut Command) -> Output {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let id = child.id();
    let begin = Instant::now();
    // Reads both pipes while it waits; a watcher ends the child when the time is up.
    let (done, watch) = std::sync::mpsc::channel::<()>();
    let watcher = std::thread::spawn(move || {
        if watch.recv_timeout(LIMIT).is_err() {
            let _ = Command::new("kill").arg("-9").arg(id.to_string()).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    let _ = done.send(());
    watcher.join().unwrap();
    assert!(begin.elapsed() < LIMIT, "{what} ran for {LIMIT:?}");
    output
}

/// The end of a long text.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(20)..];
    shown.iter().map(|line| format!("{line}\n")).collect()
}

//! Drives the C programs beside it: each is compiled against the header and the shared library, and run.
//!
//! - `FAWN_VALGRIND=1` runs them under valgrind's memcheck: bad accesses and lost memory fail.
//! - `FAWN_CC` is the C compiler, `cc` unless set.
//! - `FAWN_CFLAGS` adds flags for it, such as `-fsanitize=address` when the library is built with it too.
//! - `FAWN_SOAK` is the number of runs of `soak.c`.
//! - With the feature `test-panics` the library has calls that panic on purpose, and `panics.c` is run.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed unwrap is the failure to report; what is skipped is said"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program that runs longer hangs. They take seconds; under valgrind, on a busy machine, a minute.
const LIMIT: Duration = Duration::from_secs(300);

/// The folder of this test's executable, where cargo puts the shared library that it builds with the tests.
fn library() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    let folder = executable.parent().unwrap();
    let name = format!(
        "{}fawn{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    let candidates = [folder.join(&name), folder.join("..").join(&name)];
    let found = candidates.iter().find(|path| path.is_file());
    let Some(found) = found else {
        panic!(
            "there is no {name} in {} or above it: was it built as a cdylib?",
            folder.display()
        );
    };
    found.canonicalize().unwrap()
}

/// A folder with the library under the two names that linker and loader look for.
fn link_folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("abi");
    std::fs::create_dir_all(&folder).unwrap();
    let library = library();
    for name in ["libfawn.so", "libfawn.so.0"] {
        // Several tests do this at once: each makes a link of its own and moves it into place.
        let unique = folder.join(format!("{name}.{:?}", std::thread::current().id()));
        let _ = std::fs::remove_file(&unique);
        std::os::unix::fs::symlink(&library, &unique).unwrap();
        std::fs::rename(&unique, folder.join(name)).unwrap();
    }
    folder
}

/// Whether a switch of the environment is on.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| value == "1")
}

/// Compiles `tests/abi/<name>.c`. `None`, with a message, if there is no C compiler.
fn compile(name: &str) -> Option<PathBuf> {
    let cc = std::env::var("FAWN_CC").unwrap_or_else(|_| "cc".to_owned());
    if Command::new(&cc).arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler ({cc})");
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = link_folder();
    let program = folder.join(name);
    let flags = std::env::var("FAWN_CFLAGS").unwrap_or_default();
    let output = Command::new(&cc)
        .args([
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-g",
            "-O1",
            "-pthread",
        ])
        .args(flags.split_whitespace())
        .arg("-I")
        .arg(root.join("include"))
        .arg("-o")
        .arg(&program)
        .arg(root.join("tests/abi").join(format!("{name}.c")))
        .arg("-L")
        .arg(&folder)
        .arg("-lfawn")
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{name}.c does not compile:\n{said}"
    );
    Some(program)
}

/// Compiles and runs a program. It must end with 0 and, since neither it nor the library has anything to say, print
/// nothing.
fn run_program(name: &str) {
    let Some(program) = compile(name) else { return };
    let mut command = if is_set("FAWN_VALGRIND") {
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--quiet", "--error-exitcode=9", "--leak-check=full"])
            .args([
                "--errors-for-leak-kinds=definite,possible",
                "--fair-sched=yes",
            ])
            .arg("--num-callers=300") // enough for suppressions to find the outermost frame they name
            .arg(format!(
                "--suppressions={}/tests/abi/valgrind.supp",
                env!("CARGO_MANIFEST_DIR")
            ))
            .arg(program);
        valgrind
    } else {
        Command::new(program)
    };
    if cfg!(feature = "test-panics") {
        command.env("FAWN_EXPECT_PANICS", "1");
    }
    // cargo puts its own folders on this path, and what an earlier build left there would come before the rpath.
    command.env("LD_LIBRARY_PATH", link_folder());
    // Into a file, so that a program that says much is not stopped by a pipe that nobody reads.
    let log = link_folder().join(format!("{name}.log"));
    let file = std::fs::File::create(&log).unwrap();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if begin.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let said = std::fs::read(&log).unwrap();
    let said = String::from_utf8_lossy(&said);
    match status {
        Some(status) => assert!(status.success(), "{name}: {status}\n{said}"),
        None => panic!("{name} was still running after {LIMIT:?}\n{said}"),
    }
    assert!(said.is_empty(), "{name} printed:\n{said}");
}

macro_rules! programs {
    ($($(#[$attribute:meta])* $name:ident)+) => {
        $(
            #[test]
            $(#[$attribute])*
            fn $name() {
                run_program(stringify!($name));
            }
        )+
    };
}

/// `panics.c` has little to do in a build without calls that panic on purpose.
#[test]
fn panics() {
    if !cfg!(feature = "test-panics") {
        eprintln!("mostly skipped: needs --features test-panics");
    }
    run_program("panics");
}

programs! {
    meta
    reduce
    descriptor
    runtime
    thread
    queue
    wakeup
    run
    subagents
    soak
    misuse
    threads
    fork
    signals
}

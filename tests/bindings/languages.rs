//! The languages: what tools each needs, and how its programs are built and started.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::programs::{command, is_set, library_folder, output, root, scratch};

/// A language with a way to the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The header itself.
    C,
    /// `bindings/cpp/fawn.hpp`.
    Cpp,
    /// The Go package.
    Go,
    /// The Node package.
    Node,
}

/// A program that is ready to run.
pub struct Program {
    name: String,
    /// The executable, and what comes before the program's own arguments.
    start: Vec<PathBuf>,
}

impl Program {
    /// The command that runs it with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.start[0]);
        command.args(&self.start[1..]).args(arguments);
        command
    }

    /// Runs it; what it prints.
    pub fn run(&self, arguments: &[&str]) -> String {
        output(&self.name, &mut self.command(arguments))
    }
}

impl Language {
    /// All of them; the first is what the others are compared with.
    pub const ALL: [Language; 4] = [Language::C, Language::Cpp, Language::Go, Language::Node];

    /// The name of its folders.
    pub const fn folder(self) -> &'static str {
        match self {
            Language::C => "c",
            Language::Cpp => "cpp",
            Language::Go => "go",
            Language::Node => "node",
        }
    }

    /// Whether its tools are there. If not, this is said, and fails where it is demanded.
    pub fn is_ready(self) -> bool {
        let binding = root().join("bindings").join(self.folder());
        if self != Language::C && !binding.is_dir() {
            return skipped(&format!("{self:?}: there is no bindings/{}", self.folder()));
        }
        let tools: &[&[&str]] = match self {
            Language::C => &[&["cc", "--version"]],
            Language::Cpp => &[&["c++", "--version"]],
            // In the module, where one that is too old says so.
            Language::Go => &[&["cc", "--version"], &["go", "list", "-m"]],
            Language::Node => &[&["cc", "--version"], &["node", "--version"]],
        };
        for tool in tools {
            let mut ask = command(tool[0]);
            if self == Language::Go {
                ask.current_dir(&binding).env("GOTOOLCHAIN", "local");
            }
            let answer = ask.args(&tool[1..]).output();
            if !answer.is_ok_and(|answer| answer.status.success()) {
                return skipped(&format!("{self:?}: {} does not work here", tool.join(" ")));
            }
        }
        match self {
            Language::Node => addon().as_ref().map_or_else(|why| skipped(why), |()| true),
            _ => true,
        }
    }

    /// The source of an example, named from the root: a file, or the main package in Go.
    pub fn example(self, name: &str) -> String {
        match self {
            Language::C => format!("examples/c/{name}.c"),
            Language::Cpp => format!("examples/cpp/{name}.cpp"),
            Language::Go => format!("examples/go/{name}/main.go"),
            Language::Node => format!("examples/node/{name}.mjs"),
        }
    }

    /// Builds a program of this language from a file or, in Go, a package, named from the root.
    pub fn build(self, source: &str) -> Program {
        let name = source.replace(['/', '.'], "_");
        let source = root().join(source);
        assert!(source.exists(), "there is no {}", source.display());
        let program = scratch("programs").join(&name);
        let start = match self {
            Language::C | Language::Cpp => {
                compile(self, &source, &program);
                let before = if self.is_checked() {
                    valgrind()
                } else {
                    Vec::new()
                };
                before.into_iter().chain([program]).collect()
            }
            Language::Go => {
                build_go(&source, &program);
                vec![program]
            }
            Language::Node => vec!["node".into(), beside_the_package(&source)],
        };
        Program { name, start }
    }

    /// Whether its programs run under valgrind.
    pub fn is_checked(self) -> bool {
        self == Language::C && is_set("FAWN_VALGRIND")
    }
}

/// Says that something is skipped, which fails where nothing may be. Gives false.
///
/// Written past the test harness, which would keep what a test that passes prints to itself.
fn skipped(why: &str) -> bool {
    assert!(
        !is_set("FAWN_REQUIRE_BINDINGS"),
        "{why}, and FAWN_REQUIRE_BINDINGS=1 demands it"
    );
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
    false
}

fn compile(language: Language, source: &Path, program: &Path) {
    let (compiler, standard) = match language {
        Language::C => ("cc", "-std=gnu11"),
        _ => ("c++", "-std=c++17"),
    };
    let library = library_folder();
    let mut build = command(compiler);
    build
        .arg(standard)
        .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"])
        .arg("-pthread")
        .arg("-I")
        .arg(root().join("include"))
        .arg("-I")
        .arg(root().join("bindings/cpp"))
        .arg("-o")
        .arg(program)
        .arg(source)
        .arg("-L")
        .arg(&library)
        .arg("-lfawn")
        .arg(format!("-Wl,-rpath,{}", library.display()));
    output(&format!("compiling {}", source.display()), &mut build);
}

/// What comes before a program so that bad accesses and lost memory make it fail.
fn valgrind() -> Vec<PathBuf> {
    let suppressions = root().join("tests/abi/valgrind.supp");
    let suppressions = format!("--suppressions={}", suppressions.display());
    [
        "valgrind",
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite,possible",
        "--fair-sched=yes",
        "--num-callers=300", // enough for suppressions to find the outermost frame they name
        &suppressions,
    ]
    .map(PathBuf::from)
    .into()
}

fn build_go(source: &Path, program: &Path) {
    // Files outside of a module are built as part of the binding's.
    let module = source
        .ancestors()
        .find(|above| above.join("go.mod").is_file());
    let module = module.map_or_else(|| root().join("bindings/go"), Path::to_owned);
    let library = library_folder();
    let library = library.display();
    let include = root().join("include");
    let mut build = command("go");
    build
        .current_dir(module)
        .env("CGO_ENABLED", "1")
        .env("GOTOOLCHAIN", "local")
        .env("CGO_CFLAGS", format!("-I{}", include.display()))
        .env("CGO_LDFLAGS", format!("-L{library} -Wl,-rpath,{library}"))
        .args(["build", "-o"])
        .arg(program)
        .arg(source);
    output(&format!("go build {}", source.display()), &mut build);
}

/// Builds Node's addon, once; if something for it is missing, what that is.
fn addon() -> &'static Result<(), String> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut build = command("node");
        build.arg(root().join("bindings/node/build.mjs"));
        let built = build.output().unwrap();
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        assert!(
            built.status.success() || said.contains("cannot be built"),
            "building the addon for Node:\n{said}"
        );
        if built.status.success() {
            Ok(())
        } else {
            Err(said)
        }
    })
}

/// Examples import the package by its name, so a copy is run where that is found. Other programs run where they are.
fn beside_the_package(source: &Path) -> PathBuf {
    if !source.starts_with(root().join("examples")) {
        return source.to_owned();
    }
    let folder = scratch("programs");
    let packages = folder.join("node_modules");
    std::fs::create_dir_all(&packages).unwrap();
    // Several tests may do this at once; whoever is first makes the link.
    let _ = std::os::unix::fs::symlink(root().join("bindings/node"), packages.join("fawn"));
    let copy = folder.join(source.file_name().unwrap());
    std::fs::copy(source, &copy).unwrap();
    copy
}

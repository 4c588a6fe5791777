//! Starts aimock, a mock of the model wire that others wrote, with the fixtures of `tests/aimock/fixtures`.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A running mock; stops when dropped.
pub struct Aimock {
    child: Child,
    origin: String,
}

impl Aimock {
    /// Starts it on a free port. `None`, with a message on stderr, when it is not installed; with
    /// `FAWN_REQUIRE_TOOLS=1` that is a failure.
    pub fn start() -> Option<Aimock> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/aimock");
        let program = folder.join("node_modules/@copilotkit/aimock/dist/cli.js");
        let missing = if !program.is_file() {
            "aimock is not installed; run tests/aimock/setup.sh"
        } else if Command::new("node").arg("-v").output().is_err() {
            "node is not installed"
        } else {
            return Some(Aimock::run(&folder));
        };
        assert!(
            std::env::var_os("FAWN_REQUIRE_TOOLS").is_none_or(|wanted| wanted != "1"),
            "{missing}"
        );
        // Not a print macro: those are swallowed when a test passes.
        let _ = writeln!(std::io::stderr(), "skipped: {missing}");
        None
    }

    fn run(folder: &std::path::Path) -> Aimock {
        let mut child = Command::new("node")
            .current_dir(folder)
            .arg("node_modules/@copilotkit/aimock/dist/cli.js")
            .args(["-p", "0", "-f", "fixtures", "--strict"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let origin = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("listening on ")?.1.trim().to_owned()));
        // It logs every request; nobody reading would stop it one day.
        std::thread::spawn(move || lines.for_each(drop));
        let Some(origin) = origin else {
            let _ = child.kill();
            panic!("aimock ended without saying where it listens");
        };
        Aimock { child, origin }
    }

    /// Base address of the chat completions API.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.origin)
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

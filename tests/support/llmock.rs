//! Starts llmock, a mock of the model wire that others wrote: it breaks on demand, and grades how its client took it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A running mock; stops when dropped.
pub struct Llmock {
    child: Child,
    address: String,
    program: PathBuf,
}

impl Llmock {
    /// Starts it on a free port. `None`, with a message on stderr, when it is not installed; with
    /// `FAWN_REQUIRE_TOOLS=1` that is a failure.
    pub fn start(options: &[&str]) -> Option<Llmock> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let program = root.join("target/test-tools/llmock/bin/llmock");
        if program.is_file() {
            return Some(Llmock::run(program, options));
        }
        let missing = "llmock is not installed; run tests/llmock/setup.sh";
        assert!(
            std::env::var_os("FAWN_REQUIRE_TOOLS").is_none_or(|wanted| wanted != "1"),
            "{missing}"
        );
        // Not a print macro: those are swallowed when a test passes.
        let _ = writeln!(std::io::stderr(), "skipped: {missing}");
        None
    }

    fn run(program: PathBuf, options: &[&str]) -> Llmock {
        let mut child = Command::new(&program)
            .args(["serve", "--host", "127.0.0.1", "--port", "0"])
            .args(options)
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let rest = line.split_once("running on http://")?.1;
            Some(rest.split_whitespace().next()?.to_owned())
        });
        // It logs; nobody reading would stop it one day.
        std::thread::spawn(move || lines.for_each(drop));
        let Some(address) = address else {
            let _ = child.kill();
            panic!("llmock ended without saying where it listens");
        };
        Llmock {
            child,
            address,
            program,
        }
    }

    /// `http://127.0.0.1:PORT` and `path`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Forgets what was asked and what is scripted.
    pub fn reset(&self) {
        self.control("POST", "reset", "{}");
    }

    /// Breaks what comes next, once.
    pub fn script(&self, behavior: &Value) {
        let body = json!({ "behaviors": [behavior] }).to_string();
        let answer = self.control("POST", "scenario", &body);
        assert!(answer.contains("queued"), "{answer}");
    }

    /// Findings of its verdict so far, by name, and how many attempts it saw.
    pub fn verdict(&self) -> (Vec<String>, u64) {
        let text = self.control("GET", "verdict", "");
        let verdict: Value = serde_json::from_str(&text).unwrap();
        let findings = verdict["findings"].as_array().unwrap();
        let names = findings
            .iter()
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect();
        (names, verdict["attempts"].as_u64().unwrap())
    }

    /// Its own report, warnings counted as errors: whether it is clean, and the text.
    pub fn report(&self) -> (bool, String) {
        let output = Command::new(&self.program)
            .args(["report", "--strict", "--url", &self.url("")])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text)
    }

    fn control(&self, method: &str, name: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let request = format!(
            "{method} /_llmock/{name} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

impl Drop for Llmock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

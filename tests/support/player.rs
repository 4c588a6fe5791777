//! Plays a conformance script through the Rust API and gives the lines that a runner of any language must print.

use std::str::Split;

use fawn::protocol::describe::describe;
use fawn::protocol::error::{Error, ErrorCode};
use fawn::runtime::{Answer, Assembly, Queue, Run, Runtime, Thread, Wait};
use fawn::state::reduce::{convert_document, reduce_document};
use serde_json::Value;

use super::request_invariant;

/// What one command of a script printed; a run with its answers is one.
pub type Printed = Vec<String>;

/// Plays a script.
pub fn play(script: &str) -> Vec<Printed> {
    let mut player = Player {
        lines: script.split('\n'),
        printed: Vec::new(),
        runtime: Slot::None,
        assembly: Slot::None,
        thread: Slot::None,
        queue: Slot::None,
        runtimes: 0,
        runs: 0,
    };
    let mut all = Vec::new();
    while let Some((verb, text)) = player.next_command() {
        player.carry_out(verb, text);
        all.push(std::mem::take(&mut player.printed));
    }
    all
}

/// Puts 0 in the place of every handle, since handles are random numbers.
pub fn masked(printed: &str) -> String {
    let mut out = String::with_capacity(printed.len());
    let mut rest = printed;
    while let Some(at) = ["\"handle\":", "\"runtime\":"]
        .iter()
        .filter_map(|name| rest.find(name).map(|at| at + name.len()))
        .min()
    {
        out.push_str(&rest[..at]);
        let number = rest[at..].trim_start_matches(|c: char| c.is_ascii_digit());
        if number.len() < rest.len() - at {
            out.push('0');
        }
        rest = number;
    }
    out + rest
}

/// The current object of a kind, as a C program has it: none yet, alive, or a handle that was freed.
enum Slot<T> {
    None,
    /// The object, and the number of the runtime that it belongs to.
    Alive(T, u32),
    Freed,
}

impl<T> Slot<T> {
    fn find(&self, kind: &str) -> Result<&T, Error> {
        let message = match self {
            Slot::Alive(object, _) => return Ok(object),
            Slot::None => {
                format!("a handle of kind {kind:?} is needed, this is 0, which is none")
            }
            Slot::Freed => format!("this {kind} handle was freed, or never made"),
        };
        Err(Error::new(ErrorCode::Handle, message))
    }

    fn is_of(&self, runtime: u32) -> bool {
        matches!(self, Slot::Alive(_, of) if *of == runtime)
    }
}

struct Player<'a> {
    lines: Split<'a, char>,
    printed: Printed,
    runtime: Slot<Runtime>,
    assembly: Slot<Assembly>,
    thread: Slot<Thread>,
    queue: Slot<Queue>,
    /// How many runtimes were made; the current one has this number.
    runtimes: u32,
    /// How many runs are in hand.
    runs: usize,
}

impl<'a> Player<'a> {
    fn next_command(&mut self) -> Option<(&'a str, &'a str)> {
        let line = self
            .lines
            .find(|line| !line.is_empty() && !line.starts_with('#'))?;
        Some(line.split_once(' ').unwrap_or((line, "")))
    }

    fn say(&mut self, what: &str, text: &str) {
        self.printed.push(format!("{what} {text}"));
    }

    fn say_error(&mut self, error: &Error) {
        let payload = serde_json::to_string(&error.payload()).expect("JSON");
        self.say("error", &payload);
    }

    fn say_answer(&mut self, answer: Result<String, Error>) {
        match answer {
            Ok(text) => self.say("ok", &text),
            Err(error) => self.say_error(&error),
        }
    }

    fn say_made(&mut self, made: Result<(), Error>) {
        match made {
            Ok(()) => self.printed.push("ok".to_owned()),
            Err(error) => self.say_error(&error),
        }
    }

    fn carry_out(&mut self, verb: &str, text: &str) {
        match verb {
            "runtime" | "assembly" | "thread" | "queue" => {
                let made = self.make(verb, text);
                self.say_made(made);
            }
            "free" => {
                self.free(text);
                self.printed.push("ok".to_owned());
            }
            "run" => self.run(text),
            _ => {
                let answer = self.ask(verb, text);
                self.say_answer(answer);
            }
        }
    }

    fn make(&mut self, kind: &str, text: &str) -> Result<(), Error> {
        if kind == "runtime" {
            let made = Runtime::new(text)?;
            self.free("runtime");
            self.runtimes += 1;
            self.runtime = Slot::Alive(made, self.runtimes);
            return Ok(());
        }
        let runtime = self.runtime.find("runtime")?;
        let of = self.runtimes;
        match kind {
            "assembly" => self.assembly = Slot::Alive(runtime.new_assembly(text)?, of),
            "thread" => self.thread = Slot::Alive(runtime.open_thread(text)?, of),
            _ => {
                let made = runtime.new_queue(text)?;
                self.free("queue");
                self.queue = Slot::Alive(made, of);
            }
        }
        Ok(())
    }

    fn free(&mut self, kind: &str) {
        match kind {
            "runtime" => {
                if let Ok(runtime) = self.runtime.find(kind) {
                    runtime.close();
                }
                self.runtime = Slot::Freed;
            }
            "queue" => {
                if let Ok(queue) = self.queue.find(kind) {
                    queue.close();
                }
                self.queue = Slot::Freed;
            }
            "assembly" => self.assembly = Slot::Freed,
            "thread" => self.thread = Slot::Freed,
            other => panic!("there is no object {other}"),
        }
    }

    fn ask(&self, verb: &str, text: &str) -> Result<String, Error> {
        match verb {
            "describe" => describe(text, |topic| match topic {
                "middleware" => fawn::agent::middleware_catalog().to_string(),
                _ => panic!("handles are not the same twice"),
            }),
            "reduce" => {
                let (channel, text) = text.split_once(' ').unwrap_or((text, ""));
                reduce_document(channel, text)
            }
            "convert" => convert_document(text),
            "update" => self.thread.find("thread")?.update(text),
            "state" => self.thread.find("thread")?.state(text),
            "history" => self.thread.find("thread")?.history(text),
            "goal" => self.thread.find("thread")?.goal(text),
            "submit" => self.runtime.find("runtime")?.submit(text),
            "descriptor" => self.assembly.find("assembly")?.descriptor(),
            "stats" => Ok(self.runtime.find("runtime")?.stats(&self.living())),
            "shutdown" => match self.runtime.find("runtime")?.shutdown(Wait::Forever) {
                Answer::Done(text) => Ok(text),
                _ => panic!("a shutdown without a limit ends"),
            },
            other => panic!("unknown command {other}"),
        }
    }

    /// The living handles of the runtime, in the order in which the C ABI lists them.
    fn living(&self) -> String {
        let of = self.runtimes;
        let mut list = vec![r#"{"handle":0,"kind":"runtime"}"#.to_owned()];
        let mut add = |kind: &str, count: usize| {
            let entry = format!(r#"{{"handle":0,"kind":"{kind}","runtime":0}}"#);
            list.extend(std::iter::repeat_n(entry, count));
        };
        add("assembly", self.assembly.is_of(of).into());
        add("thread", self.thread.is_of(of).into());
        add("queue", self.queue.is_of(of).into());
        add("run", self.runs);
        format!("[{}]", list.join(","))
    }

    fn start(&self, request: &str) -> Result<Run, Error> {
        let assembly = self.assembly.find("assembly")?;
        let thread = self.thread.find("thread")?;
        let queue = match &self.queue {
            Slot::None => None,
            slot => Some(slot.find("queue")?),
        };
        assembly
            .runtime()
            .start_run(assembly, thread, queue, request)
    }

    fn run(&mut self, request: &str) {
        match self.start(request) {
            Ok(run) => {
                self.runs += 1;
                if !matches!(self.queue, Slot::None) {
                    self.take_events(&run);
                }
                let Ok(Answer::Done(result)) = run.wait(Wait::Forever) else {
                    panic!("a run ends with a result")
                };
                self.say("result", &result);
                self.runs -= 1;
            }
            Err(error) => self.say_error(&error),
        }
        while self.next_command().is_some_and(|(verb, _)| verb != "end") {}
    }

    fn take_events(&mut self, run: &Run) {
        loop {
            let queue = self.queue.find("queue").expect("a queue");
            let Ok(Answer::Done(batch)) = queue.take(Wait::Forever, 1) else {
                panic!("the queue ended before the run")
            };
            let text = batch
                .strip_prefix('[')
                .and_then(|text| text.strip_suffix(']'));
            let text = text.expect("an array");
            self.say("event", text);
            let event: Value = serde_json::from_str(text).expect("one event");
            if event["type"] == "host_call" {
                request_invariant::check_call(&event["data"]);
                self.answer(run, event["data"]["call_id"].as_u64().expect("a call id"));
            }
            if event["type"] == "run_end" {
                return;
            }
        }
    }

    fn answer(&mut self, run: &Run, call_id: u64) {
        loop {
            let (verb, text) = self.next_command().expect("an answer for each host call");
            let runtime = self.runtime.find("runtime").expect("a runtime");
            let done = match verb {
                "emit" => runtime.emit(call_id, text),
                "finish" => runtime.finish(call_id, text),
                "cancel" => run
                    .submit(r#"{"op":"cancel","reason":"golden"}"#)
                    .map(|_| Answer::Done(())),
                "end" => panic!("an answer for each host call"),
                _ => {
                    self.carry_out(verb, text);
                    continue;
                }
            };
            match done {
                Ok(Answer::Done(())) => {}
                Ok(_) => self.printed.push("gone".to_owned()),
                Err(error) => self.say_error(&error),
            }
            if verb != "emit" {
                return;
            }
        }
    }
}

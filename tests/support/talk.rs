//! A runtime with one agent, one thread and one queue, and what a run on it told.

use std::time::{Duration, Instant};

use fawn::protocol::error::Error;
use fawn::runtime::{Answer, Assembly, Queue, Run, Runtime, Thread, Wait};
use serde_json::{Value, json};

/// Longer than anything in a test takes.
pub const LONG: Wait = Wait::For(Duration::from_secs(60));

pub struct Talk {
    pub runtime: Runtime,
    pub assembly: Assembly,
    pub thread: Thread,
    pub queue: Queue,
}

/// What one run did.
pub struct Told {
    pub events: Vec<Value>,
    pub took: Duration,
}

impl Talk {
    /// An agent without tools.
    pub fn new(workers: u32, model: Value) -> Talk {
        Talk::with_models(workers, &json!([]), model)
    }

    /// The same, in a runtime with named models.
    pub fn with_models(workers: u32, models: &Value, model: Value) -> Talk {
        let runtime = json!({ "workers": workers, "models": models });
        Talk::configured(&runtime, &json!({ "model": model })).unwrap()
    }

    pub fn configured(runtime: &Value, assembly: &Value) -> Result<Talk, Error> {
        let runtime = Runtime::new(&runtime.to_string())?;
        Ok(Talk {
            assembly: runtime.new_assembly(&assembly.to_string())?,
            thread: runtime.open_thread("{}")?,
            queue: runtime.new_queue("{}")?,
            runtime,
        })
    }

    /// Starts a run; without an input it says hello.
    pub fn start(&self, mut request: Value) -> Run {
        if request["input"].is_null() {
            request["input"] = json!({"messages": [{"role": "user", "content": "hello"}]});
        }
        let request = request.to_string();
        self.runtime
            .start_run(&self.assembly, &self.thread, Some(&self.queue), &request)
            .unwrap()
    }

    /// The next event.
    pub fn next(&self) -> Value {
        let Ok(Answer::Done(batch)) = self.queue.take(LONG, 1) else {
            panic!("no events")
        };
        serde_json::from_str::<Vec<Value>>(&batch)
            .unwrap()
            .remove(0)
    }

    /// A run from start to end.
    pub fn say(&self, request: Value) -> Told {
        self.say_with(request, |_, _| {})
    }

    /// The same; `seen` gets each event, with the run.
    pub fn say_with(&self, request: Value, mut seen: impl FnMut(&Value, &Run)) -> Told {
        let begun = Instant::now();
        let run = self.start(request);
        let mut events = Vec::new();
        while events
            .last()
            .is_none_or(|event: &Value| event["type"] != "run_end")
        {
            let event = self.next();
            seen(&event, &run);
            events.push(event);
        }
        Told {
            events,
            took: begun.elapsed(),
        }
    }

    /// Contents of the thread's messages.
    pub fn texts(&self) -> Vec<String> {
        let state: Value = serde_json::from_str(&self.thread.state("{}").unwrap()).unwrap();
        let messages = state["values"]["messages"].as_array().unwrap().clone();
        messages
            .iter()
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Told {
    /// The run's result.
    pub fn end(&self) -> &Value {
        &self.events.last().unwrap()["data"]
    }

    /// The data of all events of a type.
    pub fn of_type(&self, name: &str) -> Vec<&Value> {
        let named = self.events.iter().filter(|event| event["type"] == name);
        named.map(|event| &event["data"]).collect()
    }

    /// What a host shows of the last message that appends deltas and honours resets.
    pub fn shown(&self) -> String {
        let mut shown = String::new();
        for event in &self.events {
            match event["type"].as_str().unwrap() {
                "stream_reset" => shown.clear(),
                "message_delta" => {
                    shown.push_str(event["data"]["text"].as_str().unwrap_or_default());
                }
                _ => {}
            }
        }
        shown
    }

    /// One word for each failed attempt: what followed it.
    pub fn nexts(&self) -> Vec<&str> {
        let attempts = self.of_type("model_attempt");
        attempts
            .iter()
            .map(|attempt| attempt["next"].as_str().unwrap())
            .collect()
    }
}

/// The messages of the log events with this code that are there.
pub fn logged(queue: &Queue, code: &str) -> Vec<String> {
    let mut found = Vec::new();
    while let Ok(Answer::Done(events)) = queue.take(Wait::For(Duration::ZERO), 64) {
        let events: Vec<Value> = serde_json::from_str(&events).unwrap();
        let of_code = events
            .iter()
            .filter(|event| event["type"] == "log" && event["data"]["code"] == code);
        found.extend(of_code.map(|event| event["data"]["message"].as_str().unwrap().to_owned()));
    }
    found
}

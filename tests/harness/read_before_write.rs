//! Reading before writing: what a run may change of files that others change as well.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use fawn::agent::assembly::Assembly;
use fawn::agent::machine::{RunMachine, RunOptions};
use fawn::agent::step::Step;
use fawn::middleware::read_before_write::{READ_MARK, ReadBeforeWrite};
use fawn::middleware::{CallTool, Middleware, NextTool};
use fawn::ports::BoxFuture;
use fawn::ports::model::ModelReply;
use fawn::ports::sandbox::Sandbox;
use fawn::ports::thread_files::ThreadFiles;
use fawn::ports::tool::{DynTool, ToolAnswer, ToolInvocation, ToolOutcome};
use fawn::protocol::message::{Kind, Message, ToolStatus};
use fawn::protocol::run::RunStatus;
use fawn::state::ids::SequentialIds;
use fawn::state::update::StateUpdate;
use fawn::state::{Overlay, ThreadState};
use serde_json::{Value, json};

use crate::host::run_context;
use crate::parts::{ScriptModel, Tools, answer, assembly, calls, human, parts, says, tool};
use crate::ports::{Behaviour, Files};

const PATH: &str = "/mnt/user-data/workspace/a.txt";

fn path_of(invocation: &ToolInvocation) -> String {
    let path = invocation.args["path"].as_str().unwrap();
    path.replace("/./", "/")
}

/// Lets everybody else have a go.
async fn pause() {
    let mut is_first = true;
    std::future::poll_fn(|_| match std::mem::take(&mut is_first) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

/// The tools of an agent on these files; each waits once before and once after it has done its work.
fn tools(files: &Arc<Files>, ran: &Arc<Mutex<Vec<String>>>) -> Vec<Arc<dyn DynTool>> {
    let make = |name: &'static str| {
        let (files, ran) = (files.clone(), ran.clone());
        tool(name, move |call| {
            let (files, ran) = (files.clone(), ran.clone());
            async move {
                ran.lock().unwrap().push(format!("{name} {}", call.call_id));
                pause().await;
                let path = path_of(&call);
                let outcome = match name {
                    "read_file" => match files.get(&path) {
                        Some(text) => answer(&text),
                        None => answer("Error: there is no such file"),
                    },
                    _ => {
                        files.put(&path, call.args["content"].as_str().unwrap());
                        answer("OK")
                    }
                };
                pause().await;
                ran.lock()
                    .unwrap()
                    .push(format!("{name} {} ended", call.call_id));
                outcome
            }
        })
    };
    vec![make("read_file"), make("write_file"), make("str_replace")]
}

/// Polls all calls in turns to their end.
fn together(mut futures: Vec<BoxFuture<'_, ToolOutcome>>) -> Vec<ToolOutcome> {
    let mut outcomes: Vec<Option<ToolOutcome>> = vec![None; futures.len()];
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        for (future, outcome) in futures.iter_mut().zip(&mut outcomes) {
            if outcome.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(&mut context)
            {
                *outcome = Some(value);
            }
        }
        if outcomes.iter().all(Option::is_some) {
            return outcomes.into_iter().flatten().collect();
        }
    }
    panic!("calls wait for each other: {outcomes:?}");
}

/// A thread, and an agent whose tools work on the files that the middleware sees.
struct Agent {
    assembly: Arc<Assembly>,
    ran: Arc<Mutex<Vec<String>>>,
    state: ThreadState,
    runs: u64,
}

impl Agent {
    fn new(files: &Arc<Files>, middleware: ReadBeforeWrite) -> Self {
        let ran = Arc::default();
        let mut parts = parts(ScriptModel::new(vec![says("unused")]));
        parts.tools = tools(files, &ran);
        parts.middleware = vec![Arc::new(middleware)];
        Agent {
            assembly: assembly(parts),
            ran,
            state: ThreadState::new(),
            runs: 0,
        }
    }

    fn on(files: &Arc<Files>) -> Self {
        let port: Arc<dyn ThreadFiles> = files.clone();
        Agent::new(files, ReadBeforeWrite::new(Some(port), None))
    }

    /// A run in which the model gives these replies; its tool messages.
    fn run(&mut self, replies: Vec<ModelReply>) -> Vec<Message> {
        self.runs += 1;
        let context = run_context();
        let options = RunOptions {
            input: Some(StateUpdate::messages(vec![human(&self.runs.to_string())])),
            context: context.clone(),
            recursion_limit: 40,
            save_each_step: true,
            notes: false,
        };
        let mut machine = RunMachine::new(self.assembly.clone(), options);
        let mut ids = SequentialIds::starting_at(1_000 * self.runs);
        let mut replies = replies.into_iter().chain([says("done")]);
        let before = self.messages().len();
        loop {
            match machine.next_step(&self.state, &mut ids) {
                Step::CallModel(_) => machine.model_replied(Ok(replies.next().unwrap().into())),
                Step::CallTools(list) => {
                    let message_id: Arc<str> = list.message_id.into();
                    let wrappers = self.assembly.tool_wrappers();
                    let tools = Tools(&self.assembly);
                    let futures = list.calls.into_iter().map(|call| {
                        NextTool::new(wrappers, &tools).run(ToolInvocation {
                            message_id: message_id.clone(),
                            call_id: call.id.unwrap_or_default(),
                            name: call.name,
                            args: call.args,
                            reads: list.reads.clone(),
                            run: context.clone(),
                        })
                    });
                    machine.tools_returned(together(futures.collect()));
                }
                Step::Await(_) => panic!("no hook here asks for anything"),
                Step::Save(_) => machine.commit(&mut self.state),
                Step::Done(outcome) => {
                    assert_eq!(outcome.status, RunStatus::Success, "{outcome:?}");
                    let new = self.messages().split_off(before).into_iter();
                    return new.filter(|it| it.kind() == Kind::Tool).collect();
                }
            }
        }
    }

    fn messages(&self) -> Vec<Message> {
        let overlay = Overlay::new();
        self.state.view(&overlay).messages().cloned().collect()
    }
}

fn read(id: &str, path: &str) -> ModelReply {
    calls(&[("read_file", id, json!({ "path": path }))])
}

fn write(id: &str, path: &str, text: &str) -> ModelReply {
    calls(&[("write_file", id, json!({"path": path, "content": text}))])
}

fn is_refused(message: &Message) -> bool {
    let fields = message.fields();
    let is_error = fields.status == ToolStatus::Error;
    assert_eq!(is_error, message.text() != "OK", "{}", message.text());
    if is_error {
        let meta = &fields.additional_kwargs["deerflow_tool_meta"];
        assert_eq!(
            *meta,
            json!({"status": "error", "error_type": "unknown", "recoverable_by_model": true,
                "recommended_next_action": "try_alternative", "source": "tool_return"})
        );
        assert!(message.text().starts_with("Error: ") && message.text().contains("read_file"));
    }
    is_error
}

fn mark(message: &Message) -> Option<&Value> {
    message.fields().additional_kwargs.get(READ_MARK)
}

#[test]
fn rbw_1_2_and_3_a_file_is_changed_only_after_it_was_read_as_it_is() {
    let files = Files::new(Behaviour::Sound);
    let mut agent = Agent::on(&files);
    // There is none yet; then there is one, which nobody has read.
    let told = agent.run(vec![write("1", PATH, "one"), write("2", PATH, "two")]);
    assert_eq!((is_refused(&told[0]), is_refused(&told[1])), (false, true));
    assert_eq!(files.get(PATH).as_deref(), Some("one"));

    let told = agent.run(vec![
        read("3", "/mnt/user-data/./x/../workspace/a.txt"),
        read("3", PATH),
        write("4", PATH, "two"),
        write("5", PATH, "three"),
        calls(&[("str_replace", "6", json!({"path": PATH, "content": "four"}))]),
    ]);
    let hash = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    assert_eq!(mark(&told[1]), Some(&json!({"path": PATH, "hash": hash})));
    assert!(mark(&told[2]).is_none(), "RBW-3: writes make no marks");
    let refused: Vec<bool> = told[2..].iter().map(is_refused).collect();
    assert_eq!(refused, [false, true, true]);

    // Somebody else changes it between the read and the write.
    let told = agent.run(vec![read("7", PATH)]);
    assert!(mark(&told[0]).is_some());
    files.put(PATH, "theirs");
    let told = agent.run(vec![write("8", PATH, "mine")]);
    assert!(is_refused(&told[0]));
    assert_eq!(files.get(PATH).as_deref(), Some("theirs"));
    // The newest mark counts, not any.
    let told = agent.run(vec![read("9", PATH)]);
    assert!(mark(&told[0]).is_some());
    files.put(PATH, "one");
    assert!(is_refused(&agent.run(vec![write("10", PATH, "x")])[0]));
    let told = agent.run(vec![
        read("11", PATH),
        write("12", "/mnt/user-data/workspace//a.txt", "x"),
    ]);
    assert!(!is_refused(&told[1]), "one path, however it is written");
}

#[test]
fn rbw_3_a_read_that_leaves_the_thread_takes_its_permission_along() {
    let files = Files::new(Behaviour::Sound);
    files.put(PATH, "one");
    let mut agent = Agent::on(&files);
    let told = agent.run(vec![read("1", PATH)]);
    let remove = json!([{"type": "remove", "content": "", "id": told[0].id()}]);
    let update = StateUpdate::decode(json!({ "messages": remove })).unwrap();
    let mut overlay = Overlay::new();
    let mut ids = SequentialIds::starting_at(1);
    agent
        .state
        .stage(&mut overlay, &[update], &mut ids)
        .unwrap();
    agent.state.commit(overlay);
    assert!(is_refused(&agent.run(vec![write("2", PATH, "two")])[0]));
}

#[test]
fn rbw_1_a_read_that_failed_leaves_no_mark() {
    let files = Files::new(Behaviour::Sound);
    let mut agent = Agent::on(&files);
    assert!(
        mark(&agent.run(vec![read("1", PATH)])[0]).is_none(),
        "there is no file"
    );
    files.put(PATH, "Error: this is how the file begins");
    let told = agent.run(vec![read("2", PATH), write("3", PATH, "x")]);
    assert!(mark(&told[0]).is_none());
    assert!(
        !is_refused(&told[1]),
        "RBW-2: it may be an error of a sandbox"
    );
}

#[test]
fn rbw_2_what_cannot_be_looked_at_is_not_guarded() {
    let files = Files::new(Behaviour::Sound);
    files.put(PATH, "one");
    let broken: Arc<dyn ThreadFiles> = Files::new(Behaviour::Fails);
    let broken_box: Arc<dyn Sandbox> = Files::new(Behaviour::Fails);
    for middleware in [
        ReadBeforeWrite::new(None, None),
        ReadBeforeWrite::new(Some(broken), None),
        ReadBeforeWrite::new(None, Some(broken_box)),
    ] {
        let mut agent = Agent::new(&files, middleware);
        let told = agent.run(vec![
            read("1", PATH),
            write("2", PATH, "x"),
            write("3", PATH, "y"),
        ]);
        assert!(mark(&told[0]).is_none());
        assert!(!is_refused(&told[1]) && !is_refused(&told[2]));
    }
    // What is no text is no file that an agent reads.
    files
        .texts
        .lock()
        .unwrap()
        .insert(PATH.into(), vec![0xff, 0xfe]);
    let mut agent = Agent::on(&files);
    assert!(!is_refused(&agent.run(vec![write("4", PATH, "z")])[0]));
    assert!(ReadBeforeWrite::new(None, None).reads().is_empty());
}

#[test]
fn files_are_looked_at_where_the_tools_of_the_agent_see_them() {
    let (host, own) = (Files::new(Behaviour::Sound), Files::new(Behaviour::Sound));
    let made = |host: &Arc<Files>, sandbox: &Arc<Files>| {
        let (port, other): (Arc<dyn ThreadFiles>, Arc<dyn Sandbox>) =
            (host.clone(), sandbox.clone());
        ReadBeforeWrite::new(Some(port), Some(other))
    };
    own.put(PATH, "one");
    let mut agent = Agent::new(&own, made(&host, &own));
    assert!(is_refused(&agent.run(vec![write("1", PATH, "two")])[0]));

    let mounted = Files::mounted();
    host.put(PATH, "one");
    mounted.put("/mnt/skills/a", "one");
    let mut agent = Agent::new(&host, made(&host, &mounted));
    let told = agent.run(vec![
        write("1", PATH, "two"),
        write("2", "/mnt/skills/a", "two"),
    ]);
    assert!(is_refused(&told[0]) && is_refused(&told[1]));
}

#[test]
fn rbw_4_of_two_writes_of_one_reply_the_second_sees_what_the_first_did() {
    let files = Files::new(Behaviour::Sound);
    let other = "/mnt/user-data/workspace/b.txt";
    files.put(PATH, "one");
    files.put(other, "one");
    let mut agent = Agent::on(&files);
    let args = |path: &str, text: &str| json!({"path": path, "content": text});
    let told = agent.run(vec![
        calls(&[
            ("read_file", "1", json!({ "path": PATH })),
            ("read_file", "2", json!({ "path": other })),
        ]),
        calls(&[
            ("write_file", "3", args(PATH, "first")),
            ("write_file", "4", args(PATH, "second")),
            ("write_file", "5", args(other, "beside")),
        ]),
    ]);
    let refused: Vec<bool> = told[2..].iter().map(is_refused).collect();
    assert_eq!(refused, [false, true, false]);
    assert_eq!(files.get(PATH).as_deref(), Some("first"));
    let ran = agent.ran.lock().unwrap();
    let at = |what: &str| ran.iter().position(|it| it == what).unwrap();
    assert!(
        at("write_file 5") < at("write_file 3 ended"),
        "other files do not wait: {ran:?}"
    );
    assert!(!ran.contains(&"write_file 4".to_owned()));
    drop(ran);

    // A write that changes nothing leaves the permission; a read waits for a write that was there before it.
    let told = agent.run(vec![
        read("6", PATH),
        calls(&[
            ("write_file", "7", args(PATH, "first")),
            ("write_file", "8", args(PATH, "third")),
            ("read_file", "9", json!({ "path": PATH })),
        ]),
    ]);
    assert!(!is_refused(&told[1]) && !is_refused(&told[2]));
    assert_eq!(told[3].text(), "third");
}

#[test]
fn rbw_4_a_call_that_is_cancelled_holds_up_nobody() {
    let files = Files::new(Behaviour::Sound);
    let port: Arc<dyn ThreadFiles> = files.clone();
    let guard = ReadBeforeWrite::new(Some(port), None);
    struct Hangs(bool);
    impl CallTool for Hangs {
        fn call(&self, _: ToolInvocation) -> BoxFuture<'_, ToolOutcome> {
            match self.0 {
                true => Box::pin(std::future::pending()),
                false => Box::pin(async { ToolOutcome::Answer(ToolAnswer::default()) }),
            }
        }
    }
    let call = || ToolInvocation {
        message_id: "a".into(),
        call_id: "c".to_owned(),
        name: "write_file".to_owned(),
        args: json!({"path": PATH}).as_object().unwrap().clone(),
        reads: Default::default(),
        run: run_context(),
    };
    let mut context = Context::from_waker(Waker::noop());
    let (hanging, answering) = (Hangs(true), Hangs(false));
    let mut first = guard.wrap_tool_call(call(), NextTool::new(&[], &hanging));
    let mut second = guard.wrap_tool_call(call(), NextTool::new(&[], &answering));
    let mut third = guard.wrap_tool_call(call(), NextTool::new(&[], &answering));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert!(third.as_mut().poll(&mut context).is_pending());
    drop(second);
    drop(first);
    assert!(third.as_mut().poll(&mut context).is_ready());
}

//! Gives each run the sandbox of its thread, and gives it back at the end.
//!
//! It is asked for when a tool that works in it is called for the first time in a run, or, unless lazy, before the run begins
//! where the thread knows of none. Its id goes into the thread with the result of that call. A run gives back what it asked
//! for, and nothing else: an id that only stands in the thread is that of an earlier run, which gave it back, or came with a
//! fork, whose sandbox is another thread's. Subagents work in the sandbox of the run that delegates; what one of them was the
//! first to ask for the run gives back.
//!
//! A sandbox that cannot be had is a failure of the calls that need it; one that cannot be given back is a warning. Neither
//! ends a run.
//!
//! Source: DeerFlow `SandboxMiddleware`, MW-SBX, SBX-26.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::run_sandboxes::RunSandboxes;
use super::{Effect, Hook, HookContext, HookOutput, Hooks, Middleware, NextTool, Work};
use crate::ports::BoxFuture;
use crate::ports::sandbox::Sandbox as _;
use crate::ports::tool::{DynTool, ToolAnswer, ToolInvocation, ToolOutcome};
use crate::protocol::error::Error;
use crate::protocol::message::ToolStatus;
use crate::protocol::warning::Warning;
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};

/// Tools that work in a sandbox (SBX-1).
const SANDBOX_TOOLS: [&str; 7] = [
    "bash",
    "ls",
    "glob",
    "grep",
    "read_file",
    "write_file",
    "str_replace",
];
/// The middleware.
pub struct Sandbox {
    sandboxes: Arc<RunSandboxes>,
    lazy: bool,
    tools: BTreeSet<String>,
}

impl Sandbox {
    /// With the sandboxes of runs, for those of `tools` that work in one.
    pub fn new(sandboxes: Arc<RunSandboxes>, lazy: bool, tools: &[Arc<dyn DynTool>]) -> Self {
        let ours = tools.iter().filter(|tool| tool.origin().mcp().is_none());
        let names = ours.map(|tool| tool.spec().name.clone());
        Sandbox {
            sandboxes,
            lazy,
            tools: names
                .filter(|name| SANDBOX_TOOLS.contains(&name.as_str()))
                .collect(),
        }
    }

    /// Asks before the run begins (MW-SBX-1).
    fn before_agent(&self, context: &HookContext<'_>) -> HookOutput {
        if self.lazy || sandbox_id(context.state.channel(Channel::Sandbox)).is_some() {
            return HookOutput::Continue;
        }
        match context.performed() {
            None => {
                let sandboxes = self.sandboxes.clone();
                HookOutput::Await(Effect::Perform(Work::new(move |run| {
                    let sandboxes = sandboxes.clone();
                    async move { sandboxes.of_run(&run).await.map(|id| Value::from(&*id)) }
                })))
            }
            Some(Ok(id)) => {
                self.sandboxes.tells(context.run);
                let id = id.as_str().unwrap_or_default();
                HookOutput::Update(StateUpdate::set(Channel::Sandbox, value(id)))
            }
            // A tool that needs it will ask again.
            Some(Err(error)) => {
                let signals = &context.run.signals;
                signals.warn(Warning::SandboxFailed, error.message.clone());
                HookOutput::Continue
            }
        }
    }

    /// Gives back what the run asked for (MW-SBX-3).
    fn after_agent(&self, context: &HookContext<'_>) -> HookOutput {
        if let Some(done) = context.performed() {
            if let Err(error) = done {
                let signals = &context.run.signals;
                signals.warn(Warning::SandboxFailed, error.message.clone());
            }
            return HookOutput::Continue;
        }
        let Some(id) = self.sandboxes.end(context.run) else {
            return HookOutput::Continue;
        };
        let sandboxes = self.sandboxes.clone();
        HookOutput::Await(Effect::Perform(Work::new(move |run| {
            let (sandboxes, id) = (sandboxes.clone(), id.to_string());
            async move { sandboxes.release(run, id).await.map(|()| Value::Null) }
        })))
    }
}

fn value(id: &str) -> Value {
    json!({ "sandbox_id": id })
}

/// The id that a value of the channel names.
fn sandbox_id(value: Option<&Value>) -> Option<&str> {
    value?.get("sandbox_id")?.as_str()
}

/// The outcome with the id of the sandbox among its writes, unless it writes one itself (MW-SBX-2).
fn with_sandbox(outcome: ToolOutcome, known: Option<&str>, id: &str) -> ToolOutcome {
    if known == Some(id) {
        return outcome;
    }
    let mut answer = match outcome {
        ToolOutcome::Answer(answer) => answer,
        // A failure writes nothing, so it becomes the answer that it would become.
        ToolOutcome::Failed(fault) => ToolAnswer {
            content: format!("Error: {fault}").into(),
            status: ToolStatus::Error,
            ..ToolAnswer::default()
        },
    };
    let update = answer.update.take().unwrap_or_default();
    let writes_one = update
        .writes
        .iter()
        .any(|(channel, _)| *channel == Channel::Sandbox);
    answer.update = Some(match (writes_one, known) {
        (true, _) => update,
        (false, None) => update.and(Channel::Sandbox, Write::Value(value(id))),
        // The thread's sandbox is gone, and another is in its place.
        (false, Some(_)) => update.and(Channel::Sandbox, Write::Overwrite(value(id))),
    });
    ToolOutcome::Answer(answer)
}

impl Middleware for Sandbox {
    fn name(&self) -> &str {
        "sandbox"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_agent: !self.lazy,
            after_agent: true,
            wrap_tool_call: true,
            ..Hooks::default()
        }
    }

    fn asks_host(&self) -> bool {
        self.sandboxes.asks_host()
    }

    fn policy(&self) -> Map<String, Value> {
        let tools: Value = self.tools.iter().map(String::as_str).collect();
        Map::from_iter([
            ("lazy_init".to_owned(), self.lazy.into()),
            ("tools".to_owned(), tools),
            (
                "host_mounts".to_owned(),
                self.sandboxes.has_host_mounts().into(),
            ),
        ])
    }

    fn reads(&self) -> &[Channel] {
        &[Channel::Sandbox]
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        Ok(match hook {
            Hook::BeforeAgent => self.before_agent(context),
            Hook::AfterAgent => self.after_agent(context),
            Hook::BeforeModel | Hook::AfterModel => HookOutput::Continue,
        })
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        if !self.tools.contains(&invocation.name) {
            return next.run(invocation);
        }
        Box::pin(async move {
            let run = invocation.run.clone();
            let id = match self.sandboxes.of_run(&run).await {
                Ok(id) => id,
                Err(error) => {
                    let signals = &run.facts.signals;
                    signals.warn(Warning::SandboxFailed, error.message.clone());
                    return ToolOutcome::Failed(format!("there is no sandbox: {}", error.message));
                }
            };
            let known = sandbox_id(invocation.reads.get(Channel::Sandbox)).map(str::to_owned);
            let outcome = next.run(invocation).await;
            match self.sandboxes.tells(&run.facts) {
                true => with_sandbox(outcome, known.as_deref(), &id),
                false => outcome,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::middleware::stage::execution;
    use crate::middleware::testing::{called, on_state};
    use crate::middleware::{EffectAnswer, RunFacts};
    use crate::ports::host::RunContext;
    use crate::ports::sandbox::Sandbox as SandboxPort;
    use crate::protocol::error::ErrorCode;
    use crate::tools::testing::{call, host, mcp, ready, run_with};

    /// Gives ids in turn, and notes what it was asked for.
    #[derive(Default)]
    struct Port {
        ids: Mutex<Vec<Result<&'static str, &'static str>>>,
        log: Mutex<Vec<String>>,
        count: AtomicU32,
        /// How often an asking is looked at before it has its answer.
        slow: AtomicU32,
    }

    impl Port {
        fn giving(ids: &[Result<&'static str, &'static str>]) -> Arc<Self> {
            Arc::new(Port {
                ids: Mutex::new(ids.to_vec()),
                ..Port::default()
            })
        }

        fn log(&self) -> Vec<String> {
            self.log.lock().expect("a lock").clone()
        }

        fn note(&self, what: impl Into<String>) {
            self.log.lock().expect("a lock").push(what.into());
        }
    }

    impl SandboxPort for Port {
        fn acquire(&self, _: Arc<RunContext>) -> BoxFuture<'_, Result<String, Error>> {
            self.note("acquire");
            let place = self.count.fetch_add(1, Ordering::Relaxed) as usize;
            let id = self.ids.lock().expect("a lock")[place];
            let id = id.map(str::to_owned);
            let answer = id.map_err(|fault| Error::new(ErrorCode::Store, fault));
            Box::pin(async move {
                let taken = |left: u32| left.checked_sub(1);
                let order = Ordering::Relaxed;
                poll_fn(
                    |context| match self.slow.fetch_update(order, order, taken) {
                        Ok(_) => {
                            context.waker().wake_by_ref();
                            Poll::Pending
                        }
                        Err(_) => Poll::Ready(()),
                    },
                )
                .await;
                answer
            })
        }

        fn release(&self, _: Arc<RunContext>, id: String) -> BoxFuture<'_, Result<(), Error>> {
            self.note(format!("release {id}"));
            let gone = Err(Error::new(ErrorCode::Store, "it is gone"));
            let answer = if id == "stuck" { gone } else { Ok(()) };
            Box::pin(std::future::ready(answer))
        }

        fn read_file(
            &self,
            _: Arc<RunContext>,
            _: String,
            _: String,
        ) -> BoxFuture<'_, Result<Option<String>, Error>> {
            Box::pin(std::future::ready(Ok(None)))
        }

        fn write_file(
            &self,
            _: Arc<RunContext>,
            _: String,
            _: String,
            _: String,
        ) -> BoxFuture<'_, Result<(), Error>> {
            Box::pin(std::future::ready(Ok(())))
        }

        fn has_host_mounts(&self) -> bool {
            false
        }
    }

    fn part(port: &Arc<Port>, lazy: bool) -> Sandbox {
        let tools = [host("bash"), host("look"), mcp("grep")];
        let sandboxes = Arc::new(RunSandboxes::new(port.clone()));
        Sandbox::new(sandboxes, lazy, &tools)
    }

    fn facts(run: &str) -> RunFacts {
        RunFacts {
            run_id: run.into(),
            thread_id: "t".into(),
            ..RunFacts::default()
        }
    }

    fn of_run(run: &str, tool: &str, known: Option<&str>) -> ToolInvocation {
        ToolInvocation {
            reads: known
                .map(|id| (Channel::Sandbox, value(id)))
                .into_iter()
                .collect(),
            run: run_with(facts(run)),
            ..call(tool, json!({}))
        }
    }

    fn update(part: &Sandbox, invocation: ToolInvocation) -> Option<StateUpdate> {
        called(part, invocation).expect("an answer").update
    }

    /// What a hook of a run does, the port asked where it asks.
    fn acted(part: &Sandbox, hook: Hook, run: &str, channel: Option<Value>) -> (HookOutput, usize) {
        let run = facts(run);
        let before = channel.map(|value| StateUpdate::set(Channel::Sandbox, value));
        let output = on_state(vec![], before.unwrap_or_default(), |state| {
            let hooked = |answer: Option<&EffectAnswer>| {
                let context = HookContext {
                    state,
                    run: &run,
                    answer,
                };
                part.hook(hook, &context).expect("no error")
            };
            match hooked(None) {
                HookOutput::Await(Effect::Perform(work)) => {
                    let done = ready(work.begin(run_with(run.clone())));
                    hooked(Some(&EffectAnswer::Performed(Box::new(done))))
                }
                other => other,
            }
        });
        let warnings = run.signals.take_warnings();
        (output, warnings.map_or(0, |warnings| warnings.len()))
    }

    #[test]
    fn sbx_1_lazily_nothing_is_asked_before_a_tool_needs_it() {
        let port = Port::giving(&[Ok("s1")]);
        let part = part(&port, true);
        assert!(!part.hooks().before_agent);
        assert_eq!(update(&part, of_run("r", "look", None)), None);
        assert_eq!(
            update(&part, of_run("r", "grep", None)),
            None,
            "a server's tool"
        );
        assert_eq!(port.log(), [""; 0]);
        let told = StateUpdate::set(Channel::Sandbox, value("s1"));
        assert_eq!(update(&part, of_run("r", "bash", None)), Some(told));
        assert_eq!(update(&part, of_run("r", "bash", None)), None, "told once");
        assert_eq!(port.log(), ["acquire"]);
    }

    #[test]
    fn sbx_1_eagerly_it_is_asked_for_where_the_thread_has_none() {
        let port = Port::giving(&[Ok("s1")]);
        let part = part(&port, false);
        let (output, _) = acted(&part, Hook::BeforeAgent, "r", Some(value("old")));
        assert!(matches!(output, HookOutput::Continue), "the thread has one");
        let (output, _) = acted(&part, Hook::BeforeAgent, "r", None);
        let HookOutput::Update(told) = output else {
            panic!("{output:?}");
        };
        assert_eq!(told, StateUpdate::set(Channel::Sandbox, value("s1")));
        assert_eq!(update(&part, of_run("r", "bash", Some("s1"))), None);
        acted(&part, Hook::AfterAgent, "r", Some(value("s1")));
        assert_eq!(port.log(), ["acquire", "release s1"]);
    }

    #[test]
    fn sbx_1_an_eager_asking_that_fails_is_a_warning_and_is_made_up_for() {
        let port = Port::giving(&[Err("no room"), Ok("s1")]);
        let part = part(&port, false);
        let (output, warnings) = acted(&part, Hook::BeforeAgent, "r", None);
        assert!(matches!(output, HookOutput::Continue));
        assert_eq!(warnings, 1);
        assert!(update(&part, of_run("r", "bash", None)).is_some());
    }

    #[test]
    fn sbx_2_the_id_joins_what_the_tool_writes_unless_it_writes_one_itself() {
        let answered = |update: StateUpdate| {
            ToolOutcome::Answer(ToolAnswer {
                update: Some(update),
                ..ToolAnswer::default()
            })
        };
        let title = StateUpdate::set(Channel::Title, "x");
        let own = StateUpdate::set(Channel::Sandbox, value("mine"));
        let writes = |outcome| match outcome {
            ToolOutcome::Answer(answer) => answer.update,
            ToolOutcome::Failed(fault) => panic!("{fault}"),
        };
        let both = title
            .clone()
            .and(Channel::Sandbox, Write::Value(value("s1")));
        assert_eq!(
            writes(with_sandbox(answered(title.clone()), None, "s1")),
            Some(both)
        );
        assert_eq!(
            writes(with_sandbox(answered(own.clone()), None, "s1")),
            Some(own)
        );
        assert_eq!(
            writes(with_sandbox(answered(title.clone()), Some("s1"), "s1")),
            Some(title)
        );
        let replaced = writes(with_sandbox(
            ToolOutcome::Answer(ToolAnswer::default()),
            Some("s0"),
            "s1",
        ));
        assert_eq!(
            replaced,
            Some(StateUpdate::overwrite(Channel::Sandbox, value("s1")))
        );
        let ToolOutcome::Answer(failed) = with_sandbox(ToolOutcome::Failed("x".into()), None, "s1")
        else {
            panic!("the id is kept");
        };
        assert_eq!(
            (failed.content, failed.status),
            ("Error: x".into(), ToolStatus::Error)
        );
    }

    #[test]
    fn sbx_2_calls_at_the_same_time_ask_once_and_one_of_them_tells() {
        let port = Port::giving(&[Ok("s1")]);
        let part = part(&port, true);
        let asked = ready(async {
            futures_util::future::join(
                part.sandboxes.of_run(&run_with(facts("r"))),
                part.sandboxes.of_run(&run_with(facts("r"))),
            )
            .await
        });
        assert_eq!(asked, (Ok("s1".into()), Ok("s1".into())));
        assert_eq!(port.log(), ["acquire"]);
        let told = [(); 2].map(|()| update(&part, of_run("r", "bash", None)).is_some());
        assert_eq!(told, [true, false]);
    }

    #[test]
    fn a_sandbox_that_cannot_be_had_fails_the_calls_and_is_not_asked_for_without_end() {
        let port = Port::giving(&[Err("full"), Err("full")]);
        let part = part(&port, true);
        for _ in 0..5 {
            let fault = called(&part, of_run("r", "bash", None)).expect_err("no sandbox");
            assert!(fault.contains("full"), "{fault}");
        }
        assert_eq!(port.log(), ["acquire", "acquire"]);
        let (output, warnings) = acted(&part, Hook::AfterAgent, "r", None);
        assert!(matches!(output, HookOutput::Continue) && warnings == 0);
        assert_eq!(port.log().len(), 2, "nothing to give back");
    }

    #[test]
    fn sbx_3_a_run_gives_back_what_it_asked_for_and_only_that() {
        let port = Port::giving(&[Ok("s1"), Ok("s1")]);
        let part = part(&port, true);
        let (output, _) = acted(&part, Hook::AfterAgent, "r0", Some(value("of a fork")));
        assert!(matches!(output, HookOutput::Continue));
        assert_eq!(port.log(), [""; 0]);
        for run in ["r1", "r2"] {
            update(&part, of_run(run, "bash", Some("s1")));
            acted(&part, Hook::AfterAgent, run, Some(value("s1")));
            acted(&part, Hook::AfterAgent, run, Some(value("s1")));
        }
        assert_eq!(
            port.log(),
            ["acquire", "release s1", "acquire", "release s1"]
        );
    }

    /// One of several subagents of run `r`.
    fn subagent(id: &str) -> RunFacts {
        execution("t", "r", id)
    }

    /// The end of a run, or of a subagent.
    fn ends(part: &Sandbox, run: &RunFacts) {
        on_state(vec![], StateUpdate::default(), |state| {
            let hooked = |answer: Option<&EffectAnswer>| {
                let context = HookContext { state, run, answer };
                part.hook(Hook::AfterAgent, &context).expect("no error")
            };
            if let HookOutput::Await(Effect::Perform(work)) = hooked(None) {
                let done = ready(work.begin(run_with(run.clone())));
                hooked(Some(&EffectAnswer::Performed(Box::new(done))));
            }
        });
    }

    fn told(part: &Sandbox, run: &RunFacts, known: Option<&str>) -> Option<StateUpdate> {
        let invocation = ToolInvocation {
            run: run_with(run.clone()),
            ..of_run("r", "bash", known)
        };
        update(part, invocation)
    }

    #[test]
    fn sub_19_a_run_and_its_subagents_have_one_sandbox_which_the_run_gives_back() {
        let port = Port::giving(&[Ok("s1"), Ok("s1")]);
        // The parts of the agent, and those that all executions of its subagents share.
        let sandboxes = Arc::new(RunSandboxes::new(port.clone()));
        let tools = [host("bash")];
        let of_agent = Sandbox::new(sandboxes.clone(), true, &tools);
        let of_subagents = Sandbox::new(sandboxes.clone(), true, &tools);
        let first = Some(StateUpdate::set(Channel::Sandbox, value("s1")));

        // A subagent is the first to need it. Each has a state of its own, which is to know it.
        assert_eq!(told(&of_subagents, &subagent("a"), None), first);
        assert_eq!(told(&of_subagents, &subagent("a"), None), None, "told once");
        assert_eq!(told(&of_subagents, &subagent("b"), None), first);
        ends(&of_subagents, &subagent("a"));
        assert_eq!(told(&of_subagents, &subagent("b"), Some("s1")), None);
        // Then the agent, and a subagent that inherits what the agent knows.
        assert_eq!(told(&of_agent, &facts("r"), None), first);
        assert_eq!(told(&of_subagents, &subagent("c"), Some("s1")), None);
        ends(&of_subagents, &subagent("b"));
        ends(&of_subagents, &subagent("c"));
        assert_eq!(port.log(), ["acquire"], "it is still the run's");
        ends(&of_agent, &facts("r"));
        ends(&of_agent, &facts("r"));
        assert_eq!(port.log(), ["acquire", "release s1"]);
        assert_eq!(told(&of_agent, &facts("r2"), Some("s1")), None);
        assert_eq!(port.log(), ["acquire", "release s1", "acquire"]);
    }

    #[test]
    fn sub_19_an_agent_that_needs_no_sandbox_gives_back_that_of_its_subagents() {
        let port = Port::giving(&[Ok("s1")]);
        let part = part(&port, true);
        told(&part, &subagent("a"), None);
        ends(&part, &subagent("a"));
        ends(&part, &facts("r"));
        assert_eq!(port.log(), ["acquire", "release s1"]);
    }

    #[test]
    fn sbx_1_eagerly_a_subagent_takes_what_its_agent_has() {
        let port = Port::giving(&[Ok("s1")]);
        let part = part(&port, false);
        acted(&part, Hook::BeforeAgent, "r", None);
        let inherited = StateUpdate::set(Channel::Sandbox, value("s1"));
        let output = on_state(vec![], inherited, |state| {
            let run = subagent("a");
            let context = HookContext {
                state,
                run: &run,
                answer: None,
            };
            part.hook(Hook::BeforeAgent, &context).expect("no error")
        });
        assert!(matches!(output, HookOutput::Continue), "{output:?}");
        assert_eq!(told(&part, &subagent("a"), Some("s1")), None);
        assert_eq!(port.log(), ["acquire"]);
    }

    type Asking<'a> = Pin<Box<dyn Future<Output = Result<Arc<str>, Error>> + 'a>>;

    fn asks<'a>(part: &'a Sandbox, id: &str) -> Asking<'a> {
        let run = run_with(subagent(id));
        Box::pin(async move { part.sandboxes.of_run(&run).await })
    }

    fn poll(asking: &mut Asking<'_>) -> Option<Result<Arc<str>, Error>> {
        match asking
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_subagent_that_is_cancelled_while_it_asks_takes_the_sandbox_from_nobody() {
        let port = Arc::new(Port {
            slow: AtomicU32::new(4),
            ids: Mutex::new(vec![Ok("s1"), Ok("s2")]),
            ..Port::default()
        });
        let part = part(&port, true);
        let (mut a, mut b) = (asks(&part, "a"), asks(&part, "b"));
        assert!(poll(&mut a).is_none() && poll(&mut b).is_none());
        assert_eq!(port.log(), ["acquire"], "at the same time they ask once");
        // The one that began it goes; the other has the answer.
        drop(a);
        let mut late = asks(&part, "c");
        let answers = (0..4).find_map(|_| poll(&mut b));
        assert_eq!(answers, Some(Ok("s1".into())));
        assert_eq!(poll(&mut late), Some(Ok("s1".into())));
        drop((b, late));
        assert_eq!(port.log(), ["acquire"]);

        // When all who asked are gone the asking is, and the next begins anew.
        ends(&part, &facts("r"));
        port.slow.store(9, Ordering::Relaxed);
        let mut alone = asks(&part, "d");
        assert!(poll(&mut alone).is_none());
        drop(alone);
        port.slow.store(0, Ordering::Relaxed);
        port.ids.lock().expect("a lock").push(Ok("s3"));
        assert_eq!(poll(&mut asks(&part, "e")), Some(Ok("s3".into())));
    }

    #[test]
    fn sbx_3_one_that_cannot_be_given_back_is_a_warning() {
        let port = Port::giving(&[Ok("stuck")]);
        let part = part(&port, true);
        update(&part, of_run("r", "bash", None));
        let (output, warnings) = acted(&part, Hook::AfterAgent, "r", None);
        assert!(matches!(output, HookOutput::Continue), "{output:?}");
        assert_eq!(warnings, 1);
    }
}

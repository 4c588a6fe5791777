//! Executions of one subagent that share an assembly, stepped by hand in turns: what one does must be nothing to the others,
//! though all have the ids of the run that delegates (SUB-33, U8).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use fawn::agent::assembly::Assembly;
use fawn::agent::machine::{RunMachine, RunOptions};
use fawn::agent::step::{Outcome, Step};
use fawn::middleware::summarization::SummaryModels;
use fawn::middleware::{
    ChainInputs, Effect, EffectAnswer, Middleware, ModelResponse, NextModel, NextTool, RunFacts,
    compose_subagent,
};
use fawn::ports::BoxFuture;
use fawn::ports::call_key::AskedCalls;
use fawn::ports::delegate::SubagentRun;
use fawn::ports::host::{RunContext, RunStart};
use fawn::ports::model::{
    DeltaSink, ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest, Usage,
};
use fawn::ports::tool::{DynTool, ToolInvocation, ToolOutcome};
use fawn::protocol::app_config::{
    AppConfig, SummarizationConfig, TokenBudgetConfig, ToolProgressConfig,
};
use fawn::protocol::message::{Kind, Message};
use fawn::protocol::run::{RunStatus, StopReason};
use fawn::protocol::time::Timestamp;
use fawn::state::ids::SequentialIds;
use fawn::state::update::StateUpdate;
use fawn::state::{Overlay, ThreadState};
use serde_json::{Value, json};

use crate::host::run_context;
use crate::parts::{Tools, answer, assembly, calls, human, parts, says, tool};

/// What each execution's model answers, and what it was asked.
#[derive(Default)]
struct Minds {
    replies: Mutex<HashMap<String, VecDeque<ModelReply>>>,
    requests: Mutex<Vec<Asked>>,
}

/// The execution that asks, its system text, and its messages.
type Asked = (String, Option<String>, Vec<Message>);

struct ByExecution(Arc<Minds>);

impl ModelProvider for ByExecution {
    async fn call(
        &self,
        request: &ModelRequest,
        _: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let subagent = request.run.facts.subagent.as_ref().unwrap();
        let execution = subagent.execution_id.to_string();
        let system = request.system.as_ref().map(|text| text.as_str().to_owned());
        let asked = (execution.clone(), system, request.messages.to_vec());
        self.0.requests.lock().unwrap().push(asked);
        let mut replies = self.0.replies.lock().unwrap();
        let next = replies.get_mut(&execution).and_then(VecDeque::pop_front);
        Ok(next.unwrap_or_else(|| says("that is all")))
    }
}

struct NoSink;

impl DeltaSink for NoSink {
    fn push(&mut self, _: ModelDelta) {}
    fn pressure(&mut self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

struct Models<'a>(&'a [Arc<dyn Middleware>], &'a Assembly);

impl NextModel for Models<'_> {
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            let Some((outer, inner)) = self.0.split_first() else {
                let reply = self.1.model.call_boxed(&request, &mut NoSink).await?;
                return Ok(reply.into());
            };
            let mut next = Models(inner, self.1);
            outer.wrap_model_call(request, &mut next).await
        })
    }
}

fn ready<T>(mut future: BoxFuture<'_, T>) -> T {
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a part of this test waits"),
    }
}

/// A subagent, and what its executions say and hear.
struct Subagent {
    assembly: Arc<Assembly>,
    minds: Arc<Minds>,
}

impl Subagent {
    fn new(app: &AppConfig, budget: Option<TokenBudgetConfig>) -> Self {
        let minds = Arc::<Minds>::default();
        let tools: Vec<Arc<dyn DynTool>> = vec![
            tool("look", |_| async { answer("nothing new") }),
            tool("fetch", |call: ToolInvocation| async move {
                match call.args.contains_key("denied") {
                    true => ToolOutcome::Failed("401 Unauthorized".into()),
                    false => answer("a page"),
                }
            }),
        ];
        let summaries = app.summarization.enabled == Some(true);
        let middleware = compose_subagent(ChainInputs {
            tools: &tools,
            token_budget: budget,
            summary_models: summaries.then(SummaryModels::default),
            ..ChainInputs::new(app)
        })
        .unwrap();
        let mut parts = parts(crate::parts::ScriptModel::new(vec![says("unused")]));
        parts.model = Arc::new(ByExecution(minds.clone()));
        parts.system_prompt = Some("You are a subagent.".into());
        parts.tools = tools;
        parts.middleware = middleware;
        Subagent {
            assembly: assembly(parts),
            minds,
        }
    }

    /// Begins an execution with these replies of the model to come.
    fn begin(&self, id: &str, replies: Vec<ModelReply>) -> Execution {
        let mut all = self.minds.replies.lock().unwrap();
        all.insert(id.to_owned(), replies.into());
        let facts = RunFacts {
            run_id: "r".into(),
            thread_id: "t".into(),
            started_at: Timestamp::parse("2026-05-08T12:00:00Z").unwrap(),
            subagent: Some(Arc::new(SubagentRun {
                execution_id: id.into(),
                // Ids of calls come back: they tell nobody apart.
                message_id: "m0".into(),
                task_id: "call_0".into(),
                name: "general-purpose".into(),
                asked: AskedCalls::default(),
            })),
            ..RunFacts::default()
        };
        facts.note_start(RunStart::default());
        let context = Arc::new(RunContext {
            facts: Arc::new(facts),
            ..(*run_context()).clone()
        });
        let options = RunOptions {
            input: Some(StateUpdate::messages(vec![human("the task")])),
            context: context.clone(),
            recursion_limit: 60,
            save_each_step: true,
            notes: false,
        };
        Execution {
            machine: RunMachine::new(self.assembly.clone(), options),
            context,
            state: ThreadState::new(),
            // Threads of their own have ids of their own, which may be the same.
            ids: SequentialIds::default(),
            asides: 0,
            outcome: None,
        }
    }

    /// Steps all of them in turns, to their ends.
    fn play(&self, executions: &mut [Execution]) {
        for _ in 0..2000 {
            for execution in executions.iter_mut() {
                execution.step(&self.assembly);
            }
            if executions.iter().all(|it| it.outcome.is_some()) {
                return;
            }
        }
        panic!("they do not end");
    }

    /// Names of the framework's words in the requests of an execution, in order.
    fn words(&self, id: &str) -> Vec<String> {
        let requests = self.minds.requests.lock().unwrap();
        let ours = requests.iter().filter(|(of, ..)| of == id);
        let named = ours.flat_map(|(.., messages)| messages.iter());
        let names = named.filter_map(|message| message.fields().name.clone());
        names
            .filter(|name| name != "user-input" && name != "look" && name != "fetch")
            .collect()
    }
}

struct Execution {
    machine: RunMachine,
    context: Arc<RunContext>,
    state: ThreadState,
    ids: SequentialIds,
    asides: u32,
    outcome: Option<Outcome>,
}

impl Execution {
    fn step(&mut self, assembly: &Assembly) {
        if self.outcome.is_some() {
            return;
        }
        match self.machine.next_step(&self.state, &mut self.ids) {
            Step::CallModel(call) => {
                let mut chain = Models(assembly.model_wrappers(), assembly);
                let reply = ready(chain.run(call.request));
                self.machine.model_replied(reply);
            }
            Step::CallTools(list) => {
                let message_id: Arc<str> = list.message_id.into();
                let outcomes = list.calls.into_iter().map(|call| {
                    let tools = Tools(assembly);
                    let chain = NextTool::new(assembly.tool_wrappers(), &tools);
                    ready(chain.run(ToolInvocation {
                        message_id: message_id.clone(),
                        call_id: call.id.unwrap_or_default(),
                        name: call.name,
                        args: call.args,
                        reads: list.reads.clone(),
                        run: self.context.clone(),
                    }))
                });
                let outcomes = outcomes.collect();
                self.machine.tools_returned(outcomes);
            }
            Step::Await(Effect::CallModel(_)) => {
                self.asides += 1;
                let reply = Ok(says("what went before"));
                self.machine.answered(EffectAnswer::Model(Box::new(reply)));
            }
            Step::Await(Effect::Perform(_)) => panic!("no hook here asks for work"),
            Step::Save(_) => self.machine.commit(&mut self.state),
            Step::Done(outcome) => self.outcome = Some(outcome),
        }
    }

    fn stop_reason(&self) -> Option<StopReason> {
        self.context.facts.signals.stop_reason()
    }

    fn messages(&self) -> Vec<Message> {
        let overlay = Overlay::new();
        self.state.view(&overlay).messages().cloned().collect()
    }

    fn last(&self) -> String {
        self.messages().last().unwrap().text()
    }

    fn succeeded(&self) -> bool {
        let outcome = self.outcome.as_ref().unwrap();
        outcome.status == RunStatus::Success
    }
}

fn look(at: &str) -> ModelReply {
    calls(&[("look", "c", json!({"path": at}))])
}

fn fetch(args: Value) -> ModelReply {
    calls(&[("fetch", "c", args)])
}

#[test]
fn u8_one_execution_loops_and_its_siblings_do_not_hear_of_it() {
    let subagent = Subagent::new(&AppConfig::default(), None);
    let same = || (0..8).map(|_| look("/a")).collect();
    let varied = || (0..8).map(|n| look(&format!("/{n}"))).collect();
    // Some loop, some stay below the limit: together they make the same calls more often than any may.
    let below = || (0..4).map(|_| look("/a")).collect();
    let mut all = [
        subagent.begin("a", same()),
        subagent.begin("b", varied()),
        subagent.begin("c", below()),
        subagent.begin("d", same()),
    ];
    subagent.play(&mut all);
    assert!(all.iter().all(Execution::succeeded));
    let reasons = all.each_ref().map(Execution::stop_reason);
    let capped = Some(StopReason::LoopCapped);
    assert_eq!(reasons, [capped, None, None, capped]);
    let results = |execution: &Execution| {
        let messages = execution.messages();
        messages.iter().filter(|it| it.kind() == Kind::Tool).count()
    };
    assert_eq!(all.each_ref().map(results), [4, 8, 4, 4]);
    let words = ["a", "b", "c", "d"].map(|id| subagent.words(id).len());
    assert_eq!(words, [1, 0, 1, 1], "each is told once of its own loop");
    assert!(all[0].last().contains("[FORCED STOP]") && all[1].last() == "that is all");
}

#[test]
fn sub_59_each_execution_has_the_budget_of_the_subagent() {
    let budget = TokenBudgetConfig {
        enabled: Some(true),
        max_tokens: 1_000,
        warn_threshold: 0.7,
        ..TokenBudgetConfig::default()
    };
    let subagent = Subagent::new(&AppConfig::default(), Some(budget));
    let costly = |at: &str, tokens| ModelReply {
        usage: Some(Usage {
            input_tokens: tokens,
            total_tokens: tokens,
            ..Usage::default()
        }),
        ..look(at)
    };
    let mut all = [
        subagent.begin(
            "a",
            vec![costly("/1", 400), costly("/2", 350), says("done")],
        ),
        subagent.begin(
            "b",
            vec![costly("/1", 400), costly("/2", 700), says("more")],
        ),
        subagent.begin("c", vec![costly("/1", 600), says("done")]),
    ];
    subagent.play(&mut all);
    let reasons = all.each_ref().map(Execution::stop_reason);
    assert_eq!(reasons, [None, Some(StopReason::TokenCapped), None]);
    assert_eq!(subagent.words("a"), ["budget_warning"]);
    assert_eq!(subagent.words("b"), [""; 0]);
    assert_eq!(subagent.words("c"), [""; 0]);
    assert_eq!(
        (all[0].last(), all[2].last()),
        ("done".into(), "done".into())
    );
}

#[test]
fn tools_are_blocked_for_the_execution_that_gets_nowhere_with_them() {
    let app = AppConfig {
        tool_progress: ToolProgressConfig {
            enabled: Some(true),
            ..ToolProgressConfig::default()
        },
        ..AppConfig::default()
    };
    let subagent = Subagent::new(&app, None);
    let denied = || fetch(json!({"denied": true}));
    let page = |n: u32| fetch(json!({"page": n}));
    let mut all = [
        subagent.begin("a", vec![denied(), page(1), says("done")]),
        subagent.begin("b", vec![page(1), page(2), page(3), says("done")]),
        // Begins and ends while the first is at work.
        subagent.begin("c", vec![says("done")]),
    ];
    subagent.play(&mut all);
    let blocked = |execution: &Execution| {
        let messages = execution.messages();
        let blocked = messages
            .iter()
            .filter(|it| it.text().starts_with("[TOOL_BLOCKED]"));
        blocked.count()
    };
    assert_eq!(all.each_ref().map(blocked), [1, 0, 0]);
}

#[test]
fn each_execution_is_summarised_by_itself_and_keeps_its_task() {
    let summarization = json!({"enabled": true, "trigger": {"type": "messages", "value": 6}, "keep": {"type": "messages", "value": 2}});
    let app = AppConfig {
        summarization: serde_json::from_value::<SummarizationConfig>(summarization).unwrap(),
        ..AppConfig::default()
    };
    let subagent = Subagent::new(&app, None);
    let long = || (0..4).map(|n| look(&format!("/{n}"))).collect();
    let mut all = [
        subagent.begin("a", long()),
        subagent.begin("b", vec![look("/x"), says("done")]),
        subagent.begin("c", long()),
    ];
    subagent.play(&mut all);
    let asides = all.each_ref().map(|it| it.asides);
    assert!(asides[0] > 0 && asides[0] == asides[2], "{asides:?}");
    assert_eq!(asides[1], 0);
    let messages = all[0].messages();
    assert!(messages[0].text().contains("the task"));
    let reminders = messages.iter().filter(|it| it.kind() == Kind::System);
    assert_eq!(reminders.count(), 1, "the date outlives a summary");
}

#[test]
fn sub_25_a_model_gets_one_system_text_with_the_date_and_the_task_as_data() {
    let subagent = Subagent::new(&AppConfig::default(), None);
    let mut all = [
        subagent.begin("a", vec![look("/1"), says("done")]),
        subagent.begin("b", vec![says("done")]),
    ];
    subagent.play(&mut all);
    let requests = subagent.minds.requests.lock().unwrap();
    assert_eq!(requests.len(), 3);
    for (_, system, messages) in requests.iter() {
        assert_eq!(
            system.as_deref(),
            Some(
                "You are a subagent.\n\n<system-reminder>\n<current_date>2026-05-08, Friday</current_date>\n\
                 </system-reminder>"
            )
        );
        assert!(messages.iter().all(|it| it.kind() != Kind::System));
        let task = messages[0].text();
        assert!(
            task.starts_with("--- BEGIN USER INPUT ---") && task.contains("the task"),
            "{task}"
        );
    }
}

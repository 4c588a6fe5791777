//! The middlewares that make a run's context, on machines stepped by hand: date, title, plan, summary.

use std::sync::{Arc, Mutex};

use fawn::agent::assembly::Assembly;
use fawn::agent::machine::{RunMachine, RunOptions};
use fawn::agent::step::{Outcome, Step};
use fawn::middleware::{
    Effect, EffectAnswer, Middleware, ModelResponse, NextModel, NextTool, OtherModel, Question,
    RunFacts,
};
use fawn::ports::BoxFuture;
use fawn::ports::host::RunContext;
use fawn::ports::model::{
    DeltaSink, ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest,
};
use fawn::ports::tool::{ToolInvocation, ToolOutcome};
use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::message::{Kind, Message};
use fawn::protocol::run::RunStatus;
use fawn::protocol::time::Timestamp;
use fawn::state::channels::Channel;
use fawn::state::ids::SequentialIds;
use fawn::state::update::StateUpdate;
use fawn::state::{Overlay, ThreadState};
use serde_json::{Value, json};

use crate::host::run_context;
use crate::parts::{ScriptModel, Tools, answer, assembly, calls, human, parts, says, tool};

/// What an aside of a middleware was, and what it is answered with.
type Asides = Arc<Mutex<Vec<Question>>>;

/// A thread with an agent, and what was asked besides.
struct Talk {
    assembly: Arc<Assembly>,
    requests: Arc<Mutex<Vec<Vec<Message>>>>,
    systems: Arc<Mutex<Vec<String>>>,
    asides: Asides,
    /// Answers to asides, in order; the last is repeated.
    answers: Vec<Result<ModelReply, ModelError>>,
    state: ThreadState,
    runs: u64,
    at: Timestamp,
}

/// Answers the n-th call with the n-th reply, whatever the thread holds; begins again after the last.
struct Hearing {
    replies: Vec<ModelReply>,
    requests: Arc<Mutex<Vec<Vec<Message>>>>,
    systems: Arc<Mutex<Vec<String>>>,
}

impl ModelProvider for Hearing {
    async fn call(
        &self,
        request: &ModelRequest,
        _: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let system = request.system.as_ref();
        let system = system.map_or("", |text| text.as_str()).to_owned();
        self.systems.lock().unwrap().push(system);
        let mut requests = self.requests.lock().unwrap();
        requests.push(request.messages.to_vec());
        Ok(self.replies[(requests.len() - 1) % self.replies.len()].clone())
    }
}

struct NoSink;

impl DeltaSink for NoSink {
    fn push(&mut self, _: ModelDelta) {}
    fn pressure(&mut self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

/// The chain of wrappers around the model, as the driver has it.
struct Models<'a>(&'a [Arc<dyn Middleware>], &'a Assembly);

impl NextModel for Models<'_> {
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            match self.0.split_first() {
                Some((outer, inner)) => {
                    let mut next = Models(inner, self.1);
                    outer.wrap_model_call(request, &mut next).await
                }
                None => {
                    let reply = self.1.model.call_boxed(&request, &mut NoSink).await?;
                    Ok(reply.into())
                }
            }
        })
    }
}

impl Talk {
    fn new(replies: Vec<ModelReply>, middleware: Vec<Arc<dyn Middleware>>) -> Self {
        let requests = Arc::<Mutex<Vec<Vec<Message>>>>::default();
        let systems = Arc::<Mutex<Vec<String>>>::default();
        let mut parts = parts(ScriptModel::new(Vec::new()));
        parts.model = Arc::new(Hearing {
            replies,
            requests: requests.clone(),
            systems: systems.clone(),
        });
        parts.system_prompt = Some("base".into());
        parts.tools = vec![
            tool("work", |_| std::future::ready(answer("done"))),
            tool("fail", |_| {
                std::future::ready(ToolOutcome::Failed("connection lost".into()))
            }),
        ];
        parts.middleware = middleware;
        Talk {
            assembly: assembly(parts),
            requests,
            systems,
            asides: Asides::default(),
            answers: Vec::new(),
            state: ThreadState::new(),
            runs: 0,
            at: Timestamp::parse("2026-05-08T12:00:00Z").unwrap(),
        }
    }

    fn say(&mut self, text: &str) -> Outcome {
        self.run(Some(StateUpdate::messages(vec![human(text)])))
    }

    fn run(&mut self, input: Option<StateUpdate>) -> Outcome {
        self.runs += 1;
        let run_id: Arc<str> = format!("r{}", self.runs).into();
        let shared = run_context();
        let context = Arc::new(RunContext {
            run_id: run_id.clone(),
            facts: Arc::new(RunFacts {
                run_id,
                thread_id: shared.thread_id.clone(),
                started_at: self.at,
                ..RunFacts::default()
            }),
            ..(*shared).clone()
        });
        let options = RunOptions {
            input,
            context: context.clone(),
            recursion_limit: 40,
            save_each_step: true,
            notes: false,
        };
        let assembly = self.assembly.clone();
        let mut machine = RunMachine::new(assembly.clone(), options);
        let mut ids = SequentialIds::starting_at(1 + 1000 * self.runs);
        loop {
            match machine.next_step(&self.state, &mut ids) {
                Step::CallModel(call) => {
                    let mut chain = Models(assembly.model_wrappers(), &assembly);
                    let mut reply = chain.run(call.request);
                    machine.model_replied(ready(&mut reply));
                }
                Step::CallTools(list) => {
                    let message_id: Arc<str> = list.message_id.into();
                    let outcomes = list.calls.into_iter().map(|call| {
                        let tools = Tools(&assembly);
                        let chain = NextTool::new(assembly.tool_wrappers(), &tools);
                        let mut outcome = chain.run(ToolInvocation {
                            message_id: message_id.clone(),
                            call_id: call.id.unwrap_or_default(),
                            name: call.name,
                            args: call.args,
                            reads: list.reads.clone(),
                            run: context.clone(),
                        });
                        ready(&mut outcome)
                    });
                    machine.tools_returned(outcomes.collect());
                }
                Step::Await(Effect::CallModel(question)) => {
                    let asked = {
                        let mut asides = self.asides.lock().unwrap();
                        asides.push(*question);
                        asides.len()
                    };
                    let place = (asked - 1).min(self.answers.len() - 1);
                    let reply = self.answers[place].clone();
                    machine.answered(EffectAnswer::Model(Box::new(reply)));
                }
                Step::Await(Effect::Perform(_)) => panic!("no hook here asks for work"),
                Step::Save(_) => machine.commit(&mut self.state),
                Step::Done(outcome) => return outcome,
            }
        }
    }

    fn messages(&self) -> Vec<Message> {
        let overlay = Overlay::new();
        self.state.view(&overlay).messages().cloned().collect()
    }

    fn lines(&self) -> Vec<String> {
        lines(&self.messages())
    }

    fn channel(&self, channel: Channel) -> Value {
        let overlay = Overlay::new();
        let value = self.state.view(&overlay).channel(channel).cloned();
        value.unwrap_or_default()
    }

    fn last_request(&self) -> Vec<String> {
        lines(self.requests.lock().unwrap().last().unwrap())
    }

    fn asides(&self) -> Vec<String> {
        let asides = self.asides.lock().unwrap();
        asides
            .iter()
            .map(|asked| asked.messages[0].text())
            .collect()
    }
}

fn lines(messages: &[Message]) -> Vec<String> {
    let line = |m: &Message| format!("{}:{}", m.kind().name(), m.text());
    messages.iter().map(line).collect()
}

fn ready<T>(future: &mut BoxFuture<'_, T>) -> T {
    use std::task::{Context, Poll, Waker};
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a part of this test waits"),
    }
}

fn broken() -> Result<ModelReply, ModelError> {
    Err(Error::new(ErrorCode::ModelServer, "the model is down").into())
}

/// A model that only asides name; the tests answer for it.
fn other_model(name: &str) -> OtherModel {
    OtherModel {
        name: name.into(),
        provider: Arc::new(ScriptModel::new(Vec::new())),
    }
}

mod date {
    use fawn::middleware::dynamic_context::{DynamicContext, DynamicContextConfig};
    use fawn::middleware::system_message_coalescing::SystemMessageCoalescing;

    use super::*;

    fn talk() -> Talk {
        Talk::new(
            vec![says("hi")],
            vec![
                Arc::new(DynamicContext::new(
                    DynamicContextConfig::default(),
                    None,
                    None,
                )),
                Arc::new(SystemMessageCoalescing::new()),
            ],
        )
    }

    #[test]
    fn xt_10_after_midnight_the_request_has_one_system_text_with_the_newest_date() {
        let mut talk = talk();
        assert_eq!(talk.say("one").status, RunStatus::Success);
        talk.at = Timestamp::parse("2026-05-09T00:00:01Z").unwrap();
        talk.say("two");
        let kinds: Vec<Kind> = talk.messages().iter().map(Message::kind).collect();
        use Kind::{Ai, Human, System};
        assert_eq!(kinds, [System, Human, Ai, System, Human, Ai]);
        assert_eq!(talk.last_request(), ["human:one", "ai:hi", "human:two"]);
        let systems = talk.systems.lock().unwrap();
        assert!(
            systems[0].starts_with("base\n\n<system-reminder>"),
            "{}",
            systems[0]
        );
        assert!(systems[0].contains("2026-05-08, Friday"));
        assert!(systems[1].contains("2026-05-09, Saturday"));
        assert!(!systems[1].contains("2026-05-08"), "COA-3: one date");
    }

    #[test]
    fn coa_1_and_4_without_system_messages_the_request_is_the_thread_s_own() {
        let mut talk = Talk::new(
            vec![says("hi")],
            vec![Arc::new(SystemMessageCoalescing::new())],
        );
        talk.say("one");
        let system =
            Message::from_canonical(json!({"type": "system", "content": "be brief", "id": "s"}));
        let input = vec![system.unwrap(), human("two")];
        talk.run(Some(StateUpdate::messages(input)));
        assert_eq!(*talk.systems.lock().unwrap(), ["base", "base\n\nbe brief"]);
        assert_eq!(talk.last_request(), ["human:one", "ai:hi", "human:two"]);
        assert_eq!(talk.messages().len(), 5, "the state keeps what it has");
    }
}

mod tool_errors {
    use fawn::middleware::tool_error_handling::{ToolErrorHandling, ToolErrorHandlingConfig};

    use super::*;

    #[test]
    fn teh_6_what_is_known_of_a_result_stands_in_its_message() {
        let part = ToolErrorHandling::new(ToolErrorHandlingConfig::default(), |_| None);
        let list = [
            ("work", "c1", json!({})),
            ("fail", "c2", json!({})),
            ("none", "c3", json!({})),
        ];
        let mut talk = Talk::new(vec![calls(&list), says("ok")], vec![Arc::new(part)]);
        assert_eq!(talk.say("go").status, RunStatus::Success);
        let messages = talk.messages();
        let meta =
            |place: usize| messages[place].fields().additional_kwargs["deerflow_tool_meta"].clone();
        assert_eq!(meta(2)["status"], "success");
        assert_eq!(meta(3)["error_type"], "transient");
        assert_eq!(meta(4)["error_type"], "unknown");
        let text = messages[3].text();
        assert!(
            text.starts_with("Error: the tool fail failed: connection lost. "),
            "{text}"
        );
        assert_eq!(messages[3].fields().status.name(), "error");
        assert_eq!(messages[3].fields().tool_call_id, "c2");
    }
}

mod title {
    use fawn::middleware::title::Title;
    use fawn::protocol::app_config::TitleConfig;

    use super::*;

    fn talk(model: Option<OtherModel>) -> Talk {
        Talk::new(
            vec![calls(&[("work", "c1", json!({}))]), says("hi")],
            vec![Arc::new(Title::new(TitleConfig::default(), model))],
        )
    }

    #[test]
    fn ttl_2_without_a_model_the_title_is_what_the_user_said() {
        let mut talk = talk(None);
        talk.say("what is tea?");
        assert_eq!(talk.channel(Channel::Title), "what is tea?");
        assert!(talk.asides().is_empty());
    }

    #[test]
    fn ttl_3_a_model_of_its_own_is_asked_once_and_not_the_run_s() {
        let mut talk = talk(Some(other_model("small")));
        talk.answers = vec![Ok(says("\"About tea\""))];
        talk.say("what is tea?");
        talk.say("and coffee?");
        assert_eq!(talk.channel(Channel::Title), "About tea");
        let asides = talk.asides.lock().unwrap();
        assert_eq!(asides.len(), 1);
        assert_eq!(asides[0].model.as_ref().unwrap().name.as_ref(), "small");
        assert!(asides[0].messages[0].text().contains("what is tea?"));
    }

    #[test]
    fn ttl_3_a_model_that_fails_or_says_nothing_leaves_the_user_s_words() {
        for answer in [broken(), Ok(says(" ")), Ok(says("<think>hm"))] {
            let mut talk = talk(Some(other_model("small")));
            talk.answers = vec![answer];
            assert_eq!(talk.say("what is tea?").status, RunStatus::Success);
            assert_eq!(talk.channel(Channel::Title), "what is tea?");
            assert_eq!(talk.asides().len(), 1);
        }
    }

    #[test]
    fn ttl_1_a_title_that_is_there_stays_and_a_later_exchange_gets_none() {
        let mut named = talk(None);
        let input = StateUpdate::messages(vec![human("what is tea?")]);
        let title = fawn::state::update::Write::Value("mine".into());
        named.run(Some(input.and(Channel::Title, title)));
        assert_eq!(named.channel(Channel::Title), "mine");

        let mut late = talk(None);
        let input = StateUpdate::messages(vec![human("one"), human("two")]);
        late.run(Some(input));
        assert_eq!(late.channel(Channel::Title), Value::Null);
    }

    #[test]
    fn ttl_4_an_interrupted_first_exchange_has_a_local_title() {
        let part = Title::new(TitleConfig::default(), Some(other_model("small")));
        let mut talk = talk(None);
        let overlay = Overlay::new();
        assert_eq!(part.of_interrupted(talk.state.view(&overlay)), None);
        let mut staged = Overlay::new();
        let input = StateUpdate::messages(vec![human("only a question")]);
        let mut ids = SequentialIds::default();
        talk.state.stage(&mut staged, &[input], &mut ids).unwrap();
        talk.state.commit(staged);
        let title = part.of_interrupted(talk.state.view(&overlay));
        assert_eq!(title.as_deref(), Some("only a question"));
    }
}

mod plan {
    use fawn::middleware::todo::Todo;

    use super::*;

    fn write(id: &str, todos: Value) -> ModelReply {
        calls(&[("write_todos", id, json!({"todos": todos}))])
    }

    fn open() -> Value {
        json!([{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}])
    }

    fn talk(replies: Vec<ModelReply>) -> Talk {
        Talk::new(replies, vec![Arc::new(Todo::new())])
    }

    #[test]
    fn ad_13_the_tool_that_the_middleware_brings_stands_behind_the_agent_s() {
        let talk = talk(vec![says("x")]);
        let specs = talk.assembly.tool_specs.iter();
        let names: Vec<&str> = specs.map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["work", "fail", "write_todos"]);
        let mut twice = parts(ScriptModel::new(vec![says("x")]));
        twice.tools = vec![tool("write_todos", |_| std::future::ready(answer("x")))];
        twice.middleware = vec![Arc::new(Todo::new())];
        let error = Assembly::new(twice).err().unwrap();
        assert_eq!(error.code, ErrorCode::Conflict);
        assert_eq!(
            error.path.as_deref(),
            Some("/tools/0/name"),
            "the name to change"
        );
    }

    #[test]
    fn tod_1_a_call_replaces_the_plan() {
        let done = json!([{"content": "a", "status": "completed"}]);
        let mut talk = talk(vec![
            write("c1", open()),
            write("c2", done.clone()),
            says("hi"),
        ]);
        assert_eq!(talk.say("go").status, RunStatus::Success);
        assert_eq!(talk.channel(Channel::Todos), done);
        assert!(talk.systems.lock().unwrap()[0].starts_with("base\n\n<todo_list_system>"));
        assert!(talk.lines()[2].contains("2 items, 1 of them open"));
    }

    #[test]
    fn tod_2_two_plans_in_one_message_are_both_refused_and_other_calls_run() {
        let both = calls(&[
            ("write_todos", "c1", json!({"todos": open()})),
            ("work", "c2", json!({})),
            ("write_todos", "c3", json!({"todos": []})),
        ]);
        let mut talk = talk(vec![both, says("hi")]);
        assert_eq!(talk.say("go").status, RunStatus::Success);
        assert_eq!(talk.channel(Channel::Todos), Value::Null);
        let results: Vec<_> = talk
            .messages()
            .iter()
            .filter(|message| message.kind() == Kind::Tool)
            .map(|m| (m.fields().tool_call_id.clone(), m.fields().status.name()))
            .collect();
        let expected = [("c1", "error"), ("c3", "error"), ("c2", "success")];
        assert_eq!(
            results,
            expected.map(|(id, status)| (id.to_owned(), status))
        );
    }

    #[test]
    fn tod_4_5_and_7_open_items_send_the_agent_back_twice_and_no_more() {
        let mut talk = talk(vec![write("c1", open()), says("1"), says("2"), says("3")]);
        assert_eq!(talk.say("go").status, RunStatus::Success);
        let texts = talk.lines();
        assert_eq!(
            texts[3..],
            ["ai:1", "ai:2", "ai:3"],
            "answers stay, reminders are not stored"
        );
        let requests = talk.requests.lock().unwrap();
        let requests: Vec<Vec<String>> = requests.iter().map(|it| lines(it)).collect();
        assert_eq!(requests.len(), 4);
        assert!(!requests[1].last().unwrap().contains("system_reminder"));
        for request in &requests[2..] {
            let last = request.last().unwrap();
            assert!(last.starts_with("human:<system_reminder>"), "{last}");
            assert!(
                last.contains("- [pending] b\n") && !last.contains("] a"),
                "{last}"
            );
        }
        let all = requests[3]
            .iter()
            .filter(|line| line.contains("system_reminder"));
        assert_eq!(all.count(), 1, "each is told once");
    }

    #[test]
    fn tod_6_the_next_run_is_sent_back_anew() {
        let mut replies = vec![write("c1", open())];
        replies.resize(9, says("x"));
        let mut talk = talk(replies);
        talk.say("go");
        assert_eq!(talk.requests.lock().unwrap().len(), 4);
        talk.say("more");
        assert_eq!(talk.requests.lock().unwrap().len(), 7);
    }

    #[test]
    fn tod_3_a_plan_that_is_out_of_sight_is_brought_back_once() {
        let mut talk = talk(vec![says("hi")]);
        let todos = json!([{"content": "<b>", "status": "completed"}]);
        let plan = fawn::state::update::Write::Value(todos);
        let input = StateUpdate::messages(vec![human("one")]).and(Channel::Todos, plan);
        talk.run(Some(input));
        talk.say("two");
        let reminders: Vec<Message> = talk
            .messages()
            .into_iter()
            .filter(|message| message.fields().name.as_deref() == Some("todo_reminder"))
            .collect();
        assert_eq!(reminders.len(), 1);
        assert!(reminders[0].text().contains("- [completed] &lt;b&gt;\n"));
        assert_eq!(
            reminders[0].fields().additional_kwargs["hide_from_ui"],
            true
        );
        assert_eq!(talk.lines().len(), 5);
        assert!(
            talk.requests.lock().unwrap()[0].len() == 2,
            "the model sees it"
        );
    }
}

mod summary {
    use fawn::middleware::summarization::{Summarization, SummaryModels};
    use fawn::middleware::todo::Todo;
    use fawn::protocol::app_config::{ContextSize, ContextSizeKind, SummarizationConfig};

    use super::*;

    fn summarizing(at: u64, keep: u64) -> Arc<dyn Middleware> {
        let messages = |count: u64| ContextSize {
            kind: ContextSizeKind::Messages,
            value: count as f64,
        };
        let config = SummarizationConfig {
            enabled: Some(true),
            trigger: vec![messages(at)].into(),
            keep: messages(keep),
            ..SummarizationConfig::default()
        };
        let made = Summarization::new(config, SummaryModels::default(), Vec::new());
        Arc::new(made.unwrap())
    }

    #[test]
    fn xt_3_compaction_keeps_the_request_and_the_plan_is_brought_back_in_the_same_pass() {
        let plan = json!([{"content": "later", "status": "completed"}]);
        let replies = vec![
            calls(&[("write_todos", "c1", json!({"todos": plan}))]),
            calls(&[("work", "c2", json!({}))]),
            calls(&[("work", "c3", json!({}))]),
            says("end"),
        ];
        let mut talk = Talk::new(replies, vec![summarizing(7, 2), Arc::new(Todo::new())]);
        talk.answers = vec![Ok(says("what was"))];
        assert_eq!(talk.say("the request").status, RunStatus::Success);
        assert_eq!(talk.channel(Channel::SummaryText), "what was");
        assert_eq!(talk.asides().len(), 1);
        let names: Vec<_> = talk
            .messages()
            .iter()
            .map(|m| m.fields().name.clone())
            .collect();
        assert_eq!(talk.lines()[..3], ["human:the request", "ai:", "tool:done"]);
        assert_eq!(names[3].as_deref(), Some("todo_reminder"));
        assert!(
            talk.last_request()
                .iter()
                .any(|line| line.contains("- [completed] later"))
        );
        assert!(
            !talk
                .last_request()
                .iter()
                .any(|line| line == "human:what was")
        );
    }

    #[test]
    fn z6_when_no_model_can_summarise_the_run_goes_on_and_asks_twice_at_most() {
        let mut replies = vec![calls(&[("work", "c", json!({}))]); 6];
        replies.push(says("end"));
        let mut talk = Talk::new(replies, vec![summarizing(2, 1)]);
        talk.answers = vec![broken()];
        let outcome = talk.say("go");
        assert_eq!(outcome.status, RunStatus::Success);
        assert_eq!(talk.asides().len(), 2);
        assert_eq!(
            talk.messages().len(),
            1 + 6 * 2 + 1,
            "the thread stays as it is"
        );
        assert_eq!(talk.channel(Channel::SummaryText), Value::Null);
    }

    #[test]
    fn z8_what_is_asked_besides_is_not_the_agent_s_usage_and_counts_no_step() {
        let mut talk = Talk::new(vec![says("a"), says("b")], vec![summarizing(3, 1)]);
        let mut reply = says("sum");
        reply.usage = Some(fawn::ports::model::Usage {
            total_tokens: 99,
            ..Default::default()
        });
        talk.answers = vec![Ok(reply)];
        talk.say("one");
        let outcome = talk.say("two");
        assert_eq!((outcome.steps, outcome.usage.total_tokens), (1, 0));
        assert_eq!(talk.asides().len(), 1);
        assert_eq!(talk.lines(), ["human:two", "ai:b"]);
    }
}

//! Gives the agent a plan: the tool `write_todos`, and reminders so that the plan is neither forgotten nor left half done.
//!
//! When the call that wrote the plan is gone from the thread, as after a summary, a hidden message brings the plan back.
//! When the agent would end with open items it is sent back to the model, at most twice in a run, with a note that only the
//! request carries; the answer that it had given stays in the thread (MW-TOD-7). A run that a guard has stopped is not sent
//! back, unlike in the reference, where it goes on past the limit.
//!
//! Source: DeerFlow `TodoMiddleware` and LangChain's `TodoListMiddleware`, MW-TOD.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::message_marks::hidden_human;
use super::remembered::{Remembered, RunKey, execution_key, id_or_default, thread_key};
use super::{
    Hook, HookContext, HookOutput, Hooks, Jump, Middleware, ModelResponse, NextModel, RunFacts,
};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::ports::tool::{DynTool, Tool, ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use crate::protocol::canonical_json::text_hash;
use crate::protocol::error::Error;
use crate::protocol::message::{Fields, Kind, Message, ToolCall, ToolStatus};
use crate::protocol::run::StopReason;
use crate::protocol::trust::{SystemText, SystemWriter, escape_into};
use crate::state::View;
use crate::state::channels::Channel;
use crate::state::python::{truthy, truthy_member};
use crate::state::update::StateUpdate;

/// The tool that writes the plan.
pub const WRITE_TODOS: &str = "write_todos";

/// Name of the stored message that brings the plan back (MW-TOD-3).
const REMINDER: &str = "todo_reminder";
/// Name of the message of a request that tells of open items (MW-TOD-5).
const COMPLETION_REMINDER: &str = "todo_completion_reminder";
/// How often a run is sent back (MW-TOD-4).
const MAX_SENT_BACK: u32 = 2;
/// Most runs that are remembered (MW-TOD-6).
const MAX_RUNS: usize = 4096;

const GUIDE: &str = "\
<todo_list_system>
With the tool `write_todos` you keep a plan of the work on this request. The person sees it as it changes.

- Plan when the work takes three steps or more, or when you are asked to. For less, do the work and answer.
- Write the plan before you begin. Set an item to `in_progress` when you start it and to `completed` as soon as it is done, \
not later and not together with others. Items that do not depend on each other may be in progress at the same time.
- Each call replaces the whole plan: pass every item that is still part of it, in order. Leave out what turned out not to \
be needed, add what you find on the way.
- An item that failed or is only partly done is not `completed`.
- Make one call of `write_todos` at a time, never two in one message.
- Before your final answer every item is `completed` or has been taken off the plan.
</todo_list_system>";

const DESCRIPTION: &str = "Replaces the plan for the current request. Pass all items in order, each with its state. Use it \
for work of three steps or more, and call it again whenever the state of an item changes. One call at a time.";

const TWICE: &str = "Error: a message may call write_todos once only, since each call replaces the whole plan. None of \
these calls was carried out. Call it again, once, with the plan as it should be.";

/// The middleware; it has no settings.
pub struct Todo {
    tools: [Arc<dyn DynTool>; 1],
    book: Mutex<Book>,
    /// By thread: the message that shows the plan.
    shown: Remembered<Arc<str>, Arc<str>>,
    /// The last system text that the guide was added to, and what came of it: it is the same from turn to turn.
    guided: Mutex<Option<(Option<SystemText>, SystemText)>>,
}

impl Default for Todo {
    fn default() -> Self {
        Todo::new()
    }
}

impl Todo {
    /// The middleware.
    pub fn new() -> Self {
        Todo {
            tools: [Arc::new(WriteTodos::new())],
            book: Mutex::default(),
            shown: Remembered::new(),
            guided: Mutex::default(),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the plan back when the thread does not show it any more (MW-TOD-3).
    fn before_model(&self, state: View<'_>, run: &RunFacts) -> HookOutput {
        let Some(todos) = todos(state) else {
            return HookOutput::Continue;
        };
        let known = self.shown.get(thread_key(run));
        let known = known.and_then(|id| state.by_id(&id));
        if known.is_some_and(shows_plan) {
            return HookOutput::Continue;
        }
        if let Some(message) = state.messages().rev().find(|message| shows_plan(message)) {
            if let Some(id) = message.id() {
                self.shown.set(thread_key(run).clone(), id.into());
            }
            return HookOutput::Continue;
        }
        let mut text = "<system_reminder>\nYour plan is still in force, although the call that wrote it is no longer part \
                        of the conversation. It stands like this:\n\n"
            .to_owned();
        push_list(&mut text, todos.iter());
        text.push_str(
            "\nKeep to it, and call `write_todos` whenever the state of an item changes.\n</system_reminder>",
        );
        let reminder = hidden_human(REMINDER, text);
        HookOutput::Update(StateUpdate::messages(vec![reminder]))
    }

    fn after_model(&self, state: View<'_>, run: &RunFacts) -> HookOutput {
        let newest = state.messages().rev();
        let Some(ai) = newest.into_iter().find(|it| it.kind() == Kind::Ai) else {
            return HookOutput::Continue;
        };
        let writes: Vec<&ToolCall> = plan_calls(ai).collect();
        if writes.len() > 1 {
            let refused = writes.into_iter().map(refusal).collect();
            return HookOutput::Update(StateUpdate::messages(refused));
        }
        if has_tool_intent(ai.fields()) || was_cut(ai.fields()) || was_stopped(run) {
            return HookOutput::Continue;
        }
        let Some(todos) = todos(state) else {
            return HookOutput::Continue;
        };
        let open = || todos.iter().filter(|todo| !is_completed(todo));
        if open().next().is_none() {
            return HookOutput::Continue;
        }
        let mut text =
            "<system_reminder>\nYou are about to end, but items of your plan are open:\n\n"
                .to_owned();
        push_list(&mut text, open());
        text.push_str(
            "\nGo on with them. Use `write_todos` to mark what is done, or to take off what is not needed; answer when \
             nothing is open.\n</system_reminder>",
        );
        match self.book().send_back(key(run), text) {
            true => HookOutput::Jump(Jump::Model, StateUpdate::default()),
            false => HookOutput::Continue,
        }
    }

    /// The system text with the guide behind it.
    fn with_guide(&self, system: Option<&SystemText>) -> SystemText {
        let mut known = self.guided.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, after)) = &*known {
            let is_same = match (before, system) {
                (None, None) => true,
                (Some(before), Some(system)) => before.is_same(system),
                _ => false,
            };
            if is_same {
                return after.clone();
            }
        }
        let mut writer = SystemWriter::new();
        if let Some(system) = system {
            writer.system(system).framework("\n\n");
        }
        let after = writer.framework(GUIDE).clone().finish();
        *known = Some((system.cloned(), after.clone()));
        after
    }
}

impl Middleware for Todo {
    fn name(&self) -> &str {
        "todo"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_agent: true,
            before_model: true,
            after_model: true,
            after_agent: true,
            wrap_model_call: true,
            wrap_tool_call: false,
        }
    }

    fn policy(&self) -> Map<String, Value> {
        Map::from_iter([
            ("system_prompt_hash".to_owned(), text_hash(GUIDE).into()),
            (
                "tool_description_hash".to_owned(),
                text_hash(DESCRIPTION).into(),
            ),
        ])
    }

    fn tools(&self) -> &[Arc<dyn DynTool>] {
        &self.tools
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        Ok(match hook {
            Hook::BeforeAgent => {
                self.book().forget_others(&key(context.run));
                HookOutput::Continue
            }
            Hook::BeforeModel => self.before_model(context.state, context.run),
            Hook::AfterModel => self.after_model(context.state, context.run),
            Hook::AfterAgent => {
                self.book().runs.remove(&key(context.run));
                HookOutput::Continue
            }
        })
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        request.system = Some(self.with_guide(request.system.as_ref()));
        let key = key(&request.run.facts);
        let queued = self.book().drain(&key);
        if queued.is_empty() {
            return next.run(request);
        }
        let mut texts = queued.clone();
        texts.dedup();
        let reminder = hidden_human(COMPLETION_REMINDER, texts.join("\n\n"));
        let messages = request.messages.iter().cloned().chain([reminder]);
        request.messages = Arc::new(messages.collect());
        Box::pin(async move {
            let response = next.run(request).await;
            if response.is_err() {
                // Nobody has read them.
                self.book().put_back(key, queued);
            }
            response
        })
    }
}

/// The runs that were sent back, by thread and run.
#[derive(Default)]
struct Book {
    runs: HashMap<RunKey, SentBack>,
    /// Counts what is touched.
    clock: u64,
}

#[derive(Default)]
struct SentBack {
    queued: Vec<String>,
    times: u32,
    touched: u64,
}

impl Book {
    /// Queues a text for the next request of a run, unless the run was sent back often enough.
    fn send_back(&mut self, key: RunKey, text: String) -> bool {
        let run = self.touch(key);
        if run.times >= MAX_SENT_BACK {
            return false;
        }
        run.times += 1;
        run.queued.push(text);
        true
    }

    fn put_back(&mut self, key: RunKey, texts: Vec<String>) {
        self.touch(key).queued.splice(0..0, texts);
    }

    fn drain(&mut self, key: &RunKey) -> Vec<String> {
        let run = self.runs.get_mut(key);
        run.map(|run| std::mem::take(&mut run.queued))
            .unwrap_or_default()
    }

    fn forget_others(&mut self, current: &RunKey) {
        if !self.runs.is_empty() {
            self.runs
                .retain(|key, _| key.0 != current.0 || key.1 == current.1);
        }
    }

    /// The entry of a run; a new one takes the place of the one that was touched longest ago when there are too many.
    fn touch(&mut self, key: RunKey) -> &mut SentBack {
        self.clock += 1;
        if self.runs.len() >= MAX_RUNS && !self.runs.contains_key(&key) {
            let oldest = self.runs.iter().min_by_key(|(_, run)| run.touched);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.runs.remove(&oldest);
            }
        }
        let run = self.runs.entry(key).or_default();
        run.touched = self.clock;
        run
    }
}

fn key(run: &RunFacts) -> RunKey {
    (
        id_or_default(thread_key(run)),
        id_or_default(execution_key(run)),
    )
}

/// The plan, if there are items in it.
fn todos(state: View<'_>) -> Option<&Vec<Value>> {
    let todos = state.channel(Channel::Todos)?.as_array()?;
    (!todos.is_empty()).then_some(todos)
}

fn is_completed(todo: &Value) -> bool {
    todo["status"] == "completed"
}

/// Adds the items, one a line. What an item says cannot end the section that it stands in.
fn push_list<'a>(out: &mut String, todos: impl Iterator<Item = &'a Value>) {
    for todo in todos {
        let status = todo["status"].as_str().unwrap_or("pending");
        let content = todo["content"].as_str().unwrap_or_default();
        out.push_str("- [");
        escape_into(out, status);
        out.push_str("] ");
        escape_into(out, content);
        out.push('\n');
    }
}

/// The calls of a message that write the plan. Most messages are not decoded for it.
fn plan_calls(message: &Message) -> impl Iterator<Item = &ToolCall> {
    let may_call = message.kind() == Kind::Ai && message.json().contains(WRITE_TODOS);
    let calls = may_call.then(|| message.fields().tool_calls.iter());
    let calls = calls.into_iter().flatten();
    calls.filter(|call| call.name == WRITE_TODOS)
}

/// Whether a guard has ended the run: nothing may send it back to the model, which would go on past the limit.
fn was_stopped(run: &RunFacts) -> bool {
    use StopReason::{LoopCapped, SafetyCapped, TokenCapped};
    let reason = run.signals.stop_reason();
    matches!(reason, Some(LoopCapped | TokenCapped | SafetyCapped))
}

/// Whether a message shows the plan to the model: a call that wrote it, or the reminder in place of one.
fn shows_plan(message: &Message) -> bool {
    match message.kind() {
        Kind::Ai => plan_calls(message).next().is_some(),
        Kind::Human => {
            message.json().contains(REMINDER) && message.fields().name.as_deref() == Some(REMINDER)
        }
        _ => false,
    }
}

/// Whether a reply is about tools, in whatever form a provider has put it (HP-7).
fn has_tool_intent(fields: &Fields) -> bool {
    let kwargs = &fields.additional_kwargs;
    let reason = fields.response_metadata.get("finish_reason");
    let reason = reason.and_then(Value::as_str).unwrap_or_default();
    !fields.tool_calls.is_empty()
        || !fields.invalid_tool_calls.is_empty()
        || truthy_member(kwargs, "tool_calls").is_some()
        || truthy_member(kwargs, "function_call").is_some()
        || matches!(reason, "tool_calls" | "function_call")
}

/// Whether a reply ended for a reason that asking again does not mend: it was cut at the model's length limit, or stands for
/// an answer that there was none of.
fn was_cut(fields: &Fields) -> bool {
    ["model_length_termination", "deerflow_error_fallback"]
        .iter()
        .any(|name| fields.additional_kwargs.get(*name).is_some_and(truthy))
}

/// The result of a call beside which there was another (MW-TOD-2).
fn refusal(call: &ToolCall) -> Message {
    let mut fields = Fields::new(Kind::Tool, TWICE);
    fields.name = Some(WRITE_TODOS.to_owned());
    fields.tool_call_id = call.id.clone().unwrap_or_default();
    fields.status = ToolStatus::Error;
    Message::new(fields)
}

/// The tool `write_todos` (MW-TOD-1).
struct WriteTodos {
    spec: ToolSpec,
}

impl WriteTodos {
    const STATES: [&str; 3] = ["pending", "in_progress", "completed"];

    fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "description": "The whole plan, in order.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {"type": "string", "description": "What is to be done."},
                            "status": {"type": "string", "enum": Self::STATES, "description": "How far it is."},
                        },
                        "required": ["content", "status"],
                    },
                },
            },
            "required": ["todos"],
        });
        WriteTodos {
            spec: ToolSpec {
                name: WRITE_TODOS.to_owned(),
                description: DESCRIPTION.to_owned(),
                parameters: parameters.into(),
            },
        }
    }

    /// The plan in the arguments. They were checked against the schema, where this build can.
    fn read(args: &Map<String, Value>) -> Option<Vec<Value>> {
        let items = args.get("todos")?.as_array()?.iter();
        let read = |item: &Value| {
            let content = item.get("content")?.as_str()?;
            let status = item.get("status")?.as_str()?;
            let known = Self::STATES.contains(&status);
            known.then(|| json!({"content": content, "status": status}))
        };
        items.map(read).collect()
    }
}

impl Tool for WriteTodos {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let Some(todos) = WriteTodos::read(&invocation.args) else {
            return ToolOutcome::Failed(
                "todos must be a list of objects with content and status; status is one of pending, in_progress, \
                 completed"
                    .to_owned(),
            );
        };
        let open = todos.iter().filter(|todo| !is_completed(todo)).count();
        let mut content = "The plan is saved".to_owned();
        // Writing to a string does not fail.
        let _ = match todos.len() {
            0 => write!(content, "; it is empty."),
            all => write!(content, ": {all} items, {open} of them open."),
        };
        ToolOutcome::Answer(ToolAnswer {
            content: content.into(),
            update: Some(StateUpdate::set(Channel::Todos, todos)),
            ..ToolAnswer::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_key(thread: &str, run: &str) -> RunKey {
        (thread.into(), run.into())
    }

    #[test]
    fn tod_1_the_plan_is_read_and_nothing_else_is_kept() {
        let args = |value: Value| value.as_object().cloned().unwrap_or_default();
        let read = WriteTodos::read(&args(json!({"todos": [
            {"content": "a", "status": "pending", "extra": 1},
            {"status": "completed", "content": ""},
        ]})));
        let plan = vec![
            json!({"content": "a", "status": "pending"}),
            json!({"content": "", "status": "completed"}),
        ];
        assert_eq!(read, Some(plan));
        assert_eq!(WriteTodos::read(&args(json!({"todos": []}))), Some(vec![]));
        for bad in [
            json!({}),
            json!({"todos": "a"}),
            json!({"todos": [{"content": "a"}]}),
            json!({"todos": [{"content": "a", "status": "done"}]}),
            json!({"todos": ["a"]}),
        ] {
            assert_eq!(WriteTodos::read(&args(bad.clone())), None, "{bad}");
        }
    }

    #[test]
    fn hp_7_every_form_of_a_call_is_one() {
        let mut plain = Fields::new(Kind::Ai, "x");
        plain
            .response_metadata
            .insert("finish_reason".into(), "stop".into());
        assert!(!has_tool_intent(&plain));
        let with = |change: fn(&mut Fields)| {
            let mut fields = plain.clone();
            change(&mut fields);
            has_tool_intent(&fields)
        };
        assert!(with(|f| f.tool_calls.push(ToolCall::default())));
        assert!(with(|f| f.invalid_tool_calls.push(Default::default())));
        assert!(with(|f| drop(
            f.additional_kwargs.insert("tool_calls".into(), json!([1]))
        )));
        assert!(with(|f| drop(
            f.additional_kwargs
                .insert("function_call".into(), json!({"a": 1}))
        )));
        assert!(!with(|f| drop(
            f.additional_kwargs.insert("tool_calls".into(), json!([]))
        )));
        assert!(with(|f| drop(
            f.response_metadata
                .insert("finish_reason".into(), "tool_calls".into())
        )));
    }

    #[test]
    fn tod_4_and_6_a_run_is_sent_back_twice_and_another_run_of_the_thread_starts_anew() {
        let mut book = Book::default();
        let (first, second) = (run_key("t", "1"), run_key("t", "2"));
        assert!(book.send_back(first.clone(), "a".into()));
        assert!(book.send_back(first.clone(), "b".into()));
        assert!(!book.send_back(first.clone(), "c".into()));
        assert_eq!(book.drain(&first), ["a", "b"]);
        assert!(book.drain(&first).is_empty());
        book.put_back(first.clone(), vec!["a".into()]);
        assert!(
            !book.send_back(first.clone(), "d".into()),
            "what is put back is not counted"
        );
        assert!(book.send_back(run_key("other", "1"), "x".into()));
        book.forget_others(&second);
        assert!(book.drain(&first).is_empty());
        assert!(book.send_back(first, "a".into()));
        assert_eq!(book.drain(&run_key("other", "1")), ["x"]);
    }

    #[test]
    fn tod_6_the_run_that_was_touched_longest_ago_goes_first() {
        let mut book = Book::default();
        let numbered = |n: usize| run_key("t", &n.to_string());
        for n in 0..MAX_RUNS {
            book.send_back(numbered(n), "x".into());
        }
        book.send_back(numbered(0), "x".into());
        book.send_back(run_key("new", "1"), "x".into());
        assert_eq!(book.runs.len(), MAX_RUNS);
        assert!(book.runs.contains_key(&numbered(0)));
        assert!(!book.runs.contains_key(&numbered(1)));
    }

    #[test]
    fn tod_1_the_guide_follows_the_system_text_and_is_the_same_text_each_turn() {
        let todo = Todo::new();
        let system = SystemText::from("base");
        let guided = todo.with_guide(Some(&system));
        assert_eq!(guided.as_str(), format!("base\n\n{GUIDE}"));
        assert!(guided.is_same(&todo.with_guide(Some(&system))));
        assert_eq!(todo.with_guide(None).as_str(), GUIDE);
        assert_eq!(
            todo.with_guide(Some(&SystemText::from("other"))).as_str(),
            format!("other\n\n{GUIDE}")
        );
    }

    #[test]
    fn an_item_cannot_end_the_section_that_it_stands_in() {
        let mut text = String::new();
        let todos = [
            json!({"content": "</system_reminder>", "status": "pending"}),
            json!(3),
        ];
        push_list(&mut text, todos.iter());
        assert_eq!(text, "- [pending] &lt;/system_reminder&gt;\n- [pending] \n");
    }
}

//! Puts tokens where they were spent, and says of each reply what it did.
//!
//! What subagents used is added to the reply that sent them out, once; and each reply gets a record of its actions, so that
//! a host can show what its tokens were for.
//!
//! Source: DeerFlow `TokenUsageMiddleware`, MW-TKU-1 and 2; the members of the record are a contract with hosts.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Value, json};

use super::{Hook, HookContext, HookOutput, Hooks, Middleware};
use crate::protocol::app_config::{Feature, TokenUsageConfig};
use crate::protocol::error::Error;
use crate::protocol::message::{Fields, Kind, Message, ToolCall};
use crate::state::View;
use crate::state::channels::Channel;
use crate::state::update::StateUpdate;

/// The member of a tool message's `additional_kwargs` that says what its subagent used.
pub const SUBAGENT_USAGE: &str = "subagent_token_usage";
/// The member that says that this was added to the reply.
pub const SUBAGENT_USAGE_ADDED: &str = "subagent_token_usage_attributed";
/// The member of a reply's `additional_kwargs` that has the record.
pub const ATTRIBUTION: &str = "token_usage_attribution";

const COUNTS: [&str; 3] = ["input_tokens", "output_tokens", "total_tokens"];
const TODO_KINDS: [&str; 4] = ["todo_start", "todo_complete", "todo_update", "todo_remove"];

/// See the module.
pub struct TokenUsage {
    enabled: bool,
}

impl TokenUsage {
    /// As configured.
    pub fn new(config: &TokenUsageConfig) -> Self {
        TokenUsage {
            enabled: config.is_enabled(),
        }
    }
}

impl Middleware for TokenUsage {
    fn name(&self) -> &str {
        "token_usage"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            after_model: self.enabled,
            ..Hooks::default()
        }
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        if hook != Hook::AfterModel || !self.enabled {
            return Ok(HookOutput::Continue);
        }
        let mut changed = add_subagents(&context.state);
        if let Some(reply) = super::reply::last_reply(&context.state) {
            let record = attribution(reply.fields(), context.state.channel(Channel::Todos));
            let kwargs = &reply.fields().additional_kwargs;
            if kwargs.get(ATTRIBUTION) != Some(&record) {
                let mut fields = reply.fields().clone();
                fields
                    .additional_kwargs
                    .insert(ATTRIBUTION.to_owned(), record);
                changed.push(Message::new(fields));
            }
        }
        if changed.is_empty() {
            return Ok(HookOutput::Continue);
        }
        Ok(HookOutput::Update(StateUpdate::messages(changed)))
    }
}

/// The replies that sent out the subagents whose results stand right before the newest message, with what those used, and
/// the results marked, in the order of the thread. A result whose reply is not found stays as it is.
fn add_subagents(state: &View<'_>) -> Vec<Message> {
    // Positions count from the end.
    let mut changed: BTreeMap<std::cmp::Reverse<usize>, Fields> = BTreeMap::new();
    let results = state
        .messages()
        .rev()
        .enumerate()
        .skip(1)
        .take_while(|(_, message)| {
            message.kind() == Kind::Tool && !message.fields().tool_call_id.is_empty()
        });
    for (place, result) in results {
        let fields = result.fields();
        let Some(used) = subagent_usage(fields) else {
            continue;
        };
        let sent_out = |(_, message): &(usize, &Message)| {
            let calls = || message.fields().tool_calls.iter();
            message.kind() == Kind::Ai
                && calls().any(|call| call.id.as_deref() == Some(&*fields.tool_call_id))
        };
        let earlier = state.messages().rev().enumerate().skip(place + 1);
        let Some((sender_place, sender)) = earlier.into_iter().find(sent_out) else {
            continue;
        };
        let sender = changed
            .entry(std::cmp::Reverse(sender_place))
            .or_insert_with(|| sender.fields().clone());
        add(&mut sender.usage_metadata, used);
        let mut marked = fields.clone();
        marked
            .additional_kwargs
            .insert(SUBAGENT_USAGE_ADDED.to_owned(), true.into());
        changed.insert(std::cmp::Reverse(place), marked);
    }
    changed.into_values().map(Message::new).collect()
}

/// What a subagent used, if a result says so with three counts and was not seen before.
fn subagent_usage(result: &Fields) -> Option<[u64; 3]> {
    let kwargs = &result.additional_kwargs;
    if kwargs.get(SUBAGENT_USAGE_ADDED) == Some(&Value::Bool(true)) {
        return None;
    }
    let usage = kwargs.get(SUBAGENT_USAGE)?.as_object()?;
    let mut counts = [0; 3];
    for (count, name) in counts.iter_mut().zip(COUNTS) {
        *count = usage.get(name)?.as_u64()?;
    }
    Some(counts)
}

fn add(usage: &mut Value, used: [u64; 3]) {
    let mut whole = usage.as_object().cloned().unwrap_or_default();
    for (name, more) in COUNTS.into_iter().zip(used) {
        let before = whole.get(name).and_then(Value::as_u64).unwrap_or_default();
        whole.insert(name.to_owned(), before.saturating_add(more).into());
    }
    *usage = Value::Object(whole);
}

/// The record of a reply.
fn attribution(reply: &Fields, todos: Option<&Value>) -> Value {
    let mut plan = Plan::read(todos);
    let actions: Vec<Value> = reply
        .tool_calls
        .iter()
        .flat_map(|call| actions(call, &mut plan))
        .collect();
    let ids: Vec<&str> = reply
        .tool_calls
        .iter()
        .filter_map(|call| call.id.as_deref().and_then(stripped))
        .collect();
    json!({
        "version": 1,
        "kind": kind(reply, &actions),
        "shared_attribution": actions.len() > 1,
        "tool_call_ids": ids,
        "actions": actions,
    })
}

fn kind(reply: &Fields, actions: &[Value]) -> &'static str {
    match actions {
        [] if crate::state::python::truthy(&reply.content) => "final_answer",
        [] => "thinking",
        [only]
            if only["kind"]
                .as_str()
                .is_some_and(|kind| TODO_KINDS.contains(&kind)) =>
        {
            "todo_update"
        }
        [only] if only["kind"] == "subagent" => "subagent_dispatch",
        _ => "tool_batch",
    }
}

/// What a call does. `plan` is the plan before it, and then the one after it.
fn actions(call: &ToolCall, plan: &mut Plan) -> Vec<Value> {
    let id = call.id.as_deref().and_then(stripped);
    let name = stripped(&call.name).unwrap_or("unknown");
    let argument = |name: &str| {
        call.args
            .get(name)
            .and_then(Value::as_str)
            .and_then(stripped)
    };
    let action = match name {
        "write_todos" => {
            let next = Plan::read(call.args.get("todos"));
            let changes = plan.changes(&next);
            *plan = next;
            if !changes.is_empty() {
                let with_id = |(kind, content): (&str, String)| json!({"kind": kind, "content": content, "tool_call_id": id});
                return changes.into_iter().map(with_id).collect();
            }
            json!({"kind": "tool", "tool_name": name, "tool_call_id": id})
        }
        "task" => json!({
            "kind": "subagent",
            "description": argument("description"),
            "subagent_type": argument("subagent_type"),
            "tool_call_id": id,
        }),
        "web_search" | "image_search" => json!({
            "kind": "search", "tool_name": name, "query": argument("query"), "tool_call_id": id,
        }),
        "present_files" => json!({"kind": "present_files", "tool_call_id": id}),
        "ask_clarification" => json!({"kind": "clarification", "tool_call_id": id}),
        name => json!({
            "kind": "tool", "tool_name": name, "description": argument("description"), "tool_call_id": id,
        }),
    };
    vec![action]
}

/// Text without blanks around it; `None` when nothing is left.
fn stripped(text: &str) -> Option<&str> {
    let text = text.trim_matches(crate::state::python::is_space);
    (!text.is_empty()).then_some(text)
}

/// A plan, as far as it can be read: what to do, if it says so, and how far it is.
struct Plan(Vec<(Option<String>, Option<String>)>);

impl Plan {
    fn read(todos: Option<&Value>) -> Self {
        let known = |status: &str| matches!(status, "pending" | "in_progress" | "completed");
        let items = todos.and_then(Value::as_array).into_iter().flatten();
        let todos = items.filter_map(Value::as_object).map(|todo| {
            let text = |name: &str| todo.get(name).and_then(Value::as_str);
            let status = text("status").filter(|status| known(status));
            let content = text("content").and_then(stripped);
            (content.map(str::to_owned), status.map(str::to_owned))
        });
        Plan(todos.collect())
    }

    /// What turns this plan into `next`, in the order of `next`, then what is gone. Entries of one content are matched in
    /// order; an entry of new content is taken for a new wording of the one in its place.
    fn changes(&self, next: &Plan) -> Vec<(&'static str, String)> {
        let mut of_content: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (place, (content, _)) in self.0.iter().enumerate() {
            if let Some(content) = content {
                of_content.entry(content).or_default().push_back(place);
            }
        }
        let mut matched = vec![false; self.0.len()];
        let mut changes = Vec::new();
        for (place, (content, status)) in next.0.iter().enumerate() {
            let Some(content) = content else { continue };
            let before = match of_content.get_mut(content.as_str()) {
                Some(places) => std::iter::from_fn(|| places.pop_front()).find(|at| !matched[*at]),
                None => (matched.get(place) == Some(&false)).then_some(place),
            };
            let before = before.map(|at| {
                matched[at] = true;
                &self.0[at]
            });
            if before
                .is_some_and(|before| before.0.as_ref() == Some(content) && before.1 == *status)
            {
                continue;
            }
            let is_reworded = before.is_some_and(|before| before.0.as_ref() != Some(content));
            let kind = match status.as_deref() {
                _ if is_reworded => "todo_update",
                Some("completed") => "todo_complete",
                Some("in_progress") => "todo_start",
                _ => "todo_update",
            };
            changes.push((kind, content.clone()));
        }
        for ((content, _), matched) in self.0.iter().zip(matched) {
            if let (Some(content), false) = (content, matched) {
                changes.push(("todo_remove", content.clone()));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::reply::tests::{call, reply};
    use crate::middleware::stage::{Stage, run_as};

    fn guard() -> TokenUsage {
        TokenUsage::new(&TokenUsageConfig::default())
    }

    fn result(id: &str, kwargs: Value) -> Message {
        let mut fields = Fields::new(Kind::Tool, "result");
        fields.id = Some(format!("t-{id}"));
        fields.tool_call_id = id.to_owned();
        fields.additional_kwargs = kwargs.as_object().cloned().unwrap_or_default();
        Message::new(fields)
    }

    fn used(input: u64, output: u64, total: u64) -> Value {
        json!({SUBAGENT_USAGE: {"input_tokens": input, "output_tokens": output, "total_tokens": total}})
    }

    fn todos(list: &[(&str, &str)]) -> Value {
        list.iter()
            .map(|(content, status)| json!({"content": content, "status": status}))
            .collect()
    }

    #[test]
    fn tku_1_what_subagents_used_is_added_to_the_reply_that_sent_them_once() {
        let mut stage = Stage::new(vec![
            reply(json!({
                "id": "sent",
                "tool_calls": [call("task", "c1"), call("task", "c2"), call("bash", "c3")],
                "usage_metadata": {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11, "input_token_details": {}},
            })),
            result("c1", used(100, 20, 120)),
            result("c2", used(1, 2, 4)),
            result("c3", json!({})),
            reply(json!({"id": "last", "content": "done"})),
        ]);
        let facts = run_as("t", "r");
        stage.after_model(&guard(), &facts);
        let sent = json!({"input_tokens": 111, "output_tokens": 23, "total_tokens": 135, "input_token_details": {}});
        assert_eq!(stage.messages()[0].fields().usage_metadata, sent);
        let marks: Vec<bool> = stage
            .messages()
            .iter()
            .map(|m| {
                m.fields()
                    .additional_kwargs
                    .contains_key(SUBAGENT_USAGE_ADDED)
            })
            .collect();
        assert_eq!(marks, [false, true, true, false, false]);
        assert_eq!(stage.after_model(&guard(), &facts), None, "nothing new");
        assert_eq!(stage.messages()[0].fields().usage_metadata, sent);
    }

    #[test]
    fn tku_1_only_three_counts_are_a_usage_and_only_results_right_before_the_reply_count() {
        for bad in [
            json!({"input_tokens": 1, "output_tokens": 2}),
            json!({"input_tokens": true, "output_tokens": 2, "total_tokens": 3}),
            json!({"input_tokens": -1, "output_tokens": 2, "total_tokens": 3}),
            json!({"input_tokens": 1.5, "output_tokens": 2, "total_tokens": 3}),
            json!("5"),
        ] {
            let mut stage = Stage::new(vec![
                reply(json!({"id": "sent", "tool_calls": [call("task", "c1")]})),
                result("c1", json!({SUBAGENT_USAGE: bad})),
                reply(json!({"id": "last", "content": "done"})),
            ]);
            stage.after_model(&guard(), &run_as("t", "r"));
            assert_eq!(stage.messages()[0].fields().usage_metadata, json!(null));
        }
        let mut stage = Stage::new(vec![
            reply(json!({"id": "sent", "tool_calls": [call("task", "c1")]})),
            result("c1", used(1, 2, 3)),
            Message::new({
                let mut fields = Fields::new(Kind::Human, "wait");
                fields.id = Some("h".to_owned());
                fields
            }),
            reply(json!({"id": "last", "content": "done"})),
        ]);
        stage.after_model(&guard(), &run_as("t", "r"));
        assert_eq!(stage.messages()[0].fields().usage_metadata, json!(null));
        // A reply without counts of its own takes them over; a result without its reply waits.
        let mut stage = Stage::new(vec![
            reply(json!({"id": "sent", "tool_calls": [call("task", "c1")]})),
            result("c1", used(1, 2, 3)),
            result("zz", used(5, 5, 5)),
            reply(json!({"id": "last", "content": "done"})),
        ]);
        stage.after_model(&guard(), &run_as("t", "r"));
        let messages = stage.messages();
        assert_eq!(
            messages[0].fields().usage_metadata,
            json!({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3})
        );
        let orphan = &messages[2].fields().additional_kwargs;
        assert!(!orphan.contains_key(SUBAGENT_USAGE_ADDED));
    }

    fn record(members: Value, plan: Option<Value>) -> Value {
        attribution(reply(members).fields(), plan.as_ref())
    }

    #[test]
    fn tku_2_every_kind_of_reply_is_told_apart() {
        let answer = json!({
            "version": 1, "kind": "final_answer", "shared_attribution": false, "tool_call_ids": [], "actions": [],
        });
        assert_eq!(record(json!({"content": "x"}), None), answer);
        assert_eq!(record(json!({}), None)["kind"], "thinking");
        let task = json!({
            "name": "task", "args": {"description": " look ", "subagent_type": 7}, "id": " c1 ", "type": "tool_call",
        });
        assert_eq!(
            record(json!({"tool_calls": [task]}), None),
            json!({
                "version": 1, "kind": "subagent_dispatch", "shared_attribution": false, "tool_call_ids": ["c1"],
                "actions": [{"kind": "subagent", "description": "look", "subagent_type": null, "tool_call_id": "c1"}],
            })
        );
        let search =
            json!({"name": "web_search", "args": {"query": "q"}, "id": "s", "type": "tool_call"});
        let batch = record(
            json!({"tool_calls": [
                search, call("present_files", "p"), call("ask_clarification", "q"), call("bash", "b"),
            ]}),
            None,
        );
        assert_eq!(batch["kind"], "tool_batch");
        assert_eq!(batch["shared_attribution"], true);
        assert_eq!(
            batch["actions"],
            json!([
                {"kind": "search", "tool_name": "web_search", "query": "q", "tool_call_id": "s"},
                {"kind": "present_files", "tool_call_id": "p"},
                {"kind": "clarification", "tool_call_id": "q"},
                {"kind": "tool", "tool_name": "bash", "description": null, "tool_call_id": "b"},
            ])
        );
        let single = record(json!({"tool_calls": [call("bash", "b")]}), None);
        assert_eq!(single["kind"], "tool_batch");
    }

    #[test]
    fn tku_2_a_new_plan_is_told_as_its_changes() {
        let changes = |before: &[(&str, &str)], after: &[(&str, &str)]| {
            let args = json!({"todos": todos(after)});
            let write =
                json!({"name": "write_todos", "args": args, "id": "w", "type": "tool_call"});
            let record = record(json!({"tool_calls": [write]}), Some(todos(before)));
            let told = record["actions"].as_array().cloned().unwrap_or_default();
            let told = told.iter().map(|action| {
                let text = |name: &str| action[name].as_str().unwrap_or("-").to_owned();
                format!("{} {}", text("kind"), text("content"))
            });
            (
                record["kind"].as_str().map(str::to_owned),
                told.collect::<Vec<_>>(),
            )
        };
        let kind = |kind: &str| Some(kind.to_owned());
        assert_eq!(
            changes(
                &[],
                &[("a", "pending"), ("b", "in_progress"), ("c", "completed")]
            ),
            (
                kind("tool_batch"),
                vec![
                    "todo_update a".into(),
                    "todo_start b".into(),
                    "todo_complete c".into()
                ]
            )
        );
        assert_eq!(
            changes(&[("a", "pending")], &[("a", "in_progress")]),
            (kind("todo_update"), vec!["todo_start a".into()])
        );
        // Another wording in the same place; then one entry less.
        assert_eq!(
            changes(&[("a", "pending"), ("b", "pending")], &[("A", "completed")]),
            (
                kind("tool_batch"),
                vec!["todo_update A".into(), "todo_remove b".into()]
            )
        );
        // Moved entries are no change.
        assert_eq!(
            changes(
                &[("a", "pending"), ("b", "pending")],
                &[("b", "pending"), ("a", "pending")]
            ),
            (kind("tool_batch"), vec!["tool -".into()])
        );
        // Of two equal entries one is gone.
        assert_eq!(
            changes(&[("a", "pending"), ("a", "pending")], &[("a", "pending")]),
            (kind("todo_update"), vec!["todo_remove a".into()])
        );
    }

    #[test]
    fn tku_2_a_second_plan_in_one_reply_is_compared_with_the_first() {
        let write = |id: &str, status: &str| json!({"name": "write_todos", "args": {"todos": todos(&[("a", status)])}, "id": id, "type": "tool_call"});
        let record = record(
            json!({"tool_calls": [write("1", "in_progress"), write("2", "completed")]}),
            Some(json!("no list")),
        );
        assert_eq!(
            record["actions"],
            json!([
                {"kind": "todo_start", "content": "a", "tool_call_id": "1"},
                {"kind": "todo_complete", "content": "a", "tool_call_id": "2"},
            ])
        );
    }
}

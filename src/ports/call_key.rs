//! What host calls about a tool call are recognised by when they come again: the stem of their idempotency keys.
//!
//! The call of a run is stored before it is made, so that message and call name it for good. A subagent stores nothing: when the
//! `task` call is made again it begins anew, its messages have new ids, and its model may ask for something else. What it asks for
//! is recognised by the `task` call, by the tool and its arguments, and by how often this execution has asked for the same; so
//! that one piece of work that is done again asks with the keys that it had, and another question never has the key of an
//! earlier one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::tool::ToolInvocation;
use crate::protocol::canonical_json::members_hash;

/// Digits of the hash of arguments in a key.
const HASH_DIGITS: usize = 32;

/// The calls of one execution of a subagent that the host was asked about.
#[derive(Debug, Default)]
pub struct AskedCalls(Mutex<Asked>);

#[derive(Debug, Default)]
struct Asked {
    /// The message whose calls are being made. Those of the one before have their answers.
    message_id: Arc<str>,
    /// The end of the key of each of its calls.
    ends: HashMap<String, Arc<str>>,
    /// How many calls there were of a tool with the same arguments.
    times: HashMap<String, u64>,
}

impl AskedCalls {
    /// The end of a call's key: the same each time that it is asked for, whoever asks.
    fn end(&self, call: &ToolInvocation) -> Arc<str> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.message_id != call.message_id {
            asked.message_id = call.message_id.clone();
            asked.ends.clear();
        }
        if let Some(end) = asked.ends.get(&call.call_id) {
            return end.clone();
        }
        let hash = members_hash(&call.args);
        let what = format!("{}/{}", call.name, &hash[..HASH_DIGITS]);
        let times = asked.times.entry(what.clone()).or_default();
        *times += 1;
        let end: Arc<str> = format!("{what}/{times}").into();
        asked.ends.insert(call.call_id.clone(), end.clone());
        end
    }
}

/// The stem of the idempotency keys of all that the host is asked about a tool call, unique within the thread:
///
/// - `THREAD/MESSAGE/CALL` for a call of a run. Call ids come back in later turns, so the message is part of it; the run is
///   not, since a later run may ask again for what an earlier one did not live to store.
/// - `THREAD/MESSAGE/TASK_CALL/TOOL/ARGS/N` for one of a subagent: message and call are those of the agent that delegates, `ARGS`
///   stands for the arguments, `N` counts equal calls of the execution from 1.
pub fn call_key(call: &ToolInvocation) -> String {
    let thread = &call.run.thread_id;
    match &call.run.facts.subagent {
        None => format!("{thread}/{}/{}", call.message_id, call.call_id),
        Some(subagent) => format!(
            "{thread}/{}/{}/{}",
            subagent.message_id,
            subagent.task_id,
            subagent.asked.end(call)
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::ports::BoxFuture;
    use crate::ports::delegate::SubagentRun;
    use crate::ports::host::{HostCall, HostCallHandle, HostCalls, RunContext, RunFacts};
    use crate::protocol::error::{Error, ErrorCode};
    use crate::protocol::time::Timestamp;
    use crate::state::reads::ChannelReads;

    /// A host that is not there.
    struct NoHost;

    impl HostCalls for NoHost {
        fn open(&self, _: HostCall) -> Result<Box<dyn HostCallHandle>, Error> {
            Err(Error::new(ErrorCode::Closed, "there is no host"))
        }
        fn emit_custom(&self, _: &str, _: Value) -> Option<BoxFuture<'static, ()>> {
            None
        }
        fn now(&self) -> Timestamp {
            Timestamp::default()
        }
    }

    /// An execution of the `task` call `c` of a message.
    fn execution(message: &str) -> RunFacts {
        RunFacts {
            thread_id: "t".into(),
            run_id: "r".into(),
            subagent: Some(Arc::new(SubagentRun {
                execution_id: "e".into(),
                message_id: message.into(),
                task_id: "c".into(),
                name: "general-purpose".into(),
                asked: AskedCalls::default(),
            })),
            ..RunFacts::default()
        }
    }

    /// The keys of calls of one execution: message, call id, tool, arguments.
    fn keys(facts: RunFacts, calls: &[(&str, &str, &str, Value)]) -> Vec<String> {
        let run = Arc::new(RunContext {
            run_id: facts.run_id.clone(),
            thread_id: facts.thread_id.clone(),
            facts: Arc::new(facts),
            host: Arc::new(NoHost),
        });
        let of = |(message, id, name, args): &(&str, &str, &str, Value)| ToolInvocation {
            message_id: (*message).into(),
            call_id: (*id).to_owned(),
            name: (*name).to_owned(),
            args: args.as_object().cloned().unwrap_or_default(),
            reads: ChannelReads::default(),
            run: run.clone(),
        };
        calls.iter().map(|one| call_key(&of(one))).collect()
    }

    #[test]
    fn a_call_of_a_run_is_named_by_its_message() {
        let facts = RunFacts {
            thread_id: "t".into(),
            run_id: "r".into(),
            ..RunFacts::default()
        };
        let asked = [("m", "c1", "look", json!({"of": 1}))];
        assert_eq!(keys(facts, &asked), ["t/m/c1"]);
    }

    #[test]
    fn an_execution_that_begins_anew_asks_with_the_keys_it_had() {
        let first = [
            ("m1", "a", "look", json!({"of": "it", "how": 1})),
            ("m2", "b", "look", json!({"of": "it", "how": 1})),
            ("m3", "c", "look", json!({"of": "more"})),
        ];
        // New messages, new call ids, members in another order.
        let again = [
            ("n1", "x", "look", json!({"how": 1, "of": "it"})),
            ("n2", "y", "look", json!({"of": "it", "how": 1})),
            ("n3", "z", "look", json!({"of": "more"})),
        ];
        let first = keys(execution("m"), &first);
        assert_eq!(first, keys(execution("m"), &again));
        let hash = members_hash(json!({"how": 1, "of": "it"}).as_object().expect("members"));
        assert_eq!(first[0], format!("t/m/c/look/{}/1", &hash[..32]));
        assert_eq!(first[1], format!("t/m/c/look/{}/2", &hash[..32]));
    }

    #[test]
    fn what_is_another_question_has_another_key() {
        let asked = [
            ("m1", "c0", "look", json!({"of": 1})),
            // The same id in the same place, as models that count their calls give it, for something else.
            ("m2", "c0", "look", json!({"of": 2})),
            ("m2", "c1", "take", json!({"of": 2})),
            ("m2", "c2", "look", json!({"of": 1})),
        ];
        let mut all = keys(execution("m"), &asked);
        // The same `task` call id in another turn of the agent.
        all.extend(keys(execution("m'"), &asked));
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), 8, "{all:#?}");
    }

    #[test]
    fn one_call_has_one_key_whoever_asks_about_it_and_however_often() {
        let same = ("m1", "c0", "look", json!({"of": 1}));
        // What is asked once the arguments were completed is still about that call.
        let completed = ("m1", "c0", "look", json!({"of": 1, "how": "default"}));
        let all = keys(execution("m"), &[same.clone(), completed, same]);
        assert_eq!(all[0], all[1]);
        assert_eq!(all[0], all[2]);
    }
}

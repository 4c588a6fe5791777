//! The rules of channels and reducers by their names, as a reader of the contract would check them.

use std::time::Instant;

use fawn::protocol::error::{Error, ErrorCode};
use fawn::state::channels::Channel;
use fawn::state::reducers::{MAX_DELEGATIONS, REDUCERS, reduce};
use fawn::state::update::{StateUpdate, Write};
use fawn::state::values::{ChannelOverlay, ChannelValues};
use serde_json::{Value, json};

/// A thread's channels, written one step at a time.
#[derive(Default)]
struct Thread {
    values: ChannelValues,
    overlay: ChannelOverlay,
}

impl Thread {
    /// One step of several updates, each `{channel: value}` as a host would write it.
    fn step<const N: usize>(&mut self, updates: [Value; N]) -> Result<(), Error> {
        let updates: Vec<StateUpdate> = updates
            .into_iter()
            .enumerate()
            .map(|(place, update)| {
                let update = StateUpdate::decode(update).unwrap();
                update.written_by(format!("call_{}", place + 1))
            })
            .collect();
        let step: Vec<_> = updates.iter().flat_map(StateUpdate::entries).collect();
        self.values.stage(&mut self.overlay, &step)
    }

    fn read(&self, name: &str) -> Option<Value> {
        let channel = Channel::from_name(name).unwrap();
        self.values.get(&self.overlay, channel).cloned()
    }

    fn everything(&self) -> String {
        let all: Vec<_> = self.values.iter(&self.overlay).collect();
        format!("{all:?}")
    }
}

fn stepped<const N: usize>(updates: [Value; N]) -> Thread {
    let mut thread = Thread::default();
    thread.step(updates).unwrap();
    thread
}

#[test]
fn m11_parallel_calls_merge_where_there_is_a_rule_and_the_last_plan_in_call_order_wins() {
    let thread = stepped([
        json!({"todos": ["a"], "artifacts": ["/1", "/2"]}),
        json!({"todos": ["b"], "artifacts": ["/2", "/3"]}),
        json!({"todos": ["c"], "artifacts": ["/1", "/4"]}),
    ]);
    assert_eq!(thread.read("todos"), Some(json!(["c"])));
    let artifacts = json!(["/1", "/2", "/3", "/4"]);
    assert_eq!(thread.read("artifacts"), Some(artifacts));
}

#[test]
fn m11_lg2_two_titles_in_one_step_are_an_error_that_names_channel_and_writers() {
    let mut thread = stepped([json!({"title": "old", "artifacts": ["/1"], "jump_to": "model"})]);
    let before = thread.everything();
    let error = thread
        .step([
            json!({"artifacts": ["/2"], "title": "a"}),
            json!({"todos": []}),
            json!({"title": "a"}),
        ])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ConflictingWrites);
    assert_eq!(error.path.as_deref(), Some("/title"));
    for named in ["\"title\"", "call_1", "call_3"] {
        assert!(error.message.contains(named), "{}", error.message);
    }
    assert_eq!(thread.everything(), before);
}

#[test]
fn lg2_every_last_value_channel_takes_one_write_per_step_and_keeps_it_when_none_comes() {
    for name in [
        "structured_response",
        "thread_data",
        "title",
        "uploaded_files",
        "summary_text",
        "background_tasks",
    ] {
        let mut thread = Thread::default();
        assert_eq!(thread.read(name), None, "{name}");
        thread.step([json!({name: null})]).unwrap();
        assert_eq!(thread.read(name), Some(Value::Null), "{name}");
        thread.step([json!({name: {"a": 1}})]).unwrap();
        thread.step([]).unwrap();
        assert_eq!(thread.read(name), Some(json!({"a": 1})), "{name}");
        let error = thread
            .step([json!({name: 1}), json!({name: 2})])
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::ConflictingWrites, "{name}");
    }
}

#[test]
fn lg19_an_ephemeral_value_lasts_one_step() {
    let mut thread = stepped([json!({"jump_to": "end"})]);
    assert_eq!(thread.read("jump_to"), Some(json!("end")));
    thread.step([json!({"jump_to": "model"})]).unwrap();
    assert_eq!(thread.read("jump_to"), Some(json!("model")));
    thread.step([json!({"title": "t"})]).unwrap();
    assert_eq!(thread.read("jump_to"), None);
    let error = thread
        .step([json!({"jump_to": 1}), json!({"jump_to": 2})])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ConflictingWrites);

    // Also when it was committed, and then the change says that it is gone.
    let mut thread = stepped([json!({"jump_to": "end"})]);
    thread.values.commit(std::mem::take(&mut thread.overlay));
    thread.step([]).unwrap();
    let changes = thread.values.changes(&thread.overlay);
    assert_eq!(changes, [(Channel::JumpTo, None)]);
}

#[test]
fn lg4_lg9_a_missing_channel_stores_its_first_write_as_it_is() {
    let first = json!({"catalog_hash": "h", "names": ["a", "a"], "extra": 1});
    let mut thread = stepped([json!({"promoted": first})]);
    assert_eq!(thread.read("promoted"), Some(first));
    let more = json!({"promoted": {"catalog_hash": "h", "names": ["b"]}});
    thread.step([more]).unwrap();
    let names = json!({"catalog_hash": "h", "names": ["a", "b"]});
    assert_eq!(thread.read("promoted"), Some(names));

    // Nothing is checked either.
    let thread = stepped([json!({"sandbox": 5, "promoted": "x"})]);
    assert_eq!(thread.read("sandbox"), Some(json!(5)));
    assert_eq!(thread.read("promoted"), Some(json!("x")));
}

#[test]
fn lg4_of_several_first_writes_the_first_is_the_seed_and_the_rest_are_reduced() {
    let thread = stepped([
        json!({"promoted": {"catalog_hash": "h", "names": ["a", "a"]}}),
        json!({"promoted": null}),
        json!({"promoted": {"catalog_hash": "h", "names": ["c"]}}),
    ]);
    let names = json!({"catalog_hash": "h", "names": ["a", "c"]});
    assert_eq!(thread.read("promoted"), Some(names));
}

#[test]
fn st2_a_first_write_of_null_stores_null() {
    for name in ["sandbox", "todos", "goal", "promoted"] {
        let mut thread = Thread::default();
        thread.step([json!({"title": "t"})]).unwrap();
        assert_eq!(thread.read(name), None);
        thread.step([json!({name: null})]).unwrap();
        assert_eq!(thread.read(name), Some(Value::Null), "{name}");
        let changes = thread.values.changes(&thread.overlay);
        assert!(changes.contains(&(Channel::from_name(name).unwrap(), Some(Value::Null))));
    }
}

#[test]
fn st1_reduced_channels_start_empty_so_that_their_first_write_is_reduced() {
    let thread = stepped([json!({
        "artifacts": ["a", "a"],
        "skill_context": [{"path": "/p", "more": 1}],
        "delegations": [{"id": "a"}],
    })]);
    assert_eq!(thread.read("artifacts"), Some(json!(["a"])));
    let skill = json!([{"name": "", "path": "/p", "description": "", "loaded_at": 0}]);
    assert_eq!(thread.read("skill_context"), Some(skill));
    assert_eq!(thread.read("delegations"), Some(json!([{"id": "a"}])));
    assert_eq!(thread.read("viewed_images"), Some(json!({})));
}

#[test]
fn lg5_st4_an_overwrite_replaces_the_value_of_every_channel_with_a_reducer() {
    for (channel, _) in REDUCERS {
        let name = channel.name();
        for marker in [
            json!({"__overwrite__": [1, 1]}),
            json!({"type": "__overwrite__", "value": [1, 1]}),
        ] {
            // No reducer but those that replace would make [1, 1] of these.
            let mut thread = stepped([json!({name: null})]);
            thread.step([json!({name: marker})]).unwrap();
            assert_eq!(thread.read(name), Some(json!([1, 1])), "{name}");
        }
    }
}

#[test]
fn lg6_plain_writes_after_an_overwrite_are_ignored_and_those_before_it_are_lost() {
    let mut thread = stepped([json!({"artifacts": ["a"]})]);
    thread
        .step([
            json!({"artifacts": ["b"]}),
            json!({"artifacts": {"__overwrite__": ["c", "c"]}}),
            json!({"artifacts": ["d"]}),
        ])
        .unwrap();
    assert_eq!(thread.read("artifacts"), Some(json!(["c", "c"])));
    // The next step reduces again.
    thread.step([json!({"artifacts": ["d"]})]).unwrap();
    assert_eq!(thread.read("artifacts"), Some(json!(["c", "d"])));
}

#[test]
fn lg6_a_plain_write_before_an_overwrite_is_still_folded_and_may_fail() {
    let mut thread = stepped([json!({"sandbox": {"sandbox_id": "a"}})]);
    let error = thread
        .step([
            json!({"sandbox": {"sandbox_id": "b"}}),
            json!({"sandbox": {"__overwrite__": null}}),
        ])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::SandboxConflict);
    // After the overwrite it is not looked at.
    thread
        .step([
            json!({"sandbox": {"__overwrite__": {"sandbox_id": "c"}}}),
            json!({"sandbox": {"sandbox_id": "b"}}),
        ])
        .unwrap();
    assert_eq!(thread.read("sandbox"), Some(json!({"sandbox_id": "c"})));
}

#[test]
fn lg6_lg13_a_second_overwrite_in_one_step_is_an_error() {
    for name in ["todos", "artifacts"] {
        let mut thread = Thread::default();
        let before = thread.everything();
        let error = thread
            .step([
                json!({"title": "t", name: {"__overwrite__": [1]}}),
                json!({name: [2]}),
                json!({name: {"type": "__overwrite__", "value": [3]}}),
            ])
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::ConflictingWrites);
        assert_eq!(error.path, Some(format!("/{name}")));
        assert!(
            error.message.contains("call_1 and call_3"),
            "{}",
            error.message
        );
        assert_eq!(thread.everything(), before);
    }
}

#[test]
fn m14_lg8_a_first_write_that_is_an_overwrite_is_unwrapped() {
    let marker = json!({"type": "__overwrite__", "value": [1]});
    let thread = stepped([json!({"todos": marker}), json!({"todos": [2]})]);
    assert_eq!(thread.read("todos"), Some(json!([1])));
    let thread = stepped([json!({"goal": {"__overwrite__": null}})]);
    assert_eq!(thread.read("goal"), Some(Value::Null));
}

#[test]
fn st5_one_sandbox_per_thread() {
    let mut thread = stepped([
        json!({"sandbox": {"sandbox_id": "a", "note": 1}}),
        json!({"sandbox": {"sandbox_id": "a", "note": 2}}),
    ]);
    let held = Some(json!({"sandbox_id": "a", "note": 1}));
    assert_eq!(thread.read("sandbox"), held);
    thread.step([json!({"sandbox": null})]).unwrap();
    assert_eq!(thread.read("sandbox"), held);
    let error = thread
        .step([json!({"sandbox": {"sandbox_id": "b"}})])
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::SandboxConflict);
    assert_eq!(error.path.as_deref(), Some("/sandbox/sandbox_id"));
    for named in ["\"a\"", "\"b\"", "call_1"] {
        assert!(error.message.contains(named), "{}", error.message);
    }
    assert_eq!(thread.read("sandbox"), held);
}

#[test]
fn st6_artifacts_are_an_ordered_union_and_nothing_clears_them() {
    let mut thread = stepped([json!({"artifacts": ["b", "a"]})]);
    for update in [json!(["a", "c", "c"]), json!([]), Value::Null] {
        thread.step([json!({"artifacts": update})]).unwrap();
    }
    assert_eq!(thread.read("artifacts"), Some(json!(["b", "a", "c"])));
}

#[test]
fn st7_a_plan_is_replaced_also_by_an_empty_one_and_null_keeps_it() {
    let mut thread = stepped([json!({"todos": [{"content": "x"}]})]);
    thread.step([json!({"todos": null})]).unwrap();
    assert_eq!(thread.read("todos"), Some(json!([{"content": "x"}])));
    thread.step([json!({"todos": []})]).unwrap();
    assert_eq!(thread.read("todos"), Some(json!([])));
}

#[test]
fn st8_no_ordinary_write_clears_a_goal_and_clear_removes_it() {
    let goal = json!({"objective": "x", "status": "active"});
    let mut thread = stepped([json!({"goal": goal})]);
    thread.values.commit(std::mem::take(&mut thread.overlay));
    thread.step([json!({"goal": null})]).unwrap();
    assert_eq!(thread.read("goal"), Some(goal));
    assert!(thread.overlay.is_empty());

    thread.values.clear(&mut thread.overlay, Channel::Goal);
    assert_eq!(thread.read("goal"), None);
    let changes = thread.values.changes(&thread.overlay);
    assert_eq!(changes, [(Channel::Goal, None)]);
    thread.values.commit(std::mem::take(&mut thread.overlay));
    assert_eq!(thread.read("goal"), None);
    // The next goal is a first write again.
    thread.step([json!({"goal": 0})]).unwrap();
    assert_eq!(thread.read("goal"), Some(json!(0)));
}

#[test]
fn st9_m17_an_empty_write_clears_the_viewed_images_and_null_keeps_them() {
    let mut thread = stepped([json!({"viewed_images": {"/b": {"size": 1}, "/a": {"size": 2}}})]);
    let update = json!({"/c": {"size": 3}, "/b": {"mime_type": "image/png"}});
    thread.step([json!({"viewed_images": update})]).unwrap();
    thread.step([json!({"viewed_images": null})]).unwrap();
    let expected = r#"{"/b":{"mime_type":"image/png"},"/a":{"size":2},"/c":{"size":3}}"#;
    assert_eq!(thread.read("viewed_images").unwrap().to_string(), expected);
    thread.step([json!({"viewed_images": {}})]).unwrap();
    assert_eq!(thread.read("viewed_images"), Some(json!({})));
}

#[test]
fn st10_another_catalog_starts_over() {
    let merge = |new: Value| {
        let held = json!({"catalog_hash": "h", "names": ["b", "a"], "extra": 1});
        reduce(Channel::Promoted, held, new)
    };
    let same = json!({"catalog_hash": "h", "names": ["a", "c"]});
    let expected = json!({"catalog_hash": "h", "names": ["b", "a", "c"]});
    assert_eq!(merge(same), Ok(expected));
    let other = json!({"catalog_hash": "i", "names": ["a", "a"]});
    assert_eq!(
        merge(other),
        Ok(json!({"catalog_hash": "i", "names": ["a"]}))
    );
    let error = merge(json!({"names": []})).unwrap_err();
    assert_eq!(error.code, ErrorCode::EntryMember);
    assert_eq!(error.path.as_deref(), Some("/catalog_hash"));
}

fn ledger(existing: Value, new: Value) -> Value {
    reduce(Channel::Delegations, existing, new).unwrap()
}

#[test]
fn st13_m16_a_terminal_entry_stays_when_a_running_one_arrives() {
    let done = json!([{"id": "1", "status": "completed", "result_brief": "R"}]);
    let running = json!([{"id": "1", "status": "in_progress"}]);
    assert_eq!(ledger(done.clone(), running), done);
    let failed = json!([{"id": "1", "status": "failed"}]);
    assert_eq!(ledger(failed, done.clone()), done);
}

#[test]
fn st13_m16_created_at_and_run_id_of_the_first_entry_stay() {
    let first = json!({"id": "1", "status": "in_progress", "run_id": "r1", "created_at": "t0"});
    let last = json!({"id": "1", "status": "completed", "created_at": "t9"});
    let expected = json!({"id": "1", "status": "completed", "created_at": "t0", "run_id": "r1"});
    assert_eq!(ledger(json!([first]), json!([last])), json!([expected]));

    // Without a created_at nothing is inherited.
    let first = json!({"id": "1", "status": "in_progress", "run_id": "r1"});
    assert_eq!(ledger(json!([first]), json!([last])), json!([last]));
}

#[test]
fn st13_an_entry_with_a_run_never_joins_one_without() {
    let legacy = json!({"id": "1", "status": "completed"});
    let scoped = json!({"id": "1", "status": "in_progress", "run_id": "r1"});
    let both = json!([legacy, scoped]);
    assert_eq!(ledger(json!([legacy]), json!([scoped])), both);
    // One without a run joins the run that came last.
    let update = json!([{"id": "1", "status": "failed"}]);
    assert_eq!(ledger(both, update)[1]["status"], "failed");
}

#[test]
fn st13_m16_the_last_fifty_entries_stay_by_first_appearance() {
    let entry = |id: usize, status: &str| json!({"id": id.to_string(), "status": status});
    let full: Value = (0..MAX_DELEGATIONS).map(|id| entry(id, "x")).collect();
    let result = ledger(full.clone(), json!([entry(0, "completed"), entry(50, "x")]));
    assert_eq!(result.as_array().unwrap().len(), MAX_DELEGATIONS);
    // Updating the oldest does not save it.
    assert_eq!(result[0], entry(1, "x"));
    assert_eq!(result[49], entry(50, "x"));
    // A write that counts as false caps nothing.
    let over: Value = (0..60).map(|id| entry(id, "x")).collect();
    assert_eq!(ledger(over.clone(), json!([])), over);
}

#[test]
fn st12_st13_an_entry_without_what_is_compared_is_refused_with_its_place() {
    let error = |existing, new| reduce(Channel::Delegations, existing, new).unwrap_err();
    let done = json!([{"id": "a", "status": "completed"}]);
    let fault = error(done.clone(), json!([{"id": "b"}, {"status": "x"}]));
    assert_eq!(fault.code, ErrorCode::EntryMember);
    assert_eq!(fault.path.as_deref(), Some("/1/id"));
    let fault = error(done.clone(), json!([{"id": "a"}]));
    assert_eq!(fault.path.as_deref(), Some("/0/status"));
    // What is compared is the entry that was stored last, here one of the same write.
    let running = json!([{"id": "a", "status": "x"}]);
    let fault = error(running, json!([{"id": "a"}, {"id": "a", "status": "x"}]));
    assert_eq!(fault.path.as_deref(), Some("/0/status"));
    let fault = error(done, json!([5]));
    assert_eq!(fault.code, ErrorCode::EntryType);
    assert_eq!(fault.path.as_deref(), Some("/0"));
    // A new entry without a status is stored: nobody compares it yet.
    assert_eq!(
        ledger(json!([]), json!([{"id": "a"}])),
        json!([{"id": "a"}])
    );
}

#[test]
fn st14_a_skill_that_is_read_again_moves_to_the_end_and_eight_stay() {
    let skill = |path: usize| json!({"name": "n", "path": path.to_string(), "description": "d", "loaded_at": path});
    let held: Value = (0..8).map(skill).collect();
    let merge = |new: Value| reduce(Channel::SkillContext, held.clone(), new).unwrap();
    let result = merge(json!([skill(0), skill(8), skill(0)]));
    let expected: Value = [2, 3, 4, 5, 6, 7, 8, 0].into_iter().map(skill).collect();
    assert_eq!(result, expected);
}

#[test]
fn st14_entries_are_normalised() {
    let description = format!(" a\u{1c}b \n{}", "é".repeat(600));
    let entry = json!({
        "extra": 1, "loaded_at": 3.0, "description": description, "path": null, "name": 5,
    });
    let expected = json!([{
        "name": "5", "path": "None", "description": format!("a b {}", "é".repeat(496)),
        "loaded_at": 0,
    }]);
    let result = reduce(Channel::SkillContext, json!([entry]), Value::Null);
    assert_eq!(result.unwrap().to_string(), expected.to_string());
}

#[test]
fn an_overwritten_write_and_a_typed_one_mean_the_same() {
    let mut values = ChannelValues::new();
    let mut overlay = ChannelOverlay::default();
    let update = StateUpdate::overwrite(Channel::Todos, json!([1]))
        .and(Channel::Title, Write::Overwrite(json!("t")))
        .and(Channel::Goal, Write::Value(json!({"objective": "x"})));
    let step: Vec<_> = update.entries().collect();
    values.stage(&mut overlay, &step).unwrap();
    values.commit(overlay);
    let committed: Vec<_> = values
        .iter(&ChannelOverlay::default())
        .filter(|(_, value)| !matches!(value.to_string().as_str(), "[]" | "{}"))
        .map(|(channel, value)| (channel, value.clone()))
        .collect();
    assert_eq!(
        committed,
        [
            (Channel::Title, json!("t")),
            (Channel::Todos, json!([1])),
            (Channel::Goal, json!({"objective": "x"})),
        ]
    );
}

#[test]
fn messages_cannot_be_staged_as_values() {
    let mut thread = Thread::default();
    let error = thread.step([json!({"messages": []})]).unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal);
    let write = Write::Messages(Vec::new());
    for channel in [Channel::Title, Channel::Todos] {
        let step = [(channel, &write, None)];
        let error = thread.values.stage(&mut thread.overlay, &step).unwrap_err();
        assert_eq!(error.code, ErrorCode::EntryType);
    }
    assert!(thread.overlay.is_empty());
}

#[test]
fn reducers_take_time_linear_in_their_input() {
    const SIZE: usize = 80_000;
    let paths: Value = (0..SIZE).map(|n| json!(n.to_string())).collect();
    let entries: Value = (0..SIZE)
        .map(|n| json!({"id": n.to_string(), "path": n.to_string(), "status": "x"}))
        .collect();
    let promotion = json!({"catalog_hash": "h", "names": paths.clone()});
    for (channel, existing, update) in [
        (Channel::Artifacts, json!([]), &paths),
        (Channel::Promoted, Value::Null, &promotion),
        (Channel::Delegations, json!([]), &entries),
        (Channel::SkillContext, json!([]), &entries),
    ] {
        // Writing the update as text is the yardstick: linear, and measured under the same load. The reducers take 2
        // to 6 times as long; with a nested scan it is hundreds of times.
        let ratio = (0..5)
            .map(|_| {
                let start = Instant::now();
                let text = update.to_string();
                let yardstick = start.elapsed();
                let (existing, update) = (existing.clone(), update.clone());
                let start = Instant::now();
                reduce(channel, existing, update).unwrap();
                let taken = start.elapsed();
                assert!(!text.is_empty());
                taken.as_secs_f64() / yardstick.as_secs_f64()
            })
            .fold(f64::INFINITY, f64::min);
        assert!(ratio < 30.0, "{channel:?}: {ratio:.1}");
    }
}

//! Rules of a resident thread that no golden case names.

use fawn::protocol::error::ErrorCode;
use fawn::protocol::message::Message;
use fawn::state::channels::Channel;
use fawn::state::delta::{Replay, StoredState};
use fawn::state::ids::{IdSource, SequentialIds};
use fawn::state::thread::{Overlay, Selection, ThreadState};
use fawn::state::update::{StateUpdate, Write};
use serde_json::{Value, json};

struct Thread {
    state: ThreadState,
    overlay: Overlay,
    ids: SequentialIds,
}

impl Thread {
    fn new() -> Self {
        Thread {
            state: ThreadState::new(),
            overlay: Overlay::new(),
            ids: SequentialIds::default(),
        }
    }

    fn stage(&mut self, step: &[StateUpdate]) -> Result<(), fawn::protocol::error::Error> {
        self.state.stage(&mut self.overlay, step, &mut self.ids)
    }

    fn write(&mut self, value: Value) {
        self.stage(&[StateUpdate::set(Channel::Messages, value)])
            .unwrap();
    }

    fn commit(&mut self) {
        self.state.commit(std::mem::take(&mut self.overlay));
    }

    fn contents(&self) -> Vec<String> {
        self.state
            .view(&self.overlay)
            .messages()
            .map(Message::text)
            .collect()
    }

    fn json(&self, selection: &Selection) -> Value {
        let mut out = String::new();
        self.state
            .view(&self.overlay)
            .write_json(&mut out, selection);
        serde_json::from_str(&out).unwrap()
    }
}

fn human(id: &str, content: &str) -> Value {
    json!({"role": "user", "content": content, "id": id})
}

fn remove(id: &str) -> Value {
    json!({"role": "remove", "content": "", "id": id})
}

#[test]
fn an_overwrite_makes_all_other_writes_of_the_step_void_lg_13() {
    let mut thread = Thread::new();
    thread.write(json!([human("a", "1")]));
    let write = |value| StateUpdate::set(Channel::Messages, value);
    let over = |value| StateUpdate::overwrite(Channel::Messages, value);
    // Not even null writes and unknown removals among them matter.
    thread
        .stage(&[
            write(json!(null)),
            over(json!([human("z", "z"), "new"])),
            write(json!([remove("nope")])),
        ])
        .unwrap();
    assert_eq!(thread.contents(), ["z", "new"]);
    assert_eq!(thread.ids.mark(), 2);
    let error = thread
        .stage(&[over(json!([])), write(json!(["x"])), over(json!([]))])
        .unwrap_err();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::ConflictingWrites, Some("/2/messages"))
    );
    assert_eq!(thread.contents(), ["z", "new"]);
    thread.stage(&[over(json!(null))]).unwrap();
    assert!(thread.contents().is_empty());
    thread.commit();
    assert_eq!(thread.json(&Selection::default())["messages"], json!([]));
}

#[test]
fn every_step_sees_the_one_before_and_nothing_is_committed_ex_3() {
    let mut thread = Thread::new();
    thread.write(json!([human("a", "1")]));
    thread.write(json!([human("a", "2"), human("b", "3")]));
    thread.write(json!([remove("a")]));
    assert_eq!(thread.contents(), ["3"]);
    assert!(thread.state.view(&Overlay::new()).is_empty());
    thread.write(json!([remove("b")]));
    assert!(thread.state.delta(&thread.overlay).messages.is_empty());
}

#[test]
fn errors_say_which_update_which_channel_and_where() {
    let mut thread = Thread::new();
    let step = [
        StateUpdate::set(Channel::Title, "t"),
        StateUpdate::set(
            Channel::Messages,
            json!(["fine", {"role": "user", "content": 5}]),
        ),
    ];
    assert_eq!(
        thread.stage(&step).unwrap_err().path.as_deref(),
        Some("/1/messages/1/content")
    );
    let step = [StateUpdate::set(Channel::Messages, remove("nope"))];
    let error = thread.stage(&step).unwrap_err();
    assert_eq!(error.path.as_deref(), Some("/0/messages"));
    assert_eq!(
        error.message,
        "Attempting to delete a message with an ID that doesn't exist ('nope')"
    );
    let step = [
        StateUpdate::set(Channel::Messages, "x"),
        StateUpdate::set(Channel::Title, 1),
        StateUpdate::set(Channel::Title, 2),
    ];
    let error = thread.stage(&step).unwrap_err();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::ConflictingWrites, Some("/2/title"))
    );
    assert!(thread.overlay.is_empty());
    assert_eq!(thread.ids.mark(), 1);
}

#[test]
fn a_selection_names_channels_and_the_last_messages() {
    let mut thread = Thread::new();
    thread.write(json!([human("a", "1"), human("b", "2"), human("c", "3")]));
    thread
        .stage(&[
            StateUpdate::set(Channel::Title, "t").and(Channel::Goal, Write::Value(json!(null)))
        ])
        .unwrap();
    thread.commit();
    let pick = |channels: &[Channel], last| Selection {
        channels: Some(channels.to_vec()),
        last_messages: last,
    };
    assert_eq!(
        thread.json(&pick(&[Channel::Title], None)),
        json!({"title": "t"})
    );
    let last = thread.json(&pick(
        &[Channel::Goal, Channel::Messages, Channel::Todos],
        Some(1),
    ));
    assert_eq!(last["messages"][0]["id"], "c");
    assert_eq!(last["messages"].as_array().unwrap().len(), 1);
    // A null that was written is a value; a channel that was never written is missing.
    assert_eq!(last.get("goal"), Some(&Value::Null));
    assert_eq!(last.get("todos"), None);
    assert_eq!(
        thread.json(&pick(&[Channel::Messages], Some(0))),
        json!({"messages": []})
    );
}

#[test]
fn pending_changes_are_refused_by_a_state_that_went_on() {
    let mut thread = Thread::new();
    let mut late = Overlay::new();
    let write = [StateUpdate::set(Channel::Messages, "x")];
    thread
        .state
        .stage(&mut late, &write, &mut thread.ids)
        .unwrap();
    thread.write(json!("y"));
    thread.commit();
    let error = thread
        .state
        .stage(&mut late, &write, &mut thread.ids)
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal);
}

#[test]
fn long_lives_of_adding_and_removing_read_the_same_and_replay() {
    let mut thread = Thread::new();
    let mut replay = Replay::from_base(StoredState::default());
    for round in 0..3_000_u32 {
        thread.write(json!([human(&format!("m{round}"), &round.to_string())]));
        if round >= 10 {
            // The oldest, the newest but one, or something replaced in between.
            let kept: Vec<String> = thread
                .state
                .view(&thread.overlay)
                .messages()
                .map(|m| m.id().unwrap().to_owned())
                .collect();
            match round % 3 {
                0 => thread.write(json!([remove(&kept[0])])),
                1 => thread.write(json!([remove(&kept[kept.len() - 2])])),
                _ => thread.write(json!([human(&kept[3], "replaced"), remove(&kept[1])])),
            }
        }
        if round % 5 == 0 {
            replay.apply(thread.state.delta(&thread.overlay));
            let before = thread.contents();
            thread.commit();
            assert_eq!(thread.contents(), before);
        }
    }
    replay.apply(thread.state.delta(&thread.overlay));
    thread.commit();
    let stored = replay.finish(thread.state.next_seq());
    let contents: Vec<String> = stored
        .messages
        .iter()
        .map(|(_, message)| message.text())
        .collect();
    assert_eq!(contents, thread.contents());
    assert_eq!(contents.len(), 10);
    let seqs: Vec<u64> = stored.messages.iter().map(|(seq, _)| *seq).collect();
    assert!(seqs.iter().all(|seq| *seq < thread.state.next_seq()));
    let restored = ThreadState::restore(stored);
    assert_eq!(
        restored.view(&Overlay::new()).last_n(3),
        thread.state.view(&thread.overlay).last_n(3)
    );
}

//! What every store does the same.

use fawn::ports::checkpoint::{DynCheckpointStore, HistoryQuery, PendingWrite, Source};
use fawn::state::channels::Channel;
use fawn::state::delta::{MessageDelta, StateDelta};
use serde_json::json;

use crate::support::*;

const T: &str = "t";

fn pending(task: &str, index: i32, value: &str) -> PendingWrite {
    PendingWrite {
        task_id: task.into(),
        index,
        channel: "messages".into(),
        value: value.into(),
    }
}

/// Two turns on `thread`: four checkpoints.
fn two_turns(store: &dyn DynCheckpointStore, thread: &str) -> Model {
    let mut model = Model::default();
    for (seq, text) in ["in-1", "out-1", "in-2", "out-2"].iter().enumerate() {
        model.grow(store, thread, said(seq as u64, text));
    }
    model
}

#[test]
fn a_thread_that_nobody_wrote_is_empty() {
    on_every_store(|fixture| {
        let store = &*fixture.store;
        assert_eq!(wait(store.open(T)).unwrap().map(|it| it.meta), None);
        let id = checkpoint_id(1);
        assert!(wait(store.load(T, id)).unwrap().is_none());
        assert_eq!(wait(store.list(T, HistoryQuery::default())).unwrap(), []);
        assert_eq!(wait(store.deltas(T, id, id)).unwrap(), None);
        assert_eq!(wait(store.writes(T, id)).unwrap(), []);
        wait(store.delete(T)).unwrap();
        let writes = vec![pending("a", 0, "1")];
        assert_eq!(
            code(wait(store.put_writes(T, id, writes))),
            "unknown_checkpoint"
        );
    });
}

#[test]
fn the_first_write_of_a_fresh_thread_is_kept_with_its_lineage_and_steps() {
    // C4, LG-21, LG-27, LG-28
    on_every_store(|fixture| {
        let model = two_turns(&*fixture.store, T);
        let steps: Vec<i64> = model.checkpoints.iter().map(|it| it.meta.step).collect();
        assert_eq!(steps, [-1, 0, 1, 2]);
        fixture.reopen();
        model.assert_all(&*fixture.store, T);
    });
}

#[test]
fn two_children_of_one_checkpoint_read_exactly() {
    // C1, CK-21, LG-34
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = two_turns(store, T);
        let base = model.next_seq;
        model.put(store, T, Some(1), said(base, "in-3"));
        model.grow(store, T, said(base + 1, "out-3"));
        model.put(store, T, Some(3), said(base + 2, "in-4"));
        assert_eq!(model.checkpoints[4].meta.source, Source::Fork);
        fixture.reopen();
        let store = &*fixture.store;
        model.assert_all(store, T);
        let id = |place: usize| model.checkpoints[place].meta.id;
        let read = |place: usize| texts(&wait(store.load(T, id(place))).unwrap().unwrap());
        assert_eq!(read(3), ["in-1", "out-1", "in-2", "out-2"]);
        assert_eq!(read(5), ["in-1", "out-1", "in-3", "out-3"]);
        assert_eq!(read(6), ["in-1", "out-1", "in-2", "out-2", "in-4"]);
    });
}

#[test]
fn a_fork_may_begin_before_the_first_checkpoint() {
    // C8: the first turn is run again
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = two_turns(store, T);
        model.put(store, T, None, said(4, "other"));
        model.grow(store, T, said(5, "reply"));
        model.assert_all(store, T);
        assert_eq!(
            texts(&wait(store.open(T)).unwrap().unwrap()),
            ["other", "reply"]
        );
    });
}

#[test]
fn a_branch_that_gives_a_number_again_is_stale() {
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = two_turns(store, T);
        let mut behind = model.clone();
        behind.checkpoints.truncate(2);
        let fork = model.next(Some(0), said(3, "not out-2"));
        assert_eq!(code(wait(store.put(T, fork))), "thread_stale");
        model.assert_all(store, T);
        // The same number for the same message only names it.
        let message = model.checkpoints[3].messages[3].clone();
        model.put(store, T, Some(0), appended([message]));
        model.assert_all(store, T);
        // A writer that counts from an old number does not lower the thread's.
        let mut late = model.next(Some(1), StateDelta::default());
        late.next_seq = 1;
        wait(store.put(T, late)).unwrap();
        assert_eq!(wait(store.open(T)).unwrap().unwrap().state.next_seq, 4);
    });
}

#[test]
fn messages_are_removed_replaced_reset_and_brought_back() {
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = two_turns(store, T);
        let changes = |messages: MessageDelta| StateDelta {
            messages,
            ..StateDelta::default()
        };
        model.grow(
            store,
            T,
            changes(MessageDelta {
                removed: vec![0, 2],
                replaced: vec![(1, 5, rich("x", 1)), (3, 4, rich("y", 2))],
                appended: vec![(6, rich("z", 3))],
                ..MessageDelta::default()
            }),
        );
        model.grow(
            store,
            T,
            changes(MessageDelta {
                replaced: vec![(5, 7, rich("x", 4)), (7, 8, rich("x", 5))],
                ..MessageDelta::default()
            }),
        );
        // CK-18: a rollback names the messages of an older state by their own numbers.
        let old = model.checkpoints[3].messages.clone();
        model.grow(
            store,
            T,
            changes(MessageDelta {
                reset: true,
                appended: old,
                ..MessageDelta::default()
            }),
        );
        model.grow(
            store,
            T,
            changes(MessageDelta {
                reset: true,
                appended: vec![(9, rich("w", 0))],
                ..MessageDelta::default()
            }),
        );
        model.grow(store, T, StateDelta::default());
        fixture.reopen();
        model.assert_all(&*fixture.store, T);
    });
}

#[test]
fn the_same_message_twice_is_two_messages() {
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = Model::default();
        let message = human("same", "same");
        model.grow(
            store,
            T,
            appended([(0, message.clone()), (1, message.clone())]),
        );
        model.grow(store, T, appended([(2, message)]));
        model.assert_all(store, T);
        assert_eq!(
            wait(store.open(T)).unwrap().unwrap().state.messages.len(),
            3
        );
    });
}

#[test]
fn every_member_of_a_message_comes_back() {
    // E5, C13
    on_every_store(|fixture| {
        let mut model = Model::default();
        for n in 0..12 {
            let id = if n % 2 == 0 {
                message_id(n)
            } else {
                format!("id \"{n}\"\u{0}")
            };
            model.grow(&*fixture.store, T, appended([(n, rich(&id, n))]));
        }
        fixture.reopen();
        model.assert_all(&*fixture.store, T);
    });
}

#[test]
fn channels_are_set_kept_and_cleared() {
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = Model::default();
        let title = |text: &str| Some(json!(text));
        model.grow(store, T, wrote(Channel::Title, title("a\u{0}b")));
        model.grow(store, T, wrote(Channel::Goal, Some(json!(null))));
        model.grow(
            store,
            T,
            wrote(
                Channel::Todos,
                Some(json!([{"n": 1.5e300, "i": 18446744073709551615u64}])),
            ),
        );
        let both = StateDelta {
            channels: vec![
                (Channel::Title, None),
                (Channel::Goal, Some(json!({"z": 1, "a": 2}))),
            ],
            ..StateDelta::default()
        };
        model.grow(store, T, both);
        for n in 0..150 {
            model.grow(store, T, said(n, "x"));
        }
        model.grow(store, T, wrote(Channel::Title, title("")));
        model.grow(store, T, wrote(Channel::Goal, None));
        model.put(store, T, Some(2), wrote(Channel::Sandbox, Some(json!({}))));
        fixture.reopen();
        model.assert_all(&*fixture.store, T);
    });
}

#[test]
fn history_is_newest_first_and_can_be_cut() {
    // CK-12, LG-39
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = two_turns(store, T);
        model.put(store, T, Some(1), said(4, "fork"));
        let list = |limit, before: Option<u64>| {
            let before = before.map(checkpoint_id);
            let metas = wait(store.list(T, HistoryQuery { limit, before })).unwrap();
            metas.iter().map(|meta| meta.id).collect::<Vec<_>>()
        };
        let ids = |numbers: &[u64]| {
            numbers
                .iter()
                .copied()
                .map(checkpoint_id)
                .collect::<Vec<_>>()
        };
        assert_eq!(list(None, None), ids(&[4, 3, 2, 1, 0]));
        assert_eq!(list(Some(2), None), ids(&[4, 3]));
        assert_eq!(list(Some(0), None), ids(&[]));
        assert_eq!(list(Some(usize::MAX), None).len(), 5);
        assert_eq!(list(None, Some(2)), ids(&[1, 0]));
        assert_eq!(list(Some(1), Some(2)), ids(&[1]));
        assert_eq!(list(None, Some(0)), ids(&[]));
        assert_eq!(list(None, Some(99)).len(), 5);
        let cut = HistoryQuery {
            limit: Some(1),
            before: None,
        };
        let newest = wait(store.list(T, cut)).unwrap();
        assert_eq!(newest[0].parent, Some(checkpoint_id(1)));
    });
}

#[test]
fn deltas_lead_from_an_ancestor_and_from_nothing_else() {
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = two_turns(store, T);
        model.put(
            store,
            T,
            Some(1),
            wrote(Channel::Title, Some(json!("fork"))),
        );
        model.grow(
            store,
            T,
            StateDelta {
                messages: MessageDelta {
                    reset: true,
                    removed: vec![1],
                    replaced: vec![(0, 5, rich("r", 1))],
                    appended: vec![
                        (4, rich("a", 2)),
                        (0, model.checkpoints[0].messages[0].1.clone()),
                    ],
                },
                channels: vec![(Channel::Title, None)],
            },
        );
        let between = |after: usize, upto: usize| {
            let id = |place: usize| model.checkpoints[place].meta.id;
            wait(store.deltas(T, id(after), id(upto))).unwrap()
        };
        for after in 0..6 {
            for upto in 0..6 {
                assert_eq!(
                    between(after, upto),
                    model.path(after, upto),
                    "{after} to {upto}"
                );
            }
        }
        assert_eq!(between(3, 5), None);
        assert_eq!(between(2, 2), Some(vec![]));
        let unknown = wait(store.deltas(T, checkpoint_id(0), checkpoint_id(99))).unwrap();
        assert_eq!(unknown, None);
    });
}

#[test]
fn pending_writes_stay_until_their_checkpoint_has_a_child() {
    // LG-20, LG-26, CK-19
    on_every_store(|fixture| {
        let mut model = two_turns(&*fixture.store, T);
        let (base, newest) = (model.checkpoints[1].meta.id, model.checkpoints[3].meta.id);
        let put =
            |store: &dyn DynCheckpointStore, id, writes| wait(store.put_writes(T, id, writes));
        put(
            &*fixture.store,
            newest,
            vec![pending("b", 0, "1"), pending("a", 1, "2")],
        )
        .unwrap();
        put(
            &*fixture.store,
            newest,
            vec![pending("a", -4, "3"), pending("b", 0, "\u{0}4")],
        )
        .unwrap();
        put(&*fixture.store, base, vec![pending("c", 0, "5")]).unwrap();
        put(&*fixture.store, base, vec![]).unwrap();
        fixture.reopen();
        let store = &*fixture.store;
        let expected = [
            pending("a", -4, "3"),
            pending("a", 1, "2"),
            pending("b", 0, "\u{0}4"),
        ];
        assert_eq!(wait(store.writes(T, newest)).unwrap(), expected);
        let refused = put(store, checkpoint_id(99), vec![pending("a", 0, "1")]);
        assert_eq!(code(refused), "unknown_checkpoint");
        assert_eq!(wait(store.writes(T, checkpoint_id(99))).unwrap(), []);

        model.grow(store, T, said(4, "child"));
        assert_eq!(wait(store.writes(T, newest)).unwrap(), []);
        assert_eq!(wait(store.writes(T, base)).unwrap(), [pending("c", 0, "5")]);
        model.put(store, T, Some(1), said(5, "fork"));
        assert_eq!(wait(store.writes(T, base)).unwrap(), []);
        model.assert_all(store, T);
    });
}

#[test]
fn a_refused_checkpoint_leaves_nothing() {
    // C7
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let model = two_turns(store, T);
        let writes = vec![pending("a", 0, "1")];
        wait(store.put_writes(T, model.checkpoints[1].meta.id, writes.clone())).unwrap();

        let mut behind = model.next(Some(1), said(4, "late"));
        behind.meta.source = Source::Loop;
        assert_eq!(code(wait(store.put(T, behind))), "thread_stale");
        let mut second_root = model.next(None, said(4, "late"));
        second_root.meta.source = Source::Input;
        assert_eq!(code(wait(store.put(T, second_root))), "thread_stale");
        let mut orphan = model.next(Some(3), said(4, "late"));
        orphan.meta.parent = Some(checkpoint_id(99));
        assert_eq!(code(wait(store.put(T, orphan.clone()))), "thread_stale");
        orphan.meta.source = Source::Fork;
        assert_eq!(
            code(wait(store.put(T, orphan.clone()))),
            "unknown_checkpoint"
        );
        assert_eq!(code(wait(store.put("new", orphan))), "unknown_checkpoint");
        for id in [3, 2] {
            let mut old = model.next(Some(3), said(4, "late"));
            old.meta.id = checkpoint_id(id);
            assert_eq!(code(wait(store.put(T, old))), "conflict");
        }

        model.assert_all(store, T);
        assert_eq!(
            wait(store.writes(T, model.checkpoints[1].meta.id)).unwrap(),
            writes
        );
        assert!(wait(store.open("new")).unwrap().is_none());
    });
}

#[test]
fn threads_are_apart_whatever_their_ids_look_like() {
    // C12, C13, C24
    on_every_store(|fixture| {
        let long = "ü".repeat(512);
        let ids = [
            "foo", "foobar", "foo.bar", "f%", "f_o", "FOO", "a\u{0}b", "a", " ", "a/../b", "💡",
            &long,
        ];
        let models: Vec<_> = ids
            .iter()
            .map(|id| {
                let store = &*fixture.store;
                let mut model = Model::default();
                model.grow(store, id, said(0, id));
                model.grow(store, id, wrote(Channel::Title, Some(json!(id))));
                model
            })
            .collect();
        fixture.reopen();
        let store = &*fixture.store;
        for (id, model) in ids.iter().zip(&models) {
            model.assert_all(store, id);
        }
        let last = models[0].checkpoints[1].meta.id;
        wait(store.put_writes("foo", last, vec![pending("a", 0, "1")])).unwrap();
        wait(store.delete("foo")).unwrap();
        assert!(wait(store.open("foo")).unwrap().is_none());
        assert_eq!(
            wait(store.list("foo", HistoryQuery::default())).unwrap(),
            []
        );
        for (id, model) in ids.iter().zip(&models).skip(1) {
            model.assert_all(store, id);
        }
        // A thread of the same id starts from nothing, also with the same checkpoint ids.
        let mut again = Model::default();
        again.grow(store, "foo", said(0, "again"));
        again.grow(store, "foo", said(1, "and again"));
        again.assert_all(store, "foo");
        assert_eq!(wait(store.writes("foo", last)).unwrap(), []);

        let too_long = "x".repeat(1025);
        assert_eq!(code(wait(store.open(&too_long))), "out_of_range");
        let put = models[0].next(None, said(0, "x"));
        assert_eq!(code(wait(store.put(&too_long, put))), "out_of_range");
        assert_eq!(code(wait(store.delete(&too_long))), "out_of_range");
    });
}

#[test]
fn a_dropped_future_leaves_the_whole_call_or_nothing() {
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let model = two_turns(store, T);
        for _ in 0..20 {
            let late = model.next(Some(3), said(4, "dropped"));
            wait(async {
                let mut put = store.put(T, late);
                // Polled once, then gone.
                let polled = std::future::poll_fn(|context| {
                    std::task::Poll::Ready(put.as_mut().poll(context).is_ready())
                });
                polled.await
            });
        }
        // The first was stored, then or later; the others were stale.
        let mut after = model.clone();
        after.add(&model.next(Some(3), said(4, "dropped")));
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while wait(store.list(T, HistoryQuery::default())).unwrap().len() < 5 {
            assert!(std::time::Instant::now() < patience);
        }
        after.assert_all(store, T);
    });
}

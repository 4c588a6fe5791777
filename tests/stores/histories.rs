//! Long and random histories, compared with the plain model at every checkpoint.

use fawn::state::channels::{CHANNELS, Channel};
use fawn::state::delta::{MessageDelta, StateDelta};
use serde_json::json;

use crate::support::*;

const T: &str = "thread";

/// A delta as a run, an edit, a summary or a rollback would make it.
fn random_delta(dice: &mut Dice, model: &Model, parent: Option<usize>) -> StateDelta {
    let state = parent.map(|parent| &model.checkpoints[parent]);
    let mut live: Vec<_> = state.map_or_else(Vec::new, |state| state.messages.clone());
    let mut next = model.next_seq;
    let mut messages = MessageDelta::default();
    match dice.below(20) {
        0 => {
            messages.reset = true;
            live.clear();
        }
        1 if !model.checkpoints.is_empty() => {
            // Back to the messages of another checkpoint, by number.
            let other = dice.below(model.checkpoints.len() as u64) as usize;
            messages.reset = true;
            messages.appended = model.checkpoints[other].messages.clone();
            live.clear();
        }
        2 if !model.checkpoints.is_empty() => {
            // One message of another checkpoint that is not here.
            let other = dice.below(model.checkpoints.len() as u64) as usize;
            let missing = model.checkpoints[other].messages.iter();
            let missing = missing.filter(|(seq, _)| live.iter().all(|(known, _)| known != seq));
            messages.appended.extend(missing.take(1).cloned());
        }
        3..6 => {
            live.retain(|(seq, _)| {
                let stays = !dice.one_in(3);
                if !stays {
                    messages.removed.push(*seq);
                }
                stays
            });
        }
        _ => {}
    }
    if dice.one_in(4) {
        for (seq, _) in &live {
            if dice.one_in(5) {
                messages
                    .replaced
                    .push((*seq, next, rich(&message_id(next), dice.below(6))));
                next += 1;
            }
        }
    }
    for _ in 0..dice.below(4) {
        messages
            .appended
            .push((next, rich(&message_id(next), dice.below(6))));
        // Numbers may be left out.
        next += 1 + u64::from(dice.one_in(10));
    }
    let mut channels: Vec<(Channel, _)> = Vec::new();
    while dice.one_in(3) {
        let (channel, ..) = CHANNELS[1 + dice.below(CHANNELS.len() as u64 - 1) as usize];
        if channels.iter().all(|(known, _)| *known != channel) {
            let value = json!({"n": dice.below(1000), "t": "x".repeat(dice.below(40) as usize)});
            channels.push((channel, (!dice.one_in(4)).then_some(value)));
        }
    }
    StateDelta { messages, channels }
}

#[test]
fn every_checkpoint_of_a_random_history_reads_as_the_model_says() {
    on_every_store(|fixture| {
        for seed in 0..6 {
            let thread = format!("{T} {seed}");
            let mut dice = Dice::new(seed);
            let mut model = Model::default();
            for n in 0..350 {
                let newest = model.checkpoints.len().checked_sub(1);
                let parent = match newest {
                    // Seeds differ in how much they branch; few branches make long lineages.
                    Some(newest) if dice.one_in(8 << (3 * (seed % 3))) => {
                        Some(dice.below(newest as u64 + 1) as usize)
                    }
                    other => other,
                };
                let delta = random_delta(&mut dice, &model, parent);
                model.put(&*fixture.store, &thread, parent, delta);
                if n % 70 == 69 {
                    fixture.reopen();
                    model.assert_all(&*fixture.store, &thread);
                }
            }
            let ids = |place: usize| model.checkpoints[place].meta.id;
            for _ in 0..100 {
                let (older, place) = (dice.below(350) as usize, dice.below(350) as usize);
                let found = wait(fixture.store.deltas(&thread, ids(older), ids(place))).unwrap();
                assert_eq!(
                    found,
                    model.path(older, place),
                    "seed {seed}: {older} to {place}"
                );
            }
        }
    });
}

#[test]
fn a_thread_that_is_edited_everywhere_stays_readable() {
    // Snapshots of such a thread are large, so they are rare, and reads still replay a bounded number of deltas.
    on_every_store(|fixture| {
        let store = &*fixture.store;
        let mut model = Model::default();
        model.grow(
            store,
            T,
            appended((0..600).map(|seq| (seq, rich(&message_id(seq), seq)))),
        );
        for n in 0..600u64 {
            let old = (n * 7) % 600;
            let replaced = vec![(old, 600 + n, rich(&message_id(600 + n), n))];
            let delta = StateDelta {
                messages: MessageDelta {
                    replaced,
                    ..MessageDelta::default()
                },
                ..StateDelta::default()
            };
            model.grow(store, T, delta);
        }
        for place in [0, 1, 63, 64, 65, 300, 599, 600] {
            let id = model.checkpoints[place].meta.id;
            model.assert_is(place, &wait(store.load(T, id)).unwrap().unwrap());
        }
    });
}

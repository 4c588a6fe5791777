//! Generated cases from fixed seeds: against the slow models, values of any type, and whole histories of steps.

use fawn::protocol::error::{Error, ErrorCode};
use fawn::state::channels::{CHANNELS, Channel, Semantics};
use fawn::state::reducers::{REDUCERS, Side, reduce};
use fawn::state::update::Write;
use fawn::state::values::{ChannelOverlay, ChannelValues};
use serde_json::{Map, Value, json};

use super::models;
use super::random::Random;

/// Compares a reducer with its model on `rounds` values that `generate` makes.
fn differ(
    channel: Channel,
    model: fn(&Value, &Value) -> Result<Value, ErrorCode>,
    rounds: u64,
    generate: fn(&mut Random) -> Value,
) {
    let mut failures = 0;
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        // The reducer's own results are fed back, as in a thread.
        let mut existing = generate(&mut random);
        for _ in 0..4 {
            let update = generate(&mut random);
            let expected = model(&existing, &update);
            let got = reduce(channel, existing.clone(), update.clone());
            match (&expected, &got) {
                (Ok(expected), Ok(got)) => {
                    let place = format!("seed {seed}: {existing} + {update}");
                    assert_eq!(expected.to_string(), got.to_string(), "{place}");
                }
                (Err(expected), Err(Error { code, .. })) if expected == code => failures += 1,
                _ => panic!("seed {seed}: {existing} + {update}: {expected:?}, {got:?}"),
            }
            existing = got.unwrap_or(existing);
        }
    }
    // The models say what fails; a generator that never fails, or always does, tests little.
    let calls = rounds * 4;
    let expected = if channel == Channel::Artifacts { 0 } else { 1 };
    assert!(
        (expected..calls / 2).contains(&failures),
        "{failures} of {calls} failed"
    );
}

fn scalar(random: &mut Random) -> Value {
    match random.below(9) {
        0 => json!(1),
        1 => json!(1.0),
        2 => json!(true),
        3 => Value::Null,
        place => json!(["a", "b", "c", "é", "e\u{301}"][place - 4]),
    }
}

fn scalars(random: &mut Random) -> Value {
    (0..random.below(8)).map(|_| scalar(random)).collect()
}

#[test]
fn merge_artifacts_equals_its_slow_model() {
    differ(Channel::Artifacts, models::artifacts, 20_000, |random| {
        if random.one_in(8) {
            Value::Null
        } else {
            scalars(random)
        }
    });
}

#[test]
fn merge_promoted_equals_its_slow_model() {
    differ(Channel::Promoted, models::promoted, 20_000, |random| {
        if random.one_in(8) {
            return Value::Null;
        }
        let mut members = Map::new();
        if !random.one_in(20) {
            let hashes = [json!("h1"), json!("h1"), json!("h2"), Value::Null];
            members.insert("catalog_hash".to_owned(), random.pick(&hashes).clone());
        }
        if !random.one_in(20) {
            members.insert("names".to_owned(), scalars(random));
        }
        Value::Object(members)
    });
}

#[test]
fn merge_delegations_equals_its_slow_model() {
    differ(Channel::Delegations, models::delegations, 4_000, |random| {
        if random.one_in(10) {
            return Value::Null;
        }
        // A few ids make runs meet; many make the cap bite.
        let ids = *random.pick(&[2, 3, 5, 5, 90]);
        let entries = random.below(if ids == 90 { 70 } else { 7 });
        (0..entries)
            .map(|place| {
                let mut entry = Map::new();
                let mut set = |name: &str, value: Value| entry.insert(name.to_owned(), value);
                if !random.one_in(300) {
                    let id = random.below(ids);
                    let id = if random.one_in(4) {
                        json!(id)
                    } else {
                        json!(id.to_string())
                    };
                    set("id", id);
                }
                if !random.one_in(100) {
                    let statuses = ["in_progress", "completed", "failed", "timed_out", "odd", ""];
                    set("status", json!(random.pick(&statuses)));
                }
                if !random.one_in(3) {
                    set("created_at", json!(random.pick(&["t1", "t2", "t3", ""])));
                }
                let runs = [
                    json!("r1"),
                    json!("r2"),
                    json!(""),
                    Value::Null,
                    json!(1),
                    json!(true),
                ];
                if !random.one_in(3) {
                    set("run_id", random.pick(&runs).clone());
                }
                set("place", json!(place));
                Value::Object(entry)
            })
            .collect()
    });
}

#[test]
fn merge_skill_context_equals_its_slow_model() {
    differ(
        Channel::SkillContext,
        models::skill_context,
        2_000,
        |random| {
            if random.one_in(8) {
                return Value::Null;
            }
            let paths = *random.pick(&[3, 20]);
            (0..random.below(14))
                .map(|_| {
                    let mut entry = Map::new();
                    let mut set = |name: &str, value: Value| entry.insert(name.to_owned(), value);
                    if !random.one_in(200) {
                        set("path", json!(random.below(paths).to_string()));
                    }
                    if !random.one_in(4) {
                        set("name", json!(random.pick(&["a", " b ", ""])));
                    }
                    if !random.one_in(4) {
                        let words = [
                            "w",
                            "é\u{301} ",
                            "\u{1f} ",
                            "\u{200b}",
                            "\u{3000}x",
                            "\n\t",
                            "🙂 ",
                        ];
                        let longest = *random.pick(&[9, 9, 9, 900]);
                        let count = random.below(longest);
                        let text: String = (0..count).map(|_| *random.pick(&words)).collect();
                        set("description", json!(text));
                    }
                    let times = [json!(7), json!(true), json!(2.0), json!("5"), Value::Null];
                    if !random.one_in(4) {
                        set("loaded_at", random.pick(&times).clone());
                    }
                    set("other", json!(1));
                    Value::Object(entry)
                })
                .collect()
        },
    );
}

#[test]
fn values_of_any_type_give_an_answer_or_an_error_with_its_place() {
    let mut random = Random::new(1);
    let (mut answers, mut errors) = (0, 0);
    for _ in 0..50_000 {
        let (existing, update) = (random.value(3), random.value(3));
        for (channel, reducer) in REDUCERS {
            let Err(fault) = reducer(existing.clone(), update.clone()) else {
                answers += 1;
                continue;
            };
            errors += 1;
            let known = [
                ErrorCode::SandboxConflict,
                ErrorCode::EntryMember,
                ErrorCode::EntryType,
            ];
            assert!(known.contains(&fault.error.code), "{fault:?}");
            let path = fault.error.path.as_deref().unwrap();
            let document = match fault.side {
                Side::Existing => &existing,
                Side::Update => &update,
            };
            // A missing member has no place of its own; what it is missing from has.
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            let there = document.pointer(path).is_some()
                || (fault.error.code != ErrorCode::EntryType && document.pointer(parent).is_some());
            assert!(there, "{channel:?}: {path} in {document}: {fault}");
            let error = reduce(*channel, existing.clone(), update.clone()).unwrap_err();
            let expected = (fault.side == Side::Update).then_some(path);
            assert_eq!(error.path.as_deref(), expected);
        }
    }
    assert!(answers > 100_000 && errors > 100_000, "{answers}, {errors}");
}

/// A channel as LangGraph describes it, one write after the other, whole copies everywhere.
fn slow_channel(
    channel: Channel,
    mut value: Option<Value>,
    writes: &[&Write],
) -> Result<Option<Value>, ErrorCode> {
    match channel.semantics() {
        Semantics::LastValue | Semantics::Ephemeral => match writes {
            [] if channel.semantics() == Semantics::Ephemeral => Ok(None),
            [] => Ok(value),
            [Write::Value(new) | Write::Overwrite(new)] => Ok(Some(new.clone())),
            _ => Err(ErrorCode::ConflictingWrites),
        },
        _ => {
            let mut overwritten = false;
            for write in writes {
                match write {
                    Write::Overwrite(_) if overwritten => {
                        return Err(ErrorCode::ConflictingWrites);
                    }
                    Write::Overwrite(new) => {
                        overwritten = true;
                        value = Some(new.clone());
                    }
                    Write::Value(_) if overwritten => {}
                    Write::Value(new) => {
                        value = Some(match value {
                            None => new.clone(),
                            Some(old) => {
                                reduce(channel, old, new.clone()).map_err(|error| error.code)?
                            }
                        });
                    }
                    Write::Messages(_) => unreachable!("not generated"),
                }
            }
            Ok(value)
        }
    }
}

#[test]
fn histories_of_steps_read_as_the_slow_channels_say() {
    let channels: Vec<Channel> = CHANNELS
        .iter()
        .skip(1)
        .map(|(channel, ..)| *channel)
        .collect();
    let (mut staged, mut failed) = (0, 0);
    for seed in 0..1_500 {
        let mut random = Random::new(seed);
        let mut values = ChannelValues::new();
        let mut overlay = ChannelOverlay::default();
        let mut committed = read(&values, &overlay);
        let mut expected: Vec<Option<Value>> = channels
            .iter()
            .map(|channel| values.get(&overlay, *channel).cloned())
            .collect();
        for _ in 0..12 {
            let writes: Vec<(Channel, Write)> = (0..random.below(5))
                .map(|_| {
                    let channel = *random.pick(&channels);
                    let value = plausible(channel, &mut random);
                    let write = if random.one_in(5) {
                        Write::Overwrite(value)
                    } else {
                        Write::Value(value)
                    };
                    (channel, write)
                })
                .collect();
            let step: Vec<_> = writes.iter().map(|(c, write)| (*c, write, None)).collect();
            let after: Result<Vec<_>, _> = channels
                .iter()
                .zip(&expected)
                .map(|(channel, value)| {
                    let own = writes.iter().filter(|(other, _)| other == channel);
                    let own: Vec<_> = own.map(|(_, write)| write).collect();
                    slow_channel(*channel, value.clone(), &own)
                })
                .collect();
            let before = overlay.clone();
            let result = values.stage(&mut overlay, &step);
            match after {
                Ok(after) => {
                    result.unwrap();
                    expected = after;
                    staged += 1;
                }
                Err(_) => {
                    result.unwrap_err();
                    assert_eq!(overlay, before, "seed {seed}");
                    failed += 1;
                }
            }
            for (channel, expected) in channels.iter().zip(&expected) {
                let got = values.get(&overlay, *channel);
                let text = |value: Option<&Value>| value.map(Value::to_string);
                assert_eq!(
                    text(got),
                    text(expected.as_ref()),
                    "seed {seed} {channel:?}"
                );
            }
            if random.one_in(3) {
                // The changes alone lead from the committed state to the new one.
                for (channel, value) in values.changes(&overlay) {
                    committed.retain(|(other, _)| *other != channel);
                    committed.extend(value.map(|value| (channel, value.to_string())));
                }
                committed.sort();
                assert_eq!(committed, read(&values, &overlay), "seed {seed}");
                values.commit(std::mem::take(&mut overlay));
                assert!(values.changes(&overlay).is_empty());
            }
        }
    }
    assert!(staged > 5_000 && failed > 1_000, "{staged}, {failed}");
}

fn read(values: &ChannelValues, overlay: &ChannelOverlay) -> Vec<(Channel, String)> {
    values
        .iter(overlay)
        .map(|(channel, value)| (channel, value.to_string()))
        .collect()
}

/// A value that the channel's reducer takes more often than not.
fn plausible(channel: Channel, random: &mut Random) -> Value {
    if random.one_in(20) {
        return random.value(2);
    }
    match channel {
        Channel::Sandbox => json!({"sandbox_id": random.pick(&["s", "s", "s", "t"])}),
        Channel::Artifacts => scalars(random),
        Channel::ViewedImages => {
            let mut images = Map::new();
            for _ in 0..random.below(3) {
                images.insert(
                    random.below(4).to_string(),
                    json!({"size": random.below(9)}),
                );
            }
            Value::Object(images)
        }
        Channel::Promoted => {
            json!({"catalog_hash": random.pick(&["h1", "h2"]), "names": scalars(random)})
        }
        Channel::Delegations => (0..random.below(3))
            .map(|_| json!({"id": random.below(4), "status": random.pick(&["completed", "x"])}))
            .collect(),
        Channel::SkillContext => (0..random.below(3))
            .map(|_| json!({"path": random.below(12)}))
            .collect(),
        _ => random.value(2),
    }
}

//! Delegations whose completion, time-out and cancel race, and places that many agents share.
//!
//! `FAWN_RACES` says how many delegations race (10,000 unless it says otherwise), `FAWN_SHARED_RUNS` how many runs share places.

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fawn::runtime::{Answer, Assembly, Queue, Run, Runtime, Thread, Wait};
use serde_json::{Map, Value, json};

use crate::support::http_server::{DONE, read_request, stop_event, text_event};
use crate::support::random::scramble;
use crate::support::talk::LONG;

fn how_many(name: &str, otherwise: usize) -> usize {
    let said = std::env::var(name).ok();
    said.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Delegations of one run: what the ledger holds.
const TASKS: usize = 50;
/// Runs that race at the same time.
const WAVE: usize = 40;
/// The time that a delegation has.
const TIME: Duration = Duration::from_secs(1);

fn assembly(runtime: &Runtime, max_running: usize) -> Assembly {
    let places = json!({"config": {"max_running": max_running, "max_queued": 10_000, "queue_timeout_seconds": 3600}, "max_total_per_run": TASKS});
    let places = runtime.new_subagents(&places.to_string()).unwrap();
    shared_by(runtime, &places, 50)
}

fn shared_by(runtime: &Runtime, places: &fawn::runtime::Subagents, total: usize) -> Assembly {
    let config = json!({
        "factory": "lead", "subagent_runtime": 1,
        "configurable": {"subagent_enabled": true, "thinking_enabled": false, "max_total_subagents": total},
    });
    runtime
        .new_assembly_with(&config.to_string(), &|_| Ok(places.clone()))
        .unwrap_or_else(|error| panic!("{error:?}"))
}

fn task(place: usize, of: &str) -> Value {
    json!({"name": "task", "id": format!("t{place}"), "args": {
        "description": format!("{of} {place}"), "prompt": format!("Work on {of}/{place}."), "subagent_type": "racer"}})
}

/// What is to happen to a delegation at its time.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: std::cmp::Reverse<Instant>,
    act: Act,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Answer { call: u64, text: String },
    Cancel { run: usize, task: String },
}

/// Does things at their time, on an OS thread of its own.
fn clockwork(
    due: Arc<Mutex<BinaryHeap<Due>>>,
    stop: Arc<AtomicUsize>,
    act: impl Fn(Act) + Send + 'static,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while stop.load(Ordering::SeqCst) == 0 {
            let now = Instant::now();
            let next = {
                let mut due = due.lock().unwrap();
                match due.peek() {
                    Some(first) if first.at.0 <= now => due.pop(),
                    _ => None,
                }
            };
            match next {
                Some(next) => act(next.act),
                None => std::thread::sleep(Duration::from_micros(300)),
            }
        }
    })
}

/// The reference's reducer of the ledger (ST-13), as plainly as it can be said.
fn merged(ledger: Vec<Value>, writes: &Value) -> Vec<Value> {
    let terminal = [
        "completed",
        "failed",
        "cancelled",
        "timed_out",
        "polling_timed_out",
    ];
    let settled = |entry: &Value| terminal.contains(&entry["status"].as_str().unwrap());
    let mut ledger = ledger;
    for write in writes.as_array().unwrap() {
        let same =
            |entry: &&mut Value| entry["id"] == write["id"] && entry["run_id"] == write["run_id"];
        match ledger.iter_mut().find(same) {
            None => ledger.push(write.clone()),
            Some(entry) if settled(entry) && !settled(write) => {}
            Some(entry) => {
                let created = entry["created_at"].clone();
                *entry = write.clone();
                entry["created_at"] = created;
            }
        }
    }
    let surplus = ledger.len().saturating_sub(50);
    ledger.split_off(surplus)
}

struct Racing {
    name: String,
    thread: Thread,
    run: Run,
    ends: HashMap<String, Vec<String>>,
    ledger: Vec<Value>,
    result: Option<Value>,
}

#[test]
fn sub_32_33_completion_time_out_and_cancel_race_and_one_of_them_wins() {
    let runs = how_many("FAWN_RACES", 10_000).div_ceil(TASKS);
    let config = json!({
        "workers": 2,
        "models": [
            {"name": "main", "provider": "host", "model": "main"},
            {"name": "worker", "provider": "host", "model": "worker"},
        ],
        "title": {"enabled": false},
        "subagents": {"custom_agents": {"racer": {
            "description": "Races", "system_prompt": "Race.", "model": "worker", "timeout_seconds": TIME.as_secs()}}},
    });
    let runtime = Runtime::new(&config.to_string()).unwrap();
    let agents: Vec<Assembly> = (0..WAVE.min(runs))
        .map(|_| assembly(&runtime, 64))
        .collect();
    // Each wave but the first goes on on the threads of the one before: the same call ids come again.
    let threads: Vec<Thread> = agents
        .iter()
        .map(|_| runtime.open_thread("{}").unwrap())
        .collect();
    let mut met: HashMap<String, usize> = HashMap::new();
    let mut number = 0;
    while number < runs {
        let wave: Vec<usize> = (number..runs.min(number + WAVE)).collect();
        number += wave.len();
        race(&runtime, &agents, &threads, &wave, &mut met);
    }
    for status in ["completed", "cancelled", "timed_out"] {
        assert!(
            met.get(status).is_some_and(|count| count * 20 > runs),
            "{met:?}"
        );
    }
    let stats: Value = serde_json::from_str(&runtime.stats("[]")).unwrap();
    assert_eq!(
        (&stats["open_calls"], &stats["runs"]["active"]),
        (&json!(0), &json!(0))
    );
}

fn race(
    runtime: &Runtime,
    agents: &[Assembly],
    threads: &[Thread],
    wave: &[usize],
    met: &mut HashMap<String, usize>,
) {
    let queue = runtime.new_queue("{}").unwrap();
    let mut racing: Vec<Racing> = wave
        .iter()
        .enumerate()
        .map(|(place, number)| {
            let name = format!("r{number}");
            let request = json!({
                "run_id": name, "input": {"messages": [{"role": "user", "content": format!("Race {name}")}]},
                "stream": ["updates"],
            });
            let thread = threads[place].clone();
            let before: Value = serde_json::from_str(&thread.state("{}").unwrap()).unwrap();
            let run = runtime
                .start_run(&agents[place], &thread, Some(&queue), &request.to_string())
                .unwrap();
            let ledger = before["values"]["delegations"].as_array().cloned();
            Racing { name, thread, run, ends: HashMap::new(), ledger: ledger.unwrap_or_default(), result: None }
        })
        .collect();
    let runs: Vec<Run> = racing.iter().map(|racing| racing.run.clone()).collect();
    let due: [Arc<Mutex<BinaryHeap<Due>>>; 2] = Default::default();
    let stop = Arc::new(AtomicUsize::new(0));
    let clocks: Vec<_> = due
        .iter()
        .map(|due| {
            let (runtime, runs) = (runtime.clone(), runs.clone());
            clockwork(due.clone(), stop.clone(), move |act| match act {
                Act::Answer { call, text } => {
                    // Gone, when it comes too late.
                    let _ = runtime.finish(call, &json!({ "ok": text }).to_string());
                }
                Act::Cancel { run, task } => {
                    runs[run]
                        .submit(&json!({"op": "cancel_task", "task_id": task}).to_string())
                        .unwrap();
                }
            })
        })
        .collect();
    let mut started: HashMap<(usize, String), Instant> = HashMap::new();
    let mut asked = HashSet::new();
    let mut left = racing.len();
    while left > 0 {
        let Ok(Answer::Done(events)) = queue.take(LONG, 0) else {
            panic!("no events")
        };
        let events: Vec<Value> = serde_json::from_str(&events).unwrap();
        for event in events {
            let name = event["run_id"].as_str().unwrap_or_default();
            let run = racing
                .iter()
                .position(|racing| racing.name == name)
                .unwrap();
            let data = &event["data"];
            match event["type"].as_str().unwrap() {
                "host_call" if data["name"] == "main" => {
                    let reply = match asked.insert(run) {
                        true => {
                            json!({"tool_calls": (0..TASKS).map(|place| task(place, &racing[run].name)).collect::<Vec<_>>()})
                        }
                        false => json!("Done."),
                    };
                    let call = data["call_id"].as_u64().unwrap();
                    runtime
                        .finish(call, &json!({ "ok": reply }).to_string())
                        .unwrap();
                }
                "host_call" => {
                    let task = event["task_id"].as_str().unwrap().to_owned();
                    let prompt = data["args"]["messages"].to_string();
                    assert!(
                        prompt.contains(&format!("{}/{}.", racing[run].name, &task[1..])),
                        "cross-talk: {prompt}"
                    );
                    let begin = started[&(run, task.clone())];
                    let chance =
                        scramble(wave[run] as u64 * 1000 + task[1..].parse::<u64>().unwrap());
                    // Around the end of its time; some ends come together.
                    let at = |shift: u64| {
                        let shift = (chance >> shift) % 120;
                        std::cmp::Reverse(
                            begin + TIME - Duration::from_millis(100)
                                + Duration::from_millis(shift),
                        )
                    };
                    let answer = Due {
                        at: at(8),
                        act: Act::Answer {
                            call: data["call_id"].as_u64().unwrap(),
                            text: format!("{}/{task}", racing[run].name),
                        },
                    };
                    let cancel = |at| Due {
                        at,
                        act: Act::Cancel {
                            run,
                            task: task.clone(),
                        },
                    };
                    match chance % 4 {
                        0 => due[0].lock().unwrap().push(answer),
                        1 => due[1].lock().unwrap().push(cancel(at(8))),
                        2 => {
                            due[0].lock().unwrap().push(answer);
                            due[1].lock().unwrap().push(cancel(at(8)));
                        }
                        _ => {}
                    }
                }
                "task_started" => {
                    started.insert(
                        (run, data["task_id"].as_str().unwrap().to_owned()),
                        Instant::now(),
                    );
                }
                kind @ ("task_completed" | "task_failed" | "task_cancelled" | "task_timed_out") => {
                    let task = data["task_id"].as_str().unwrap().to_owned();
                    let status = kind.trim_start_matches("task_").to_owned();
                    racing[run].ends.entry(task).or_default().push(status);
                }
                "update" => {
                    if let Some(writes) = data["update"].get("delegations") {
                        let ledger = std::mem::take(&mut racing[run].ledger);
                        racing[run].ledger = merged(ledger, writes);
                    }
                }
                "run_end" => {
                    racing[run].result = Some(data.clone());
                    left -= 1;
                }
                _ => {}
            }
        }
    }
    stop.store(1, Ordering::SeqCst);
    clocks.into_iter().for_each(|clock| clock.join().unwrap());
    for racing in racing {
        judge(&racing, met);
    }
}

/// Event, message and ledger say one and the same of each delegation, and say it once.
fn judge(racing: &Racing, met: &mut HashMap<String, usize>) {
    let result = racing.result.as_ref().unwrap();
    assert_eq!(result["status"], "success", "{result}");
    let state: Value = serde_json::from_str(&racing.thread.state("{}").unwrap()).unwrap();
    let messages = state["values"]["messages"].as_array().unwrap();
    let ledger = state["values"]["delegations"].as_array().unwrap();
    assert_eq!(
        ledger, &racing.ledger,
        "the ledger is what the reference's reducer makes of the writes"
    );
    // The results behind the last ai message with calls are those of this run.
    let begin = messages.iter().rposition(|message| {
        message["type"] == "ai"
            && message["tool_calls"]
                .as_array()
                .is_some_and(|calls| !calls.is_empty())
    });
    let mut results: HashMap<&str, Vec<&Map<String, Value>>> = HashMap::new();
    for message in messages[begin.unwrap()..]
        .iter()
        .filter(|message| message["type"] == "tool")
    {
        let id = message["tool_call_id"].as_str().unwrap();
        results
            .entry(id)
            .or_default()
            .push(message.as_object().unwrap());
    }
    assert_eq!((racing.ends.len(), results.len()), (TASKS, TASKS));
    for (task, ends) in &racing.ends {
        let [status] = ends.as_slice() else {
            panic!("{}: {task} ended as {ends:?}", racing.name)
        };
        let [message] = results[task.as_str()].as_slice() else {
            panic!("{task} has several results")
        };
        assert_eq!(message["additional_kwargs"]["subagent_status"], **status);
        let entry = ledger
            .iter()
            .find(|entry| entry["id"] == **task && entry["run_id"] == racing.name)
            .unwrap();
        assert_eq!(entry["status"], **status, "{entry}");
        if status == "completed" {
            let content = message["content"].as_str().unwrap();
            assert!(
                content.ends_with(&format!("{}/{task}", racing.name)),
                "{content}"
            );
        }
        *met.entry(status.clone()).or_default() += 1;
    }
}

/// A model server that counts how many requests of subagents it has at once.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    peak: AtomicUsize,
}

fn serve(crowd: Arc<Crowd>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(stream), crowd) = (stream, crowd.clone()) else {
                return;
            };
            std::thread::spawn(move || {
                // A client that is gone has no more requests.
                let _ = converse(stream, &crowd);
            });
        }
    });
    url
}

fn converse(stream: TcpStream, crowd: &Crowd) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream, 0)? {
        let body = String::from_utf8(request.body).unwrap();
        let now = crowd.now.fetch_add(1, Ordering::SeqCst) + 1;
        crowd.peak.fetch_max(now, Ordering::SeqCst);
        let (_, rest) = body.split_once("Work on ").unwrap();
        let name = rest.split('.').next().unwrap().to_owned();
        let chance = scramble(
            name.bytes()
                .map(u64::from)
                .fold(0, |sum, byte| sum * 31 + byte),
        );
        std::thread::sleep(Duration::from_micros(chance % 4000));
        let out = stream.get_mut();
        let events = format!("{}{}{DONE}", text_event("Found."), stop_event());
        // Before the answer: whoever has it may let the next one in at once.
        crowd.now.fetch_sub(1, Ordering::SeqCst);
        write!(
            out,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{events}",
            events.len()
        )?;
    }
    Ok(())
}

/// Agents with so many delegations in a run each, which share so many places, in a runtime whose subagents use `worker`.
fn sharing(
    places: usize,
    workers: u32,
    worker: &Value,
    totals: Range<usize>,
) -> (Runtime, Vec<Assembly>) {
    let config = json!({
        "workers": workers,
        "models": [{"name": "main", "provider": "host", "model": "main"}, worker],
        "title": {"enabled": false},
        "subagents": {"custom_agents": {"racer": {"description": "Works", "system_prompt": "Work.", "model": "worker"}}},
    });
    let runtime = Runtime::new(&config.to_string()).unwrap();
    let places = json!({"config": {"max_running": places, "max_queued": 10_000, "queue_timeout_seconds": 600}});
    let places = runtime.new_subagents(&places.to_string()).unwrap();
    let agents = totals.map(|total| shared_by(&runtime, &places, total));
    let agents = agents.collect();
    (runtime, agents)
}

#[test]
fn u11_rt_8_agents_that_share_places_never_have_more_subagents_at_work() {
    const PLACES: usize = 8;
    let total = how_many("FAWN_SHARED_RUNS", 1000);
    let crowd = Arc::new(Crowd::default());
    let url = serve(crowd.clone());
    let worker = json!({"name": "worker", "provider": "openai", "model": "w", "base_url": url, "api_key": "k"});
    let (runtime, agents) = sharing(PLACES, 2, &worker, 2..6);
    let queue = runtime.new_queue("{}").unwrap();
    let mut asked = HashSet::new();
    let (mut next, mut ended, mut begun, mut delegations) = (0, 0, 0, 0);
    let mut running: HashMap<String, (Thread, Run)> = HashMap::new();
    while ended < total {
        while next < total && running.len() < 100 {
            let name = format!("r{next}");
            let request = json!({"run_id": name, "input": {"messages": [{"role": "user", "content": "Go"}]}, "stream": []});
            let thread = runtime.open_thread("{}").unwrap();
            let run = runtime
                .start_run(
                    &agents[next % agents.len()],
                    &thread,
                    Some(&queue),
                    &request.to_string(),
                )
                .unwrap();
            running.insert(name, (thread, run));
            next += 1;
        }
        for event in taken(&queue) {
            let name = event["run_id"].as_str().unwrap();
            let data = &event["data"];
            match event["type"].as_str().unwrap() {
                "host_call" => {
                    let number: u64 = name[1..].parse().unwrap();
                    let tasks = 1 + scramble(number) as usize % 4;
                    let reply = match asked.insert(name.to_owned()) {
                        true => {
                            json!({"tool_calls": (0..tasks).map(|place| task(place, name)).collect::<Vec<_>>()})
                        }
                        false => json!("Done."),
                    };
                    let call = data["call_id"].as_u64().unwrap();
                    runtime
                        .finish(call, &json!({ "ok": reply }).to_string())
                        .unwrap();
                }
                "task_started" => begun += 1,
                "task_completed" => delegations += 1,
                "task_failed" | "task_cancelled" | "task_timed_out" => panic!("{event}"),
                "run_end" => {
                    assert_eq!(data["status"], "success", "{event}");
                    running.remove(name);
                    ended += 1;
                }
                _ => {}
            }
        }
    }
    assert_eq!(delegations, begun);
    assert_eq!(
        crowd.peak.load(Ordering::SeqCst),
        PLACES,
        "all places are used, and no more"
    );
}

#[test]
fn rt_31_33_places_are_given_in_the_order_in_which_agents_ask_for_them() {
    const PLACES: usize = 8;
    // One OS thread, so that the order of events is the order in which things happen.
    let worker = json!({"name": "worker", "provider": "host", "model": "worker"});
    let (runtime, agents) = sharing(PLACES, 0, &worker, 3..6);
    let queue = runtime.new_queue("{}").unwrap();
    let mut held = Vec::new();
    for number in 0..100 {
        let request = json!({"run_id": format!("r{number}"), "input": {"messages": [{"role": "user", "content": "Go"}]}, "stream": []});
        let thread = runtime.open_thread("{}").unwrap();
        let run = runtime.start_run(
            &agents[number % agents.len()],
            &thread,
            Some(&queue),
            &request.to_string(),
        );
        held.push((thread, run.unwrap()));
    }
    let (mut begun, mut served, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let (mut asked, mut ended) = (HashSet::new(), 0);
    while ended < held.len() {
        let events = queue.take(Wait::For(Duration::ZERO), 0).unwrap();
        let Answer::Done(events) = events else {
            // Nothing goes on by itself any more: one of those who have a place is done, by chance.
            let place = scramble(served.len() as u64) as usize % open.len();
            runtime
                .finish(open.swap_remove(place), r#"{"ok":"Found."}"#)
                .unwrap();
            continue;
        };
        let events: Vec<Value> = serde_json::from_str(&events).unwrap();
        for event in events {
            let (name, data) = (event["run_id"].as_str().unwrap(), &event["data"]);
            match event["type"].as_str().unwrap() {
                "host_call" if data["name"] == "main" => {
                    let reply = match asked.insert(name.to_owned()) {
                        true => {
                            json!({"tool_calls": (0..3).map(|place| task(place, name)).collect::<Vec<_>>()})
                        }
                        false => json!("Done."),
                    };
                    let call = data["call_id"].as_u64().unwrap();
                    runtime
                        .finish(call, &json!({ "ok": reply }).to_string())
                        .unwrap();
                }
                "host_call" => {
                    served.push((name.to_owned(), event["task_id"].clone()));
                    open.push(data["call_id"].as_u64().unwrap());
                    assert!(open.len() <= PLACES);
                }
                "task_started" => begun.push((name.to_owned(), data["task_id"].clone())),
                "run_end" => ended += 1,
                _ => {}
            }
        }
    }
    assert_eq!(served.len(), 300);
    assert_eq!(served, begun, "first come, first served");
}

fn taken(queue: &Queue) -> Vec<Value> {
    let Ok(Answer::Done(events)) = queue.take(LONG, 0) else {
        panic!("no events")
    };
    serde_json::from_str(&events).unwrap()
}

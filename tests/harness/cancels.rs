//! Runs that are cancelled at random instants: how soon they end, and that nothing begins afterwards.
//!
//! `FAWN_CANCELS` says how many; `make test-all` asks for ten thousand.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fawn::adapters::host_tool::HostTool;
use fawn::ports::tool::DynTool;
use fawn::protocol::host_tool::HostToolConfig;
use fawn::runtime::{Answer, Runtime};
use serde_json::{Value, json};

use crate::parts::{answer, tool};
use crate::support::http_server::{DONE, read_request, stop_event, text_event};
use crate::support::random::scramble;
use crate::support::talk::{LONG, Talk};

/// Longer than any delay between something that was begun before the cancel and the test's hearing of it, and shorter than
/// [`WAIT`].
const TOLERANCE: Duration = Duration::from_millis(400);
/// What every wait between two attempts takes: an attempt after a cancel would come this much later.
const WAIT: Duration = Duration::from_millis(700);

/// What the model server has seen.
#[derive(Default)]
struct Seen {
    /// When requests of each run came.
    requests: Mutex<HashMap<u64, Vec<Instant>>>,
    /// When connections of each run that never end by themselves were closed.
    closes: Mutex<HashMap<u64, Vec<Instant>>>,
    open: AtomicI64,
}

/// A model server whose answer to each request is one of those below, by chance.
fn serve(seen: Arc<Seen>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(stream), seen) = (stream, seen.clone()) else {
                return;
            };
            std::thread::spawn(move || {
                seen.open.fetch_add(1, Ordering::SeqCst);
                // That a cancelled client is gone is what the test is about.
                let _ = converse(stream, &seen);
                seen.open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    url
}

fn converse(stream: TcpStream, seen: &Seen) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let Some(request) = read_request(&mut stream, 0)? else {
        return Ok(());
    };
    let text = String::from_utf8(request.body).unwrap();
    let (_, rest) = text.split_once("run number ").unwrap();
    let run: u64 = rest.split('"').next().unwrap().parse().unwrap();
    let count = {
        let mut requests = seen.requests.lock().unwrap();
        let requests = requests.entry(run).or_default();
        requests.push(Instant::now());
        requests.len() as u64
    };
    let out = stream.get_mut();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let hang = |stream: &mut BufReader<TcpStream>| {
        // Until the client closes the connection.
        while matches!(stream.read(&mut [0; 512]), Ok(read) if read > 0) {}
        let mut closes = seen.closes.lock().unwrap();
        closes.entry(run).or_default().push(Instant::now());
    };
    match scramble(run * 7919 + count) % 8 {
        0 | 1 => {
            out.write_all(head.as_bytes())?;
            for _ in 0..10 {
                out.write_all(text_event("word ").as_bytes())?;
                std::thread::sleep(Duration::from_millis(1));
            }
            out.write_all(format!("{}{DONE}", stop_event()).as_bytes())?;
        }
        2..=4 => {
            let names = [["quick", "quick"], ["quick", "asks_host"]];
            let names = names[usize::from(run.is_multiple_of(2))];
            let calls = names.iter().enumerate().map(|(index, name)| {
                json!({"index": index, "id": format!("c{count}_{index}"), "type": "function",
                       "function": {"name": name, "arguments": "{}"}})
            });
            let calls: Vec<Value> = calls.collect();
            let event = json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]});
            let end =
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
            let events = format!("{head}data: {event}\n\ndata: {end}\n\n{DONE}");
            out.write_all(events.as_bytes())?;
        }
        5 => {
            let refusal = format!(
                "HTTP/1.1 503 No\r\nretry-after-ms: {}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
                WAIT.as_millis()
            );
            out.write_all(refusal.as_bytes())?;
        }
        6 => {
            out.write_all(format!("{head}{}", text_event("half ")).as_bytes())?;
            hang(&mut stream);
        }
        _ => hang(&mut stream),
    }
    Ok(())
}

/// What came of one cancel.
struct Ended {
    run: u64,
    /// From asking for it to the run's last event.
    took: Duration,
    at: Instant,
    status: String,
}

#[test]
fn l15_runs_cancelled_at_random_instants_end_soon_and_begin_nothing_more() {
    let wanted: u64 = std::env::var("FAWN_CANCELS")
        .ok()
        .map_or(400, |count| count.parse().unwrap());
    let seen = Arc::new(Seen::default());
    let url = serve(seen.clone());
    let started: Arc<Mutex<Vec<(u64, Instant)>>> = Arc::default();
    let shared = Runtime::new(r#"{"workers":2}"#).unwrap();
    let next = AtomicU64::new(0);
    let ended: Mutex<Vec<Ended>> = Mutex::default();
    std::thread::scope(|scope| {
        for lane in 0..4 {
            let (url, started, next, ended) = (&url, &started, &next, &ended);
            // Half of them are driven by the host's thread, half share worker threads.
            let runtime = match lane % 2 {
                0 => shared.clone(),
                _ => Runtime::new(r#"{"workers":0}"#).unwrap(),
            };
            scope.spawn(move || {
                loop {
                    let run = next.fetch_add(1, Ordering::SeqCst);
                    if run >= wanted {
                        return;
                    }
                    let talk = talk(&runtime, url, run, started);
                    ended.lock().unwrap().push(cancel_one(&talk, run));
                }
            });
        }
    });
    let ended = ended.into_inner().unwrap();
    assert_eq!(ended.len() as u64, wanted);

    // An attempt or a tool that follows a cancel comes within this time.
    std::thread::sleep(WAIT + TOLERANCE);
    let ends: HashMap<u64, Instant> = ended.iter().map(|end| (end.run, end.at)).collect();
    let late = |at: &Instant, run: u64| at.saturating_duration_since(ends[&run]);
    let requests = seen.requests.lock().unwrap();
    for (run, times) in requests.iter() {
        for at in times {
            assert!(late(at, *run) < TOLERANCE, "run {run} asked after its end");
        }
    }
    for (run, at) in started.lock().unwrap().iter() {
        assert!(
            late(at, *run) < TOLERANCE,
            "run {run}: a tool after its end"
        );
    }
    let closes = seen.closes.lock().unwrap();
    let mut closing: Vec<Duration> = closes
        .iter()
        .flat_map(|(run, times)| times.iter().map(|at| late(at, *run)))
        .collect();
    assert_eq!(
        seen.open.load(Ordering::SeqCst),
        0,
        "connections are left open"
    );

    let mut took: Vec<Duration> = ended
        .iter()
        .filter(|end| end.status == "interrupted")
        .map(|end| end.took)
        .collect();
    let share = took.len() as f64 / wanted as f64;
    took.sort();
    closing.sort();
    let at = |sorted: &[Duration], share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    let _ = writeln!(
        std::io::stderr(),
        "{wanted} runs, {} interrupted: run_end after cancel p50 {:?}, p99 {:?}, most {:?}; \
         {} hung connections closed, p99 {:?} after run_end, most {:?}",
        took.len(),
        at(&took, 0.5),
        at(&took, 0.99),
        at(&took, 1.0),
        closing.len(),
        at(&closing, 0.99),
        at(&closing, 1.0),
    );
    assert!(share > 0.5, "too few runs were there to be cancelled");
    assert!(at(&took, 0.99) <= Duration::from_millis(100));
    assert!(at(&closing, 0.99) <= Duration::from_millis(100));
}

fn talk(runtime: &Runtime, url: &str, run: u64, started: &Arc<Mutex<Vec<(u64, Instant)>>>) -> Talk {
    let model = json!({
        "provider": "openai", "model": "m", "base_url": url, "retry_after_partial": true,
        "retry_base_delay_ms": 2 * WAIT.as_millis() as u64,
    });
    let started = started.clone();
    let quick = tool("quick", move |_| {
        started.lock().unwrap().push((run, Instant::now()));
        async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            answer("done")
        }
    });
    let asks: HostToolConfig = serde_json::from_value(json!({
        "name": "asks_host", "parameters": {"type": "object"},
    }))
    .unwrap();
    let mut parts = crate::parts::parts(crate::parts::ScriptModel::new(Vec::new()));
    parts.model = runtime.model(&model.to_string()).unwrap();
    parts.tools = vec![quick, Arc::new(HostTool::new(asks)) as Arc<dyn DynTool>];
    parts.needs_host = true;
    Talk {
        assembly: runtime.compose(parts).unwrap(),
        thread: runtime.open_thread("{}").unwrap(),
        queue: runtime.new_queue("{}").unwrap(),
        runtime: runtime.clone(),
    }
}

fn cancel_one(talk: &Talk, number: u64) -> Ended {
    let text = format!("run number {number}");
    let run = talk.start(json!({"input": {"messages": [text]}}));
    let chance = scramble(number);
    let span = if chance.is_multiple_of(2) {
        4_000
    } else {
        25_000
    };
    let instant = Duration::from_micros((chance >> 8) % span);
    let canceller = std::thread::spawn({
        let run = run.clone();
        move || {
            std::thread::sleep(instant);
            let asked = Instant::now();
            run.submit(r#"{"op":"cancel"}"#).unwrap();
            asked
        }
    });
    let mut open_calls = 0;
    let (end, at) = loop {
        let event = talk.next();
        match event["type"].as_str().unwrap() {
            "host_call" => open_calls += 1,
            "host_call_cancelled" => open_calls -= 1,
            "run_end" => break (event, Instant::now()),
            _ => {}
        }
    };
    let asked = canceller.join().unwrap();
    assert_eq!(open_calls, 0, "a host call was left open");
    // Every call that was begun is answered or was dropped; the thread can go on.
    let Ok(Answer::Done(_)) = run.wait(LONG) else {
        panic!("no result")
    };
    Ended {
        run: number,
        took: at.saturating_duration_since(asked),
        at,
        status: end["data"]["status"].as_str().unwrap().to_owned(),
    }
}

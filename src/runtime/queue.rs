//! Queues of events towards the host: bounded, pulled, with a wake-up hook.
//!
//! Adjacent text deltas of one message merge while they wait. Above the high mark the producing run waits; control events
//! (host calls, ends, gaps) are always taken. A lossy queue drops the rest instead and says so with a `gap` event.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::driver::Driver;
use super::inject;
use super::sync::{Answer, Wait, lock};
use crate::protocol::config::{QueueConfig, Subscription};
use crate::protocol::error::Error;
use crate::protocol::json::{push_number, push_quoted, quote};
use crate::protocol::time::Timestamp;

/// Events that may wait unless the configuration says otherwise.
const DEFAULT_MARK_EVENTS: usize = 4096;
/// Bytes that may wait unless the configuration says otherwise.
const DEFAULT_MARK_BYTES: usize = 16 << 20;
/// What an event costs besides its data.
const EVENT_BYTES: usize = 256;

/// Where an event comes from: the run's members of the envelope, and the run's numbers.
#[derive(Debug)]
pub struct EventSource {
    /// `"run_id":"…","thread_id":"…",`, or empty for runtime-wide events.
    envelope: String,
    seq: AtomicU64,
    /// First number of what a lossy queue dropped since the last event that got through; 0 for none.
    dropped_from: AtomicU64,
    /// Of a subagent: the run that delegates, whose numbers count.
    origin: Option<Arc<EventSource>>,
}

impl EventSource {
    /// The source of a run's events.
    pub fn run(run_id: &str, thread_id: &str) -> Self {
        EventSource {
            envelope: format!(
                "\"run_id\":{},\"thread_id\":{},",
                quote(run_id),
                quote(thread_id)
            ),
            seq: AtomicU64::new(0),
            dropped_from: AtomicU64::new(0),
            origin: None,
        }
    }

    /// The source of events that a subagent sends in a run of `origin`, in the same count.
    pub fn task(origin: &Arc<EventSource>, run_id: &str, thread_id: &str, task_id: &str) -> Self {
        let mut source = EventSource::run(run_id, thread_id);
        source.envelope.push_str("\"task_id\":");
        push_quoted(&mut source.envelope, task_id);
        source.envelope.push(',');
        source.origin = Some(origin.clone());
        source
    }

    /// The source of events that belong to no run.
    pub fn runtime() -> Self {
        EventSource {
            envelope: String::new(),
            seq: AtomicU64::new(0),
            dropped_from: AtomicU64::new(0),
            origin: None,
        }
    }
}

/// What an event says.
#[derive(Debug)]
pub enum Body {
    /// JSON text of `data`.
    Json(String),
    /// A piece of a reply's text, which merges with the piece before it.
    Delta {
        /// The message it is a piece of.
        message_id: Arc<str>,
        /// `text` or `reasoning`.
        member: &'static str,
        /// The piece.
        text: String,
    },
}

/// Whether an event may be held back or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Never dropped.
    Control,
    /// Dropped by a lossy queue above its marks.
    Ordinary,
}

#[derive(Debug)]
struct Event {
    source: Arc<EventSource>,
    seq: u64,
    kind: &'static str,
    at: Timestamp,
    body: Body,
}

impl Event {
    fn bytes(&self) -> usize {
        EVENT_BYTES
            + match &self.body {
                Body::Json(data) => data.len(),
                Body::Delta { text, .. } => text.len(),
            }
    }

    fn write(&self, out: &mut String) {
        out.push_str("{\"seq\":");
        push_number(out, self.seq);
        out.push(',');
        out.push_str(&self.source.envelope);
        out.push_str("\"type\":\"");
        out.push_str(self.kind);
        out.push_str("\",\"at\":\"");
        self.at.push_to(out);
        out.push_str("\",\"data\":");
        match &self.body {
            Body::Json(data) => out.push_str(data),
            Body::Delta {
                message_id,
                member,
                text,
            } => {
                out.push_str("{\"message_id\":");
                push_quoted(out, message_id);
                out.push_str(",\"");
                out.push_str(member);
                out.push_str("\":");
                push_quoted(out, text);
                out.push('}');
            }
        }
        out.push('}');
    }
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    bytes: usize,
    interrupted: bool,
    closed: bool,
}

/// A hook that tells the host that a queue is no longer empty.
pub type Wakeup = Box<dyn Fn() + Send + Sync>;

/// A queue.
pub struct Queue {
    state: Mutex<State>,
    ready: Condvar,
    ready_driven: Notify,
    room: Notify,
    hook: Mutex<Option<Wakeup>>,
    has_hook: AtomicBool,
    mark_events: usize,
    mark_bytes: usize,
    lossy: bool,
    subscribe: Vec<Subscription>,
}

impl Queue {
    /// An empty queue.
    pub fn new(config: &QueueConfig) -> Self {
        Queue {
            state: Mutex::new(State::default()),
            ready: Condvar::new(),
            ready_driven: Notify::new(),
            room: Notify::new(),
            hook: Mutex::new(None),
            has_hook: AtomicBool::new(false),
            mark_events: config
                .high_mark_events
                .map_or(DEFAULT_MARK_EVENTS, |mark| mark as usize),
            mark_bytes: config.high_mark_bytes.map_or(DEFAULT_MARK_BYTES, |mark| {
                usize::try_from(mark).unwrap_or(usize::MAX)
            }),
            lossy: config.lossy,
            subscribe: config.subscribe.clone(),
        }
    }

    /// Whether runtime-wide events of this kind come here.
    pub fn subscribes(&self, to: Subscription) -> bool {
        self.subscribe.contains(&to)
    }

    /// Whether the queue was closed; events put into it are dropped.
    pub fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Puts an event. Never blocks; a producer asks [`Queue::pressure`] afterwards.
    pub fn push(
        &self,
        source: &Arc<EventSource>,
        kind: &'static str,
        at: Timestamp,
        body: Body,
        weight: Weight,
    ) {
        let was_empty = {
            let mut state = lock(&self.state);
            inject::point("queue");
            if state.closed {
                return;
            }
            let was_empty = state.events.is_empty();
            if let (
                Body::Delta {
                    message_id,
                    member,
                    text,
                },
                Some(last),
            ) = (&body, state.events.back_mut())
                && let Body::Delta {
                    message_id: last_id,
                    member: last_member,
                    text: last_text,
                } = &mut last.body
                && Arc::ptr_eq(&last.source, source)
                && last_id == message_id
                && last_member == member
                && last_text.len() < self.mark_bytes
            {
                last_text.push_str(text);
                let added = text.len();
                state.bytes += added;
                return;
            }
            let run = source.origin.as_ref().unwrap_or(source);
            let seq = run.seq.fetch_add(1, Ordering::Relaxed) + 1;
            if self.lossy && weight == Weight::Ordinary && self.is_full(&state) {
                let _ =
                    run.dropped_from
                        .compare_exchange(0, seq, Ordering::Relaxed, Ordering::Relaxed);
                return;
            }
            let mut seq = seq;
            let dropped_from = run.dropped_from.swap(0, Ordering::Relaxed);
            if dropped_from > 0 {
                // The gap takes the number of the last event that was dropped, so that numbers keep growing.
                let last = seq - 1;
                let data = format!(
                    "{{\"first_seq\":{dropped_from},\"last_seq\":{last},\"dropped\":{}}}",
                    last - dropped_from + 1
                );
                self.append(
                    &mut state,
                    Event {
                        source: run.clone(),
                        seq: last,
                        kind: "gap",
                        at,
                        body: Body::Json(data),
                    },
                );
                seq = last + 1;
            }
            self.append(
                &mut state,
                Event {
                    source: source.clone(),
                    seq,
                    kind,
                    at,
                    body,
                },
            );
            was_empty
        };
        self.ready.notify_one();
        self.ready_driven.notify_one();
        if was_empty {
            self.wake_host();
        }
    }

    /// A future to await before the next push when the queue is above its marks.
    pub fn pressure(self: &Arc<Self>) -> Option<impl Future<Output = ()> + Send + 'static> {
        if self.lossy || !self.is_full(&lock(&self.state)) {
            return None;
        }
        let queue = self.clone();
        Some(async move {
            loop {
                let notified = queue.room.notified();
                {
                    let state = lock(&queue.state);
                    // Half of the mark, so that a run does not wake for each event that is taken.
                    let room = state.events.len() <= queue.mark_events / 2
                        && state.bytes <= queue.mark_bytes / 2;
                    if room || state.closed {
                        return;
                    }
                }
                notified.await;
            }
        })
    }

    /// Takes up to `max` events (0 for as many as there are) as a JSON array.
    ///
    /// # Errors
    /// Those of [`Driver::drive`].
    pub fn take(&self, driver: &Driver, wait: Wait, max: u32) -> Result<Answer<String>, Error> {
        if let Some(answer) = self.try_take(max) {
            return Ok(answer);
        }
        if !driver.is_driven() {
            return Ok(self.block(wait.deadline(), max));
        }
        match wait {
            Wait::Forever => driver.drive(self.taken(max)),
            Wait::For(Duration::ZERO) => {
                let taken = driver.turn(|| self.try_take(max))?;
                Ok(taken.unwrap_or(Answer::TimedOut))
            }
            Wait::For(duration) => driver.drive(async {
                tokio::time::timeout(duration, self.taken(max))
                    .await
                    .unwrap_or(Answer::TimedOut)
            }),
        }
    }

    /// Makes one current or the next take come back.
    pub fn interrupt(&self) {
        lock(&self.state).interrupted = true;
        self.ready.notify_one();
        self.ready_driven.notify_one();
    }

    /// Sets or clears the hook. When this returns, the previous one does not run and will not run again.
    pub fn set_wakeup(&self, hook: Option<Wakeup>) {
        let previous = {
            let mut slot = lock(&self.hook);
            self.has_hook.store(hook.is_some(), Ordering::Release);
            std::mem::replace(&mut *slot, hook)
        };
        drop(previous);
        // What came before the hook was set is an edge that nobody has told.
        if !lock(&self.state).events.is_empty() {
            self.wake_host();
        }
    }

    /// Closes the queue: takers get what is there and then `Closed`, producers stop waiting.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.ready.notify_all();
        self.ready_driven.notify_waiters();
        self.ready_driven.notify_one();
        self.room.notify_waiters();
        self.wake_host();
    }

    /// Drops what waits; for a queue whose handle is gone.
    pub fn discard(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        state.bytes = 0;
        let events = std::mem::take(&mut state.events);
        drop(state);
        drop(events);
        self.close();
        self.set_wakeup(None);
    }

    fn is_full(&self, state: &State) -> bool {
        state.events.len() >= self.mark_events || state.bytes >= self.mark_bytes
    }

    fn append(&self, state: &mut State, event: Event) {
        state.bytes += event.bytes();
        state.events.push_back(event);
    }

    fn wake_host(&self) {
        if self.has_hook.load(Ordering::Acquire)
            && let Some(hook) = &*lock(&self.hook)
        {
            hook();
        }
    }

    /// What a take comes back with at once, if anything.
    fn try_take(&self, max: u32) -> Option<Answer<String>> {
        let events: Vec<Event> = {
            let mut state = lock(&self.state);
            if std::mem::take(&mut state.interrupted) {
                return Some(Answer::Interrupted);
            }
            if state.events.is_empty() {
                return state.closed.then_some(Answer::Closed);
            }
            let all = state.events.len();
            let count = if max == 0 { all } else { all.min(max as usize) };
            let events: Vec<Event> = state.events.drain(..count).collect();
            let bytes: usize = events.iter().map(Event::bytes).sum();
            state.bytes = state.bytes.saturating_sub(bytes);
            if count < all {
                // What is left may belong to another taker.
                self.ready.notify_one();
                self.ready_driven.notify_one();
            }
            events
        };
        self.room.notify_waiters();
        let mut text = String::with_capacity(events.iter().map(Event::bytes).sum::<usize>() + 2);
        text.push('[');
        for (place, event) in events.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            event.write(&mut text);
        }
        text.push(']');
        Some(Answer::Done(text))
    }

    /// Waits on this OS thread.
    fn block(&self, deadline: Option<Instant>, max: u32) -> Answer<String> {
        loop {
            if let Some(answer) = self.try_take(max) {
                return answer;
            }
            let state = lock(&self.state);
            if !state.events.is_empty() || state.interrupted || state.closed {
                continue;
            }
            let wait = match deadline {
                None => None,
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => Some(left),
                    _ => return Answer::TimedOut,
                },
            };
            // Both waits give the lock up and take it again; a panic elsewhere is no reason not to go on.
            match wait {
                None => drop(self.ready.wait(state)),
                Some(left) => drop(self.ready.wait_timeout(state, left)),
            }
        }
    }

    /// Waits as a task of the driver.
    async fn taken(&self, max: u32) -> Answer<String> {
        loop {
            let notified = self.ready_driven.notified();
            if let Some(answer) = self.try_take(max) {
                return answer;
            }
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(queue: &Queue, max: u32) -> Vec<serde_json::Value> {
        match queue.take(&Driver::new(1), Wait::For(Duration::ZERO), max) {
            Ok(Answer::Done(text)) => serde_json::from_str(&text).expect("JSON"),
            _ => Vec::new(),
        }
    }

    fn delta(queue: &Queue, source: &Arc<EventSource>, id: &Arc<str>, text: &str) {
        let body = Body::Delta {
            message_id: id.clone(),
            member: "text",
            text: text.into(),
        };
        queue.push(
            source,
            "message_delta",
            Timestamp(0),
            body,
            Weight::Ordinary,
        );
    }

    #[test]
    fn adjacent_deltas_of_one_message_merge_and_numbers_grow() {
        let queue = Queue::new(&QueueConfig::default());
        let source = Arc::new(EventSource::run("r", "t"));
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        delta(&queue, &source, &a, "x");
        delta(&queue, &source, &a, "y");
        delta(&queue, &source, &b, "z");
        let events = take(&queue, 0);
        assert_eq!(events.len(), 2);
        assert_eq!(events[0]["data"]["text"], "xy");
        assert_eq!(
            (events[0]["seq"].as_u64(), events[1]["seq"].as_u64()),
            (Some(1), Some(2))
        );
    }

    #[test]
    fn a_lossy_queue_tells_of_what_it_dropped_and_keeps_control_events() {
        let queue = Queue::new(&QueueConfig {
            high_mark_events: Some(16),
            lossy: true,
            ..QueueConfig::default()
        });
        let source = Arc::new(EventSource::run("r", "t"));
        let put = |weight| {
            queue.push(
                &source,
                "update",
                Timestamp(0),
                Body::Json("{}".into()),
                weight,
            );
        };
        (0..20).for_each(|_| put(Weight::Ordinary));
        put(Weight::Control);
        let events = take(&queue, 0);
        assert_eq!(events.len(), 18);
        assert_eq!(events[16]["type"], "gap");
        assert_eq!(events[16]["data"]["first_seq"], 17);
        assert_eq!(events[16]["data"]["dropped"], 4);
        let numbers: Vec<_> = events
            .iter()
            .map(|e| e["seq"].as_u64().expect("a number"))
            .collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(numbers.last(), Some(&21));
    }

    #[test]
    fn an_interrupt_is_kept_for_the_next_take_and_a_closed_queue_gives_what_it_has() {
        let queue = Queue::new(&QueueConfig::default());
        let driver = Driver::new(1);
        queue.interrupt();
        assert_eq!(
            queue.take(&driver, Wait::Forever, 0),
            Ok(Answer::Interrupted)
        );
        let source = Arc::new(EventSource::runtime());
        queue.push(
            &source,
            "log",
            Timestamp(0),
            Body::Json("{}".into()),
            Weight::Ordinary,
        );
        queue.close();
        assert!(matches!(
            queue.take(&driver, Wait::Forever, 0),
            Ok(Answer::Done(_))
        ));
        assert_eq!(queue.take(&driver, Wait::Forever, 0), Ok(Answer::Closed));
    }
}

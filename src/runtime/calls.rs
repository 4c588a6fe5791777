//! Host calls in flight: call id -> the future that waits for what the host says.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::{Map, Value};

use super::events::RunEvents;
use super::inject;
use super::queue::Queue;
use super::sync::{Answer, lock};
use crate::adapters::host_tool::check_answer;
use crate::adapters::model::host::{check_delta, check_reply};
use crate::adapters::{host_memory, host_sandbox};
use crate::middleware::guardrail_provider;
use crate::middleware::host_middleware::check_verdict;
use crate::ports::BoxFuture;
use crate::ports::host::{AnswerCheck, HostCall, HostCallHandle, HostCallKind, HostReply, Refusal};
use crate::protocol::decode::{unknown_member, wrong_type};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::parse;
use crate::protocol::warning::Warning;

/// Bytes that one call may have emitted and not yet passed on.
const MAX_PENDING_BYTES: usize = 16 << 20;

/// The open calls of a runtime.
#[derive(Default)]
pub struct Calls {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<u64, Arc<Slot>>,
    last_id: u64,
    /// After a shutdown every new call fails.
    closed: bool,
}

struct Slot {
    kind: HostCallKind,
    also: AnswerCheck,
    queue: Arc<Queue>,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    emitted: VecDeque<(usize, Value)>,
    emitted_bytes: usize,
    outcome: Option<Result<HostReply, Error>>,
    waker: Option<Waker>,
}

impl Slot {
    fn wake(state: &mut SlotState) -> Option<Waker> {
        state.waker.take()
    }

    fn settle(&self, outcome: Result<HostReply, Error>) {
        let waker = {
            let mut state = lock(&self.state);
            if state.outcome.is_some() {
                return;
            }
            state.outcome = Some(outcome);
            Slot::wake(&mut state)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Calls {
    /// Puts a call to the host of a run.
    ///
    /// # Errors
    /// `NoQueue` or `QueueClosed` when nobody can hear it, `Closed` after a shutdown.
    pub fn open(
        self: &Arc<Self>,
        call: HostCall,
        events: &Arc<RunEvents>,
    ) -> Result<Box<dyn HostCallHandle>, Error> {
        let queue = events.queue().cloned().ok_or_else(|| {
            Error::new(
                ErrorCode::NoQueue,
                "the run has no queue to ask the host through",
            )
        })?;
        if queue.is_closed() {
            return Err(queue_closed());
        }
        let slot = Arc::new(Slot {
            kind: call.kind,
            also: call.also.clone(),
            queue,
            state: Mutex::default(),
        });
        let id = {
            let mut table = lock(&self.table);
            inject::point("calls");
            if table.closed {
                return Err(Error::new(ErrorCode::Closed, "the runtime was shut down"));
            }
            table.last_id += 1;
            let id = table.last_id;
            table.open.insert(id, slot.clone());
            id
        };
        events.host_call(id, &call);
        let sleep = Box::pin(tokio::time::sleep(call.deadline));
        Ok(Box::new(Handle {
            calls: self.clone(),
            events: events.clone(),
            slot,
            id,
            sleep,
            ended: None,
        }))
    }

    /// What the host emits on the way.
    ///
    /// # Errors
    /// `Handle` for an id that was never given, those of decoding, `Behind` when the run has not yet taken what was emitted.
    pub fn emit(&self, id: u64, json: &str) -> Result<Answer<()>, Error> {
        let value = parse(json)?;
        let Some(slot) = self.find(id)? else {
            return Ok(Answer::Gone);
        };
        match slot.kind {
            HostCallKind::Model => check_delta(&value)?,
            HostCallKind::Tool => {}
            kind => {
                return Err(Error::new(
                    ErrorCode::Unsupported,
                    format!(
                        "a {} has nothing to emit: its answer comes in one",
                        kind.name()
                    ),
                ));
            }
        }
        let waker = {
            let mut state = lock(&slot.state);
            if state.outcome.is_some() {
                return Ok(Answer::Gone);
            }
            if state.emitted_bytes + json.len() > MAX_PENDING_BYTES {
                return Err(Error::new(
                    ErrorCode::Behind,
                    "the run has not yet taken what the call emitted before",
                )
                .retryable());
            }
            state.emitted_bytes += json.len();
            state.emitted.push_back((json.len(), value));
            Slot::wake(&mut state)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(Answer::Done(()))
    }

    /// The host's answer: `{"ok": …}` or `{"error": {"message": …}}`. The first one counts.
    ///
    /// # Errors
    /// `Handle` for an id that was never given, those of decoding; the call stays open then.
    pub fn finish(&self, id: u64, json: &str) -> Result<Answer<()>, Error> {
        let reply = decode_answer(parse(json)?)?;
        let Some(slot) = self.find(id)? else {
            return Ok(Answer::Gone);
        };
        if let HostReply::Answered(value) = &reply {
            let checked = match slot.kind {
                HostCallKind::Model => check_reply(value),
                HostCallKind::Tool => check_answer(value),
                HostCallKind::Guardrail => guardrail_provider::check_answer(value),
                HostCallKind::Middleware(point) => check_verdict(point, value),
                HostCallKind::Sandbox(op) => host_sandbox::check_answer(op, value),
                HostCallKind::Memory => host_memory::check_answer(value),
            };
            let checked = checked.and_then(|()| slot.also.check(value));
            checked.map_err(|error| error.below("/ok"))?;
        }
        // Whoever takes the call out of the table is the one whose answer counts.
        if lock(&self.table).open.remove(&id).is_none() {
            return Ok(Answer::Gone);
        }
        slot.settle(Ok(reply));
        Ok(Answer::Done(()))
    }

    /// Fails the open calls that went to a queue which is no more.
    pub fn fail_queue(&self, queue: &Arc<Queue>) {
        self.fail(|slot| Arc::ptr_eq(&slot.queue, queue), &queue_closed());
    }

    /// Fails every open call, and those to come.
    pub fn close(&self) {
        lock(&self.table).closed = true;
        self.fail(
            |_| true,
            &Error::new(ErrorCode::Closed, "the runtime was shut down"),
        );
    }

    /// How many calls are open.
    pub fn count(&self) -> usize {
        lock(&self.table).open.len()
    }

    fn fail(&self, which: impl Fn(&Slot) -> bool, error: &Error) {
        let failed: Vec<Arc<Slot>> = {
            let mut table = lock(&self.table);
            let mut ids: Vec<u64> = table
                .open
                .iter()
                .filter(|(_, slot)| which(slot))
                .map(|(id, _)| *id)
                .collect();
            // The order in which the waiting calls wake, and their events come, is not that of a hash table.
            ids.sort_unstable();
            ids.into_iter()
                .filter_map(|id| table.open.remove(&id))
                .collect()
        };
        for slot in failed {
            slot.settle(Err(error.clone()));
        }
    }

    /// The open call of this id; `None` when it is over.
    fn find(&self, id: u64) -> Result<Option<Arc<Slot>>, Error> {
        let table = lock(&self.table);
        if id == 0 || id > table.last_id {
            return Err(Error::new(
                ErrorCode::Handle,
                format!("call id {id} was never given by this runtime"),
            ));
        }
        Ok(table.open.get(&id).cloned())
    }
}

/// The queue of a run that needs the host is no more.
pub fn queue_closed() -> Error {
    Error::new(
        ErrorCode::QueueClosed,
        "the queue through which the run asks the host was freed",
    )
}

fn decode_answer(value: Value) -> Result<HostReply, Error> {
    let Value::Object(mut map) = value else {
        return Err(wrong_type(
            &value,
            "an object with the member \"ok\" or \"error\"",
        ));
    };
    map.retain(|name, _| !name.starts_with("x-"));
    if let Some(name) = map.keys().find(|name| *name != "ok" && *name != "error") {
        return Err(unknown_member(name, &["ok", "error"]));
    }
    match (map.shift_remove("ok"), map.shift_remove("error")) {
        (Some(value), None) => Ok(HostReply::Answered(value)),
        (None, Some(Value::String(message))) => Ok(HostReply::Refused(Refusal {
            message,
            ..Refusal::default()
        })),
        (None, Some(Value::Object(error))) => decode_refusal(&error)
            .map(HostReply::Refused)
            .map_err(|fault| fault.below("/error")),
        (None, Some(other)) => {
            Err(wrong_type(&other, "an object with the member \"message\"").below("/error"))
        }
        (Some(_), Some(_)) => Err(Error::at(
            ErrorCode::Conflict,
            "/error",
            "an answer has \"ok\" or \"error\", not both",
        )),
        (None, None) => Err(Error::at(
            ErrorCode::MissingMember,
            "/ok",
            "an answer needs \"ok\" or \"error\"",
        )),
    }
}

fn decode_refusal(error: &Map<String, Value>) -> Result<Refusal, Error> {
    let message = match error.get("message") {
        Some(Value::String(message)) => message.clone(),
        Some(other) => return Err(wrong_type(other, "text").below("/message")),
        None => {
            return Err(Error::at(
                ErrorCode::MissingMember,
                "/message",
                "an error needs a \"message\" for the model",
            ));
        }
    };
    let retryable = match error.get("retryable") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(retryable)) => *retryable,
        Some(other) => return Err(wrong_type(other, "true or false").below("/retryable")),
    };
    let retry_after = match error.get("retry_after_ms") {
        None | Some(Value::Null) => None,
        Some(Value::Number(ms)) => {
            Some(ms.as_u64().map(Duration::from_millis).ok_or_else(|| {
                Error::at(
                    ErrorCode::OutOfRange,
                    "/retry_after_ms",
                    "retry_after_ms must be a whole number of milliseconds, 0 or more",
                )
            })?)
        }
        Some(other) => return Err(wrong_type(other, "a number").below("/retry_after_ms")),
    };
    Ok(Refusal {
        message,
        retryable,
        retry_after,
    })
}

struct Handle {
    calls: Arc<Calls>,
    events: Arc<RunEvents>,
    slot: Arc<Slot>,
    id: u64,
    sleep: Pin<Box<tokio::time::Sleep>>,
    /// Why no answer is awaited any more; `None` while one is.
    ended: Option<&'static str>,
}

impl Handle {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<HostReply, Error>> {
        {
            let mut state = lock(&self.slot.state);
            if let Some((bytes, value)) = state.emitted.pop_front() {
                state.emitted_bytes -= bytes;
                return Poll::Ready(Ok(HostReply::Emitted(value)));
            }
            if let Some(outcome) = state.outcome.take() {
                self.ended = Some(match &outcome {
                    Ok(_) => "answered",
                    Err(error) => error.code.name(),
                });
                return Poll::Ready(outcome);
            }
            state.waker = Some(context.waker().clone());
        }
        match self.sleep.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                self.events.warn(Warning::HostCallDeadline, || {
                    format!("host call {} was not answered before its deadline", self.id)
                });
                Poll::Ready(Err(Error::new(
                    ErrorCode::DeadlineExceeded,
                    "the host did not answer before the deadline",
                )))
            }
        }
    }
}

impl HostCallHandle for Handle {
    fn next(&mut self) -> BoxFuture<'_, Result<HostReply, Error>> {
        Box::pin(poll_fn(|context| self.poll_next(context)))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.ended == Some("answered") {
            return;
        }
        // Whoever removes the call tells the host that it is over. One that was failed, by a queue or a runtime that went
        // away, is told of here too, whether the run has come to see that or not; one that was answered is not.
        let was_open = lock(&self.calls.table).open.remove(&self.id).is_some();
        let failed = match &lock(&self.slot.state).outcome {
            Some(Err(error)) => Some(error.code.name()),
            _ => None,
        };
        let reason = match self.ended.or(failed) {
            Some(reason) => reason,
            None if !was_open => return,
            None if self.sleep.is_elapsed() => "deadline_exceeded",
            None => "cancelled",
        };
        self.events.host_call_cancelled(self.id, reason);
    }
}

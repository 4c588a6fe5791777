//! One call of a model over HTTP, in any wire format: request out, reply in, streamed or whole.

use std::time::Duration;

use super::client::{Answer, Deadline, Endpoint, ReadFault};
use super::failure::{excerpt, from_reported};
use crate::adapters::model::reply::{
    MAX_ANSWER_BYTES, ReplyFault, ReplyStream, StreamEnd, WireFormat, read_whole,
};
use crate::ports::model::{DeltaSink, ModelDelta, ModelError, ModelReply};
use crate::protocol::error::{Error, ErrorCode};

/// How long what may follow a whole reply is waited for. Some endpoints never send it, nor close.
const LINGER: Duration = Duration::from_secs(2);
/// How long the end of the body is waited for after the last event.
const DRAIN: Duration = Duration::from_millis(50);
/// How much of an answer is kept to say what it was, when it was no reply.
const START_BYTES: usize = 300;

/// Sends `body` and reads the reply. `stream` says what was asked for; `timeout` bounds the whole call, without the time
/// that the listener takes.
///
/// # Errors
/// Everything that keeps a whole reply from arriving, with what had arrived.
pub(crate) async fn exchange<F: WireFormat>(
    endpoint: &Endpoint,
    body: Vec<u8>,
    stream: bool,
    timeout: Duration,
    sink: &mut dyn DeltaSink,
) -> Result<ModelReply, ModelError> {
    let deadline = Deadline::after(timeout);
    let accept = if stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let mut answer = endpoint.post(body, accept, &deadline).await?;
    if let Some(coding) = answer.coding() {
        let text = format!("the answer is coded as {coding:?}, which was not asked for");
        return Err(protocol(endpoint.redactor().clean(&text)).into());
    }
    let exchange = Exchange { endpoint };
    // What came counts, not what was asked for: some endpoints cannot stream, some always do.
    match answer.media_type().as_deref() {
        Some("text/event-stream") => exchange.read_stream::<F>(answer, deadline, sink).await,
        Some("application/json") => exchange.read_document::<F>(answer, deadline, sink).await,
        Some("text/html" | "application/xhtml+xml") => {
            let first = answer.next(&deadline).await.ok().flatten();
            let start = first.map_or_else(String::new, |bytes| {
                String::from_utf8_lossy(bytes.as_ref()).into_owned()
            });
            Err(exchange.not_a_reply(&excerpt(&start)).into())
        }
        _ if stream => exchange.read_stream::<F>(answer, deadline, sink).await,
        _ => exchange.read_document::<F>(answer, deadline, sink).await,
    }
}

struct Exchange<'a> {
    endpoint: &'a Endpoint,
}

impl Exchange<'_> {
    /// Reads a reply that streams.
    async fn read_stream<F: WireFormat>(
        &self,
        mut answer: Answer,
        mut deadline: Deadline,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let mut stream = ReplyStream::<F>::new();
        // The first bytes, for the case that this is no event stream at all.
        let mut start = Vec::new();
        let mut is_empty = true;
        let broken = loop {
            let bytes = match answer.next(&deadline).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break None,
                // The reply is whole; only what may follow it is missing.
                Err(_) if stream.has_end_mark() => break None,
                Err(ReadFault::Broken(causes)) => break Some(causes),
                Err(ReadFault::Timeout(error)) => return Err(with_partial(error.into(), stream)),
                Err(ReadFault::Silence(error)) => {
                    let stalled = ModelError {
                        has_stalled: true,
                        ..ModelError::from(error)
                    };
                    return Err(with_partial(stalled, stream));
                }
            };
            let bytes = bytes.as_ref();
            is_empty &= bytes.is_empty();
            let wanted = START_BYTES.saturating_sub(start.len()).min(bytes.len());
            start.extend_from_slice(&bytes[..wanted]);
            let fed = stream.feed(bytes);
            for delta in stream.take_deltas() {
                put(delta, sink, &mut deadline).await;
            }
            if let Err(fault) = fed {
                return Err(with_partial(self.fault(fault), stream));
            }
            if stream.is_done() {
                answer.drain(DRAIN).await;
                break None;
            }
            if stream.has_end_mark() {
                answer.wait_at_most(LINGER);
            }
        };
        let mut deltas = Vec::new();
        let end = stream.end(&mut deltas);
        for delta in deltas {
            put(delta, sink, &mut deadline).await;
        }
        match end {
            Ok(StreamEnd::Whole(reply)) => Ok(reply),
            Ok(StreamEnd::Cut(partial)) => Err(ModelError {
                partial: Some(Box::new(partial)),
                ..ModelError::from(self.truncated(broken))
            }),
            Ok(StreamEnd::NoEvents) if is_empty || broken.is_some() => {
                Err(self.truncated(broken).into())
            }
            Ok(StreamEnd::NoEvents) => {
                let start = excerpt(&String::from_utf8_lossy(&start));
                Err(self.not_a_reply(&start).into())
            }
            Err(fault) => Err(self.fault(fault)),
        }
    }

    /// Reads a reply that comes as one document.
    async fn read_document<F: WireFormat>(
        &self,
        mut answer: Answer,
        mut deadline: Deadline,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let mut body = Vec::new();
        loop {
            match answer.next(&deadline).await {
                Ok(Some(bytes)) => body.extend_from_slice(bytes.as_ref()),
                Ok(None) => break,
                Err(ReadFault::Timeout(error) | ReadFault::Silence(error)) => {
                    return Err(error.into());
                }
                Err(ReadFault::Broken(causes)) => return Err(self.truncated(Some(causes)).into()),
            }
            if body.len() > MAX_ANSWER_BYTES {
                return Err(self.fault(ReplyFault::TooLarge {
                    what: "the answer",
                    limit: MAX_ANSWER_BYTES,
                }));
            }
        }
        let text = String::from_utf8_lossy(&body);
        let mut deltas = Vec::new();
        let reply = read_whole::<F>(&text, &mut deltas).map_err(|fault| self.fault(fault))?;
        for delta in deltas {
            put(delta, sink, &mut deadline).await;
        }
        Ok(reply)
    }

    fn fault(&self, fault: ReplyFault) -> ModelError {
        let redactor = self.endpoint.redactor();
        match fault {
            ReplyFault::Reported(reported) => from_reported(&reported, redactor),
            // A garbled stream is the work of something on the way as a rule, and passes.
            ReplyFault::Format(text) => protocol(redactor.clean(&text)).retryable().into(),
            fault @ ReplyFault::TooLarge { .. } => protocol(fault.to_string()).into(),
        }
    }

    fn truncated(&self, causes: Option<Vec<String>>) -> Error {
        let mut error = Error::new(
            ErrorCode::ModelTruncated,
            match &causes {
                Some(_) => "the connection broke in the middle of the reply",
                None => "the reply's stream ended before its end mark",
            },
        )
        .retryable();
        let redactor = self.endpoint.redactor();
        error.cause = causes
            .unwrap_or_default()
            .iter()
            .map(|cause| redactor.clean(cause))
            .collect();
        error
    }

    fn not_a_reply(&self, start: &str) -> Error {
        let text = format!("the endpoint answered with something that is no reply: {start}");
        protocol(self.endpoint.redactor().clean(&text))
    }
}

/// Hands one delta on, and waits when the listener is behind.
async fn put(delta: ModelDelta, sink: &mut dyn DeltaSink, deadline: &mut Deadline) {
    sink.push(delta);
    if let Some(wait) = sink.pressure() {
        deadline.excluding(wait).await;
    }
}

fn with_partial<F: WireFormat>(mut error: ModelError, stream: ReplyStream<F>) -> ModelError {
    error.partial = stream.partial().map(Box::new);
    error
}

fn protocol(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::ModelProtocol, text)
}

//! Any endpoint that speaks the chat completions format.

mod chunk;
mod merge;
mod request;
mod stream;
mod surrogates;

use std::time::Duration;

pub use request::encode;
pub use stream::{ReplyFault, ReplyStream, StreamEnd, read_whole};

use super::http::{Answer, Deadline, Endpoint, EndpointConfig, ReadFault, excerpt, from_reported};
use crate::ports::model::{
    DeltaSink, ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest,
};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::model::OpenAiConfig;

/// Most bytes of one answer; a stream spends a few hundred on each token.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// How long usage and `[DONE]` are waited for once the reply is whole. Some endpoints never send them, nor close.
const LINGER: Duration = Duration::from_secs(2);
/// How long the end of the body is waited for after `[DONE]`.
const DRAIN: Duration = Duration::from_millis(50);

/// A model behind a chat completions endpoint.
pub struct OpenAi {
    config: OpenAiConfig,
    endpoint: Endpoint,
}

impl OpenAi {
    /// Checks the configuration, resolves its secrets through `lookup` and reads its files. Nothing is sent yet.
    ///
    /// # Errors
    /// Those of [`OpenAiConfig::validate`]; [`ErrorCode::MissingMember`] for an environment variable that is not
    /// set; [`ErrorCode::AssemblyInvalid`] for a CA file that cannot be used.
    pub fn new(
        config: OpenAiConfig,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        config.validate()?;
        let endpoint = Endpoint::new(
            &EndpointConfig {
                base_url: &config.base_url,
                path: "/chat/completions",
                api_key: config.api_key.as_ref(),
                headers: &config.headers,
                tls: config.tls.as_ref(),
                proxy: config.proxy.as_ref(),
                connect_timeout_ms: config.connect_timeout_ms,
                first_byte_timeout_ms: config.first_byte_timeout_ms,
                between_bytes_timeout_ms: config.between_bytes_timeout_ms,
            },
            lookup,
        )?;
        Ok(OpenAi { config, endpoint })
    }

    /// Reads a reply that streams.
    async fn read_stream(
        &self,
        mut answer: Answer,
        mut deadline: Deadline,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let mut stream = ReplyStream::new();
        let mut size = 0;
        // The first bytes, for the case that this is no event stream at all.
        let mut start = Vec::new();
        let broken = loop {
            let bytes = match answer.next(&deadline).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => break None,
                // The reply is whole; only what may follow it is missing.
                Err(_) if stream.has_end_mark() => break None,
                Err(ReadFault::Broken(causes)) => break Some(causes),
                Err(ReadFault::Timeout(error)) => return Err(with_partial(error.into(), stream)),
            };
            let bytes = bytes.as_ref();
            if size < 300 {
                start.extend_from_slice(&bytes[..bytes.len().min(300)]);
            }
            size += bytes.len();
            let fed = stream.feed(bytes);
            for delta in stream.take_deltas() {
                put(delta, sink, &mut deadline).await;
            }
            if let Err(fault) = fed {
                return Err(with_partial(self.fault(fault), stream));
            }
            if size > MAX_ANSWER_BYTES {
                let error = protocol(format!(
                    "the answer is larger than {MAX_ANSWER_BYTES} bytes"
                ));
                return Err(with_partial(error.into(), stream));
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
            Ok(StreamEnd::NoEvents) if size == 0 || broken.is_some() => {
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
    async fn read_document(
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
                Err(ReadFault::Timeout(error)) => return Err(error.into()),
                Err(ReadFault::Broken(causes)) => return Err(self.truncated(Some(causes)).into()),
            }
            if body.len() > MAX_ANSWER_BYTES {
                let text = format!("the answer is larger than {MAX_ANSWER_BYTES} bytes");
                return Err(protocol(text).into());
            }
        }
        let text = String::from_utf8_lossy(&body);
        let mut deltas = Vec::new();
        let reply = read_whole(&text, &mut deltas).map_err(|fault| self.fault(fault))?;
        for delta in deltas {
            put(delta, sink, &mut deadline).await;
        }
        Ok(reply)
    }

    fn fault(&self, fault: ReplyFault) -> ModelError {
        match fault {
            ReplyFault::Reported(reported) => from_reported(&reported, self.endpoint.redactor()),
            // A garbled stream is the work of something on the way as a rule, and passes.
            ReplyFault::Format(text) => protocol(self.endpoint.redactor().clean(&text))
                .retryable()
                .into(),
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

impl ModelProvider for OpenAi {
    async fn call(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        let deadline = Deadline::after(Duration::from_millis(self.config.timeout_ms));
        let accept = if self.config.stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        let body = encode(&self.config, request);
        let mut answer = self.endpoint.post(body, accept, &deadline).await?;
        // What came counts, not what was asked for: some endpoints cannot stream, some always do.
        match answer.media_type().as_deref() {
            Some("text/event-stream") => self.read_stream(answer, deadline, sink).await,
            Some("application/json") => self.read_document(answer, deadline, sink).await,
            Some("text/html" | "application/xhtml+xml") => {
                let first = answer.next(&deadline).await.ok().flatten();
                let start = first.map_or_else(String::new, |bytes| {
                    String::from_utf8_lossy(bytes.as_ref()).into_owned()
                });
                Err(self.not_a_reply(&excerpt(&start)).into())
            }
            _ if self.config.stream => self.read_stream(answer, deadline, sink).await,
            _ => self.read_document(answer, deadline, sink).await,
        }
    }
}

/// Hands one delta on, and waits when the listener is behind.
async fn put(delta: ModelDelta, sink: &mut dyn DeltaSink, deadline: &mut Deadline) {
    sink.push(delta);
    if let Some(wait) = sink.pressure() {
        deadline.excluding(wait).await;
    }
}

fn with_partial(mut error: ModelError, stream: ReplyStream) -> ModelError {
    error.partial = stream.partial().map(Box::new);
    error
}

fn protocol(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::ModelProtocol, text)
}

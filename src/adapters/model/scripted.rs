//! A model that answers from a list: tests, golden runs, and a first try without a key.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::ports::model::{
    DeltaSink, ModelDelta, ModelError, ModelProvider, ModelReply, ModelRequest, Usage,
};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{InvalidToolCall, ToolCall, content_text};
use crate::protocol::model::{
    Chunks, ModelFault, ScriptedConfig, ScriptedError, ScriptedReply, check_replies,
};

/// The `model_name` of every scripted reply.
const MODEL_NAME: &str = "scripted";

/// Answers with the reply whose index is the number of ai messages in the transcript.
#[derive(Clone, Debug)]
pub struct Scripted {
    replies: Arc<[Prepared]>,
    repeat: bool,
}

/// A reply made ready once, so that a call only copies.
#[derive(Debug)]
struct Prepared {
    reply: ModelReply,
    /// The reasoning, if any; streams first.
    reasoning: Option<String>,
    /// Pieces of the text.
    pieces: Vec<String>,
    /// Calls, valid ones first; they stream last.
    calls: Vec<ModelDelta>,
    /// Which of the calls had no id in the script.
    generated: Vec<bool>,
    delay: Duration,
    chunk_delay: Duration,
    fault: Option<Fault>,
    /// Attempts from this one on are answered.
    fault_until: u32,
}

#[derive(Debug)]
enum Fault {
    Error {
        after: usize,
        error: Error,
        retry_after: Option<Duration>,
    },
    Cut,
    Hang,
}

impl Scripted {
    /// Reads the file, if one is named, and prepares all replies.
    ///
    /// # Errors
    /// Those of [`ScriptedConfig::validate`]; [`ErrorCode::AssemblyInvalid`] at `/file` when the file cannot be read
    /// or holds no valid list.
    pub fn new(config: &ScriptedConfig) -> Result<Self, Error> {
        config.validate()?;
        let read;
        let replies = match (&config.replies, &config.file) {
            (Some(replies), _) => replies,
            (None, Some(file)) => {
                read = read_file(file)?;
                &read
            }
            (None, None) => &Vec::new(),
        };
        Ok(Scripted {
            replies: replies
                .iter()
                .enumerate()
                .map(|(index, reply)| prepare(index, reply))
                .collect(),
            repeat: config.repeat,
        })
    }

    /// The reply that answers turn `turn`, counted from 0.
    fn reply(&self, turn: usize) -> Result<&Prepared, Error> {
        let count = self.replies.len();
        let index = if self.repeat && count > 0 {
            turn % count
        } else {
            turn
        };
        self.replies.get(index).ok_or_else(|| {
            Error::new(
                ErrorCode::ScriptExhausted,
                format!("the script has no reply {turn}: it has {count}, counted from 0"),
            )
        })
    }
}

fn read_file(file: &str) -> Result<Vec<ScriptedReply>, Error> {
    let invalid = |what: String| {
        Error::at(
            ErrorCode::AssemblyInvalid,
            "/file",
            format!("the script {file:?} {what}"),
        )
    };
    let text = std::fs::read_to_string(file)
        .map_err(|error| invalid(format!("cannot be read: {error}")))?;
    let replies: Vec<ScriptedReply> = serde_json::from_str(&text)
        .map_err(|error| invalid(format!("is no list of replies: {error}")))?;
    check_replies(&replies).map_err(|error| {
        let path = error.path.as_deref().unwrap_or_default();
        invalid(format!("is wrong at {path:?}: {}", error.message))
    })?;
    Ok(replies)
}

fn prepare(index: usize, script: &ScriptedReply) -> Prepared {
    let content = match (&script.content, &script.chunks) {
        (Some(content), _) => content.0.clone(),
        (None, Some(Chunks::Texts(texts))) => Value::String(texts.concat()),
        (None, _) => Value::String(String::new()),
    };
    let text = content_text(&content);
    let pieces = match &script.chunks {
        Some(Chunks::Texts(texts)) => texts.clone(),
        Some(Chunks::Pieces(pieces)) => split(&text, *pieces),
        None => split(&text, 1),
    };
    let has_calls = !script.tool_calls.is_empty() || !script.invalid_tool_calls.is_empty();
    let finish_reason =
        script
            .finish_reason
            .as_deref()
            .unwrap_or(if has_calls { "tool_calls" } else { "stop" });
    let mut reply = ModelReply {
        content,
        usage: script.usage.as_ref().map(|usage| Usage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage
                .total_tokens
                .unwrap_or(usage.input_tokens.saturating_add(usage.output_tokens)),
            cache_read: usage.cache_read,
            cache_creation: usage.cache_creation,
            reasoning: usage.reasoning,
        }),
        response_metadata: Map::from_iter([
            ("finish_reason".to_owned(), finish_reason.into()),
            ("model_name".to_owned(), MODEL_NAME.into()),
        ]),
        ..ModelReply::default()
    };
    if let Some(reasoning) = &script.reasoning {
        reply
            .additional_kwargs
            .insert("reasoning_content".to_owned(), reasoning.clone().into());
    }
    reply.tool_calls = script
        .tool_calls
        .iter()
        .map(|call| ToolCall {
            name: call.name.clone(),
            args: call.args.clone(),
            id: call.id.clone(),
        })
        .collect();
    reply.invalid_tool_calls = script
        .invalid_tool_calls
        .iter()
        .map(|call| InvalidToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            args: call.args.clone(),
            error: Some(match &call.error {
                Some(error) => error.clone(),
                None => "the arguments are no JSON object".to_owned(),
            }),
        })
        .collect();
    let generated: Vec<bool> = ids(&mut reply).map(|id| id.is_none()).collect();
    number_calls(&mut reply, &generated, index);
    Prepared {
        calls: call_deltas(&reply),
        reply,
        reasoning: script.reasoning.clone().filter(|text| !text.is_empty()),
        pieces,
        generated,
        delay: Duration::from_millis(script.delay_ms),
        chunk_delay: Duration::from_millis(script.chunk_delay_ms),
        fault: fault(index, script),
        fault_until: script.fail_first.unwrap_or(u32::MAX),
    }
}

fn fault(index: usize, script: &ScriptedReply) -> Option<Fault> {
    if script.cut {
        return Some(Fault::Cut);
    }
    if script.hang {
        return Some(Fault::Hang);
    }
    let passing = ScriptedError {
        code: ModelFault::ModelServer,
        message: None,
        after_chunks: None,
        retryable: None,
        retry_after_ms: None,
        status: None,
        provider_code: None,
    };
    let wanted = match (&script.error, script.fail_first) {
        (Some(error), _) => error,
        (None, Some(_)) => &passing,
        (None, None) => return None,
    };
    let message = wanted
        .message
        .clone()
        .unwrap_or_else(|| format!("reply {index} of the script fails on purpose"));
    let mut error = Error::new(wanted.code.code(), message);
    error.retryable = wanted.retryable.unwrap_or(wanted.code.passes());
    if wanted.status.is_some() || wanted.provider_code.is_some() {
        error = error.said(wanted.status, wanted.provider_code.clone());
    }
    Some(Fault::Error {
        after: wanted.after_chunks.unwrap_or(0) as usize,
        error,
        retry_after: wanted.retry_after_ms.map(Duration::from_millis),
    })
}

/// The ids of all calls, valid ones first.
fn ids(reply: &mut ModelReply) -> impl Iterator<Item = &mut Option<String>> {
    let valid = reply.tool_calls.iter_mut().map(|call| &mut call.id);
    valid.chain(reply.invalid_tool_calls.iter_mut().map(|call| &mut call.id))
}

/// Gives the calls that had no id the id of their turn and position.
fn number_calls(reply: &mut ModelReply, generated: &[bool], turn: usize) {
    for (position, (id, generated)) in ids(reply).zip(generated).enumerate() {
        if *generated {
            *id = Some(format!("call_{turn}_{position}"));
        }
    }
}

fn call_deltas(reply: &ModelReply) -> Vec<ModelDelta> {
    let valid = reply.tool_calls.iter().map(|call| {
        let args = Value::Object(call.args.clone()).to_string();
        (call.id.clone(), Some(call.name.clone()), args)
    });
    let invalid = reply.invalid_tool_calls.iter().map(|call| {
        let args = call.args.clone().unwrap_or_default();
        (call.id.clone(), call.name.clone(), args)
    });
    (0..)
        .zip(valid.chain(invalid))
        .map(|(index, (id, name, args))| ModelDelta::ToolCall {
            index,
            id,
            name,
            args,
        })
        .collect()
}

/// Cuts `text` between characters into `pieces` pieces of about one size, none of them empty.
fn split(text: &str, pieces: u64) -> Vec<String> {
    let chars = text.chars().count();
    let pieces = usize::try_from(pieces).unwrap_or(usize::MAX).min(chars);
    let mut rest = text.chars();
    (0..pieces)
        .map(|piece| {
            // The first pieces take one character more when it does not come out even.
            let size = chars / pieces + usize::from(piece < chars % pieces);
            rest.by_ref().take(size).collect()
        })
        .collect()
}

impl Prepared {
    /// What had arrived when the stream broke: all of it, or the first `pieces` pieces.
    fn partial(&self, pieces: Option<usize>) -> Box<ModelReply> {
        let mut partial = match pieces {
            None => self.reply.clone(),
            Some(pieces) => ModelReply {
                content: Value::String(self.pieces[..pieces].concat()),
                additional_kwargs: self.reply.additional_kwargs.clone(),
                response_metadata: self.reply.response_metadata.clone(),
                ..ModelReply::default()
            },
        };
        // The end mark and the usage are what did not arrive.
        partial.response_metadata.shift_remove("finish_reason");
        partial.usage = None;
        Box::new(partial)
    }

    /// Streams reasoning and the first `pieces` pieces.
    async fn stream(&self, pieces: usize, sink: &mut dyn DeltaSink) {
        let reasoning = self.reasoning.iter().cloned().map(ModelDelta::Reasoning);
        for delta in reasoning {
            put(sink, delta).await;
        }
        for (position, piece) in self.pieces[..pieces].iter().enumerate() {
            if position > 0 {
                pause(self.chunk_delay).await;
            }
            put(sink, ModelDelta::Text(piece.clone())).await;
        }
    }

    async fn stream_whole(&self, calls: &[ModelDelta], sink: &mut dyn DeltaSink) {
        self.stream(self.pieces.len(), sink).await;
        for call in calls {
            put(sink, call.clone()).await;
        }
    }
}

async fn put(sink: &mut dyn DeltaSink, delta: ModelDelta) {
    sink.push(delta);
    if let Some(wait) = sink.pressure() {
        wait.await;
    }
}

/// Waits, without a timer when there is nothing to wait for.
async fn pause(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

impl ModelProvider for Scripted {
    async fn call(
        &self,
        request: &ModelRequest,
        sink: &mut dyn DeltaSink,
    ) -> Result<ModelReply, ModelError> {
        #[cfg(feature = "test-panics")]
        super::invariant::check(request)?;
        let turn = request.messages.ai_messages();
        let prepared = self.reply(turn)?;
        pause(prepared.delay).await;
        match &prepared.fault {
            Some(fault) if request.attempt < prepared.fault_until => match fault {
                Fault::Error {
                    after,
                    error,
                    retry_after,
                } => {
                    let pieces = (*after).min(prepared.pieces.len());
                    if *after > 0 {
                        prepared.stream(pieces, sink).await;
                    }
                    Err(ModelError {
                        retry_after: *retry_after,
                        partial: (*after > 0).then(|| prepared.partial(Some(pieces))),
                        ..ModelError::from(error.clone())
                    })
                }
                Fault::Cut => {
                    prepared.stream_whole(&prepared.calls, sink).await;
                    let cut = Error::new(
                        ErrorCode::ModelTruncated,
                        "the stream ended before its end mark",
                    );
                    Err(ModelError {
                        partial: Some(prepared.partial(None)),
                        ..ModelError::from(cut.retryable())
                    })
                }
                Fault::Hang => {
                    prepared.stream_whole(&prepared.calls, sink).await;
                    std::future::pending().await
                }
            },
            _ => {
                let mut reply = prepared.reply.clone();
                // A script that starts again must not repeat the ids of its first round.
                if turn >= self.replies.len() && prepared.generated.contains(&true) {
                    number_calls(&mut reply, &prepared.generated, turn);
                    prepared.stream_whole(&call_deltas(&reply), sink).await;
                } else {
                    prepared.stream_whole(&prepared.calls, sink).await;
                }
                Ok(reply)
            }
        }
    }
}

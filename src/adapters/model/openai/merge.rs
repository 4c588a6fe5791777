//! Merges the chunks of a stream, or the one message of a whole reply, into a reply.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::chunk::{Arguments, CallPiece, Choice, Chunk, Content, Delta, FunctionPiece, Part};
use crate::adapters::model::calls::{self, MAX_CALLS, parse_object};
use crate::adapters::model::lenient::{Budget, Extra, Loose};
use crate::adapters::model::reply::{MAX_REPLY_BYTES, ReplyFault, weight};
use crate::adapters::model::surrogates::{self, Joined};
use crate::ports::model::{ModelDelta, ModelReply, Usage};

/// Most members unknown to the format that are kept of one reply.
const MAX_EXTRAS: usize = 64;

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub(super) struct Merger {
    text: Joined,
    reasoning: Joined,
    refusal: Joined,
    calls: Vec<Call>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    id: Option<String>,
    model: Option<String>,
    /// Members of chunks and choices that the format does not know; the last value of each.
    extras: Vec<(String, Box<RawValue>)>,
    /// Members of the message that the format does not know.
    kwargs: Map<String, Value>,
    logprobs: Map<String, Value>,
    /// Bytes that are kept, about.
    size: usize,
    /// What unknown members may take.
    budget: Budget,
}

/// A tool call under construction.
#[derive(Debug, Default)]
struct Call {
    /// The label that the endpoint joins its pieces by; not a position.
    label: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    args: Joined,
    /// Id and name were handed on.
    announced: bool,
}

impl Merger {
    /// Why the model stopped, once the endpoint has said so: its end mark.
    pub(super) fn has_end_mark(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// Whether anything of a message has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
            && self.reasoning.is_empty()
            && self.refusal.is_empty()
            && self.calls.is_empty()
    }

    /// How many bytes are kept, about.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Says how much text the next chunk came in.
    pub(super) fn expect(&mut self, bytes: usize) {
        self.budget.grow(bytes);
    }

    /// Adds one chunk; what is new in it goes to `out`.
    pub(super) fn add(
        &mut self,
        chunk: Chunk<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault> {
        first(&mut self.id, chunk.id);
        first(&mut self.model, chunk.model);
        if let Some(usage) = read_usage(&chunk.usage.0) {
            // Usage is cumulative: the last word counts.
            self.usage = Some(usage);
        }
        for extra in chunk.extra {
            self.keep(extra);
        }
        for choice in chunk.choices {
            // One answer was asked for; further choices are someone's invention.
            if choice.index.number().unwrap_or(0) == 0 {
                self.add_choice(choice, out)?;
            }
        }
        Ok(())
    }

    fn add_choice(
        &mut self,
        choice: Choice<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault> {
        if let Some(delta) = choice.delta {
            self.add_delta(delta, out)?;
        } else if let Some(message) = choice.message
            && self.is_empty()
        {
            // Some streams close with the whole message; what was streamed must not count twice.
            self.add_delta(message, out)?;
        }
        // "" and null mean: not finished.
        if let Some(reason) = choice.finish_reason.text() {
            self.finish_reason = Some(reason.into_owned());
        }
        for (name, value) in choice.extra {
            if name == "logprobs" {
                // Only those who ask get them, so they count against the reply as a whole.
                let heavy = weight(value.get());
                if self.size + heavy <= MAX_REPLY_BYTES
                    && let Ok(Value::Object(logprobs)) = serde_json::from_str(value.get())
                {
                    self.size += heavy;
                    logprobs
                        .into_iter()
                        .for_each(|(name, value)| append(&mut self.logprobs, &name, value));
                }
            } else {
                self.keep((name, value));
            }
        }
        Ok(())
    }

    fn add_delta(&mut self, delta: Delta<'_>, out: &mut Vec<ModelDelta>) -> Result<(), ReplyFault> {
        // Endpoints that write both names write the same text under them.
        let reasoning = delta.reasoning_content.text().or(delta.reasoning.text());
        if let Some(reasoning) = reasoning {
            self.add_reasoning(&reasoning, out);
        }
        match delta.content {
            Content::Nothing => {}
            Content::Text(text) => self.add_text(&text, out),
            Content::Parts(parts) => {
                parts.into_iter().for_each(|part| self.add_part(part, out));
            }
        }
        if let Some(refusal) = delta.refusal.text() {
            self.size += refusal.len();
            self.refusal.push(&refusal);
        }
        for (position, piece) in delta.tool_calls.into_iter().enumerate() {
            self.add_call(piece, position, out)?;
        }
        if let Some(function) = delta.function_call {
            let piece = CallPiece {
                function: Some(function),
                ..CallPiece::default()
            };
            self.add_call(piece, 0, out)?;
        }
        for (name, value) in delta.extra {
            // Lists and objects carry something (citations, opaque reasoning); single words are decoration.
            if value.get().starts_with(['[', '{'])
                && (self.kwargs.len() < MAX_EXTRAS || self.kwargs.contains_key(&*name))
                && self.budget.take(value.get())
                && let Ok(value) = serde_json::from_str(value.get())
            {
                append(&mut self.kwargs, &name, value);
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str, out: &mut Vec<ModelDelta>) {
        if !text.is_empty() {
            let new = self.text.push(text);
            self.size += new.len();
            if !new.is_empty() {
                out.push(ModelDelta::Text(new.to_owned()));
            }
        }
    }

    fn add_reasoning(&mut self, text: &str, out: &mut Vec<ModelDelta>) {
        let new = self.reasoning.push(text);
        self.size += new.len();
        if !new.is_empty() {
            out.push(ModelDelta::Reasoning(new.to_owned()));
        }
    }

    fn add_part(&mut self, part: Part<'_>, out: &mut Vec<ModelDelta>) {
        if let Some(text) = part.text.as_str() {
            self.add_text(text, out);
            return;
        }
        match part.thinking {
            Content::Nothing => {}
            Content::Text(text) => self.add_reasoning(&text, out),
            Content::Parts(parts) => parts
                .iter()
                .filter_map(|part| part.text.as_str())
                .for_each(|text| self.add_reasoning(text, out)),
        }
    }

    fn add_call(
        &mut self,
        piece: CallPiece<'_>,
        position: usize,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), ReplyFault> {
        let label = piece.index.number();
        let id = piece.id.text();
        let FunctionPiece { name, arguments } = piece.function.unwrap_or_default();
        let name = name.text();
        let joined = match label {
            Some(label) => self.labelled(label, id.as_deref(), name.is_some()),
            None => self.unlabelled(id.as_deref(), name.as_deref(), position),
        };
        let place = match joined {
            Some(place) => place,
            // A piece that says nothing begins no call.
            None if id.is_none() && name.is_none() && matches!(arguments, Arguments::Nothing) => {
                return Ok(());
            }
            None if self.calls.len() == MAX_CALLS => {
                return Err(ReplyFault::TooLarge {
                    what: "the number of tool calls",
                    limit: MAX_CALLS,
                });
            }
            None => {
                self.calls.push(Call {
                    label,
                    ..Call::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[place];
        let mut new_id = None;
        if call.id.is_none() {
            call.id = id.map(Into::into);
            new_id.clone_from(&call.id);
        }
        if call.name.is_none() {
            call.name = name.map(Into::into);
        }
        let new_args = match arguments {
            Arguments::Text(text) => call.args.push(&text),
            // Some endpoints send the arguments as the object itself, whole.
            Arguments::Raw(object) if call.args.is_empty() => call.args.push(object.get()),
            Arguments::Raw(_) | Arguments::Nothing => "",
        };
        self.size += new_args.len();
        if call.name.is_none() {
            // Arguments that come before the name are held back.
            return Ok(());
        }
        let first = !call.announced;
        call.announced = true;
        let args = if first { call.args.as_str() } else { new_args };
        if first || new_id.is_some() || !args.is_empty() {
            out.push(ModelDelta::ToolCall {
                index: place as u32,
                id: if first { call.id.clone() } else { new_id },
                name: call.name.clone().filter(|_| first),
                args: args.to_owned(),
            });
        }
        Ok(())
    }

    /// The call that a piece with an index belongs to.
    ///
    /// Endpoints that number every call 0 give a new id and a name with each; an id alone does not begin a new call,
    /// because others make up an id for every piece.
    fn labelled(&self, label: u64, id: Option<&str>, named: bool) -> Option<usize> {
        let place = self
            .calls
            .iter()
            .rposition(|call| call.label == Some(label))?;
        let call = &self.calls[place];
        let other_id = matches!((id, &call.id), (Some(new), Some(old)) if new != old);
        if !(other_id && named && call.name.is_some()) {
            return Some(place);
        }
        self.calls.iter().rposition(|call| call.id.as_deref() == id)
    }

    /// The call that a piece without an index belongs to: by its id, else by order. `position` is its place in the
    /// list of its chunk.
    fn unlabelled(&self, id: Option<&str>, name: Option<&str>, position: usize) -> Option<usize> {
        if id.is_some()
            && let Some(place) = self.calls.iter().rposition(|call| call.id.as_deref() == id)
        {
            return Some(place);
        }
        let last = self.calls.len().checked_sub(1)?;
        let call = &self.calls[last];
        let fits_id = id.is_none() || call.id.is_none();
        let joins = match (name, call.name.as_deref()) {
            (None, _) => fits_id,
            // The name that was still missing.
            (Some(_), None) => fits_id,
            // The same name again is either repeated, or another call of the same tool.
            (Some(new), Some(old)) => {
                fits_id
                    && id.is_none()
                    && new == old
                    && position == 0
                    && !call.args.is_empty()
                    && parse_object(call.args.as_str()).is_err()
            }
        };
        joins.then_some(last)
    }

    fn keep(&mut self, (name, value): Extra<'_>) {
        if value.get() == "null" {
            return;
        }
        let room = self.extras.len() < MAX_EXTRAS;
        match self.extras.iter_mut().find(|(known, _)| *known == name) {
            // Most of them are the same in every chunk.
            Some((_, kept)) if kept.get() == value.get() => {}
            Some((_, kept)) => {
                self.size = (self.size + value.get().len()).saturating_sub(kept.get().len());
                *kept = value.to_owned();
            }
            None if room => {
                self.size += name.len() + value.get().len();
                self.extras.push((name.into_owned(), value.to_owned()));
            }
            None => {}
        }
    }

    /// The reply. `cut` says that it did not come to its end, so that a call without arguments is not taken for a
    /// call with none; `has_marks` that halves of characters were marked in what came.
    pub(super) fn finish(mut self, cut: bool, has_marks: bool) -> ModelReply {
        let stopped_early = matches!(
            self.finish_reason.as_deref(),
            Some("length" | "content_filter")
        );
        let mut reply = ModelReply::default();
        for call in std::mem::take(&mut self.calls) {
            let Call { id, name, args, .. } = call;
            match calls::close(id, name, args.finish(), cut || stopped_early) {
                Ok(call) => reply.tool_calls.push(call),
                Err(call) => reply.invalid_tool_calls.push(call),
            }
        }
        let has_calls = !reply.tool_calls.is_empty() || !reply.invalid_tool_calls.is_empty();
        if self.finish_reason.is_none() && !cut {
            self.finish_reason = Some(if has_calls { "tool_calls" } else { "stop" }.to_owned());
        }
        reply.content = Value::String(self.text.finish());
        reply.usage = self.usage;
        for (name, text) in [
            ("reasoning_content", self.reasoning),
            ("refusal", self.refusal),
        ] {
            let text = text.finish();
            if !text.is_empty() {
                reply
                    .additional_kwargs
                    .insert(name.to_owned(), Value::String(text));
            }
        }
        reply.additional_kwargs.extend(self.kwargs);
        for (name, text) in [
            ("finish_reason", self.finish_reason),
            ("model_name", self.model),
            ("id", self.id),
        ] {
            if let Some(text) = text {
                reply
                    .response_metadata
                    .insert(name.to_owned(), Value::String(text));
            }
        }
        for (name, value) in self.extras {
            if !reply.response_metadata.contains_key(&name)
                && self.budget.take(value.get())
                && let Ok(value) = serde_json::from_str(value.get())
            {
                reply.response_metadata.insert(name, value);
            }
        }
        if !self.logprobs.is_empty() {
            reply
                .response_metadata
                .insert("logprobs".to_owned(), Value::Object(self.logprobs));
        }
        if has_marks {
            let kwargs = reply.additional_kwargs.values_mut();
            kwargs
                .chain(reply.response_metadata.values_mut())
                .for_each(surrogates::clean);
        }
        reply
    }
}

/// Keeps the first text that is not empty.
fn first(kept: &mut Option<String>, new: Loose<'_>) {
    if kept.is_none() {
        *kept = new.text().map(Into::into);
    }
}

/// Lists grow, anything else is replaced; null says nothing.
fn append(map: &mut Map<String, Value>, name: &str, value: Value) {
    match (map.get_mut(name), value) {
        (_, Value::Null) => {}
        (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
        (Some(known), value) => *known = value,
        (None, value) => {
            map.insert(name.to_owned(), value);
        }
    }
}

/// Reads a usage object. Numbers that are no counts are taken as not said.
fn read_usage(usage: &Value) -> Option<Usage> {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let detail = |object: &str, name: &str| usage.get(object)?.get(name)?.as_u64();
    let input = count("prompt_tokens");
    let output = count("completion_tokens");
    if input.is_none() && output.is_none() {
        return None;
    }
    let (input_tokens, output_tokens) = (input.unwrap_or(0), output.unwrap_or(0));
    Some(Usage {
        input_tokens,
        output_tokens,
        total_tokens: count("total_tokens")
            .unwrap_or_else(|| input_tokens.saturating_add(output_tokens)),
        cache_read: detail("prompt_tokens_details", "cached_tokens")
            .or_else(|| count("prompt_cache_hit_tokens")),
        cache_creation: None,
        reasoning: detail("completion_tokens_details", "reasoning_tokens"),
    })
}

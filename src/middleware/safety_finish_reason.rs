//! Never lets a reply act that its provider ended for safety: what had come of its calls may be half of what was meant.
//!
//! The calls go, an explanation comes, and a record of what was taken out stays with the message: names and counts, never
//! arguments, which are what the provider meant to hold back. The host hears of it as a warning (MW-SAF-4).
//!
//! Source: DeerFlow `SafetyFinishReasonMiddleware`, MW-SAF-1 to 6.

use serde_json::{Map, Value, json};

use super::reply::{
    append_text, has_visible_content, last_reply, members, quoted_name, with_calls,
};
use super::termination::{Detector, Termination, detect};
use super::{Hook, HookContext, HookOutput, Hooks, Middleware};
use crate::protocol::app_config::{Feature, SafetyDetectorConfig, SafetyFinishReasonConfig};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Fields, Message};
use crate::protocol::run::StopReason;
use crate::protocol::warning::Warning;
use crate::state::update::StateUpdate;

/// The member of `additional_kwargs` that has the record.
pub const RECORD: &str = "safety_termination";

/// Most tool names in the text of a warning.
const MAX_WARNED_NAMES: usize = 10;

/// The detectors there are, with the classes that DeerFlow has for them.
fn built_in() -> [(&'static str, Detector); 3] {
    [
        (
            "OpenAICompatibleContentFilterDetector",
            Detector::new(
                "openai_compatible_content_filter",
                "finish_reason",
                &["content_filter"],
            )
            .with_extra("content_filter_results"),
        ),
        (
            "AnthropicRefusalDetector",
            Detector::new("anthropic_refusal", "stop_reason", &["refusal"]),
        ),
        (
            "GeminiSafetyDetector",
            Detector::new(
                "gemini_safety",
                "finish_reason",
                &[
                    "SAFETY",
                    "BLOCKLIST",
                    "PROHIBITED_CONTENT",
                    "SPII",
                    "RECITATION",
                    "IMAGE_SAFETY",
                    "IMAGE_PROHIBITED_CONTENT",
                    "IMAGE_RECITATION",
                ],
            )
            .with_extra("safety_ratings"),
        ),
    ]
}

/// See the module.
pub struct SafetyFinishReason {
    enabled: bool,
    detectors: Vec<Detector>,
}

impl SafetyFinishReason {
    /// As configured.
    ///
    /// # Errors
    /// `OutOfRange` at `/detectors` when it is empty; `UnknownVariant`, `UnknownMember` or `WrongType` below an entry that is
    /// no detector (MW-SAF-5). Paths begin at the section.
    pub fn new(config: &SafetyFinishReasonConfig) -> Result<Self, Error> {
        let detectors = match &config.detectors {
            None => built_in()
                .into_iter()
                .map(|(_, detector)| detector)
                .collect(),
            Some(entries) if entries.is_empty() => {
                return Err(Error::at(
                    ErrorCode::OutOfRange,
                    "/detectors",
                    "without a detector nothing is detected; leave the list out for the built-in ones, or set enabled to false",
                ));
            }
            Some(entries) => entries
                .iter()
                .enumerate()
                .map(|(place, entry)| {
                    configured(entry).map_err(|error| error.below(&format!("/detectors/{place}")))
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(SafetyFinishReason {
            enabled: config.is_enabled(),
            detectors,
        })
    }
}

fn configured(entry: &SafetyDetectorConfig) -> Result<Detector, Error> {
    let name = entry.class.rsplit([':', '.']).next().unwrap_or_default();
    let known = built_in()
        .into_iter()
        .find(|(known, detector)| *known == name || detector.name == name);
    let Some((_, mut detector)) = known else {
        let known = built_in().map(|(class, _)| class).join(", ");
        return Err(Error::at(
            ErrorCode::UnknownVariant,
            "/use",
            format!("there is no detector of this name; there are {known}"),
        ));
    };
    let parameter = format!("{}s", detector.field);
    for (name, value) in &entry.config.0 {
        if *name != parameter {
            return Err(Error::at(
                ErrorCode::UnknownMember,
                format!("/config/{}", crate::protocol::json::pointer_token(name)),
                format!("this detector takes {parameter:?} and nothing else"),
            ));
        }
        let texts: Option<Vec<String>> = value.as_array().and_then(|list| {
            list.iter()
                .map(|text| text.as_str().map(str::to_owned))
                .collect()
        });
        detector.values = texts.ok_or_else(|| {
            Error::at(
                ErrorCode::WrongType,
                format!("/config/{parameter}"),
                "this must be a list of texts",
            )
        })?;
    }
    Ok(detector)
}

/// The reply without its calls, with the explanation and the record.
fn suppressed(reply: &Message, found: &Termination) -> Fields {
    let calls = &reply.fields().tool_calls;
    let names: Vec<&str> = calls
        .iter()
        .map(|call| name_or_unknown(&call.name))
        .collect();
    let record = json!({
        "detector": found.detector,
        "reason_field": found.field,
        "reason_value": found.value,
        "suppressed_tool_call_count": names.len(),
        "suppressed_tool_call_names": names,
        "extras": found.extras,
    });
    let said = format!("{}: {}", found.field, quoted_name(&found.value));
    let explanation = if calls.is_empty() {
        format!(
            "The model's provider ended this reply for safety ({said}) before it said anything. Put the request in other \
             words, or ask for less of it."
        )
    } else {
        format!(
            "The model's provider ended this reply for safety ({said}). The tool calls in it were not run, because parts \
             of them may be missing. Put the request in other words, or ask for less of it."
        )
    };
    let content = append_text(&reply.fields().content, &explanation);
    let mut fields = with_calls(reply, Vec::new(), Some(content));
    fields.additional_kwargs.insert(RECORD.to_owned(), record);
    fields
}

fn name_or_unknown(name: &str) -> &str {
    if name.is_empty() { "unknown" } else { name }
}

fn warning(reply: &Message, found: &Termination) -> String {
    let calls = &reply.fields().tool_calls;
    let names: Vec<String> = calls
        .iter()
        .take(MAX_WARNED_NAMES)
        .map(|call| quoted_name(name_or_unknown(&call.name)))
        .collect();
    format!(
        "the provider ended message {} for safety ({}: {}, {}); tool calls not run: {}{}{}",
        reply.id().unwrap_or_default(),
        found.field,
        quoted_name(&found.value),
        found.detector,
        calls.len(),
        if names.is_empty() { "" } else { ", " },
        names.join(", "),
    )
}

impl Middleware for SafetyFinishReason {
    fn name(&self) -> &str {
        "safety_finish_reason"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            after_model: self.enabled,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        members([(
            "detectors",
            self.detectors.iter().map(Detector::policy).collect(),
        )])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        if hook != Hook::AfterModel || !self.enabled {
            return Ok(HookOutput::Continue);
        }
        let Some(reply) = last_reply(&context.state) else {
            return Ok(HookOutput::Continue);
        };
        let fields = reply.fields();
        if fields.tool_calls.is_empty() && has_visible_content(&fields.content) {
            return Ok(HookOutput::Continue);
        }
        let Some(found) = detect(&self.detectors, fields) else {
            return Ok(HookOutput::Continue);
        };
        let signals = &context.run.signals;
        signals.stop(StopReason::SafetyCapped);
        signals.warn(Warning::SafetyTermination, warning(reply, &found));
        let message = Message::new(suppressed(reply, &found));
        Ok(HookOutput::Update(StateUpdate::messages(vec![message])))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::middleware::reply::tests::reply;
    use crate::middleware::stage::{Stage, run_as};
    use crate::protocol::app_config::OpaqueSettings;

    fn guard() -> SafetyFinishReason {
        SafetyFinishReason::new(&SafetyFinishReasonConfig::default()).unwrap()
    }

    fn writes_a_file() -> Value {
        json!([{"name": "write_file", "args": {"content": "secret"}, "id": "c1", "type": "tool_call"}])
    }

    #[test]
    fn xt_6_and_saf_3_calls_of_a_reply_that_was_cut_go_and_a_record_stays() {
        let facts = run_as("t", "r");
        let mut stage = Stage::new(vec![reply(json!({
            "content": "I will",
            "tool_calls": writes_a_file(),
            "additional_kwargs": {"tool_calls": [{"id": "c1"}]},
            "response_metadata": {"finish_reason": "content_filter", "content_filter_results": {"hate": 1}},
        }))]);
        stage.after_model(&guard(), &facts);
        let last = stage.last();
        let fields = last.fields();
        assert!(fields.tool_calls.is_empty());
        assert!(last.text().starts_with("I will\n\n") && last.text().contains("not run"));
        assert_eq!(fields.response_metadata["finish_reason"], "content_filter");
        assert_eq!(
            Value::Object(fields.additional_kwargs.clone()),
            json!({"safety_termination": {
                "detector": "openai_compatible_content_filter",
                "reason_field": "finish_reason",
                "reason_value": "content_filter",
                "suppressed_tool_call_count": 1,
                "suppressed_tool_call_names": ["write_file"],
                "extras": {"content_filter_results": {"hate": 1}},
            }})
        );
        assert_eq!(facts.signals.stop_reason(), Some(StopReason::SafetyCapped));
        let warnings = facts.signals.take_warnings().unwrap();
        let (warning, text) = warnings.iter().next().unwrap();
        assert_eq!(warning.code(), "safety_termination");
        assert!(
            text.contains("write_file") && !text.contains("secret"),
            "{text}"
        );
    }

    #[test]
    fn saf_3_an_empty_reply_is_explained_with_another_text() {
        let facts = run_as("t", "r");
        let cut = json!({"response_metadata": {"stop_reason": "refusal"}});
        let mut stage = Stage::new(vec![reply(cut)]);
        stage.after_model(&guard(), &facts);
        let last = stage.last();
        assert!(last.text().contains("before it said anything"), "{last:?}");
        let record = &last.fields().additional_kwargs[RECORD];
        assert_eq!(record["suppressed_tool_call_names"], json!([]));
        assert_eq!(record["detector"], "anthropic_refusal");
        assert_eq!(record["extras"], json!({}));
    }

    #[test]
    fn saf_1_text_without_calls_is_left_alone() {
        let facts = run_as("t", "r");
        for members in [
            json!({"content": "half", "response_metadata": {"finish_reason": "content_filter"}}),
            json!({"content": "x", "tool_calls": writes_a_file(), "response_metadata": {"finish_reason": "tool_calls"}}),
            json!({"content": "", "response_metadata": {"finish_reason": "stop"}}),
        ] {
            let mut stage = Stage::new(vec![reply(members)]);
            assert_eq!(stage.after_model(&guard(), &facts), None);
        }
        assert_eq!(facts.signals.stop_reason(), None);
    }

    #[test]
    fn saf_2_every_signal_is_known() {
        for (field, values) in [
            (
                "finish_reason",
                "content_filter Content_Filter safety BLOCKLIST PROHIBITED_CONTENT SPII RECITATION",
            ),
            (
                "finish_reason",
                "IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION",
            ),
            ("stop_reason", "refusal"),
        ] {
            for value in values.split(' ') {
                let facts = run_as("t", "r");
                let mut stage =
                    Stage::new(vec![reply(json!({"response_metadata": {field: value}}))]);
                assert!(stage.after_model(&guard(), &facts).is_some(), "{value}");
            }
        }
    }

    #[test]
    fn saf_5_own_detectors_replace_the_built_in_ones() {
        let entry = |class: &str, config: Value| SafetyDetectorConfig {
            class: class.to_owned(),
            config: OpaqueSettings(config.as_object().unwrap().clone()),
        };
        let with = |entries: Vec<SafetyDetectorConfig>| {
            SafetyFinishReason::new(&SafetyFinishReasonConfig {
                detectors: Some(entries),
                ..Default::default()
            })
        };
        let own = with(vec![entry(
            "deerflow.agents.middlewares.safety_termination_detectors:OpenAICompatibleContentFilterDetector",
            json!({"finish_reasons": ["sensitive"]}),
        )])
        .unwrap();
        let acts = |reason: &str| {
            let mut stage = Stage::new(vec![reply(
                json!({"response_metadata": {"finish_reason": reason}}),
            )]);
            stage.after_model(&own, &run_as("t", "r")).is_some()
        };
        assert!(acts("SENSITIVE") && !acts("content_filter") && !acts("SAFETY"));
        assert_eq!(
            Value::Object(own.policy()),
            json!({"detectors": [{
                "name": "openai_compatible_content_filter",
                "parameters": {"finish_reasons": ["sensitive"]},
            }]})
        );

        let refused = |entries| {
            let error = with(entries).err().unwrap();
            (error.code, error.path.unwrap())
        };
        assert_eq!(
            refused(vec![]),
            (ErrorCode::OutOfRange, "/detectors".into())
        );
        for (class, config, code, path) in [
            (
                "mine:Detector",
                json!({}),
                ErrorCode::UnknownVariant,
                "/detectors/1/use",
            ),
            (
                "anthropic_refusal",
                json!({"finish_reasons": []}),
                ErrorCode::UnknownMember,
                "/detectors/1/config/finish_reasons",
            ),
            (
                "AnthropicRefusalDetector",
                json!({"stop_reasons": ["x", 1]}),
                ErrorCode::WrongType,
                "/detectors/1/config/stop_reasons",
            ),
        ] {
            let entries = vec![entry("gemini_safety", json!({})), entry(class, config)];
            assert_eq!(refused(entries), (code, path.to_owned()));
        }
    }
}

//! Tells the host when an answer was cut at the model's length limit.
//!
//! The answer stays as it is. Calls of such a reply are another matter: arguments that were cut are no calls by the time
//! they get here (the readers of the wire formats see to that), and a reply that calls something is no answer.
//!
//! Source: DeerFlow `ModelLengthFinishReasonMiddleware`, MW-LEN-1 and 2.

use serde_json::{Map, Value};

use super::reply::{FinishReason, has_tool_intent, has_visible_content, last_reply, members};
use super::termination::{Detector, detect};
use super::{Hook, HookContext, HookOutput, Hooks, Middleware};
use crate::protocol::error::Error;
use crate::protocol::run::StopReason;

/// See the module.
pub struct ModelLength {
    detectors: Vec<Detector>,
}

impl ModelLength {
    /// With the built-in detectors.
    #[allow(clippy::new_without_default, reason = "made once, by an assembly")]
    pub fn new() -> Self {
        ModelLength {
            detectors: vec![
                Detector::new("openai_compatible_length", "finish_reason", &["length"]),
                Detector::new("anthropic_max_tokens", "stop_reason", &["max_tokens"]),
                Detector::new("gemini_max_tokens", "finish_reason", &["MAX_TOKENS"]),
            ],
        }
    }
}

impl Middleware for ModelLength {
    fn name(&self) -> &str {
        "model_length"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            after_model: true,
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
        if hook == Hook::AfterModel
            && let Some(reply) = last_reply(&context.state)
            && detect(&self.detectors, reply.fields()).is_some()
            && has_visible_content(&reply.fields().content)
            && !has_tool_intent(reply.fields(), FinishReason::Ignored)
        {
            // A guard that ended the run says more (MC-8).
            context
                .run
                .signals
                .stop_unless_stopped(StopReason::ModelLengthCapped);
        }
        Ok(HookOutput::Continue)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::middleware::reply::tests::{call, reply};
    use crate::middleware::stage::{Stage, run_as};

    fn stop_reason(members: Value) -> Option<StopReason> {
        let facts = run_as("t", "r");
        let mut stage = Stage::new(vec![reply(members)]);
        assert_eq!(stage.after_model(&ModelLength::new(), &facts), None);
        facts.signals.stop_reason()
    }

    #[test]
    fn len_1_every_provider_s_signal_marks_the_run() {
        for metadata in [
            json!({"finish_reason": "length"}),
            json!({"finish_reason": "Length"}),
            json!({"stop_reason": "max_tokens"}),
            json!({"finish_reason": "MAX_TOKENS"}),
        ] {
            let members = json!({"content": "half", "response_metadata": metadata});
            assert_eq!(stop_reason(members), Some(StopReason::ModelLengthCapped));
            let members = json!({"content": "half", "additional_kwargs": metadata});
            assert_eq!(stop_reason(members), Some(StopReason::ModelLengthCapped));
        }
        for metadata in [
            json!({"finish_reason": "stop"}),
            json!({"stop_reason": "length"}),
            json!({}),
        ] {
            let members = json!({"content": "whole", "response_metadata": metadata});
            assert_eq!(stop_reason(members), None);
        }
    }

    #[test]
    fn l13_and_len_2_a_reply_that_calls_or_says_nothing_is_not_marked() {
        let metadata = json!({"finish_reason": "length"});
        let with_calls = json!({
            "content": "half", "response_metadata": metadata, "tool_calls": [call("f", "c1")],
        });
        assert_eq!(stop_reason(with_calls), None);
        let empty = json!({"content": " ", "response_metadata": metadata});
        assert_eq!(stop_reason(empty), None);
    }

    #[test]
    fn mc_8_a_guard_that_ended_the_run_counts_more() {
        let facts = run_as("t", "r");
        facts.signals.stop(StopReason::LoopCapped);
        let cut = json!({"content": "half", "response_metadata": {"finish_reason": "length"}});
        Stage::new(vec![reply(cut)]).after_model(&ModelLength::new(), &facts);
        assert_eq!(facts.signals.stop_reason(), Some(StopReason::LoopCapped));
    }
}

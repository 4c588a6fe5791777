//! How a tool fares in a run: what its last results make of it.
//!
//! Source: DeerFlow `ToolProgressMiddleware`, MW-TPR-1 and MW-TPR-2.

use serde_json::{Map, Value};

use super::words::WordSet;
use crate::protocol::app_config::ToolProgressConfig;

/// How many of the last good results another is compared with (MW-TPR-1).
const COMPARED: usize = 3;

/// What a result says of itself (MW-TEH-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResultClass<'a> {
    pub(super) status: &'a str,
    pub(super) error_type: Option<&'a str>,
    pub(super) recoverable: bool,
    pub(super) next: &'a str,
}

impl<'a> ResultClass<'a> {
    /// Reads the class of a result; `None` for what is none.
    pub(super) fn read(class: &'a Value) -> Option<Self> {
        let class: &Map<String, Value> = class.as_object()?;
        Some(ResultClass {
            status: class.get("status")?.as_str()?,
            error_type: class.get("error_type")?.as_str(),
            recoverable: class.get("recoverable_by_model")?.as_bool()?,
            next: class.get("recommended_next_action")?.as_str()?,
        })
    }

    /// What the result is, for the words about it.
    fn what(&self) -> &'a str {
        self.error_type.unwrap_or(self.status)
    }
}

/// Where a tool stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Active,
    /// The model was told.
    Warned,
    /// The tool is not run again; why.
    Blocked(&'static str),
}

/// What is remembered of a tool.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    pub(super) phase: Phase,
    /// Problems since the last good result.
    problems: u64,
    /// Words of the last good results, oldest first.
    recent: Vec<WordSet>,
}

impl Track {
    /// Takes a result in; what the model is to be told of it.
    pub(super) fn assess(
        &mut self,
        class: &ResultClass<'_>,
        content: &str,
        config: &ToolProgressConfig,
    ) -> Option<String> {
        if let Phase::Blocked(_) = self.phase {
            // A call that ran beside the one that got the tool blocked.
            return None;
        }
        let problems = self.problems.saturating_add(1);
        if !class.recoverable && class.next == "stop" {
            self.problems = problems;
            self.phase = Phase::Blocked(block_reason(class));
            return None;
        }
        let is_problem = match class.status {
            "error" | "partial_success" => true,
            "success" => {
                let words = WordSet::of(content);
                let is_known = self.knows(&words, config);
                if !is_known {
                    self.recent.push(words);
                    let surplus = self.recent.len().saturating_sub(COMPARED);
                    self.recent.drain(..surplus);
                }
                is_known
            }
            _ => false,
        };
        if !is_problem {
            self.problems = 0;
            self.phase = Phase::Active;
            return None;
        }
        self.problems = problems;
        let blocked_from = config
            .stagnation_threshold
            .saturating_add(config.warn_escalation_count);
        if problems >= blocked_from && !class.recoverable {
            self.phase = Phase::Blocked(block_reason(class));
            return None;
        }
        if problems < config.stagnation_threshold {
            return None;
        }
        // What the model can mend by itself is never blocked: another try may be the right one.
        self.phase = Phase::Warned;
        Some(hint(class))
    }

    /// Whether one of the last good results said nearly the same.
    fn knows(&self, words: &WordSet, config: &ToolProgressConfig) -> bool {
        let least = usize::try_from(config.min_word_count_for_similarity).unwrap_or(usize::MAX);
        let threshold = config.jaccard_similarity_threshold;
        words.len() >= least
            && self
                .recent
                .iter()
                .any(|earlier| earlier.len() >= least && words.similarity(earlier) >= threshold)
    }
}

/// What the model is told once a tool gets nowhere.
fn hint(class: &ResultClass<'_>) -> String {
    let what = match class.what() {
        "no_results" => "A search keeps finding nothing.",
        "not_found" => "What a tool was asked for keeps not being there.",
        "permission" => "A tool keeps being refused.",
        "rate_limited" => "A tool is called more often than it may be.",
        "transient" => "A tool keeps failing for the moment.",
        "partial_success" => "A tool keeps returning only a part of what there is.",
        "success" => "A tool keeps returning what it returned before.",
        _ => "A tool keeps bringing nothing new.",
    };
    let next = match class.next {
        "rewrite_query" | "continue" => "Ask in other words, or for something else.",
        "try_alternative" => "Use another tool, or go about it another way.",
        "summarize" => "Go on with what you have found so far.",
        _ => "Do not call it again for this.",
    };
    format!("[PROGRESS HINT] {what} {next}")
}

/// What the model is told in place of a result, once a tool is blocked.
fn block_reason(class: &ResultClass<'_>) -> &'static str {
    match class.what() {
        "no_results" => "it kept finding nothing; ask in other words with another tool.",
        "not_found" => "what it was asked for kept not being there; look elsewhere.",
        "rate_limited" => {
            "it was called more often than it may be; go on with what you have found so far."
        }
        "transient" => "it kept failing; go about it another way.",
        "auth" => "it has no valid credentials, so it cannot be used in this run.",
        "config" => "it is not set up, so it cannot be used in this run.",
        "internal" => "it fails inside, so it cannot be used in this run.",
        _ => "it brought nothing new; go on with what you have found so far.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ToolProgressConfig {
        ToolProgressConfig::default()
    }

    fn class(status: &'static str, kind: &'static str, next: &'static str) -> ResultClass<'static> {
        ResultClass {
            status,
            error_type: Some(kind).filter(|kind| !kind.is_empty()),
            recoverable: !matches!(kind, "transient" | "rate_limited" | "auth" | "internal"),
            next,
        }
    }

    const GOOD: fn() -> ResultClass<'static> = || class("success", "", "continue");

    /// What a series of results of one class makes of a tool: `.` nothing, `h` a hint, `B` blocked.
    fn series(class: &ResultClass<'_>, times: usize) -> String {
        let mut track = Track::default();
        let mut out = String::new();
        for _ in 0..times {
            let hint = track.assess(class, "", &config());
            out.push(match (&hint, track.phase) {
                (_, Phase::Blocked(_)) => 'B',
                (Some(_), Phase::Warned) => 'h',
                (None, Phase::Active) => '.',
                odd => panic!("{odd:?}"),
            });
        }
        out
    }

    #[test]
    fn mw_tpr_2_problems_lead_to_hints_and_blocks() {
        for (class, expected) in [
            (class("error", "not_found", "rewrite_query"), "..hhhh"),
            (class("partial_success", "", "rewrite_query"), "..hhhh"),
            (class("error", "transient", "try_alternative"), "..hhBB"),
            (class("error", "rate_limited", "summarize"), "..hhBB"),
            (class("error", "auth", "stop"), "BBBBBB"),
            (class("error", "internal", "stop"), "BBBBBB"),
            // Recoverable, whatever it recommends.
            (class("error", "not_found", "stop"), "..hhhh"),
        ] {
            assert_eq!(series(&class, 6), expected, "{class:?}");
        }
    }

    #[test]
    fn mw_tpr_2_a_good_result_resets() {
        let bad = class("error", "transient", "try_alternative");
        let mut track = Track::default();
        for _ in 0..4 {
            track.assess(&bad, "", &config());
        }
        assert_eq!((track.phase, track.problems), (Phase::Warned, 4));
        assert_eq!(track.assess(&GOOD(), "fine", &config()), None);
        assert_eq!((track.phase, track.problems), (Phase::Active, 0));
    }

    #[test]
    fn mw_tpr_1_a_result_like_one_of_the_last_three_is_a_problem() {
        let text = |n: usize| {
            (0..12)
                .map(|word| format!("w{n}x{word}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let mut track = Track::default();
        let mut said = |text: &str| {
            let hint = track.assess(&GOOD(), text, &config());
            (track.problems, hint.is_some())
        };
        assert_eq!(said(&text(1)), (0, false));
        assert_eq!(said(&text(1)), (1, false));
        assert_eq!(said(&text(1)), (2, false));
        assert_eq!(said(&text(1)), (3, true), "told at the third problem");
        assert_eq!(said(&text(2)), (0, false), "something new");
        assert_eq!(said(&text(3)), (0, false));
        assert_eq!(said(&text(1)), (1, false), "still one of the last three");
        assert_eq!(said(&text(4)), (0, false));
        assert_eq!(said(&text(1)), (0, false), "no longer");
        // Short results are not compared.
        assert_eq!(said("done"), (0, false));
        assert_eq!(said("done"), (0, false));
    }

    #[test]
    fn mw_tpr_1_the_threshold_itself_counts() {
        let words = |range: std::ops::Range<usize>| {
            range
                .map(|n| format!("word{n}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let mut track = Track::default();
        let near = ToolProgressConfig {
            jaccard_similarity_threshold: 0.5,
            ..config()
        };
        track.assess(&GOOD(), &words(0..15), &near);
        track.assess(&GOOD(), &words(5..20), &near);
        assert_eq!(track.problems, 1, "10 of 20 words");
        track.assess(&GOOD(), &words(6..21), &near);
        assert_eq!(track.problems, 0, "9 of 21 words");
    }

    #[test]
    fn a_class_that_is_none_is_passed_over() {
        use serde_json::json;
        let sound = json!({"status": "error", "error_type": null, "recoverable_by_model": true,
            "recommended_next_action": "stop", "source": "exception"});
        assert!(ResultClass::read(&sound).is_some());
        for odd in [json!(null), json!("x"), json!({}), json!({"status": 1})] {
            assert_eq!(ResultClass::read(&odd), None, "{odd}");
        }
    }
}

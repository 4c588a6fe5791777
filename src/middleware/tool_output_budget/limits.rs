//! How long the output of a tool may be, and what stands for it otherwise.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::cut::{Ends, cut};
use super::reference::{Reference, is_reference};
use crate::protocol::app_config::{Feature as _, ToolOutputConfig};

/// The section `tool_output`, in characters (B-4).
#[derive(Clone, Debug, Hash)]
pub(super) struct Limits {
    pub enabled: bool,
    /// Longer output goes to a file; 0 for never.
    threshold: usize,
    overrides: BTreeMap<String, usize>,
    /// No output is longer than this in a request; 0 for no bound.
    max: usize,
    /// What is left of output that is cut.
    ends: Ends,
    /// What is shown of output that went to a file.
    pub preview: Ends,
    /// Directory of the files, below that of the outputs.
    pub folder: String,
    exempt: BTreeSet<String>,
}

/// What is to be done with an output.
pub(super) enum Verdict {
    /// It is short enough.
    Keep,
    /// It is to go to a file, or to be cut where that cannot be.
    Store,
    /// It is to be cut.
    Cut,
}

impl Limits {
    pub(super) fn new(config: &ToolOutputConfig) -> Self {
        Limits {
            enabled: config.is_enabled(),
            threshold: chars(config.externalize_min_chars),
            overrides: config
                .tool_overrides
                .iter()
                .map(|(tool, least)| (tool.clone(), chars(*least)))
                .collect(),
            max: chars(config.fallback_max_chars),
            ends: Ends {
                head: chars(config.fallback_head_chars),
                tail: chars(config.fallback_tail_chars),
            },
            preview: Ends {
                head: chars(config.preview_head_chars),
                tail: chars(config.preview_tail_chars),
            },
            folder: config.storage_subdir.clone(),
            exempt: config.exempt_tools.iter().cloned().collect(),
        }
    }

    pub(super) fn is_exempt(&self, tool: &str) -> bool {
        self.exempt.contains(tool)
    }

    fn threshold_of(&self, tool: &str) -> usize {
        *self.overrides.get(tool).unwrap_or(&self.threshold)
    }

    /// A length in bytes up to which no output of `tool` is touched: what is no longer in bytes is no longer in characters.
    pub(super) fn safe_bytes(&self, tool: &str) -> usize {
        let bounds = [self.threshold_of(tool), self.max].into_iter();
        bounds
            .filter(|bound| *bound > 0)
            .min()
            .unwrap_or(usize::MAX)
    }

    /// What is to be done with an output of `count` characters.
    pub(super) fn judge(&self, tool: &str, text: &str, count: usize) -> Verdict {
        let threshold = self.threshold_of(tool);
        if threshold > 0 && count > threshold {
            // What stands for an output is not replaced again; it is of bounded length, so claiming to be one gains nothing.
            let stands = count <= self.reference_chars() && is_reference(text, tool, &self.folder);
            return match stands {
                true => Verdict::Keep,
                false => Verdict::Store,
            };
        }
        match self.max > 0 && count > self.max {
            true => Verdict::Cut,
            false => Verdict::Keep,
        }
    }

    /// The output, cut to the bound; `None` when it is within (MW-TOB-3).
    pub(super) fn cut(&self, text: &str) -> Option<String> {
        cut(text, self.max, self.ends)
    }

    /// What a tool failed with, cut so that it is within the bound with `before` characters before it.
    pub(super) fn cut_failure(&self, text: &str, before: usize) -> Option<String> {
        match self.max {
            0 => None,
            max => cut(text, max.saturating_sub(before).max(1), self.ends),
        }
    }

    /// Most characters of what stands for an output.
    pub(super) fn reference_chars(&self) -> usize {
        match self.max {
            0 => Reference::chars(self.preview),
            max => Reference::chars(self.preview).min(max),
        }
    }

    /// Bound of an output in a request, if there is one.
    pub(super) fn max(&self) -> Option<usize> {
        (self.max > 0).then_some(self.max)
    }

    /// A number for these limits.
    pub(super) fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn policy(&self) -> Map<String, Value> {
        let policy = json!({
            "enabled": self.enabled,
            "externalize_min_chars": self.threshold,
            "tool_overrides": self.overrides,
            "preview_head_chars": self.preview.head,
            "preview_tail_chars": self.preview.tail,
            "fallback_max_chars": self.max,
            "fallback_head_chars": self.ends.head,
            "fallback_tail_chars": self.ends.tail,
            "storage_subdir": self.folder,
            "exempt_tools": self.exempt,
        });
        match policy {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

/// Longer texts than this are not handed in at all, so that larger settings mean the same.
const MOST: u64 = 1 << 31;

fn chars(value: u64) -> usize {
    usize::try_from(value.min(MOST)).unwrap_or(usize::MAX)
}

/// The text of a content: a string, or a list of nothing but texts, one to a line; `None` when there is anything else in it,
/// which leaves it alone (MW-TOB-1).
pub(super) fn text_of(content: &Value) -> Option<Cow<'_, str>> {
    match content {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(blocks) => {
            let texts: Option<Vec<&str>> = blocks.iter().map(block_text).collect();
            Some(Cow::Owned(texts?.join("\n")))
        }
        _ => None,
    }
}

fn block_text(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => Some(text),
        Value::Object(members) if members.get("type")? == "text" => members.get("text")?.as_str(),
        _ => None,
    }
}

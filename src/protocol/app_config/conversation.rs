//! Sections about threads that grow: summaries, titles, uploads.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::feature::{Feature, not_available, within};
use crate::protocol::decode::{carry, from_value};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::trust::OperatorText;

/// Shortens long threads (MW-SUM).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SummarizationConfig {
    /// Whether it does. Default false.
    pub enabled: Option<bool>,
    /// Model that writes the summary. Default: the run's.
    pub model_name: Option<String>,
    /// When: one size or a list of them, of which one is enough. Default: never.
    pub trigger: Triggers,
    /// How much stays as it is. Default: 20 messages.
    pub keep: ContextSize,
    /// Most tokens that the summary is made from; null for all. Default 4000.
    #[schemars(range(min = 1))]
    pub trim_tokens_to_summarize: Option<u64>,
    /// What the model is told, instead of our own text.
    pub summary_prompt: Option<OperatorText>,
    /// Tools whose reading of a SKILL.md is remembered. Default `read_file`, `read`, `view`, `cat`.
    pub skill_file_read_tool_names: Vec<String>,
}

/// An amount of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextSize {
    /// What is counted.
    #[serde(rename = "type")]
    pub kind: ContextSizeKind,
    /// How many; of `fraction`, more than 0 and at most 1.
    pub value: f64,
}

/// What an amount of a thread is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextSizeKind {
    /// A part of what the model takes.
    Fraction,
    /// Tokens.
    Tokens,
    /// Messages.
    Messages,
}

impl Default for SummarizationConfig {
    fn default() -> Self {
        SummarizationConfig {
            enabled: None,
            model_name: None,
            trigger: Triggers::default(),
            keep: ContextSize {
                kind: ContextSizeKind::Messages,
                value: 20.0,
            },
            trim_tokens_to_summarize: Some(4_000),
            summary_prompt: None,
            skill_file_read_tool_names: ["read_file", "read", "view", "cat"]
                .map(str::to_owned)
                .to_vec(),
        }
    }
}

impl Feature for SummarizationConfig {
    const ON_BY_DEFAULT: bool = false;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}

impl SummarizationConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        for (place, size) in self.trigger.iter().enumerate() {
            let checked = size.validate();
            checked
                .map_err(|error| error.below(&format!("/trigger{}", self.trigger.path(place))))?;
        }
        self.keep.validate().map_err(|error| error.below("/keep"))?;
        match self.trim_tokens_to_summarize {
            Some(tokens) => within("/trim_tokens_to_summarize", tokens, 1, u64::MAX),
            None => Ok(()),
        }
    }
}

impl ContextSize {
    fn validate(&self) -> Result<(), Error> {
        let fits = match self.kind {
            ContextSizeKind::Fraction => self.value > 0.0 && self.value <= 1.0,
            ContextSizeKind::Tokens | ContextSizeKind::Messages => {
                self.value >= 1.0 && self.value.fract() == 0.0
            }
        };
        if fits {
            return Ok(());
        }
        let text =
            "a fraction must be more than 0 and at most 1, anything else a whole number from 1";
        Err(Error::at(ErrorCode::OutOfRange, "/value", text))
    }
}

/// The sizes at which a thread is shortened, and whether they were given as a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Triggers {
    sizes: Vec<ContextSize>,
    is_single: bool,
}

impl Triggers {
    /// Where the size at `place` stands, below the member.
    pub fn path(&self, place: usize) -> String {
        match self.is_single {
            true => String::new(),
            false => format!("/{place}"),
        }
    }
}

impl std::ops::Deref for Triggers {
    type Target = [ContextSize];

    fn deref(&self) -> &[ContextSize] {
        &self.sizes
    }
}

impl From<Vec<ContextSize>> for Triggers {
    fn from(sizes: Vec<ContextSize>) -> Self {
        Triggers {
            sizes,
            is_single: false,
        }
    }
}

impl<'de> Deserialize<'de> for Triggers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let triggers = match Value::deserialize(deserializer)? {
            Value::Null => Ok(Triggers::default()),
            value @ Value::Array(_) => from_value::<Vec<ContextSize>>(value).map(Triggers::from),
            value => from_value(value).map(|size| Triggers {
                sizes: vec![size],
                is_single: true,
            }),
        };
        triggers.map_err(|error| carry(&error))
    }
}

impl JsonSchema for Triggers {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Triggers".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let size = generator.subschema_for::<ContextSize>();
        schemars::json_schema!({
            "anyOf": [{"type": "null"}, size.clone(), {"type": "array", "items": size}],
        })
    }
}

/// Gives threads a title (MW-TTL).
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TitleConfig {
    /// Whether it does. Default true.
    pub enabled: Option<bool>,
    /// How many words the model of titles is told to keep to, 1 to 20; what it says is cut by `max_chars` alone. Default 6.
    #[schemars(range(min = 1, max = 20))]
    pub max_words: u64,
    /// Most characters, 10 to 200. Default 60.
    #[schemars(range(min = 10, max = 200))]
    pub max_chars: u64,
    /// Model that writes it. Default: none, the beginning of the first message is the title.
    pub model_name: Option<String>,
    /// What the model is told, instead of our own text.
    pub prompt_template: Option<OperatorText>,
}

impl Default for TitleConfig {
    fn default() -> Self {
        TitleConfig {
            enabled: None,
            max_words: 6,
            max_chars: 60,
            model_name: None,
            prompt_template: None,
        }
    }
}

impl Feature for TitleConfig {
    const ON_BY_DEFAULT: bool = true;
    fn switch(&self) -> Option<bool> {
        self.enabled
    }
}

impl TitleConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        within("/max_words", self.max_words, 1, 20)?;
        within("/max_chars", self.max_chars, 10, 200)
    }
}

/// Bounds of uploaded files. Uploading is the host's; these are for whoever asks.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UploadsConfig {
    /// Most files at once. Default 10.
    #[schemars(range(min = 1))]
    pub max_files: u64,
    /// Most bytes of one. Default 52428800.
    #[schemars(range(min = 1))]
    pub max_file_size: u64,
    /// Most bytes of all together. Default 104857600.
    #[schemars(range(min = 1))]
    pub max_total_size: u64,
    /// Whether documents become Markdown. Default false; true is not available in this version.
    pub auto_convert_documents: bool,
    /// What would do it for PDF.
    pub pdf_converter: PdfConverter,
}

/// What makes Markdown of PDF in DeerFlow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PdfConverter {
    /// Whichever there is.
    #[default]
    Auto,
    /// pymupdf4llm.
    Pymupdf4llm,
    /// MarkItDown.
    Markitdown,
}

impl Default for UploadsConfig {
    fn default() -> Self {
        UploadsConfig {
            max_files: 10,
            max_file_size: 50 << 20,
            max_total_size: 100 << 20,
            auto_convert_documents: false,
            pdf_converter: PdfConverter::Auto,
        }
    }
}

impl UploadsConfig {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        for (path, value) in [
            ("/max_files", self.max_files),
            ("/max_file_size", self.max_file_size),
            ("/max_total_size", self.max_total_size),
        ] {
            within(path, value, 1, u64::MAX)?;
        }
        if self.auto_convert_documents {
            return Err(not_available(
                "/auto_convert_documents",
                "auto_convert_documents",
            ));
        }
        Ok(())
    }
}

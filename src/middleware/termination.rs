//! Why a provider ended a reply, read from the fields in which providers say it.

use serde_json::{Map, Value};

use crate::protocol::message::Fields;

/// A field of a reply's metadata, and what it says when a reply ended in a certain way.
#[derive(Clone, Debug, PartialEq)]
pub struct Detector {
    /// Name, in records and descriptors.
    pub name: &'static str,
    /// The field: `finish_reason` or `stop_reason`.
    pub field: &'static str,
    /// Values that count, in any case.
    pub values: Vec<String>,
    /// A member of the metadata that says more, and is kept with the record when it says anything.
    pub extra: Option<&'static str>,
}

impl Detector {
    /// A detector of these values.
    pub(crate) fn new(name: &'static str, field: &'static str, values: &[&str]) -> Self {
        Detector {
            name,
            field,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            extra: None,
        }
    }

    /// The same, keeping a member of the metadata.
    pub(crate) fn with_extra(self, member: &'static str) -> Self {
        Detector {
            extra: Some(member),
            ..self
        }
    }

    /// What the reply says, if it is what this looks for. The metadata of the reply comes before its `additional_kwargs`;
    /// only text counts, and no empty one.
    pub(crate) fn detect(&self, reply: &Fields) -> Option<Termination> {
        let said = said(reply, self.field)?;
        let is_meant = |value: &String| value.to_lowercase() == said.to_lowercase();
        if !self.values.iter().any(is_meant) {
            return None;
        }
        let extra = self.extra.and_then(|member| {
            let value = reply.response_metadata.get(member)?;
            crate::state::python::truthy(value).then(|| (member.to_owned(), value.clone()))
        });
        Some(Termination {
            detector: self.name,
            field: self.field,
            value: said.to_owned(),
            extras: extra.into_iter().collect(),
        })
    }

    /// What a descriptor says of it (AD-17).
    pub(crate) fn policy(&self) -> Value {
        serde_json::json!({
            "name": self.name,
            "parameters": {format!("{}s", self.field): self.values},
        })
    }
}

fn said<'a>(reply: &'a Fields, field: &str) -> Option<&'a str> {
    [&reply.response_metadata, &reply.additional_kwargs]
        .into_iter()
        .find_map(|members| {
            let text = members.get(field)?.as_str()?;
            (!text.is_empty()).then_some(text)
        })
}

/// What one of `detectors` found, the first of them first.
pub(crate) fn detect(detectors: &[Detector], reply: &Fields) -> Option<Termination> {
    detectors.iter().find_map(|detector| detector.detect(reply))
}

/// How a provider ended a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Termination {
    /// Who found it.
    pub(crate) detector: &'static str,
    /// The field that says so.
    pub(crate) field: &'static str,
    /// What it says.
    pub(crate) value: String,
    /// What else the provider says about it.
    pub(crate) extras: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::message::Kind;

    fn reply(metadata: Value, kwargs: Value) -> Fields {
        let mut fields = Fields::new(Kind::Ai, "");
        fields.response_metadata = metadata.as_object().cloned().unwrap_or_default();
        fields.additional_kwargs = kwargs.as_object().cloned().unwrap_or_default();
        fields
    }

    #[test]
    fn metadata_comes_first_then_kwargs_and_only_text_counts() {
        let detector = Detector::new("d", "finish_reason", &["length"]);
        let finds = |metadata, kwargs| detector.detect(&reply(metadata, kwargs)).is_some();
        assert!(finds(json!({"finish_reason": "LENGTH"}), json!({})));
        assert!(finds(json!({}), json!({"finish_reason": "length"})));
        assert!(finds(
            json!({"finish_reason": ""}),
            json!({"finish_reason": "length"})
        ));
        assert!(finds(
            json!({"finish_reason": 7}),
            json!({"finish_reason": "length"})
        ));
        assert!(!finds(
            json!({"finish_reason": "stop"}),
            json!({"finish_reason": "length"})
        ));
        assert!(!finds(json!({"stop_reason": "length"}), json!({})));
        assert!(!finds(json!({"finish_reason": ["length"]}), json!({})));
    }

    #[test]
    fn what_else_the_provider_says_is_kept_when_it_says_anything() {
        let detector = Detector::new("d", "finish_reason", &["SAFETY"]).with_extra("ratings");
        let extras = |ratings: Value| {
            let metadata = json!({"finish_reason": "safety", "ratings": ratings});
            detector
                .detect(&reply(metadata, json!({})))
                .map(|found| found.extras)
        };
        assert_eq!(
            extras(json!([1])).map(Value::Object),
            Some(json!({"ratings": [1]}))
        );
        assert_eq!(extras(json!([])).map(Value::Object), Some(json!({})));
    }
}

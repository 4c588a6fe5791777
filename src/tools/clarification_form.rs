//! The form of a clarification: all of its fields, or none.
//!
//! A form that lost a field on the way would look whole and ask too little, so whatever is broken in structure or too large
//! takes the whole form away. What can be mended without loss is.
//!
//! Source: DeerFlow `ClarificationMiddleware`, MW-CLA-5, HIL-5.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::clarification_request::{numbered, options};
use crate::protocol::json;
use crate::state::python;

/// Most fields of a form.
pub const MAX_FIELDS: usize = 16;
/// Most options of a field.
const MAX_OPTIONS: usize = 24;
/// Longest name, label, placeholder or option, in characters.
const MAX_CHARS: usize = 200;
/// Largest form as JSON text, in bytes: its text form must fit into one message of the strictest chat.
const MAX_BYTES: usize = 16_384;

/// The types of field. The first is the default, and what an unknown type becomes.
pub const TYPES: &[&str] = &[
    "text",
    "textarea",
    "number",
    "select",
    "multi_select",
    "checkbox",
    "date",
];

/// Members that every object of JavaScript has: a host that keeps values in one would read these instead of the answer.
const RESERVED: &[&str] = &[
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "toLocaleString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// One field.
pub(super) struct Field {
    name: String,
    label: String,
    kind: &'static str,
    required: bool,
    /// Not empty exactly for `select` and `multi_select`.
    options: Vec<String>,
    placeholder: Option<String>,
}

/// The fields of a form; empty when there is no form, or none that can be shown.
pub(super) fn fields(raw: Option<&Value>) -> Vec<Field> {
    raw.and_then(read).unwrap_or_default()
}

fn read(raw: &Value) -> Option<Vec<Field>> {
    let parsed = match raw {
        Value::String(text) => Some(json::parse(text).ok()?),
        _ => None,
    };
    let entries = parsed.as_ref().unwrap_or(raw).as_array()?;
    if entries.len() > MAX_FIELDS {
        return None;
    }
    let mut names = HashSet::new();
    let mut fields = Vec::with_capacity(entries.len());
    for entry in entries {
        let field = Field::read(entry.as_object()?)?;
        if !names.insert(field.name.clone()) {
            return None;
        }
        fields.push(field);
    }
    let form: Value = fields.iter().map(Field::to_value).collect();
    (written_bytes(&form) <= MAX_BYTES).then_some(fields)
}

impl Field {
    fn read(entry: &Map<String, Value>) -> Option<Field> {
        let text = |name: &str| {
            let text = entry.get(name)?.as_str()?.trim_matches(python::is_space);
            (!text.is_empty()).then(|| text.to_owned())
        };
        let name = text("name")?;
        if RESERVED.contains(&name.as_str()) {
            return None;
        }
        let label = text("label").unwrap_or_else(|| name.clone());
        let placeholder = text("placeholder");
        let asked = entry.get("type").and_then(Value::as_str);
        let mut kind = TYPES
            .iter()
            .copied()
            .find(|known| Some(*known) == asked)
            .unwrap_or(TYPES[0]);
        let mut choices = Vec::new();
        if matches!(kind, "select" | "multi_select") {
            choices = options(entry.get("options"));
            if choices.is_empty() {
                kind = TYPES[0];
            }
        }
        let texts = [&name, &label].into_iter().chain(&placeholder);
        let too_long = |text: &String| text.chars().nth(MAX_CHARS).is_some();
        if choices.len() > MAX_OPTIONS || texts.chain(&choices).any(too_long) {
            return None;
        }
        Some(Field {
            name,
            label,
            kind,
            required: is_true(entry.get("required")),
            options: choices,
            placeholder,
        })
    }

    /// As it stands in the payload.
    pub(super) fn to_value(&self) -> Value {
        let mut members = Map::new();
        members.insert("name".into(), self.name.as_str().into());
        members.insert("label".into(), self.label.as_str().into());
        members.insert("type".into(), self.kind.into());
        members.insert("required".into(), self.required.into());
        if !self.options.is_empty() {
            let prefix = format!("{}-option", self.name);
            members.insert("options".into(), numbered(&prefix, &self.options));
        }
        if let Some(placeholder) = &self.placeholder {
            members.insert("placeholder".into(), placeholder.as_str().into());
        }
        Value::Object(members)
    }

    /// As it stands in the text: `Label (required; one of: a / b)`.
    pub(super) fn line(&self) -> String {
        let mut hints = Vec::new();
        if self.required {
            hints.push("required".to_owned());
        }
        if !self.options.is_empty() {
            let many = if self.kind == "multi_select" {
                "any"
            } else {
                "one"
            };
            hints.push(format!("{many} of: {}", self.options.join(" / ")));
        }
        if hints.is_empty() {
            return self.label.clone();
        }
        format!("{} ({})", self.label, hints.join("; "))
    }
}

/// Whether a model means yes: true, a number that is not zero, or the text "true".
fn is_true(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(value)) => *value,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => text
            .trim_matches(python::is_space)
            .eq_ignore_ascii_case("true"),
        _ => false,
    }
}

/// Bytes of a value as the reference writes it: a blank after each comma and colon, nothing escaped that need not be.
fn written_bytes(value: &Value) -> usize {
    fn separators(value: &Value) -> usize {
        match value {
            Value::Array(items) => {
                items.len().saturating_sub(1) + items.iter().map(separators).sum::<usize>()
            }
            Value::Object(members) => {
                (2 * members.len()).saturating_sub(1)
                    + members.values().map(separators).sum::<usize>()
            }
            _ => 0,
        }
    }
    let mut compact = String::new();
    json::push_value(&mut compact, value);
    compact.len() + separators(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(value: Value) -> Vec<Value> {
        fields(Some(&value)).iter().map(Field::to_value).collect()
    }

    #[test]
    fn mw_cla_5_benign_faults_are_mended() {
        assert_eq!(
            read_all(json!([
                {"name": " city ", "label": "  ", "type": "city", "required": "TRUE "},
                {"name": "n", "label": "N", "type": "number", "required": 1, "placeholder": " 3 "},
                {"name": "s", "type": "select", "options": [], "required": "yes"},
                {"name": "m", "type": "multi_select", "options": "[\"a\",\"b\",\"a\"]", "required": 0},
                {"name": "t", "type": [], "options": ["ignored"], "required": null, "placeholder": " "},
            ])),
            [
                json!({"name": "city", "label": "city", "type": "text", "required": true}),
                json!({"name": "n", "label": "N", "type": "number", "required": true, "placeholder": "3"}),
                json!({"name": "s", "label": "s", "type": "text", "required": false}),
                json!({"name": "m", "label": "m", "type": "multi_select", "required": false, "options": [
                    {"id": "m-option-1", "label": "a", "value": "a"},
                    {"id": "m-option-2", "label": "b", "value": "b"},
                ]}),
                json!({"name": "t", "label": "t", "type": "text", "required": false}),
            ]
        );
        assert_eq!(
            read_all(json!("[{\"name\": \"a\"}]")).len(),
            1,
            "JSON text is read"
        );
        for kind in TYPES {
            let read = read_all(json!([{"name": "a", "type": kind, "options": ["x"]}]));
            assert_eq!(read[0]["type"], *kind);
        }
    }

    #[test]
    fn mw_cla_5_one_broken_field_takes_the_form_away() {
        let long = "x".repeat(MAX_CHARS + 1);
        let good = json!({"name": "good"});
        let mut broken = vec![
            json!("text"),
            json!(null),
            json!({}),
            json!({"name": null}),
            json!({"name": " "}),
            json!({"name": 7}),
            json!({"name": "good"}),
            json!({"name": " good "}),
            json!({"name": long}),
            json!({"name": "a", "label": long}),
            json!({"name": "a", "placeholder": long}),
            json!({"name": "a", "type": "select", "options": [long]}),
            json!({"name": "a", "type": "select", "options": (0..=MAX_OPTIONS).collect::<Vec<_>>()}),
        ];
        broken.extend(RESERVED.iter().map(|name| json!({ "name": name })));
        for field in broken {
            assert_eq!(read_all(json!([good, field])), [] as [Value; 0], "{field}");
        }
        assert_eq!(read_all(json!([good])).len(), 1);
        for form in [
            json!(null),
            json!({"name": "a"}),
            json!("no JSON"),
            json!("7"),
            json!(7),
        ] {
            assert_eq!(read_all(form.clone()), [] as [Value; 0], "{form}");
        }
    }

    #[test]
    fn mw_cla_5_counts_and_lengths_are_allowed_up_to_their_bound() {
        let many = |count: usize| -> Value {
            (0..count)
                .map(|n| json!({"name": format!("f{n}")}))
                .collect()
        };
        assert_eq!(read_all(many(MAX_FIELDS)).len(), MAX_FIELDS);
        assert_eq!(read_all(many(MAX_FIELDS + 1)).len(), 0);
        // Characters, not bytes.
        let long = "ä".repeat(MAX_CHARS);
        let field = json!({"name": long, "type": "select", "options": (0..MAX_OPTIONS).collect::<Vec<_>>()});
        assert_eq!(read_all(json!([field])).len(), 1);
    }

    #[test]
    fn mw_cla_5_the_form_as_text_has_at_most_16384_bytes() {
        // One field is {"name": "…", "label": "…", "type": "text", "required": false}, the list adds two bytes and ", ".
        let form = |bytes: usize| -> Value {
            let mut names: Vec<String> = (0..MAX_FIELDS).map(|n| format!("{n:02}")).collect();
            let skeleton = 2 + 2 * (MAX_FIELDS - 1) + MAX_FIELDS * 60;
            let mut left = bytes - skeleton - 4 * MAX_FIELDS;
            for name in &mut names {
                // Each added character of three bytes stands in name and label.
                let more = (left / 6).min(MAX_CHARS - 2);
                name.push_str(&"あ".repeat(more));
                left -= 6 * more;
            }
            names.iter().map(|name| json!({ "name": name })).collect()
        };
        let sized = |bytes: usize| written_bytes(&Value::Array(read_all(form(bytes))));
        let largest = (MAX_BYTES - 5..=MAX_BYTES)
            .rev()
            .find(|bytes| sized(*bytes) == *bytes);
        let largest = largest.expect("a form within six bytes of the bound");
        assert_eq!(read_all(form(largest)).len(), MAX_FIELDS);
        assert_eq!(read_all(form(largest + 6)).len(), 0);
    }
}

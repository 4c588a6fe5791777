//! The JSON Schemas of what crosses the ABI: one ordered list, from which the published files and `fawn_describe` come.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::error::{Error, ErrorCode};

/// One published schema.
pub struct Schema {
    /// Name of the payload, as the header and `fawn_describe` use it; snake_case.
    pub name: &'static str,
    /// What the payload is, in a sentence.
    pub summary: &'static str,
    /// The schema, JSON Schema draft 2020-12.
    pub schema: fn() -> Value,
    /// Reads a document and writes what was read. `None` for what only goes out: there is nothing that reads it.
    ///
    /// # Errors
    /// What a host would get for the same document.
    pub round_trip: Option<RoundTrip>,
}

/// Reads a document and writes what was read.
pub type RoundTrip = fn(&str) -> Result<Value, Error>;

impl Schema {
    /// The schema with its name and summary in it, ready to publish.
    pub fn document(&self) -> Value {
        let mut document = serde_json::Map::new();
        document.insert(
            "$schema".to_owned(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        document.insert("title".to_owned(), self.name.into());
        document.insert("description".to_owned(), self.summary.into());
        if let Value::Object(members) = (self.schema)() {
            // Ours win: the generator puts the Rust name of the type into the title.
            for (name, value) in members {
                document.entry(name).or_insert(value);
            }
        }
        Value::Object(document)
    }
}

/// Every schema, in the order in which a host meets the payloads.
pub const SCHEMAS: &[Schema] = &[Schema {
    name: "error",
    summary: "The error object: what a call with a negative status puts into its buffer, and what failed events carry.",
    schema: error_object,
    round_trip: None,
}];

/// The schema that the type says.
pub fn of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// By hand: `code` is the closed list, which no Rust type of the payload holds.
fn error_object() -> Value {
    let names: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
    json!({
        "type": "object",
        "required": ["code", "status", "message", "retryable"],
        "properties": {
            "code": {
                "description": "What kind of failure. The list is closed: new versions may add to it.",
                "enum": names,
            },
            "status": {
                "description": "The status that the call returned; one per code.",
                "type": "integer",
                "maximum": -1,
            },
            "message": {"description": "What went wrong, in words, for a person.", "type": "string"},
            "path": {
                "description": "JSON pointer into what the caller sent; absent when that is not at fault.",
                "type": "string",
                "format": "json-pointer",
            },
            "retryable": {
                "description": "Whether the same call may succeed later.",
                "type": "boolean",
            },
            "cause": {
                "description": "What lay behind it, outermost first.",
                "type": "array",
                "items": {"type": "string"},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_snake_case() {
        let mut names = std::collections::HashSet::new();
        for schema in SCHEMAS {
            assert!(names.insert(schema.name), "{} twice", schema.name);
            let ok = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(schema.name.chars().all(ok), "{}", schema.name);
            assert!(schema.summary.ends_with('.'), "{}", schema.name);
        }
    }
}

//! What the library says about itself: build facts, error codes, schemas. `fawn_describe` answers it.

use serde_json::{Value, json};

use super::error::{Error, ErrorCode, OUTCOMES};
use super::schema::SCHEMAS;

/// The version of the C ABI. It changes when a program that was compiled against an older header would misbehave.
pub const ABI_VERSION: u32 = 1;

/// A topic and what it answers.
const TOPICS: &[(&str, &str)] = &[
    ("index", "These topics."),
    ("build", "Version, ABI, features and target of this build."),
    (
        "errors",
        "The closed list of error codes, each with its status and meaning, and the outcomes that are no errors.",
    ),
    ("schemas", "The names of the JSON schemas."),
    ("schema/NAME", "The JSON schema of this name."),
    (
        "middleware",
        "The middlewares of the chain in their order, what each does, and where its settings are described.",
    ),
    (
        "handles",
        "The living handles, and how many buffers are alive.",
    ),
];

/// The Cargo features of this build.
const FEATURES: &[(&str, bool)] = &[
    ("openai", cfg!(feature = "openai")),
    ("sqlite", cfg!(feature = "sqlite")),
    ("schema-validation", cfg!(feature = "schema-validation")),
    ("test-panics", cfg!(feature = "test-panics")),
];

/// Answers a topic as JSON text; the empty topic is "index". `elsewhere` is asked for the answers to "handles" and "middleware",
/// which only those know who own them.
///
/// # Errors
/// [`ErrorCode::UnknownVariant`] for a topic that does not exist; the message names those that do.
pub fn describe(topic: &str, elsewhere: impl FnOnce(&str) -> String) -> Result<String, Error> {
    let answer = match topic {
        "" | "index" => index(),
        "build" => build(),
        "errors" => errors(),
        "schemas" => schemas(),
        "handles" | "middleware" => return Ok(elsewhere(topic)),
        other => schema(other)?,
    };
    Ok(answer.to_string())
}

fn index() -> Value {
    let topics = TOPICS
        .iter()
        .map(|(topic, answer)| json!({"topic": topic, "answer": answer}));
    json!({"topics": topics.collect::<Vec<_>>()})
}

fn build() -> Value {
    let features = FEATURES.iter().filter(|(_, on)| *on);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "abi": ABI_VERSION,
        "features": features.map(|(name, _)| *name).collect::<Vec<_>>(),
        "target": {
            "arch": std::env::consts::ARCH,
            "os": std::env::consts::OS,
            "env": target_env(),
            "pointer_bits": usize::BITS,
        },
        "debug_assertions": cfg!(debug_assertions),
    })
}

/// The C library of the target, where that is part of its name.
const fn target_env() -> &'static str {
    if cfg!(target_env = "gnu") {
        "gnu"
    } else if cfg!(target_env = "musl") {
        "musl"
    } else if cfg!(target_env = "msvc") {
        "msvc"
    } else {
        ""
    }
}

fn errors() -> Value {
    let codes = ErrorCode::ALL.iter().map(
        |code| json!({"code": code.name(), "status": code.status(), "meaning": code.meaning()}),
    );
    let outcomes = OUTCOMES
        .iter()
        .map(|(status, name, meaning)| json!({"name": name, "status": status, "meaning": meaning}));
    json!({"errors": codes.collect::<Vec<_>>(), "outcomes": outcomes.collect::<Vec<_>>()})
}

fn schemas() -> Value {
    let names = SCHEMAS
        .iter()
        .map(|schema| json!({"name": schema.name, "summary": schema.summary}));
    json!({"schemas": names.collect::<Vec<_>>()})
}

fn schema(topic: &str) -> Result<Value, Error> {
    let named = topic.strip_prefix("schema/");
    if let Some(schema) = named.and_then(|name| SCHEMAS.iter().find(|one| one.name == name)) {
        return Ok(schema.document());
    }
    let known: Vec<&str> = match named {
        Some(_) => SCHEMAS.iter().map(|schema| schema.name).collect(),
        None => TOPICS.iter().map(|(topic, _)| *topic).collect(),
    };
    let (what, name) = match named {
        Some(name) => ("schema", name),
        None => ("topic", topic),
    };
    // A topic may be as long as a text may be; the message is not.
    let shown: String = name.chars().take(80).collect();
    Err(Error::new(
        ErrorCode::UnknownVariant,
        format!(
            "there is no {what} {shown:?}; there are {}",
            known.join(", ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(topic: &str) -> Result<Value, Error> {
        let text = describe(topic, |topic| format!("[{topic:?}]"))?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn every_topic_of_the_index_answers() {
        let index = ask("").unwrap();
        assert_eq!(index, ask("index").unwrap());
        for topic in index["topics"].as_array().unwrap() {
            let topic = topic["topic"].as_str().unwrap();
            assert!(ask(&topic.replace("NAME", "error")).is_ok(), "{topic}");
        }
        assert_eq!(ask("handles").unwrap(), json!(["handles"]));
    }

    #[test]
    fn all_codes_and_schemas_are_there() {
        assert_eq!(
            ask("errors").unwrap()["errors"].as_array().unwrap().len(),
            ErrorCode::ALL.len()
        );
        assert_eq!(
            ask("errors").unwrap()["outcomes"][1]["name"],
            "FAWN_TIMEOUT"
        );
        for schema in ask("schemas").unwrap()["schemas"].as_array().unwrap() {
            let name = schema["name"].as_str().unwrap();
            assert_eq!(ask(&format!("schema/{name}")).unwrap()["title"], name);
        }
    }

    #[test]
    fn an_unknown_topic_names_the_known_ones() {
        for (topic, known) in [("weather", "build"), ("schema/weather", "error")] {
            let error = ask(topic).unwrap_err();
            assert_eq!(error.code, ErrorCode::UnknownVariant);
            assert!(error.message.contains("weather") && error.message.contains(known));
        }
        assert!(ask(&"x".repeat(100_000)).unwrap_err().message.len() < 1000);
    }
}

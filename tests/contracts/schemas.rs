//! The published JSON Schemas are what the types say, and the examples beside them are what the library takes.
//!
//! `include/schema/<name>.schema.json` is generated. `include/schema/examples/<name>/` has, per payload:
//! - `*.json`: must validate; what comes in must also be read and written again as the same value;
//! - `invalid-<code>[-more].json`: must be refused with that error code; where the code is about the shape of the
//!   document, by the schema too.

use fawn::protocol::error::ErrorCode;
use fawn::protocol::schema::{SCHEMAS, Schema};
use serde_json::Value;

use crate::repository::{files, in_step, read, update};

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

fn path_of(schema: &Schema) -> String {
    format!("include/schema/{}.schema.json", schema.name)
}

#[test]
fn schemas_are_in_step() {
    for schema in SCHEMAS {
        in_step(&path_of(schema), &pretty(&schema.document()));
    }
    let published = files("include/schema", ".schema.json");
    let known: Vec<String> = SCHEMAS.iter().map(path_of).collect();
    for file in published {
        let name = file.to_string_lossy().into_owned();
        assert!(
            known.contains(&name),
            "{name} is no schema any more: delete it"
        );
    }
}

#[test]
fn schemas_are_schemas() {
    for schema in SCHEMAS {
        jsonschema::validator_for(&schema.document())
            .unwrap_or_else(|error| panic!("{}: {error}", schema.name));
    }
}

/// Whether an input with this fault is wrong by its shape alone.
fn is_about_shape(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::UnknownMember
            | ErrorCode::WrongType
            | ErrorCode::OutOfRange
            | ErrorCode::MissingMember
            | ErrorCode::UnknownVariant
    )
}

/// The code in `invalid-wrong_type-third.json`.
fn code_in(name: &str) -> Option<ErrorCode> {
    let code = name.strip_prefix("invalid-")?.trim_end_matches(".json");
    let code = code.split('-').next().unwrap();
    let known = ErrorCode::ALL.iter().find(|one| one.name() == code);
    Some(*known.unwrap_or_else(|| panic!("{name}: there is no error code {code:?}")))
}

#[test]
fn examples_are_what_the_library_takes_and_refuses() {
    for file in files("include/schema/examples", ".json") {
        let shown = file.display();
        let folder = file
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_string_lossy();
        let Some(schema) = SCHEMAS.iter().find(|schema| schema.name == folder) else {
            panic!("{shown}: there is no schema {folder:?}");
        };
        let validator = jsonschema::validator_for(&schema.document()).unwrap();
        let text = read(&file);
        let value: Option<Value> = serde_json::from_str(&text).ok();
        match code_in(&file.file_name().unwrap().to_string_lossy()) {
            None => {
                let value = value.unwrap_or_else(|| panic!("{shown} is not JSON"));
                if let Err(error) = validator.validate(&value) {
                    panic!("{shown} does not fit its schema: {error}");
                }
                if let Some(round_trip) = schema.round_trip {
                    assert_eq!(round_trip(&text), Ok(value), "{shown}");
                }
            }
            Some(code) => {
                let round_trip = schema.round_trip.unwrap_or_else(|| {
                    panic!("{shown}: {folder} only goes out, nothing refuses it")
                });
                let refused = round_trip(&text).map_err(|error| error.code);
                assert_eq!(refused, Err(code), "{shown}");
                if is_about_shape(code) {
                    let value = value.unwrap_or_else(|| panic!("{shown} is not JSON"));
                    assert!(
                        !validator.is_valid(&value),
                        "{shown}: the schema lets it through"
                    );
                }
            }
        }
    }
}

#[test]
fn every_schema_has_an_example() {
    for schema in SCHEMAS {
        let folder = format!("include/schema/examples/{}", schema.name);
        let examples = files(&folder, ".json");
        let is_valid = |file: &std::path::PathBuf| {
            !file
                .file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("invalid-")
        };
        assert!(
            examples.iter().any(is_valid) || update(),
            "{folder} has no example of what is right"
        );
    }
}

#[test]
fn the_header_names_schemas_that_exist() {
    let header = read("include/fawn.h");
    // A doc comment may break the line between the two words.
    let flat = header.replace("\n * ", " ");
    let mut count = 0;
    for part in flat.split("(schema \"").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(
            SCHEMAS.iter().any(|schema| schema.name == name) || update(),
            "{name}"
        );
        count += 1;
    }
    assert!(count > 10, "only {count} names were found");
}

/// Closes every object that says its members, so that one which nobody described is found.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("properties").is_some_and(Value::is_object)
                && members.get("type").is_some_and(|kind| kind == "object")
            {
                members.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn schema(name: &str) -> Value {
    let found = SCHEMAS.iter().find(|schema| schema.name == name);
    found
        .unwrap_or_else(|| panic!("there is no schema {name}"))
        .document()
}

#[test]
fn what_golden_runs_gave_fits_the_schemas_and_has_no_member_that_they_do_not_tell_of() {
    let mut event = schema("event");
    // Messages have members by class; the golden runs compare them whole.
    let mut defs = event["$defs"].take();
    for def in defs.as_object_mut().unwrap().values_mut() {
        let message = def.pointer_mut("/properties/message").map(Value::take);
        close(def);
        if let Some(message) = message {
            def["properties"]["message"] = message;
        }
    }
    event["$defs"] = defs;
    let mut types = std::collections::BTreeSet::new();
    let event = jsonschema::validator_for(&event).unwrap();
    let mut error = schema("error");
    close(&mut error);
    let error = jsonschema::validator_for(&error).unwrap();
    let [state, history, update] =
        ["thread_state", "thread_history", "thread_update_answer"].map(schema);
    let answers = [("state", state), ("history", history), ("update", update)]
        .map(|(step, schema)| (step, jsonschema::validator_for(&schema).unwrap()));
    for file in files("tests/golden", ".expected.json") {
        let shown = file.display();
        let scenario = shown.to_string().replace(".expected.json", ".json");
        let scenario: Value = serde_json::from_str(&read(std::path::Path::new(&scenario))).unwrap();
        let outcome: Value = serde_json::from_str(&read(&file)).unwrap();
        let steps = scenario["steps"].as_array().unwrap().iter();
        for (step, outcome) in steps.zip(outcome.as_array().unwrap()) {
            if let Some(payload) = outcome.get("error") {
                error
                    .validate(payload)
                    .unwrap_or_else(|fault| panic!("{shown}: {fault}: {payload}"));
                continue;
            }
            for one in outcome
                .get("events")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                // What the host was told while it answered a call stands between the events.
                .filter(|one| one.get("seq").is_some())
            {
                types.insert(one["type"].as_str().unwrap().to_owned());
                event
                    .validate(one)
                    .unwrap_or_else(|fault| panic!("{shown}: {fault}: {one}"));
            }
            for (name, answer) in &answers {
                if step.get(*name).is_some() {
                    answer
                        .validate(outcome)
                        .unwrap_or_else(|fault| panic!("{shown}: {fault}: {outcome}"));
                }
            }
        }
    }
    assert!(types.len() >= 10, "golden runs show only {types:?}");
}

//! Checks the arguments of a call against the tool's JSON Schema, before the tool sees them.

use serde_json::{Map, Value};

use crate::protocol::error::{Error, ErrorCode};

/// Most faults that are told to the model.
const MAX_FAULTS: usize = 5;
/// Longest text of one fault, in characters.
const MAX_FAULT_CHARS: usize = 200;

/// A compiled schema. Without the feature `schema-validation` it accepts every object.
pub struct ArgumentCheck {
    #[cfg(feature = "schema-validation")]
    validator: jsonschema::Validator,
}

impl std::fmt::Debug for ArgumentCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ArgumentCheck")
    }
}

impl ArgumentCheck {
    /// Compiles a schema. Nothing is fetched: a reference to another document is an error.
    ///
    /// # Errors
    /// `AssemblyInvalid` when it is no JSON Schema.
    pub fn compile(schema: &Value) -> Result<Self, Error> {
        #[cfg(feature = "schema-validation")]
        {
            let invalid = |path: &str, what: &str| {
                Err(Error::at(
                    ErrorCode::AssemblyInvalid,
                    path,
                    format!("no JSON Schema: {what}"),
                ))
            };
            if let Err(error) = jsonschema::meta::validate(schema) {
                return invalid(error.instance_path().as_str(), &error.to_string());
            }
            let validator = match jsonschema::validator_for(schema) {
                Ok(validator) => validator,
                Err(error) => {
                    return invalid(
                        "",
                        &format!("{error} (references to other documents are not followed)"),
                    );
                }
            };
            Ok(ArgumentCheck { validator })
        }
        #[cfg(not(feature = "schema-validation"))]
        {
            match schema {
                Value::Object(_) | Value::Bool(_) => Ok(ArgumentCheck {}),
                _ => Err(Error::at(ErrorCode::AssemblyInvalid, "", "no JSON Schema")),
            }
        }
    }

    /// Checks arguments; on failure the text says what is wrong where, for the model.
    ///
    /// # Errors
    /// The text.
    pub fn check(&self, args: Map<String, Value>) -> Result<Map<String, Value>, String> {
        #[cfg(feature = "schema-validation")]
        {
            let value = Value::Object(args);
            if !self.validator.is_valid(&value) {
                let faults: Vec<String> = self
                    .validator
                    .iter_errors(&value)
                    .take(MAX_FAULTS)
                    .map(|error| {
                        let text: String =
                            error.to_string().chars().take(MAX_FAULT_CHARS).collect();
                        match error.instance_path().as_str() {
                            "" => text,
                            path => format!("{path}: {text}"),
                        }
                    })
                    .collect();
                return Err(format!(
                    "the arguments do not fit the tool: {}",
                    faults.join("; ")
                ));
            }
            match value {
                Value::Object(args) => Ok(args),
                _ => Err("the arguments are no object".to_owned()),
            }
        }
        #[cfg(not(feature = "schema-validation"))]
        {
            let _ = (MAX_FAULTS, MAX_FAULT_CHARS);
            Ok(args)
        }
    }
}

#[cfg(all(test, feature = "schema-validation"))]
mod tests {
    use super::*;
    use serde_json::json;

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn faults_name_the_place() {
        let schema =
            json!({"type":"object","properties":{"city":{"type":"string"}},"required":["city"]});
        let check = ArgumentCheck::compile(&schema).expect("a schema");
        assert!(check.check(args(json!({"city":"Paris"}))).is_ok());
        assert!(
            check
                .check(args(json!({"city":7})))
                .expect_err("wrong type")
                .contains("/city")
        );
        assert!(
            check
                .check(args(json!({})))
                .expect_err("missing")
                .contains("city")
        );
    }

    #[test]
    fn what_is_no_schema_or_points_elsewhere_is_refused() {
        assert!(ArgumentCheck::compile(&json!({"type":"nothing"})).is_err());
        assert!(ArgumentCheck::compile(&json!({"$ref":"http://127.0.0.1:9/x.json"})).is_err());
    }
}

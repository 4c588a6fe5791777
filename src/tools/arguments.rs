//! Checks the arguments of a call against the tool's JSON Schema, before the tool sees them.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

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

    /// Checks arguments; the error is for whoever wrote them by hand.
    ///
    /// # Errors
    /// `OutOfRange` at the first place that does not fit.
    pub fn check_first(&self, args: &Map<String, Value>) -> Result<(), Error> {
        #[cfg(feature = "schema-validation")]
        {
            let value = Value::Object(args.clone());
            match self.validator.validate(&value) {
                Ok(()) => Ok(()),
                Err(fault) => {
                    let text: String = fault.to_string().chars().take(MAX_FAULT_CHARS).collect();
                    Err(Error::at(
                        ErrorCode::OutOfRange,
                        fault.instance_path().as_str(),
                        format!("this does not fit the schema of the tool: {text}"),
                    ))
                }
            }
        }
        #[cfg(not(feature = "schema-validation"))]
        {
            let _ = args;
            Ok(())
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

/// The tools of an agent, by name, with the checks of their arguments.
#[derive(Debug, Default)]
pub struct KnownTools(HashMap<String, Arc<ArgumentCheck>>);

impl KnownTools {
    /// Their names, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Checks arguments for the tool of this name; those of a tool that nobody knows fit.
    ///
    /// # Errors
    /// `OutOfRange` at the first argument that does not fit.
    pub fn check(&self, tool: &str, args: &Map<String, Value>) -> Result<(), Error> {
        match self.0.get(tool) {
            Some(check) => check.check_first(args),
            None => Ok(()),
        }
    }
}

impl FromIterator<(String, Arc<ArgumentCheck>)> for KnownTools {
    fn from_iter<I: IntoIterator<Item = (String, Arc<ArgumentCheck>)>>(tools: I) -> Self {
        KnownTools(tools.into_iter().collect())
    }
}

/// Most schemas that are kept compiled.
const MAX_KEPT: usize = 4096;

/// Compiled schemas by what they say: compiling one costs far more than a request for an agent should, and requests bring
/// the same tools again and again.
#[derive(Debug, Default)]
pub struct ArgumentChecks {
    hasher: RandomState,
    kept: Mutex<HashMap<u64, (Value, Arc<ArgumentCheck>)>>,
}

impl ArgumentChecks {
    /// The check of a schema, compiled now if none is kept.
    ///
    /// # Errors
    /// See [`ArgumentCheck::compile`].
    pub fn check(&self, schema: &Value) -> Result<Arc<ArgumentCheck>, Error> {
        let mut hasher = self.hasher.build_hasher();
        hash_value(schema, &mut hasher);
        let key = hasher.finish();
        let locked = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, check)) = locked().get(&key)
            && known == schema
        {
            return Ok(check.clone());
        }
        let check = Arc::new(ArgumentCheck::compile(schema)?);
        let mut kept = locked();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, (schema.clone(), check.clone()));
        Ok(check)
    }
}

fn hash_value(value: &Value, hasher: &mut impl Hasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(hasher),
        Value::Number(value) => value.hash(hasher),
        Value::String(text) => text.hash(hasher),
        Value::Array(list) => {
            list.len().hash(hasher);
            list.iter().for_each(|value| hash_value(value, hasher));
        }
        // Maps compare without regard to order, so the members are combined without it too.
        Value::Object(members) => {
            members.len().hash(hasher);
            let mut sum = 0_u64;
            for (name, value) in members {
                let mut member = std::hash::DefaultHasher::new();
                name.hash(&mut member);
                hash_value(value, &mut member);
                sum = sum.wrapping_add(member.finish());
            }
            sum.hash(hasher);
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
    fn a_schema_is_compiled_once_for_whatever_order_its_members_have() {
        let checks = ArgumentChecks::default();
        let one = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": true}});
        let same = json!({"properties": {"b": true, "a": {"type": "string"}}, "type": "object"});
        let other = json!({"type": "object", "properties": {"a": {"type": "number"}, "b": true}});
        let first = checks.check(&one).expect("a schema");
        assert!(Arc::ptr_eq(&first, &checks.check(&same).expect("a schema")));
        assert!(!Arc::ptr_eq(
            &first,
            &checks.check(&other).expect("a schema")
        ));
        assert!(checks.check(&json!({"type": "nothing"})).is_err());
    }

    #[test]
    fn what_is_no_schema_or_points_elsewhere_is_refused() {
        assert!(ArgumentCheck::compile(&json!({"type":"nothing"})).is_err());
        assert!(ArgumentCheck::compile(&json!({"$ref":"http://127.0.0.1:9/x.json"})).is_err());
    }
}

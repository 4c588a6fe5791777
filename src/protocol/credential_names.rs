//! Names under which secrets are kept (AD-11): what has one is not shown.

use serde_json::{Map, Value};

/// Parts of a name, in upper case, that speak of a secret.
const PARTS: &[&str] = &["KEY", "SECRET", "TOKEN", "PASS", "CREDENTIAL", "DSN"];

/// Names that hold a secret without saying so, mostly in an address; in upper case.
const NAMES: &[&str] = &[
    "DATABASE_URL",
    "DATABASE_URI",
    "REDIS_URL",
    "MONGODB_URI",
    "MONGO_URL",
    "AMQP_URL",
    "RABBITMQ_URL",
    "POSTGRES_URL",
    "POSTGRESQL_URL",
    "MYSQL_URL",
    "CLICKHOUSE_URL",
    "CONNECTION_STRING",
    "CONN_STR",
    "GH_PAT",
    "GITHUB_PAT",
    "MYSQL_PWD",
    "REDISCLI_AUTH",
    "REDIS_AUTH",
    "PGSERVICEFILE",
];

/// Whether a name, in upper or lower case, is one under which secrets are kept.
///
/// Source: DeerFlow's policy for environment variables, AD-11.
pub fn is_credential_name(name: &str) -> bool {
    let name = name.to_uppercase();
    NAMES.contains(&name.as_str()) || PARTS.iter().any(|part| name.contains(part))
}

/// Whether a member must not be shown: it has the name of a credential and is no count of tokens.
///
/// Counts (`max_tokens`, `max_completion_tokens`, `budget_tokens`) are settings that change what a model does; the reference
/// loses them to the wildcard by accident. A number under a name that speaks of `TOKENS` is one.
pub fn is_credential(name: &str, value: &Value) -> bool {
    let is_count = || {
        let name = name.to_uppercase().replace("TOKENS", "");
        (value.is_number() || value.is_null()) && !is_credential_name(&name)
    };
    is_credential_name(name) && !is_count()
}

/// Takes credentials out of an object and of all objects in it.
pub fn without_credentials(members: &mut Map<String, Value>) {
    members.retain(|name, value| !is_credential(name, value));
    members.values_mut().for_each(clean);
}

fn clean(value: &mut Value) {
    match value {
        Value::Object(members) => without_credentials(members),
        Value::Array(items) => items.iter_mut().for_each(clean),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ad_11_names_of_credentials_are_known_in_any_case() {
        for name in [
            "api_key",
            "API_KEY",
            "openaiApiKey",
            "client_secret",
            "hf_token",
            "password",
            "passphrase",
            "aws_credentials",
            "sentry_dsn",
            "database_url",
            "Gh_Pat",
            "conn_str",
            "max_tokens",
        ] {
            assert!(is_credential_name(name), "{name}");
        }
        for name in [
            "",
            "temperature",
            "base_url",
            "model",
            "top_p",
            "url",
            "my_database_url",
        ] {
            assert!(!is_credential_name(name), "{name}");
        }
    }

    #[test]
    fn a_13_counts_of_tokens_stay_and_tokens_go() {
        for (name, value, gone) in [
            ("max_tokens", json!(100), false),
            ("max_completion_tokens", json!(100), false),
            ("MAX_TOKENS", json!(null), false),
            ("max_tokens_to_sample", json!(1.0), false),
            ("budget_tokens", json!(1024), false),
            // Not a number: whoever keeps tokens under the name of a count is not shown.
            ("max_tokens", json!("sk-1"), true),
            ("tokens", json!(["sk-1"]), true),
            ("token", json!(123), true),
            ("secret_tokens", json!(123), true),
            ("temperature", json!("hot"), false),
        ] {
            assert_eq!(is_credential(name, &value), gone, "{name}: {value}");
        }
    }

    #[test]
    fn credentials_are_taken_out_at_every_depth() {
        let mut value = json!({
            "api_key": "sk-1",
            "extra_body": {"auth": [{"x-api-key": "sk-2", "kept": 1}], "max_tokens": 5},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        });
        clean(&mut value);
        assert_eq!(
            value,
            json!({
                "extra_body": {"auth": [{"kept": 1}], "max_tokens": 5},
                "thinking": {"type": "enabled", "budget_tokens": 1024},
            })
        );
    }
}

//! What a SKILL.md has to be like before it is installed: stricter than what the loader puts up with (SKL-4).

use serde_json::{Map, Value};

use super::parse::{KEYS, allowed_tools, front_matter, is_variable_name, kind, members};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::json::pointer_token;

/// Most characters of a name.
pub const MAX_NAME_CHARS: usize = 64;
/// Most characters of a description.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;

/// Checks the text of a SKILL.md and answers the skill's name.
///
/// # Errors
/// All that is wrong with it, in the order of the file's rules. Each error is [`ErrorCode::AssemblyInvalid`], says what is
/// expected, and has as its path a JSON pointer into the front matter, or none when the front matter itself is at fault.
pub fn validate(content: &str) -> Result<String, Vec<Error>> {
    let whole = |reason: String| vec![Error::new(ErrorCode::AssemblyInvalid, reason)];
    let (front, _) = front_matter(content).map_err(whole)?;
    let front = members(front).map_err(whole)?;
    let mut problems = Problems::default();
    for key in front.keys().filter(|key| !KEYS.contains(&&***key)) {
        problems.add(key, format!("unknown; expected one of {}", KEYS.join(", ")));
    }
    let name = text(&front, "name", &mut problems);
    if let Some(name) = name {
        check_name(name, &mut problems);
    }
    if let Some(description) = text(&front, "description", &mut problems) {
        check_description(description, &mut problems);
    }
    if let Err(reason) = allowed_tools(front.get("allowed-tools")) {
        problems.add("allowed-tools", reason);
    }
    check_secrets(front.get("required-secrets"), &mut problems);
    if let Some(value) = front.get("secrets-autonomous")
        && !value.is_boolean()
    {
        let found = kind(value);
        problems.add(
            "secrets-autonomous",
            format!("{found} where true or false is expected"),
        );
    }
    match name {
        Some(name) if problems.0.is_empty() => Ok(name.to_owned()),
        _ => Err(problems.0),
    }
}

#[derive(Default)]
struct Problems(Vec<Error>);

impl Problems {
    fn add(&mut self, key: &str, message: String) {
        self.at(format!("/{}", pointer_token(key)), message);
    }

    fn at(&mut self, path: String, message: String) {
        self.0
            .push(Error::at(ErrorCode::AssemblyInvalid, path, message));
    }
}

fn text<'a>(front: &'a Map<String, Value>, key: &str, problems: &mut Problems) -> Option<&'a str> {
    let wrong = match front.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => return Some(text.trim()),
        Some(Value::String(_)) => "blank where text is expected".to_owned(),
        None | Some(Value::Null) => "missing; text is expected".to_owned(),
        Some(other) => format!(
            "{} where text is expected; quotes make it text",
            kind(other)
        ),
    };
    problems.add(key, wrong);
    None
}

fn check_name(name: &str, problems: &mut Problems) {
    let count = name.chars().count();
    if count > MAX_NAME_CHARS {
        let message = format!("{count} characters are more than {MAX_NAME_CHARS}");
        problems.add("name", message);
    }
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if let Some(c) = name.chars().find(|c| !fits(*c)) {
        let message = format!("{c:?} may not stand in a name; expected a-z, 0-9 and hyphens");
        problems.add("name", message);
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        let message = "hyphens may only stand alone between other characters".to_owned();
        problems.add("name", message);
    }
}

fn check_description(description: &str, problems: &mut Problems) {
    let count = description.chars().count();
    if count > MAX_DESCRIPTION_CHARS {
        let message = format!("{count} characters are more than {MAX_DESCRIPTION_CHARS}");
        problems.add("description", message);
    }
    if description.contains(['<', '>']) {
        let message = "angle brackets may not stand in a description".to_owned();
        problems.add("description", message);
    }
}

/// Entries that the loader passes over are errors here.
fn check_secrets(value: Option<&Value>, problems: &mut Problems) {
    let items = match value {
        None | Some(Value::Null) => return,
        Some(Value::Array(items)) => items,
        Some(other) => {
            let message = format!("{} where a list is expected", kind(other));
            return problems.add("required-secrets", message);
        }
    };
    for (place, item) in items.iter().enumerate() {
        let path = format!("/required-secrets/{place}");
        let name = match item {
            Value::String(name) => Some(&**name),
            Value::Object(entry) => {
                if let Some(optional) = entry.get("optional").filter(|value| !value.is_boolean()) {
                    let message = format!("{} where true or false is expected", kind(optional));
                    problems.at(format!("{path}/optional"), message);
                }
                entry.get("name").and_then(Value::as_str)
            }
            _ => None,
        };
        if !name.is_some_and(|name| is_variable_name(name.trim())) {
            let expected = "expected the name of an environment variable (letters, digits and '_', no digit first), or \
                            a mapping with such a 'name'";
            problems.at(path, expected.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(front: &str) -> Vec<(String, String)> {
        match validate(&format!("---\n{front}\n---\nbody")) {
            Ok(name) => panic!("{name} is valid"),
            Err(errors) => errors
                .into_iter()
                .map(|error| (error.path.unwrap_or_default(), error.message))
                .collect(),
        }
    }

    fn one(front: &str) -> (String, String) {
        let mut found = problems(front);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn a_good_file_has_a_name() {
        let front = "name: data-analysis2\ndescription: Looks at data.\nlicense: MIT\nallowed-tools: [bash]\nrequired-secrets: [KEY, {name: B, optional: true}]\nsecrets-autonomous: false\nmetadata: {a: 1}\ncompatibility: all\nversion: 1.0\nauthor: me";
        assert_eq!(
            validate(&format!("---\n{front}\n---\n")).as_deref(),
            Ok("data-analysis2")
        );
    }

    #[test]
    fn each_rule_says_what_where_and_what_is_expected() {
        let name = |name: &str| one(&format!("name: {name}\ndescription: b"));
        assert_eq!(
            name("Demo"),
            (
                "/name".into(),
                "'D' may not stand in a name; expected a-z, 0-9 and hyphens".into()
            )
        );
        for bad in ["-a", "a-", "a--b"] {
            assert_eq!(
                name(bad).1,
                "hyphens may only stand alone between other characters"
            );
        }
        assert_eq!(name(&"x".repeat(65)).1, "65 characters are more than 64");
        assert_eq!(
            name("12").1,
            "a number where text is expected; quotes make it text"
        );
        assert_eq!(name("''").1, "blank where text is expected");
        assert!(
            validate(&format!(
                "---\nname: {}\ndescription: {}\n---",
                "x".repeat(64),
                "é".repeat(1024)
            ))
            .is_ok()
        );

        let description = |text: &str| one(&format!("name: a\ndescription: {text}"));
        assert_eq!(
            description("a <b> c").1,
            "angle brackets may not stand in a description"
        );
        assert_eq!(
            description(&"é".repeat(1025)).1,
            "1025 characters are more than 1024"
        );
        assert_eq!(
            one("name: a"),
            ("/description".into(), "missing; text is expected".into())
        );

        let rest = |line: &str| one(&format!("name: a\ndescription: b\n{line}"));
        let unknown = rest("a/b: 1");
        assert_eq!(unknown.0, "/a~1b");
        assert!(
            unknown
                .1
                .starts_with("unknown; expected one of name, description, license, ")
        );
        assert_eq!(rest("allowed-tools: bash").0, "/allowed-tools");
        assert_eq!(rest("secrets-autonomous: maybe").0, "/secrets-autonomous");
        assert_eq!(rest("required-secrets: A").0, "/required-secrets");
        assert_eq!(rest("required-secrets: [A, 1b]").0, "/required-secrets/1");
        assert_eq!(
            rest("required-secrets: [{name: A, optional: 1}]").0,
            "/required-secrets/0/optional"
        );
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let found = problems("name: -A\nallowed-tools: x\nnew: 1");
        let paths: Vec<&str> = found.iter().map(|(path, _)| &**path).collect();
        assert_eq!(
            paths,
            ["/new", "/name", "/name", "/description", "/allowed-tools"]
        );
    }

    #[test]
    fn a_file_without_front_matter_is_refused_as_a_whole() {
        for text in [
            "",
            "# Title",
            "---\nname: a",
            "---\n[a\n---\n",
            "---\n- a\n---\n",
        ] {
            let errors = validate(text).expect_err("no skill");
            assert_eq!((errors.len(), &errors[0].path), (1, &None), "{text:?}");
        }
    }
}

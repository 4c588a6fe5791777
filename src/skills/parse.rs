//! Reads a SKILL.md: its front matter says what the skill is (SKL-3 to SKL-6). Forgiving where DeerFlow's loader is.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::validate::{MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS};
use super::{AllowedTools, Category, RequiredSecret, Skill};
use crate::protocol::yaml::from_yaml;

/// Name of the file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// What may stand in the front matter (SKL-3). The loader passes over other keys, the validator refuses them.
pub const KEYS: &[&str] = &[
    "name",
    "description",
    "license",
    "allowed-tools",
    "required-secrets",
    "secrets-autonomous",
    "metadata",
    "compatibility",
    "version",
    "author",
];

/// A skill, and what in its file is not as it should be without making it useless.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The skill, switched on.
    pub skill: Skill,
    /// What was passed over, in words.
    pub flaws: Vec<String>,
}

/// The description in the front matter of a SKILL.md; `None` where it has none, whatever else is wrong with it.
pub fn description(content: &str) -> Option<String> {
    let (front, _) = front_matter(content).ok()?;
    let front = members(front).ok()?;
    text(&front, "description").ok()
}

/// Reads the text of a SKILL.md. `location` is its path as the agent sees it.
///
/// Names and descriptions stand in every prompt, so both are bounded as DeerFlow bounds them where skills are installed: a
/// description counts up to [`MAX_DESCRIPTION_CHARS`], and a longer name than [`MAX_NAME_CHARS`] is none.
///
/// # Errors
/// Why the file makes no skill, in words that follow its path: no front matter, no YAML, no name or description, malformed
/// `allowed-tools` or `required-secrets`.
pub fn parse(content: Arc<str>, category: Category, location: &str) -> Result<Parsed, String> {
    let (front, _) = front_matter(&content)?;
    let front = members(front)?;
    let mut flaws = Vec::new();
    let skill = Skill {
        name: category.text(name(&front)?),
        description: category.text(bounded_description(&front, &mut flaws)?),
        category,
        allowed_tools: allowed_tools(front.get("allowed-tools"))?,
        required_secrets: required_secrets(front.get("required-secrets"), &mut flaws)?,
        secrets_autonomous: secrets_autonomous(front.get("secrets-autonomous"), &mut flaws),
        location: category.text(location),
        content,
        enabled: true,
    };
    Ok(Parsed { skill, flaws })
}

/// The YAML between the two lines of three dashes, and what stands below. A byte order mark before the first line and
/// blanks after the dashes are passed over; lines may end in CR LF.
///
/// # Errors
/// What is missing, in words.
pub fn front_matter(text: &str) -> Result<(&str, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        return Err("it does not begin with front matter: its first line is not '---'".to_owned());
    }
    let begin = first.len();
    let mut at = begin;
    for line in lines {
        if is_fence(line) {
            return Ok((&text[begin..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    Err("its front matter has no end: no line after the first is '---'".to_owned())
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix("---")
        .is_some_and(|rest| rest.trim().is_empty())
}

/// The members of a front matter.
pub(super) fn members(front: &str) -> Result<Map<String, Value>, String> {
    // The line of the first fence goes before it, so that an error names the line of the file.
    match from_yaml(&format!("\n{front}")) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(other) => Err(format!(
            "its front matter is {} where a mapping is expected",
            kind(&other)
        )),
        Err(error) => Err(format!("its front matter is {}", error.message)),
    }
}

/// A member that has to be text with something in it, trimmed (SKL-4).
fn text(front: &Map<String, Value>, key: &str) -> Result<String, String> {
    match front.get(key) {
        None | Some(Value::Null) => Err(format!("its front matter has no '{key}'")),
        Some(Value::String(text)) if text.trim().is_empty() => Err(format!("'{key}' is blank")),
        Some(Value::String(text)) => Ok(text.trim().to_owned()),
        Some(other) => Err(format!(
            "'{key}' is {} where text is expected; quotes make it text",
            kind(other)
        )),
    }
}

fn name(front: &Map<String, Value>) -> Result<String, String> {
    let name = text(front, "name")?;
    match name.chars().count() {
        count if count > MAX_NAME_CHARS => Err(format!(
            "'name' has {count} characters where at most {MAX_NAME_CHARS} are expected"
        )),
        _ => Ok(name),
    }
}

fn bounded_description(
    front: &Map<String, Value>,
    flaws: &mut Vec<String>,
) -> Result<String, String> {
    let mut description = text(front, "description")?;
    if let Some((end, _)) = description.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        let count = description.chars().count();
        flaws.push(format!(
            "'description' has {count} characters; what is beyond the first {MAX_DESCRIPTION_CHARS} is passed over"
        ));
        description.truncate(description[..end].trim_end().len());
    }
    Ok(description)
}

/// Absent and null say nothing; an empty list allows no tool (SKL-5).
pub(super) fn allowed_tools(value: Option<&Value>) -> Result<AllowedTools, String> {
    let items = match value {
        None | Some(Value::Null) => return Ok(AllowedTools::Undeclared),
        Some(Value::Array(items)) => items,
        Some(other) => {
            return Err(format!(
                "'allowed-tools' is {} where a list of tool names is expected",
                kind(other)
            ));
        }
    };
    let mut names = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        match item {
            Value::String(name) if !name.trim().is_empty() => names.push(name.trim().to_owned()),
            Value::String(_) => return Err(format!("item {place} of 'allowed-tools' is blank")),
            other => {
                return Err(format!(
                    "item {place} of 'allowed-tools' is {} where a tool name is expected",
                    kind(other)
                ));
            }
        }
    }
    names.sort();
    names.dedup();
    Ok(AllowedTools::Only(names))
}

/// Names, or mappings of `name` and `optional`. What is no name of an environment variable is passed over (SKL-6); of two
/// entries of one name the first counts.
pub(super) fn required_secrets(
    value: Option<&Value>,
    flaws: &mut Vec<String>,
) -> Result<Vec<RequiredSecret>, String> {
    let items = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => {
            return Err(format!(
                "'required-secrets' is {} where a list is expected",
                kind(other)
            ));
        }
    };
    let mut secrets: Vec<RequiredSecret> = Vec::with_capacity(items.len());
    let mut seen = std::collections::HashSet::new();
    for (place, item) in items.iter().enumerate() {
        let (name, optional) = match item {
            Value::String(name) => (name.trim(), false),
            Value::Object(entry) => {
                let name = entry
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                (name.trim(), entry.get("optional").is_some_and(is_truthy))
            }
            _ => ("", false),
        };
        if !is_variable_name(name) {
            flaws.push(format!(
                "item {place} of 'required-secrets' is passed over: its name is no name of an environment variable \
                 (letters, digits and '_', no digit first)"
            ));
        } else if seen.insert(name) {
            let name = name.to_owned();
            secrets.push(RequiredSecret { name, optional });
        }
    }
    Ok(secrets)
}

/// Anything but a truth value counts as no, so that a slip does not hand out secrets (SKL-6).
fn secrets_autonomous(value: Option<&Value>, flaws: &mut Vec<String>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Bool(truth)) => *truth,
        Some(other) => {
            flaws.push(format!(
                "'secrets-autonomous' is {} where true or false is expected; it counts as false",
                kind(other)
            ));
            false
        }
    }
}

/// Whether Python would take the value for true.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// Whether the text can name an environment variable, which is where a secret ends up.
pub(super) fn is_variable_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(inner) && !name.as_bytes()[0].is_ascii_digit()
}

/// The type of a value, in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::trust::Source;

    fn read(front: &str) -> Result<Parsed, String> {
        let text = format!("---\n{front}\n---\n# Body\n");
        parse(
            text.into(),
            Category::Public,
            "/mnt/skills/public/demo/SKILL.md",
        )
    }

    fn skill(front: &str) -> Skill {
        read(&format!("name: demo\ndescription: Shows it.\n{front}"))
            .expect("a skill")
            .skill
    }

    fn reason(front: &str) -> String {
        read(front).expect_err("no skill")
    }

    #[test]
    fn a_skill_is_what_its_front_matter_says() {
        let skill = skill("license: MIT\nanything: else");
        assert_eq!(skill.name(), "demo");
        assert_eq!(skill.description.expose(), "Shows it.");
        assert_eq!(skill.allowed_tools, AllowedTools::Undeclared);
        assert_eq!(skill.required_secrets, []);
        assert!(skill.secrets_autonomous && skill.enabled);
        assert!(skill.content.starts_with("---\nname: demo"));
        assert!(skill.content.ends_with("# Body\n"));
    }

    #[test]
    fn only_what_stands_in_public_folders_is_text_of_the_operator() {
        for category in [
            Category::Public,
            Category::Custom,
            Category::Integrations,
            Category::Legacy,
        ] {
            let text = "---\nname: a\ndescription: b\n---\n";
            let skill = parse(text.into(), category, "/mnt/x")
                .expect("a skill")
                .skill;
            let expected = match category {
                Category::Public => Source::Operator,
                _ => Source::User,
            };
            for text in [&skill.name, &skill.description, &skill.location] {
                assert_eq!(text.source(), expected, "{category:?}");
            }
        }
    }

    #[test]
    fn fences_may_have_blanks_a_byte_order_mark_and_crlf() {
        for text in [
            "---\nname: a\ndescription: b\n---\n",
            "---\nname: a\ndescription: b\n---",
            "--- \t\nname: a\ndescription: b\n---  \nbody",
            "\u{feff}---\nname: a\ndescription: b\n---\n",
            "---\r\nname: a\r\ndescription: b\r\n---\r\nbody\r\n",
            "---\n\nname: a\ndescription: b # ---\n\n---\n---\n",
        ] {
            let parsed = parse(text.into(), Category::Custom, "x").expect(text);
            assert_eq!(parsed.skill.name(), "a");
            assert_eq!(parsed.skill.description.expose(), "b");
        }
        assert_eq!(
            front_matter("---\na: |\n  ---\n  x\n---\nbody"),
            Ok(("a: |\n  ---\n  x\n", "body"))
        );
    }

    #[test]
    fn what_makes_no_skill_says_why() {
        let whole = |text: &str| parse(text.into(), Category::Custom, "x").expect_err("no skill");
        for text in [
            "",
            "name: a\n",
            " ---\nname: a\n---\n",
            "\n---\n---\n",
            "----\nname: a\n----\n",
        ] {
            assert!(whole(text).contains("first line is not '---'"), "{text:?}");
        }
        for text in [
            "---",
            "---\nname: a\n",
            "---\nname: a\n ---\n",
            "---\nname: a\n----\n",
        ] {
            assert!(whole(text).contains("has no end"), "{text:?}");
        }
        assert_eq!(
            whole("---\n---\n"),
            "its front matter is nothing where a mapping is expected"
        );
        assert_eq!(
            reason("- a"),
            "its front matter is a list where a mapping is expected"
        );
        assert_eq!(reason("description: b"), "its front matter has no 'name'");
        assert_eq!(reason("name: a"), "its front matter has no 'description'");
        assert_eq!(reason("name: ' '\ndescription: b"), "'name' is blank");
        assert_eq!(
            reason("name: a\ndescription: \"\\n\\t\""),
            "'description' is blank"
        );
        assert_eq!(
            reason("name: yes\ndescription: b"),
            "'name' is a boolean where text is expected; quotes make it text"
        );
        let broken = reason("name: a\ndescription: use it: well");
        assert!(
            broken.starts_with("its front matter is no usable YAML: "),
            "{broken}"
        );
        assert!(broken.contains("at line 3, column "), "{broken}");
    }

    #[test]
    fn allowed_tools_have_three_states() {
        assert_eq!(skill("").allowed_tools, AllowedTools::Undeclared);
        assert_eq!(
            skill("allowed-tools:").allowed_tools,
            AllowedTools::Undeclared
        );
        assert_eq!(
            skill("allowed-tools: []").allowed_tools,
            AllowedTools::Only(vec![])
        );
        let listed = AllowedTools::Only(vec!["bash".into(), "ls".into()]);
        assert_eq!(
            skill("allowed-tools: [ls, ' bash ', ls]").allowed_tools,
            listed
        );
        for (front, expected) in [
            (
                "allowed-tools: bash",
                "'allowed-tools' is text where a list of tool names is expected",
            ),
            (
                "allowed-tools: {bash: true}",
                "'allowed-tools' is a mapping where a list of tool names is expected",
            ),
            (
                "allowed-tools: [a, 1]",
                "item 1 of 'allowed-tools' is a number where a tool name is expected",
            ),
            ("allowed-tools: ['']", "item 0 of 'allowed-tools' is blank"),
        ] {
            assert_eq!(
                reason(&format!("name: a\ndescription: b\n{front}")),
                expected
            );
        }
    }

    /// SKL-4: both stand in every prompt.
    #[test]
    fn names_and_descriptions_are_bounded() {
        let described = |text: &str| {
            let parsed = read(&format!("name: a\ndescription: {text}")).expect("a skill");
            (parsed.skill.description.expose().to_owned(), parsed.flaws)
        };
        let most = "é".repeat(MAX_DESCRIPTION_CHARS);
        assert_eq!(described(&most), (most.clone(), Vec::new()));
        let (text, flaws) = described(&"é".repeat(400_000));
        assert_eq!(text, most);
        assert_eq!(
            flaws,
            ["'description' has 400000 characters; what is beyond the first 1024 is passed over"]
        );
        let (text, _) = described(&format!("{} {}", "x".repeat(1023), "y".repeat(99)));
        assert_eq!(text, "x".repeat(1023), "no blank at the end");
        let named = |count| read(&format!("name: {}\ndescription: b", "é".repeat(count)));
        assert!(named(64).is_ok());
        assert_eq!(
            named(65).expect_err("no skill"),
            "'name' has 65 characters where at most 64 are expected"
        );
    }

    #[test]
    fn secrets_are_read_entry_by_entry() {
        let parsed = read(
            "name: a\ndescription: b\nsecrets-autonomous: 'yes'\nrequired-secrets:\n- A_KEY\n- {name: B, optional: true}\n- 1bad\n- [x]\n- {optional: true}\n- {name: A_KEY, optional: true}\n- {name: C, optional: ''}",
        )
        .expect("a skill");
        let secret = |name: &str, optional| RequiredSecret {
            name: name.into(),
            optional,
        };
        assert_eq!(
            parsed.skill.required_secrets,
            [
                secret("A_KEY", false),
                secret("B", true),
                secret("C", false)
            ]
        );
        assert!(!parsed.skill.secrets_autonomous);
        let places: Vec<bool> = (2..5)
            .map(|place| {
                parsed
                    .flaws
                    .iter()
                    .any(|flaw| flaw.starts_with(&format!("item {place} of")))
            })
            .collect();
        assert_eq!((places, parsed.flaws.len()), (vec![true; 3], 4));
        assert_eq!(
            reason("name: a\ndescription: b\nrequired-secrets: A"),
            "'required-secrets' is text where a list is expected"
        );
        assert!(skill("secrets-autonomous:").secrets_autonomous);
        assert!(!skill("secrets-autonomous: no").secrets_autonomous);
    }
}

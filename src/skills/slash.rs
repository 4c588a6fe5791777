//! `/name task`: how a user asks for a skill (SKL-9, MW-SKA-1, MW-SKA-2).

use std::sync::Arc;

use super::Skill;
use super::catalog::Catalog;
use super::scope::Scope;

/// Names that are commands of the host's own interface and never skills.
pub const RESERVED: &[&str] = &[
    "bootstrap",
    "goal",
    "help",
    "memory",
    "models",
    "new",
    "status",
];

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlashCommand<'a> {
    /// Name of the skill.
    pub name: &'a str,
    /// The rest of the message, without leading blanks.
    pub task: &'a str,
}

/// The command that a message begins with: a slash without blanks before it, a name of `a-z` and `0-9` in parts that
/// single hyphens join, then a blank or the end. `None` for everything else and for reserved names.
pub fn parse(text: &str) -> Option<SlashCommand<'_>> {
    let rest = text.strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, task) = rest.split_at(end);
    let is_part = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !part.is_empty() && part.bytes().all(fits)
    };
    if !name.split('-').all(is_part) || RESERVED.contains(&name) {
        return None;
    }
    let task = task.trim_start();
    Some(SlashCommand { name, task })
}

/// Why a skill that a user asked for is not activated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no skill of this name.
    NotInstalled,
    /// It is switched off.
    Disabled,
    /// It is not among the skills of this agent.
    NotAvailable,
}

/// The skill of this name, if the agent may activate it.
///
/// # Errors
/// The first reason that applies, in the order of [`Refusal`].
pub fn resolve<'a>(
    catalog: &'a Catalog,
    scope: &Scope,
    name: &str,
) -> Result<&'a Arc<Skill>, Refusal> {
    let skill = catalog.get(name).ok_or(Refusal::NotInstalled)?;
    if !skill.enabled {
        return Err(Refusal::Disabled);
    }
    if !scope.allows(name) {
        return Err(Refusal::NotAvailable);
    }
    Ok(skill)
}

#[cfg(test)]
mod tests {
    use super::super::Category;
    use super::super::catalog::tests::{skill, switched_off};
    use super::*;

    #[test]
    fn a_command_is_a_slash_a_name_and_a_blank_or_the_end() {
        for (text, name, task) in [
            ("/demo", "demo", ""),
            ("/demo ", "demo", ""),
            ("/demo\n", "demo", ""),
            ("/demo do it ", "demo", "do it "),
            ("/demo\t\n  do\nit", "demo", "do\nit"),
            ("/demo\u{3000}x", "demo", "x"),
            ("/data-analysis-2 /demo", "data-analysis-2", "/demo"),
            ("/0", "0", ""),
            ("/help-me", "help-me", ""),
        ] {
            assert_eq!(parse(text), Some(SlashCommand { name, task }), "{text:?}");
        }
        for text in [
            "",
            "/",
            "demo",
            " /demo",
            "\n/demo",
            "//demo",
            "/Demo",
            "/demo_x",
            "/demo.",
            "/demo/x",
            "/-demo",
            "/demo-",
            "/de--mo",
            "/ demo",
            "/dëmo",
            "/demo,x",
            "/etc/passwd",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        for name in RESERVED {
            assert_eq!(parse(&format!("/{name} x")), None);
        }
    }

    #[test]
    fn a_skill_is_activated_when_it_is_on_and_in_scope() {
        let (catalog, _) = Catalog::new(vec![
            skill(Category::Public, "a", "name: a"),
            switched_off(skill(Category::Public, "b", "name: b")),
        ]);
        let list = ["b".to_owned()];
        let found = |scope: &Scope, name: &str| {
            resolve(&catalog, scope, name).map(|skill| skill.name().to_owned())
        };
        assert_eq!(found(&Scope::all(), "a"), Ok("a".to_owned()));
        assert_eq!(found(&Scope::all(), "b"), Err(Refusal::Disabled));
        assert_eq!(found(&Scope::all(), "c"), Err(Refusal::NotInstalled));
        assert_eq!(
            found(&Scope::of(Some(&list)), "a"),
            Err(Refusal::NotAvailable)
        );
        assert_eq!(found(&Scope::of(Some(&list)), "b"), Err(Refusal::Disabled));
        assert_eq!(
            found(&Scope::of(Some(&[])), "a"),
            Err(Refusal::NotAvailable)
        );
    }
}

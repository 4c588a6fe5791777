//! Which tools an agent may use while it follows skills (SKL-18, MW-STP-1 to MW-STP-3). A pure decision, made anew for
//! each model call.

use std::collections::BTreeSet;

use super::AllowedTools;
use super::catalog::{Catalog, normal_path};
use super::scope::Scope;

/// Tools that no skill takes away: without them an agent could not read or find a skill.
pub const ALWAYS_ALLOWED: [&str; 4] = [
    "describe_skill",
    "read_file",
    "review_skill_package",
    "tool_search",
];

/// What a decision goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// The skill that the user named with a slash; it dominates the run.
    Slash,
    /// The skills whose SKILL.md the agent has read.
    InContext,
    /// No skill at all.
    Passive,
}

impl PolicySource {
    /// Name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            PolicySource::Slash => "slash",
            PolicySource::InContext => "in_context",
            PolicySource::Passive => "passive",
        }
    }
}

/// Which tools may be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What it goes by.
    pub source: PolicySource,
    /// Paths of the SKILL.md files that count, without those that do not resolve.
    pub active_paths: Vec<String>,
    /// `None`: every tool. Otherwise only these, sorted, and the four that are [`ALWAYS_ALLOWED`].
    pub allowed: Option<BTreeSet<String>>,
}

impl Decision {
    /// Whether a tool may be used. `task` has no exemption.
    pub fn allows(&self, tool: &str) -> bool {
        match &self.allowed {
            None => true,
            Some(names) => names.contains(tool) || ALWAYS_ALLOWED.contains(&tool),
        }
    }
}

/// Decides. `slash` is the path of the skill that the user named with a slash in this run, `in_context` are the paths of
/// the skills in context. `catalog` is `None` when the skills could not be loaded.
///
/// Paths that do not resolve to a skill that is switched on and in scope are passed over. When none is left although there
/// were some, only the tools that are always allowed remain: a restriction that cannot be read does not vanish.
pub fn decide(
    catalog: Option<&Catalog>,
    scope: &Scope,
    slash: Option<&str>,
    in_context: &[&str],
) -> Decision {
    let (source, paths) = match slash {
        Some(_) => (PolicySource::Slash, slash.as_slice()),
        None if in_context.is_empty() => (PolicySource::Passive, in_context),
        None => (PolicySource::InContext, in_context),
    };
    let mut decision = Decision {
        source,
        active_paths: Vec::new(),
        allowed: None,
    };
    if source == PolicySource::Passive {
        return decision;
    }
    let mut declared = None;
    for path in paths {
        let Some(skill) = catalog.and_then(|catalog| catalog.at_location(path)) else {
            continue;
        };
        let path = normal_path(path).unwrap_or_default();
        if !skill.enabled || !scope.allows(skill.name()) || decision.active_paths.contains(&path) {
            continue;
        }
        decision.active_paths.push(path);
        if let AllowedTools::Only(names) = &skill.allowed_tools {
            let declared: &mut BTreeSet<String> = declared.get_or_insert_default();
            declared.extend(names.iter().cloned());
        }
    }
    decision.allowed = match decision.active_paths.is_empty() {
        true => Some(BTreeSet::new()),
        false => declared,
    };
    decision
}

#[cfg(test)]
mod tests {
    use super::super::Category;
    use super::super::catalog::tests::{skill, switched_off};
    use super::*;

    fn path(folder: &str) -> String {
        format!("/mnt/skills/public/{folder}/SKILL.md")
    }

    /// `legacy` declares nothing, `none` declares an empty list, `some` declares `bash` and `ls`, `more` declares `task`.
    fn catalog() -> Catalog {
        let public = |name: &str, rest: &str| {
            skill(Category::Public, name, &format!("name: {name}\n{rest}"))
        };
        Catalog::new(vec![
            public("legacy", ""),
            public("none", "allowed-tools: []"),
            public("some", "allowed-tools: [ls, bash]"),
            public("more", "allowed-tools: [task]"),
            switched_off(public("dark", "")),
        ])
        .0
    }

    fn of(slash: Option<&str>, in_context: &[&str], scope: &Scope) -> Decision {
        let slash = slash.map(path);
        let paths: Vec<String> = in_context.iter().map(|folder| path(folder)).collect();
        let paths: Vec<&str> = paths.iter().map(|path| &**path).collect();
        decide(Some(&catalog()), scope, slash.as_deref(), &paths)
    }

    fn names(decision: &Decision) -> Option<Vec<&str>> {
        let allowed = decision.allowed.as_ref()?;
        Some(allowed.iter().map(|name| &**name).collect())
    }

    #[test]
    fn skills_in_context_unite_what_they_declare() {
        let all = Scope::all();
        for (in_context, expected) in [
            (vec![], None),
            // V55
            (vec!["legacy"], None),
            (vec!["legacy", "legacy"], None),
            // V54
            (vec!["legacy", "none"], Some(vec![])),
            (vec!["none"], Some(vec![])),
            (vec!["some"], Some(vec!["bash", "ls"])),
            (vec!["some", "legacy"], Some(vec!["bash", "ls"])),
            (
                vec!["some", "none", "more"],
                Some(vec!["bash", "ls", "task"]),
            ),
        ] {
            let decision = of(None, &in_context, &all);
            assert_eq!(names(&decision), expected, "{in_context:?}");
        }
        assert_eq!(of(None, &[], &all).source, PolicySource::Passive);
        assert_eq!(of(None, &["legacy"], &all).source, PolicySource::InContext);
    }

    #[test]
    fn a_skill_named_with_a_slash_dominates() {
        let decision = of(Some("some"), &["more", "legacy"], &Scope::all());
        assert_eq!(decision.source, PolicySource::Slash);
        assert_eq!(decision.active_paths, [path("some")]);
        assert_eq!(names(&decision), Some(vec!["bash", "ls"]));
        assert_eq!(names(&of(Some("legacy"), &["none"], &Scope::all())), None);
        // It does so also when it cannot be resolved.
        assert_eq!(
            names(&of(Some("gone"), &["legacy"], &Scope::all())),
            Some(vec![])
        );
    }

    #[test]
    fn what_cannot_be_authorised_is_passed_over_and_nothing_left_allows_nothing() {
        let all = Scope::all();
        let list = ["some".to_owned()];
        let listed = Scope::of(Some(&list));
        for (in_context, scope, expected) in [
            (vec!["gone"], &all, Some(vec![])),
            (vec!["dark"], &all, Some(vec![])),
            (vec!["legacy"], &listed, Some(vec![])),
            (vec!["gone", "dark", "legacy"], &all, None),
            (
                vec!["legacy", "more", "some"],
                &listed,
                Some(vec!["bash", "ls"]),
            ),
        ] {
            assert_eq!(
                names(&of(None, &in_context, scope)),
                expected,
                "{in_context:?}"
            );
        }
        let unread = path("legacy");
        let decision = decide(None, &all, None, &[&unread]);
        assert_eq!(names(&decision), Some(vec![]));
        // No skill at all needs no catalogue.
        assert_eq!(names(&decide(None, &all, None, &[])), None);
    }

    /// XT-9.
    #[test]
    fn four_tools_are_always_allowed() {
        let decision = of(Some("none"), &[], &Scope::all());
        for tool in [
            "read_file",
            "tool_search",
            "describe_skill",
            "review_skill_package",
        ] {
            assert!(decision.allows(tool), "{tool}");
        }
        for tool in ["bash", "task", "write_file", ""] {
            assert!(!decision.allows(tool), "{tool}");
        }
        assert!(of(None, &["legacy"], &Scope::all()).allows("bash"));
    }

    #[test]
    fn paths_are_compared_in_their_normal_form_and_count_once() {
        let roundabout = "/mnt/skills/public/../public//some/SKILL.md";
        let decision = decide(
            Some(&catalog()),
            &Scope::all(),
            None,
            &[roundabout, &path("some")],
        );
        assert_eq!(decision.active_paths, [path("some")]);
    }
}

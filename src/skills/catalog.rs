//! The skills that there are for one user, by name: what prompts, tools and the descriptor choose from.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::scope::Scope;
use super::{AllowedTools, Category, Skill};

/// Skills by name, each name once. Immutable and shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// Sorted by name, by code point.
    skills: Vec<Arc<Skill>>,
    /// Places in `skills` by path.
    by_location: HashMap<Arc<str>, usize>,
}

/// A skill that another one of the same name hides.
#[derive(Clone, Debug, PartialEq)]
pub struct Hidden {
    /// The one that is left out.
    pub skill: Arc<Skill>,
    /// The one that stands in the catalogue.
    pub by: Arc<Skill>,
}

impl Catalog {
    /// The catalogue of these skills, and what it leaves out. Of two skills of one name a custom or legacy one wins over
    /// one of an integration, that over a public one; within a category the later wins. (DeerFlow reads the categories
    /// in this order, and the last one read stands.)
    pub fn new(mut skills: Vec<Arc<Skill>>) -> (Self, Vec<Hidden>) {
        // Stable: within a category the order stays.
        skills.sort_by(|a, b| (a.name(), rank(a)).cmp(&(b.name(), rank(b))));
        let mut hidden = Vec::new();
        let mut kept: Vec<Arc<Skill>> = Vec::with_capacity(skills.len());
        for skill in skills {
            match kept.last_mut() {
                Some(last) if last.name() == skill.name() => {
                    let skill_before = std::mem::replace(last, skill);
                    hidden.push((skill_before, kept.len() - 1));
                }
                _ => kept.push(skill),
            }
        }
        let hidden = hidden.into_iter().map(|(skill, by)| Hidden {
            skill,
            by: kept[by].clone(),
        });
        let hidden = hidden.collect();
        let places = kept.iter().enumerate();
        let by_location = places.map(|(place, skill)| (skill.location.expose().into(), place));
        let by_location = by_location.collect();
        let skills = kept;
        (
            Catalog {
                skills,
                by_location,
            },
            hidden,
        )
    }

    /// All skills, switched off ones too, by name.
    pub fn skills(&self) -> &[Arc<Skill>] {
        &self.skills
    }

    /// Whether there is no skill at all.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// The skill of this name, switched on or not.
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        let place = self
            .skills
            .binary_search_by(|skill| skill.name().cmp(name))
            .ok()?;
        self.skills.get(place)
    }

    /// The skill whose SKILL.md has this path, switched on or not. `.`, `..` and doubled slashes in the path are resolved.
    pub fn at_location(&self, path: &str) -> Option<&Arc<Skill>> {
        let place = match self.by_location.get(path) {
            Some(place) => place,
            None => self.by_location.get(&*normal_path(path)?)?,
        };
        self.skills.get(*place)
    }

    /// The skills that an agent may find and activate: switched on and in its scope, by name.
    pub fn enabled<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = &'a Arc<Skill>> {
        self.in_scope(scope).filter(|skill| skill.enabled)
    }

    /// The skills in an agent's scope that are switched off, by name.
    pub fn disabled<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = &'a Arc<Skill>> {
        self.in_scope(scope).filter(|skill| !skill.enabled)
    }

    fn in_scope<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = &'a Arc<Skill>> {
        self.skills
            .iter()
            .filter(|skill| scope.allows(skill.name()))
    }

    /// What the descriptor says about the enabled skills of an agent, by name (AD-19).
    pub fn entries<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = CatalogEntry<'a>> {
        self.enabled(scope).map(|skill| CatalogEntry::of(skill))
    }
}

/// Later ranks win.
fn rank(skill: &Skill) -> u8 {
    match skill.category {
        Category::Public => 0,
        Category::Integrations => 1,
        Category::Legacy => 2,
        Category::Custom => 3,
    }
}

/// An absolute path without `.`, `..` and empty segments; `None` when it is not absolute.
pub fn normal_path(path: &str) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.strip_prefix('/')?.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    Some(format!("/{}", kept.join("/")))
}

/// One skill as the descriptor sees it (AD-19).
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogEntry<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// `None`: undeclared. Sorted, so that the order in the file does not count (AD-20).
    pub allowed_tools: Option<&'a [String]>,
    /// Text of its SKILL.md, which is hashed.
    pub content: &'a str,
    /// Whether it may use its secrets without being asked each time.
    pub secrets_autonomous: bool,
    /// `name:False`, or `name:True` for an optional one, as Python spells it; sorted.
    pub required_secrets: Vec<String>,
}

impl<'a> CatalogEntry<'a> {
    /// The entry of a skill.
    pub fn of(skill: &'a Skill) -> Self {
        let secrets = skill.required_secrets.iter().map(|secret| {
            let optional = if secret.optional { "True" } else { "False" };
            format!("{}:{optional}", secret.name)
        });
        let mut required_secrets: Vec<String> = secrets.collect();
        required_secrets.sort();
        CatalogEntry {
            name: skill.name(),
            description: skill.description.expose(),
            allowed_tools: match &skill.allowed_tools {
                AllowedTools::Undeclared => None,
                AllowedTools::Only(names) => Some(names),
            },
            content: &skill.content,
            secrets_autonomous: skill.secrets_autonomous,
            required_secrets,
        }
    }

    /// The entry as JSON, with the hash of [`CatalogEntry::content`] in its place.
    pub fn value(&self, content_hash: &str) -> Value {
        let mut entry = Map::new();
        entry.insert("name".to_owned(), self.name.into());
        entry.insert("description".to_owned(), self.description.into());
        entry.insert("allowed_tools".to_owned(), self.allowed_tools.into());
        entry.insert("content_hash".to_owned(), content_hash.into());
        entry.insert(
            "secrets_autonomous".to_owned(),
            self.secrets_autonomous.into(),
        );
        entry.insert(
            "required_secrets".to_owned(),
            self.required_secrets.clone().into(),
        );
        Value::Object(entry)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use crate::skills::parse::parse;

    /// A skill at `/mnt/skills/<category>/<folder>/SKILL.md`.
    pub fn skill(category: Category, folder: &str, front: &str) -> Arc<Skill> {
        let text = format!("---\ndescription: d\n{front}\n---\nbody");
        let location = format!("/mnt/skills/{}/{folder}/SKILL.md", category.name());
        Arc::new(
            parse(text.into(), category, &location)
                .expect("a skill")
                .skill,
        )
    }

    pub fn switched_off(skill: Arc<Skill>) -> Arc<Skill> {
        let mut skill = Arc::unwrap_or_clone(skill);
        skill.enabled = false;
        Arc::new(skill)
    }

    fn names<'a>(skills: impl Iterator<Item = &'a Arc<Skill>>) -> Vec<&'a str> {
        skills.map(|skill| skill.name()).collect()
    }

    #[test]
    fn skills_are_sorted_and_found_by_name_and_path() {
        let (catalog, hidden) = Catalog::new(vec![
            skill(Category::Public, "z/b", "name: b"),
            skill(Category::Custom, "a", "name: a"),
            skill(Category::Public, "up", "name: B"),
        ]);
        assert_eq!(hidden, []);
        assert_eq!(names(catalog.skills().iter()), ["B", "a", "b"]);
        assert_eq!(
            catalog.get("a").map(|skill| skill.category),
            Some(Category::Custom)
        );
        assert_eq!(catalog.get("c"), None);
        for path in [
            "/mnt/skills/public/z/b/SKILL.md",
            "/mnt//skills/./public/x/../z/b/SKILL.md",
        ] {
            assert_eq!(
                catalog.at_location(path).map(|skill| skill.name()),
                Some("b"),
                "{path}"
            );
        }
        for path in [
            "",
            "mnt/skills/public/z/b/SKILL.md",
            "/mnt/skills/public/z/b",
            "/mnt/skills/custom/z/b/SKILL.md",
        ] {
            assert_eq!(catalog.at_location(path), None, "{path}");
        }
    }

    #[test]
    fn of_two_skills_of_one_name_the_user_s_own_wins() {
        let all = [
            skill(Category::Custom, "4", "name: a"),
            skill(Category::Public, "1", "name: a"),
            skill(Category::Public, "2", "name: a"),
            skill(Category::Integrations, "3", "name: a"),
        ];
        // Whatever order they come in, but for the order within the category.
        for from in 0..4 {
            let mut skills = all.to_vec();
            skills.rotate_left(from);
            let (catalog, hidden) = Catalog::new(skills);
            assert_eq!(catalog.skills(), std::slice::from_ref(&all[0]));
            assert_eq!(hidden.len(), 3);
            assert!(hidden.iter().all(|hidden| hidden.by == all[0]));
        }
        let (catalog, _) = Catalog::new(all[1..3].to_vec());
        assert_eq!(catalog.skills(), std::slice::from_ref(&all[2]));
    }

    #[test]
    fn an_agent_sees_what_is_on_and_in_its_scope() {
        let (catalog, _) = Catalog::new(vec![
            skill(Category::Public, "a", "name: a"),
            switched_off(skill(Category::Public, "b", "name: b")),
            skill(Category::Public, "c", "name: c"),
            switched_off(skill(Category::Public, "d", "name: d")),
        ]);
        let list = ["a".to_owned(), "b".to_owned(), "nowhere".to_owned()];
        for (scope, on, off) in [
            (Scope::all(), vec!["a", "c"], vec!["b", "d"]),
            (Scope::of(Some(&list)), vec!["a"], vec!["b"]),
            (Scope::of(Some(&[])), vec![], vec![]),
        ] {
            assert_eq!(names(catalog.enabled(&scope)), on);
            assert_eq!(names(catalog.disabled(&scope)), off);
            assert_eq!(
                catalog
                    .entries(&scope)
                    .map(|entry| entry.name)
                    .collect::<Vec<_>>(),
                on
            );
        }
    }

    /// AD-19, AD-20.
    #[test]
    fn entries_say_what_the_descriptor_hashes() {
        let (catalog, _) = Catalog::new(vec![
            skill(
                Category::Public,
                "a",
                "name: a\nallowed-tools: [b, a]\nsecrets-autonomous: false\nrequired-secrets: [Z, {name: A, optional: true}]",
            ),
            skill(Category::Public, "b", "name: b\nallowed-tools: []"),
            skill(Category::Public, "c", "name: c"),
        ]);
        let scope = Scope::all();
        let entries: Vec<Value> = catalog
            .entries(&scope)
            .map(|entry| entry.value("h"))
            .collect();
        let entry = |name: &str, tools: Value, autonomous: bool, secrets: Value| {
            json!({
                "name": name, "description": "d", "allowed_tools": tools, "content_hash": "h",
                "secrets_autonomous": autonomous, "required_secrets": secrets,
            })
        };
        assert_eq!(
            entries,
            [
                entry("a", json!(["a", "b"]), false, json!(["A:True", "Z:False"])),
                entry("b", json!([]), true, json!([])),
                entry("c", json!(null), true, json!([])),
            ]
        );
        assert!(
            catalog
                .entries(&scope)
                .all(|entry| entry.content.ends_with("---\nbody"))
        );
    }
}

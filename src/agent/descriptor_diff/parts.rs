//! Compares the lists of a descriptor: tools, middleware, deferred tools, skills.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Side;
use super::changes::{Changes, MAX_REPEATED_BYTES, Settings, listed, quoted};
use super::order::{Matching, matching};
use crate::protocol::canonical_json::same;
use crate::protocol::descriptor_diff::DescriptorChangeKind;

/// Members of a tool that are part of the fingerprint, and what a sentence calls them.
const TOOL_MEMBERS: &[(&str, &str)] = &[
    ("description_hash", "description"),
    ("schema_hash", "schema"),
    ("source", "source"),
    ("mcp_server", "MCP server"),
    ("mcp_transport", "MCP transport"),
];

/// Members of a skill that its catalog's hash is made of, likewise.
const SKILL_MEMBERS: &[(&str, &str)] = &[
    ("content_hash", "SKILL.md"),
    ("description", "description"),
    ("allowed_tools", "allowed tools"),
    ("required_secrets", "required secrets"),
    ("secrets_autonomous", "use of secrets"),
];

pub(super) fn tools(changes: &mut Changes, before: &Side<'_>, after: &Side<'_>) {
    let (old, new) = (before.items("tools"), after.items("tools"));
    let (old_names, new_names) = (names(old), names(new));
    let found = matching(&old_names, &new_names);
    let path = |place: usize| format!("/tools/{place}");
    for place in &found.added {
        let (name, value) = (new_names[*place], Some(&new[*place]));
        let text = || format!("Tool {} was added.", quoted(name));
        changes.add(
            DescriptorChangeKind::ToolAdded,
            Some(name),
            &path(*place),
            (None, value),
            true,
            text,
        );
    }
    for place in &found.removed {
        let (name, value) = (old_names[*place], Some(&old[*place]));
        let text = || format!("Tool {} was removed.", quoted(name));
        changes.add(
            DescriptorChangeKind::ToolRemoved,
            Some(name),
            &path(*place),
            (value, None),
            true,
            text,
        );
    }
    for (earlier, place) in &found.kept {
        let (old, new, name) = (&old[*earlier], &new[*place], new_names[*place]);
        if let Some((identity, which)) = members_changed(old, new, TOOL_MEMBERS) {
            let text = || format!("Tool {} changed: {which}.", quoted(name));
            let sides = (Some(old), Some(new));
            changes.add(
                DescriptorChangeKind::ToolChanged,
                Some(name),
                &path(*place),
                sides,
                identity,
                text,
            );
        }
    }
    reordered(
        changes,
        &found,
        DescriptorChangeKind::ToolsReordered,
        "/tools",
        || {
            let lists = (old_names.as_slice().into(), new_names.as_slice().into());
            (lists, "The tools are bound in another order.")
        },
    );
}

pub(super) fn deferred_tools(changes: &mut Changes, before: &Side<'_>, after: &Side<'_>) {
    let (old, new) = (
        &before.record.deferred_tool_names,
        &after.record.deferred_tool_names,
    );
    let (old, new) = (texts(old), texts(new));
    let found = matching(&old, &new);
    let path = |place: usize| format!("/deferred_tool_names/{place}");
    for place in found.added {
        let (name, value) = (new[place], Value::from(new[place]));
        let text = || format!("Tool {} is deferred now.", quoted(name));
        let what = DescriptorChangeKind::DeferredToolAdded;
        changes.add(
            what,
            Some(name),
            &path(place),
            (None, Some(&value)),
            true,
            text,
        );
    }
    for place in found.removed {
        let (name, value) = (old[place], Value::from(old[place]));
        let text = || format!("Tool {} is not deferred any more.", quoted(name));
        let what = DescriptorChangeKind::DeferredToolRemoved;
        changes.add(
            what,
            Some(name),
            &path(place),
            (Some(&value), None),
            true,
            text,
        );
    }
}

pub(super) fn middlewares(changes: &mut Changes, before: &Side<'_>, after: &Side<'_>) {
    let (old, new) = (before.items("middlewares"), after.items("middlewares"));
    let (old_names, new_names) = (names(old), names(new));
    let found = matching(&old_names, &new_names);
    let path = |place: usize| format!("/middlewares/{place}");
    for place in &found.added {
        let (name, value) = (new_names[*place], Some(&new[*place]));
        let text = || format!("Middleware {} was added at place {place}.", quoted(name));
        let what = DescriptorChangeKind::MiddlewareAdded;
        changes.add(what, Some(name), &path(*place), (None, value), true, text);
    }
    for place in &found.removed {
        let (name, value) = (old_names[*place], Some(&old[*place]));
        let text = || {
            format!(
                "Middleware {} was removed from place {place}.",
                quoted(name)
            )
        };
        let what = DescriptorChangeKind::MiddlewareRemoved;
        changes.add(what, Some(name), &path(*place), (value, None), true, text);
    }
    for index in found.moved() {
        let (earlier, place) = found.kept[index];
        let name = new_names[place];
        let sides = (Value::from(earlier), Value::from(place));
        let text = || {
            format!(
                "Middleware {} moved from place {earlier} to place {place}.",
                quoted(name)
            )
        };
        let what = DescriptorChangeKind::MiddlewareMoved;
        let sides = (Some(&sides.0), Some(&sides.1));
        changes.add(what, Some(name), &path(place), sides, true, text);
    }
    for (earlier, place) in &found.kept {
        let paths = (path(*earlier), path(*place));
        let sides = (&old[*earlier], &new[*place]);
        middleware(changes, new_names[*place], paths, sides);
    }
}

fn middleware(
    changes: &mut Changes,
    name: &str,
    (old_path, path): (String, String),
    (old, new): (&Value, &Value),
) {
    if name.len() > MAX_REPEATED_BYTES {
        let what = DescriptorChangeKind::MiddlewareChanged;
        return changes.compare(what, &path, (Some(old), Some(new)), true, |_, _| {
            format!("Middleware {} changed.", quoted(name))
        });
    }
    let settings = Settings {
        middleware: Some(name),
        identity: true,
        at: (
            &format!("{old_path}/policy_parameters"),
            &format!("{path}/policy_parameters"),
        ),
        ..Settings::of(DescriptorChangeKind::MiddlewareChanged, "Setting", "")
    };
    changes.settings(
        &settings,
        old.get("policy_parameters").and_then(Value::as_object),
        new.get("policy_parameters").and_then(Value::as_object),
    );
    let nothing = Value::Array(Vec::new());
    for (member, absent, identity) in [
        ("module", &Value::Null, true),
        ("extension", &Value::Null, true),
        ("hooks", &nothing, false),
    ] {
        let before = old.get(member).unwrap_or(absent);
        let after = new.get(member).unwrap_or(absent);
        if !same(before, after) {
            let text = || format!("Middleware {} has another {member}.", quoted(name));
            let path = format!("{path}/{member}");
            let sides = (Some(before), Some(after));
            let what = DescriptorChangeKind::MiddlewareChanged;
            changes.add(what, Some(name), &path, sides, identity, text);
        }
    }
    let others = Settings {
        noun: "Member",
        identity: false,
        skipped: &["name", "module", "extension", "hooks", "policy_parameters"],
        at: (&old_path, &path),
        ..settings
    };
    changes.settings(&others, old.as_object(), new.as_object());
}

pub(super) fn skills(changes: &mut Changes, before: &Side<'_>, after: &Side<'_>) {
    let has_entries = before.member("skills").is_some() && after.member("skills").is_some();
    let hash = |side: &Side<'_>| {
        let hash = side.record.effective_policies.get("skill_catalog_hash");
        hash.cloned().unwrap_or(Value::Null)
    };
    let (old_hash, new_hash) = (hash(before), hash(after));
    let hash_changed = !same(&old_hash, &new_hash);

    let (old, new) = (
        texts(&before.record.enabled_skills),
        texts(&after.record.enabled_skills),
    );
    let found = matching(&old, &new);
    let path = |place: usize| format!("/enabled_skills/{place}");
    for place in &found.added {
        let (name, value) = (new[*place], Value::from(new[*place]));
        let text = || format!("Skill {} was added.", quoted(name));
        let sides = (None, Some(&value));
        changes.add(
            DescriptorChangeKind::SkillAdded,
            Some(name),
            &path(*place),
            sides,
            true,
            text,
        );
    }
    for place in &found.removed {
        let (name, value) = (old[*place], Value::from(old[*place]));
        let text = || format!("Skill {} was removed.", quoted(name));
        let sides = (Some(&value), None);
        changes.add(
            DescriptorChangeKind::SkillRemoved,
            Some(name),
            &path(*place),
            sides,
            true,
            text,
        );
    }
    reordered(
        changes,
        &found,
        DescriptorChangeKind::SkillsReordered,
        "/enabled_skills",
        || {
            let lists = (old.as_slice().into(), new.as_slice().into());
            (lists, "The skills are offered in another order.")
        },
    );
    let mut explained = !found.added.is_empty() || !found.removed.is_empty();
    if has_entries {
        let is_in_order = found.is_in_order();
        explained |= entries(
            changes,
            before,
            after,
            hash_changed,
            (&old, &new),
            is_in_order,
        );
    }
    if hash_changed && !(has_entries && explained) {
        let path = "/effective_policies/skill_catalog_hash";
        let sides = (Some(&old_hash), Some(&new_hash));
        changes.add(
            DescriptorChangeKind::SkillCatalogChanged,
            None,
            path,
            sides,
            true,
            || "The skill catalog changed.".to_owned(),
        );
    }
}

/// Compares the catalog's entries; answers whether they differ. Skills that were told of as added or removed, because they
/// are among the enabled ones, are not told of again, nor is another order that the enabled ones have too.
fn entries(
    changes: &mut Changes,
    before: &Side<'_>,
    after: &Side<'_>,
    identity: bool,
    (old_enabled, new_enabled): (&[&str], &[&str]),
    is_in_order: bool,
) -> bool {
    let (old, new) = (before.items("skills"), after.items("skills"));
    let (old_names, new_names) = (names(old), names(new));
    let found = matching(&old_names, &new_names);
    let old_enabled: HashSet<&str> = old_enabled.iter().copied().collect();
    let new_enabled: HashSet<&str> = new_enabled.iter().copied().collect();
    let is_told = |name: &str| old_enabled.contains(name) != new_enabled.contains(name);
    let path = |place: usize| format!("/skills/{place}");
    let mut differ = !found.added.is_empty() || !found.removed.is_empty();
    if is_in_order {
        reordered(
            changes,
            &found,
            DescriptorChangeKind::SkillsReordered,
            "/skills",
            || {
                let lists = (old_names.as_slice().into(), new_names.as_slice().into());
                (lists, "The skills stand in another order in the catalog.")
            },
        );
    }
    for place in found.added {
        let (name, value) = (new_names[place], Some(&new[place]));
        if !is_told(name) {
            let text = || format!("Skill {} was added to the catalog.", quoted(name));
            let sides = (None, value);
            changes.add(
                DescriptorChangeKind::SkillAdded,
                Some(name),
                &path(place),
                sides,
                identity,
                text,
            );
        }
    }
    for place in found.removed {
        let (name, value) = (old_names[place], Some(&old[place]));
        if !is_told(name) {
            let text = || format!("Skill {} was removed from the catalog.", quoted(name));
            let sides = (value, None);
            changes.add(
                DescriptorChangeKind::SkillRemoved,
                Some(name),
                &path(place),
                sides,
                identity,
                text,
            );
        }
    }
    for (earlier, place) in found.kept {
        let (old, new, name) = (&old[earlier], &new[place], new_names[place]);
        if let Some((is_hashed, which)) = members_changed(old, new, SKILL_MEMBERS) {
            differ |= is_hashed;
            let text = || format!("Skill {} changed: {which}.", quoted(name));
            let sides = (Some(old), Some(new));
            let identity = identity && is_hashed;
            changes.add(
                DescriptorChangeKind::SkillChanged,
                Some(name),
                &path(place),
                sides,
                identity,
                text,
            );
        }
    }
    differ
}

/// Tells of another order when what stayed stands in one.
fn reordered(
    changes: &mut Changes,
    found: &Matching,
    what: DescriptorChangeKind,
    path: &str,
    tell: impl FnOnce() -> ((Value, Value), &'static str),
) {
    if found.is_in_order() {
        return;
    }
    let ((before, after), text) = tell();
    let sides = (Some(&before), Some(&after));
    changes.add(what, None, path, sides, false, || text.to_owned());
}

/// Which members of two objects differ, in words, and whether one of those in `known` is among them.
fn members_changed(old: &Value, new: &Value, known: &[(&str, &str)]) -> Option<(bool, String)> {
    // A member that may be missing is null then.
    let member = |value: &Value, name: &str| value.get(name).cloned().unwrap_or(Value::Null);
    let changed: Vec<&str> = known
        .iter()
        .filter(|(name, _)| !same(&member(old, name), &member(new, name)))
        .map(|(_, noun)| *noun)
        .collect();
    if !changed.is_empty() {
        return Some((true, listed(&changed)));
    }
    let is_other = |name: &str| name != "name" && known.iter().all(|(member, _)| *member != name);
    let others = |value: &Value| -> Map<String, Value> {
        let members = value.as_object().cloned().unwrap_or_default();
        members
            .into_iter()
            .filter(|(name, _)| is_other(name))
            .collect()
    };
    let (old, new) = (others(old).into(), others(new).into());
    (!same(&old, &new)).then(|| (false, "what is no part of its identity".to_owned()))
}

/// The names of objects. Every one has one: the list was read.
fn names(items: &[Value]) -> Vec<&str> {
    let names = items.iter().map(|item| item.get("name"));
    let names = names.map(|name| name.and_then(Value::as_str).unwrap_or_default());
    names.collect()
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

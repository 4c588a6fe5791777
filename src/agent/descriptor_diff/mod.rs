//! Compares two descriptors: what makes the one agent another than the other, in words and as data.
//!
//! Both are JSON that may come from anywhere: another version, the reference, a file that somebody edited. What this version
//! does not know is compared too, as a whole. Work is linear in the input, but for sorting, and the answer is bounded.

mod changes;
mod order;
mod parts;

use serde_json::Value;

use self::changes::{Changes, Settings, Sides, quoted, went};
use crate::protocol::decode::from_text;
use crate::protocol::descriptor::AssemblyDescriptor;
use crate::protocol::descriptor_diff::{
    DescriptorChangeKind, DescriptorDiff, DescriptorFingerprints, DescriptorPair,
};
use crate::protocol::error::{Error, ErrorCode};

/// Members of a descriptor that are compared one by one. Whatever else stands in one is compared as a whole.
const MEMBERS: &[&str] = &[
    "namespace",
    "agent_name",
    "requested_model",
    "effective_model",
    "model_parameters",
    "thinking_enabled",
    "reasoning_effort",
    "base_prompt_hash",
    "base_data_hash",
    "tools",
    "middlewares",
    "deferred_tool_names",
    "enabled_skills",
    "skills",
    "effective_policies",
    "build",
    "fingerprint",
];

/// Compares the descriptors of `{"before": …, "after": …}` and answers the difference as JSON.
///
/// # Errors
/// The codes of JSON and of options, with paths into the document; `MissingMember` or `WrongType` where a descriptor is
/// none.
pub fn diff_document(text: &str) -> Result<String, Error> {
    let pair: DescriptorPair = from_text(text)?;
    let diff = diff(&pair.before, &pair.after)?;
    serde_json::to_string(&diff).map_err(|error| {
        Error::new(ErrorCode::Internal, "a difference is no JSON").caused_by(error)
    })
}

/// Compares two descriptors.
///
/// # Errors
/// `MissingMember` or `WrongType` where one is none, at a path below `/before` or `/after`.
pub fn diff(before: &Value, after: &Value) -> Result<DescriptorDiff, Error> {
    let before = Side::read(before).map_err(|error| error.below("/before"))?;
    let after = Side::read(after).map_err(|error| error.below("/after"))?;
    let mut changes = Changes::default();
    agent(&mut changes, &before, &after);
    model(&mut changes, &before, &after);
    prompt(&mut changes, &before, &after);
    parts::tools(&mut changes, &before, &after);
    parts::middlewares(&mut changes, &before, &after);
    parts::deferred_tools(&mut changes, &before, &after);
    parts::skills(&mut changes, &before, &after);
    let policies = Settings {
        added: DescriptorChangeKind::PolicyAdded,
        removed: DescriptorChangeKind::PolicyRemoved,
        identity: true,
        // The skills tell of it.
        skipped: &["skill_catalog_hash"],
        ..Settings::of(
            DescriptorChangeKind::PolicyChanged,
            "Policy",
            "/effective_policies",
        )
    };
    settings(&mut changes, &policies, &before, &after);
    outside(&mut changes, &before, &after);
    Ok(finish(changes, &before, &after))
}

/// One of the descriptors: as it was read, and as it stands.
struct Side<'a> {
    value: &'a Value,
    record: AssemblyDescriptor,
    fingerprint: String,
}

impl<'a> Side<'a> {
    fn read(value: &'a Value) -> Result<Self, Error> {
        let record = AssemblyDescriptor::from_foreign(value.clone())?;
        let fingerprint = record.compute_fingerprint();
        Ok(Side {
            value,
            record,
            fingerprint,
        })
    }

    /// A member as it stands; `None` when it is missing.
    fn member(&self, name: &str) -> Option<&'a Value> {
        self.value.get(name)
    }

    /// Items of a member that is a list.
    fn items(&self, name: &str) -> &'a [Value] {
        let items = self.member(name).and_then(Value::as_array);
        items.map_or(&[], Vec::as_slice)
    }
}

fn sides<'a>(before: &Side<'a>, after: &Side<'a>, name: &str) -> Sides<'a> {
    (before.member(name), after.member(name))
}

fn agent(changes: &mut Changes, before: &Side<'_>, after: &Side<'_>) {
    for (name, noun) in [("namespace", "namespace"), ("agent_name", "name")] {
        let path = format!("/{name}");
        let sides = sides(before, after, name);
        changes.compare(
            DescriptorChangeKind::AgentChanged,
            &path,
            sides,
            true,
            |before, after| format!("The agent's {noun} {}.", went(before, after)),
        );
    }
}

fn model(changes: &mut Changes, before: &Side<'_>, after: &Side<'_>) {
    for (what, name, noun, identity) in [
        (
            DescriptorChangeKind::ModelChanged,
            "effective_model",
            "model",
            true,
        ),
        (
            DescriptorChangeKind::RequestedModelChanged,
            "requested_model",
            "requested model",
            false,
        ),
        (
            DescriptorChangeKind::ReasoningEffortChanged,
            "reasoning_effort",
            "reasoning effort",
            true,
        ),
    ] {
        let sides = sides(before, after, name);
        changes.compare(
            what,
            &format!("/{name}"),
            sides,
            identity,
            |before, after| format!("The {noun} {}.", went(before, after)),
        );
    }
    changes.compare(
        DescriptorChangeKind::ThinkingChanged,
        "/thinking_enabled",
        sides(before, after, "thinking_enabled"),
        true,
        |_, after| {
            let now = after.as_bool() == Some(true);
            format!("Thinking was switched {}.", if now { "on" } else { "off" })
        },
    );
    let parameters = Settings {
        added: DescriptorChangeKind::ModelParameterAdded,
        removed: DescriptorChangeKind::ModelParameterRemoved,
        identity: true,
        ..Settings::of(
            DescriptorChangeKind::ModelParameterChanged,
            "Model parameter",
            "/model_parameters",
        )
    };
    settings(changes, &parameters, before, after);
}

fn prompt(changes: &mut Changes, before: &Side<'_>, after: &Side<'_>) {
    changes.compare(
        DescriptorChangeKind::PromptChanged,
        "/base_prompt_hash",
        sides(before, after, "base_prompt_hash"),
        true,
        |_, _| "The system prompt changed.".to_owned(),
    );
    changes.compare(
        DescriptorChangeKind::DataChanged,
        "/base_data_hash",
        sides(before, after, "base_data_hash"),
        true,
        |before, after| {
            let what = match (before.is_null(), after.is_null()) {
                (true, _) => "came",
                (_, true) => "went",
                _ => "changed",
            };
            format!("The data beside the prompt {what}.")
        },
    );
}

/// What is no part of the fingerprint and belongs to nothing above.
fn outside(changes: &mut Changes, before: &Side<'_>, after: &Side<'_>) {
    let build = Settings::of(DescriptorChangeKind::BuildChanged, "Build fact", "/build");
    settings(changes, &build, before, after);
    let others = Settings {
        skipped: MEMBERS,
        ..Settings::of(DescriptorChangeKind::OtherChanged, "Member", "")
    };
    settings(changes, &others, before, after);
}

/// Compares an object of settings.
fn settings(changes: &mut Changes, settings: &Settings<'_>, before: &Side<'_>, after: &Side<'_>) {
    let old = before.value.pointer(settings.at.0);
    let new = after.value.pointer(settings.at.1);
    changes.settings(
        settings,
        old.and_then(Value::as_object),
        new.and_then(Value::as_object),
    );
}

fn finish(changes: Changes, before: &Side<'_>, after: &Side<'_>) -> DescriptorDiff {
    let Changes { list, left_out } = changes;
    let same = before.fingerprint == after.fingerprint;
    let mut sentences: Vec<String> = Vec::with_capacity(list.len() + 2);
    sentences.push(
        match (same, list.is_empty()) {
            (true, true) => "Nothing changed.",
            (true, false) => "The agent is the same; only what is no part of its identity changed.",
            (false, _) => "The agent is another.",
        }
        .to_owned(),
    );
    sentences.extend(list.iter().map(|change| change.text.clone()));
    if left_out > 0 {
        sentences.push(format!("{left_out} more changes are left out."));
    }
    let warnings = [("before", before), ("after", after)]
        .into_iter()
        .filter_map(|(name, side)| {
            let stated = &side.record.fingerprint;
            let differs = !stated.is_empty() && *stated != side.fingerprint;
            differs.then(|| {
                format!(
                    "the fingerprint {} of {name:?} does not belong to its facts",
                    quoted(stated)
                )
            })
        })
        .collect();
    DescriptorDiff {
        same,
        fingerprints: DescriptorFingerprints {
            before: before.fingerprint.clone(),
            after: after.fingerprint.clone(),
        },
        text: sentences.join(" "),
        changes: list,
        left_out,
        warnings,
    }
}

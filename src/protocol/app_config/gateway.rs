//! Sections of DeerFlow's server, which mean nothing to a library: taken while they ask for nothing, else refused.

use serde_json::{Map, Value};

use super::feature::not_available;
use crate::protocol::error::Error;
use crate::protocol::json::pointer_token;

/// When a section asks for nothing.
enum Neutral {
    /// Whatever it says.
    Always,
    /// While no switch of this path is true.
    Off(&'static str),
    /// While none of its members has a switch that is true.
    EachOff,
    /// While the member of this path is absent or one of these.
    OneOf(&'static str, &'static [&'static str]),
}

const GATEWAY: &[(&str, Neutral)] = &[
    ("config_version", Neutral::Always),
    ("log_level", Neutral::Always),
    ("logging", Neutral::Off("/enhance/enabled")),
    ("agents_api", Neutral::Off("/enabled")),
    ("suggestions", Neutral::Off("/enabled")),
    ("input_polish", Neutral::Off("/enabled")),
    ("scheduler", Neutral::Off("/enabled")),
    ("mcp_tasks", Neutral::Off("/enabled")),
    ("skill_scan", Neutral::Off("/enabled")),
    ("subagent_batches", Neutral::Off("/enabled")),
    ("channels", Neutral::EachOff),
    ("channel_connections", Neutral::Off("/enabled")),
    ("auth", Neutral::Off("/oidc/enabled")),
    ("run_ownership", Neutral::Off("/heartbeat_enabled")),
    ("run_events", Neutral::OneOf("/backend", &["memory"])),
    ("agent_storage", Neutral::OneOf("/backend", &["file"])),
    ("stream_bridge", Neutral::OneOf("/type", &["memory"])),
    (
        "dedupe_storage",
        Neutral::OneOf("/backend", &["auto", "memory"]),
    ),
    // In its place there is `database`.
    ("checkpointer", Neutral::OneOf("", &[])),
];

/// Names of these sections.
pub(super) const NAMES: &[&str] = &{
    let mut names = [""; GATEWAY.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = GATEWAY[place].0;
        place += 1;
    }
    names
};

/// Takes these sections out of `members`.
///
/// # Errors
/// `Unsupported` at the member that asks for something.
pub(super) fn take(members: &mut Map<String, Value>) -> Result<(), Error> {
    for (name, neutral) in GATEWAY {
        if let Some(section) = members.shift_remove(*name)
            && let Some(path) = asking(&section, neutral)
        {
            return Err(not_available(&format!("/{name}{path}"), name));
        }
    }
    Ok(())
}

/// Where a section asks for something.
fn asking(section: &Value, neutral: &Neutral) -> Option<String> {
    // A switch that is neither true nor false is not known to be off.
    let is_on =
        |switch: Option<&Value>| !matches!(switch, None | Some(Value::Null | Value::Bool(false)));
    if section.is_null() {
        return None;
    }
    match neutral {
        Neutral::Always => None,
        Neutral::Off(_) | Neutral::EachOff if !section.is_object() => Some(String::new()),
        Neutral::Off(path) => is_on(section.pointer(path)).then(|| (*path).to_owned()),
        Neutral::EachOff => {
            let mut members = section.as_object().into_iter().flatten();
            members
                .find(|(_, member)| is_on(member.get("enabled")))
                .map(|(name, _)| format!("/{}/enabled", pointer_token(name)))
        }
        Neutral::OneOf(path, known) => match section.pointer(path) {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if known.contains(&name.as_str()) => None,
            Some(_) => Some((*path).to_owned()),
        },
    }
}

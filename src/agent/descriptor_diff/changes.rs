//! Collects changes, up to a bound, and says them in words.

use serde_json::{Map, Value};

use crate::protocol::canonical_json::same;
use crate::protocol::descriptor_diff::{DescriptorChange, DescriptorChangeKind, MAX_CHANGES};
use crate::protocol::json::pointer_token;

/// Most characters of a name or a value in a sentence.
const MAX_SHOWN_CHARS: usize = 80;
/// How deep settings are compared member by member; what is deeper is compared as a whole.
const MAX_DEPTH: usize = 5;
/// Longest path, and longest name of a middleware, in bytes, below which settings are compared member by member: each of
/// their changes says both, and a document full of long names must not get an answer many times its size.
pub(super) const MAX_REPEATED_BYTES: usize = 1024;

/// The changes so far.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) list: Vec<DescriptorChange>,
    pub(super) left_out: u64,
}

/// The two sides of a change; `None` where nothing stood or stands.
pub(super) type Sides<'a> = (Option<&'a Value>, Option<&'a Value>);

/// What settings are compared as.
#[derive(Clone, Copy)]
pub(super) struct Settings<'a> {
    pub(super) added: DescriptorChangeKind,
    pub(super) removed: DescriptorChangeKind,
    pub(super) changed: DescriptorChangeKind,
    /// What a sentence calls one.
    pub(super) noun: &'static str,
    /// The middleware whose they are; the changes have its name then, not that of the setting.
    pub(super) middleware: Option<&'a str>,
    /// Whether they are part of the fingerprint.
    pub(super) identity: bool,
    /// Members that are not compared.
    pub(super) skipped: &'a [&'a str],
    /// Where the settings stand: path in the earlier descriptor, path in the later one.
    pub(super) at: (&'a str, &'a str),
}

impl<'a> Settings<'a> {
    /// Settings of the agent that have one kind of change, and stand at the same path in both.
    pub(super) fn of(what: DescriptorChangeKind, noun: &'static str, at: &'a str) -> Self {
        Settings {
            added: what,
            removed: what,
            changed: what,
            noun,
            middleware: None,
            identity: false,
            skipped: &[],
            at: (at, at),
        }
    }

    fn subject(&self, full: &str) -> String {
        let of = self
            .middleware
            .map(|name| format!(" of middleware {}", quoted(name)));
        format!("{} {}{}", self.noun, quoted(full), of.unwrap_or_default())
    }

    fn is_compared(&self, name: &str) -> bool {
        !self.skipped.contains(&name)
    }
}

impl Changes {
    /// Adds a change; `text` is asked for only when there is room.
    pub(super) fn add(
        &mut self,
        what: DescriptorChangeKind,
        name: Option<&str>,
        path: &str,
        (before, after): Sides<'_>,
        identity: bool,
        text: impl FnOnce() -> String,
    ) {
        if self.list.len() >= MAX_CHANGES {
            self.left_out += 1;
            return;
        }
        self.list.push(DescriptorChange {
            what,
            name: name.map(str::to_owned),
            path: path.to_owned(),
            before: before.cloned().unwrap_or(Value::Null),
            after: after.cloned().unwrap_or(Value::Null),
            identity,
            text: text(),
        });
    }

    /// Adds a change of a value that has a sentence of its own, if it changed. An absent value is null.
    pub(super) fn compare(
        &mut self,
        what: DescriptorChangeKind,
        path: &str,
        sides: Sides<'_>,
        identity: bool,
        text: impl FnOnce(&Value, &Value) -> String,
    ) {
        let (before, after) = (
            sides.0.unwrap_or(&Value::Null),
            sides.1.unwrap_or(&Value::Null),
        );
        if !same(before, after) {
            self.add(what, None, path, sides, identity, || text(before, after));
        }
    }

    /// Compares two objects of settings, member by member, down to the values. What is missing has none.
    pub(super) fn settings(
        &mut self,
        settings: &Settings<'_>,
        before: Option<&Map<String, Value>>,
        after: Option<&Map<String, Value>>,
    ) {
        each_member(before, after, |name, sides| {
            if settings.is_compared(name) {
                let path = format!("/{}", pointer_token(name));
                self.setting(settings, name, name, &path, sides, 1);
            }
        });
    }

    /// `name` is that of the setting at the top, `full` with those of the members on the way; `path` begins where the settings
    /// stand.
    fn setting(
        &mut self,
        settings: &Settings<'_>,
        name: &str,
        full: &str,
        path: &str,
        sides: Sides<'_>,
        depth: usize,
    ) {
        if let (Some(Value::Object(before)), Some(Value::Object(after))) = sides
            && depth < MAX_DEPTH
            && path.len() <= MAX_REPEATED_BYTES
        {
            return each_member(Some(before), Some(after), |member, sides| {
                let full = format!("{full}.{member}");
                let path = format!("{path}/{}", pointer_token(member));
                self.setting(settings, name, &full, &path, sides, depth + 1);
            });
        }
        let what = match sides {
            (Some(before), Some(after)) if same(before, after) => return,
            (Some(_), Some(_)) => settings.changed,
            (None, _) => settings.added,
            (_, None) => settings.removed,
        };
        let owner = settings.middleware.unwrap_or(name);
        let at = if sides.1.is_some() {
            settings.at.1
        } else {
            settings.at.0
        };
        let path = format!("{at}{path}");
        self.add(what, Some(owner), &path, sides, settings.identity, || {
            let subject = settings.subject(full);
            match sides {
                (Some(before), Some(after)) => format!("{subject} {}.", went(before, after)),
                (None, after) => match after.and_then(shown) {
                    Some(value) => format!("{subject} was added with the value {value}."),
                    None => format!("{subject} was added."),
                },
                (before, None) => match before.and_then(shown) {
                    Some(value) => format!("{subject} was removed; it was {value}."),
                    None => format!("{subject} was removed."),
                },
            }
        });
    }
}

/// Passes every member of two objects: those of the later one in its order, then those that are gone.
fn each_member<'a>(
    before: Option<&'a Map<String, Value>>,
    after: Option<&'a Map<String, Value>>,
    mut with: impl FnMut(&str, Sides<'a>),
) {
    for (name, value) in after.into_iter().flatten() {
        with(
            name,
            (before.and_then(|before| before.get(name)), Some(value)),
        );
    }
    for (name, value) in before.into_iter().flatten() {
        if !after.is_some_and(|after| after.contains_key(name)) {
            with(name, (Some(value), None));
        }
    }
}

/// A name in quotes, short, without line breaks, quotes or invisible characters.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", plain(name))
}

fn plain(text: &str) -> String {
    let mut shown = String::new();
    let mut chars = text.chars();
    for char in chars.by_ref().take(MAX_SHOWN_CHARS) {
        match char {
            '\'' => shown.push(char),
            _ => shown.extend(char.escape_debug()),
        }
    }
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

/// A value short enough for a sentence; `None` for lists, objects and long texts.
pub(super) fn shown(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.chars().nth(MAX_SHOWN_CHARS).is_some() => None,
        Value::String(text) => Some(quoted(text)),
        Value::Array(_) | Value::Object(_) => None,
        other => Some(other.to_string()),
    }
}

/// `changed from 1 to 2`, or that it changed.
pub(super) fn went(before: &Value, after: &Value) -> String {
    match (shown(before), shown(after)) {
        (Some(before), Some(after)) => format!("changed from {before} to {after}"),
        _ => "changed".to_owned(),
    }
}

/// `a, b and c`.
pub(super) fn listed(parts: &[&str]) -> String {
    match parts {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

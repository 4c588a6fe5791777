//! A slow and obvious `add_messages`, and random histories of writes to run it on.

use serde_json::{Value, json};

pub const REMOVE_ALL: &str = "__remove_all__";

/// One message of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Msg {
    pub kind: &'static str,
    pub id: Option<String>,
    pub content: String,
}

impl Msg {
    /// Canonical text.
    pub fn json(&self) -> String {
        let id = self
            .id
            .as_ref()
            .map_or("null".into(), |id| json!(id).to_string());
        let (content, kind) = (&self.content, self.kind);
        let rest = match kind {
            "ai" => r#","tool_calls":[],"invalid_tool_calls":[],"usage_metadata":null"#,
            "tool" => r#","tool_call_id":"c","artifact":null,"status":"success""#,
            _ => "",
        };
        format!(
            r#"{{"content":"{content}","additional_kwargs":{{}},"response_metadata":{{}},"type":"{kind}","name":null,"id":{id}{rest}}}"#
        )
    }

    /// What coercion reads as this message.
    pub fn loose(&self) -> Value {
        let mut message = json!({"role": self.kind, "content": self.content});
        if let Some(id) = &self.id {
            message["id"] = json!(id);
        }
        if self.kind == "tool" {
            message["tool_call_id"] = json!("c");
        }
        message
    }
}

/// The list as canonical text.
pub fn text(messages: &[Msg]) -> String {
    let texts: Vec<String> = messages.iter().map(Msg::json).collect();
    format!("[{}]", texts.join(","))
}

/// Counts ids up, as `SequentialIds` does.
#[derive(Clone, Debug, PartialEq)]
pub struct Ids(pub u64);

impl Ids {
    fn give(&mut self, messages: &mut [Msg]) {
        for message in messages {
            if message.id.is_none() {
                message.id = Some(format!("00000000-0000-4000-8000-{:012x}", self.0));
                self.0 += 1;
            }
        }
    }
}

/// LangGraph's `add_messages`, written to be read: every write looks through the whole list.
pub fn add_messages(
    left: &[Msg],
    right: Option<&[Msg]>,
    ids: &mut Ids,
) -> Result<Vec<Msg>, String> {
    let Some(right) = right else {
        let side = if left.is_empty() { "right" } else { "left" };
        return Err(format!(
            "Must specify non-null arguments for both 'left' and 'right'. Only received: '{side}'."
        ));
    };
    let (mut merged, mut right) = (left.to_vec(), right.to_vec());
    ids.give(&mut merged);
    ids.give(&mut right);
    let is_reset =
        |message: &Msg| message.kind == "remove" && message.id.as_deref() == Some(REMOVE_ALL);
    if let Some(last) = right.iter().rposition(is_reset) {
        return Ok(right[last + 1..].to_vec());
    }
    let mut doomed: Vec<Option<String>> = Vec::new();
    for message in right {
        let known = merged.iter().rposition(|other| other.id == message.id);
        match (known, message.kind) {
            (None, "remove") => {
                let id = message.id.unwrap();
                return Err(format!(
                    "Attempting to delete a message with an ID that doesn't exist ('{id}')"
                ));
            }
            (None, _) => merged.push(message),
            (Some(_), "remove") => doomed.push(message.id),
            (Some(place), _) => {
                doomed.retain(|id| *id != message.id);
                merged[place] = message;
            }
        }
    }
    merged.retain(|message| !doomed.contains(&message.id));
    Ok(merged)
}

/// All writes in order; nothing changes when one fails.
pub fn fold(state: &[Msg], writes: &[Option<Vec<Msg>>], ids: &mut Ids) -> Result<Vec<Msg>, String> {
    let mut counted = ids.clone();
    let mut list = state.to_vec();
    counted.give(&mut list);
    for write in writes {
        list = add_messages(&list, write.as_deref(), &mut counted)?;
    }
    *ids = counted;
    Ok(list)
}

/// A generator of numbers: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// A message; few ids, so that they meet.
    pub fn message(&mut self) -> Msg {
        let removal = self.one_in(4);
        let id = match self.below(24) {
            0 => Some("".to_owned()),
            1 => Some("quote\" and \n é".to_owned()),
            2 if removal => Some(REMOVE_ALL.to_owned()),
            3 => Some(REMOVE_ALL.to_owned()),
            4..8 if !removal => None,
            _ => Some(self.pick(&["a", "b", "c", "d"]).to_owned()),
        };
        let content = if removal {
            String::new()
        } else {
            format!("m{}", self.below(1000))
        };
        Msg {
            kind: if removal {
                "remove"
            } else {
                self.pick(&["human", "ai", "tool", "system"])
            },
            id,
            content,
        }
    }

    pub fn messages(&mut self, most: u64) -> Vec<Msg> {
        (0..self.below(most + 1)).map(|_| self.message()).collect()
    }

    /// A write; now and then null.
    pub fn write(&mut self) -> Option<Vec<Msg>> {
        if self.one_in(40) {
            None
        } else {
            Some(self.messages(4))
        }
    }

    pub fn writes(&mut self, most: u64) -> Vec<Option<Vec<Msg>>> {
        (0..self.below(most + 1)).map(|_| self.write()).collect()
    }

    /// A state that exists: every kind of message, copies of ids among them.
    pub fn state(&mut self) -> Vec<Msg> {
        self.messages(6)
    }
}

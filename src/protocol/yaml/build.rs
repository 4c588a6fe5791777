//! Builds a JSON value from the events of the YAML parser, within the bounds of the module.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag, options};
use serde_json::{Map, Value};

use super::scalar;
use super::{MAX_ALIASED, MAX_DEPTH, NODE_COST};
use crate::protocol::error::{Error, ErrorCode};

/// A value with what it costs to copy and how deep it goes.
#[derive(Clone)]
struct Node {
    value: Value,
    /// The text to use when the node is a key.
    key: Option<String>,
    /// Whether it is the plain scalar `<<`.
    is_merge: bool,
    cost: usize,
    /// Levels of lists and mappings: 0 for a scalar.
    height: usize,
}

/// A list or mapping whose end has not come yet.
struct Open {
    kind: Kind,
    anchor: usize,
    start: Marker,
    cost: usize,
    height: usize,
}

enum Kind {
    List(Vec<Value>),
    Mapping(Box<Members>),
}

#[derive(Default)]
struct Members {
    own: Map<String, Value>,
    /// What merge keys bring; the mapping's own members win over it.
    merged: Map<String, Value>,
    /// The key whose value has not come yet.
    key: Option<Node>,
}

impl Members {
    fn whole(self) -> Map<String, Value> {
        if self.merged.is_empty() {
            return self.own;
        }
        let mut all = self.merged;
        all.extend(self.own);
        all
    }

    /// Takes keys and values in turn.
    fn take(&mut self, node: Node, at: &Marker) -> Result<(), Error> {
        match self.key.take() {
            None => self.key = Some(node),
            Some(key) if key.is_merge => merge(&mut self.merged, node.value, at)?,
            Some(Node { key: Some(key), .. }) => {
                self.own.insert(key, node.value);
            }
            Some(_) => return Err(failure(at, "a list or mapping is used as a key")),
        }
        Ok(())
    }
}

/// The value of the only document of `text`.
pub fn document(text: &str) -> Result<Value, Error> {
    let options = options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        // As PyYAML: the last line of a block scalar has no line feed that is not there.
        block_scalar_eof_without_line_feed: true,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) =
            event.map_err(|error| failure(error.marker(), &error.kind().to_string()))?;
        builder.take(event, &span.start)?;
    }
    Ok(builder.document.unwrap_or(Value::Null))
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    /// Anchored nodes by the parser's number; `None` while the node is being built.
    anchors: HashMap<usize, Option<Node>>,
    /// Bytes that anchors and aliases added.
    aliased: usize,
    document: Option<Value>,
    documents: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, at: &Marker) -> Result<(), Error> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(failure(
                        at,
                        "a second document begins where one is expected",
                    ));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let node = scalar_node(&text, style, tag.as_deref(), at)?;
                self.finished(node, anchor, at)
            }
            Event::SequenceStart(_, anchor, tag) => {
                expect_tag(tag.as_deref(), "seq", at)?;
                self.begin(Kind::List(Vec::new()), anchor, at)
            }
            Event::MappingStart(_, anchor, tag) => {
                expect_tag(tag.as_deref(), "map", at)?;
                let kind = Kind::Mapping(Box::default());
                self.begin(kind, anchor, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(at),
            Event::Alias(anchor) => self.alias(anchor, at),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, kind: Kind, anchor: usize, at: &Marker) -> Result<(), Error> {
        if self.open.len() == MAX_DEPTH {
            return Err(too_deep(at));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        self.open.push(Open {
            kind,
            anchor,
            start: *at,
            cost: NODE_COST,
            height: 0,
        });
        Ok(())
    }

    fn end(&mut self, at: &Marker) -> Result<(), Error> {
        // The parser pairs starts and ends.
        let Some(open) = self.open.pop() else {
            return Err(failure(at, "a list or mapping ends that did not begin"));
        };
        let value = match open.kind {
            Kind::List(items) => Value::Array(items),
            Kind::Mapping(members) => Value::Object(members.whole()),
        };
        let node = Node {
            value,
            key: None,
            is_merge: false,
            cost: open.cost,
            height: open.height + 1,
        };
        self.finished(node, open.anchor, &open.start)
    }

    fn alias(&mut self, anchor: usize, at: &Marker) -> Result<(), Error> {
        let node = match self.anchors.get(&anchor) {
            Some(Some(node)) => node,
            Some(None) => return Err(failure(at, "the alias stands inside of what it names")),
            None => return Err(failure(at, "the alias names nothing")),
        };
        self.aliased = self.aliased.saturating_add(node.cost);
        if self.aliased > MAX_ALIASED {
            return Err(too_much(at));
        }
        if self.open.len() + node.height > MAX_DEPTH {
            return Err(too_deep(at));
        }
        let node = node.clone();
        self.finished(node, 0, at)
    }

    /// Puts a whole node where it belongs.
    fn finished(&mut self, node: Node, anchor: usize, at: &Marker) -> Result<(), Error> {
        if anchor != 0 {
            // A copy is kept, and nested anchors would keep many copies of what is inside them.
            self.aliased = self.aliased.saturating_add(node.cost);
            if self.aliased > MAX_ALIASED {
                return Err(too_much(at));
            }
            self.anchors.insert(anchor, Some(node.clone()));
        }
        let Some(open) = self.open.last_mut() else {
            self.document = Some(node.value);
            return Ok(());
        };
        open.cost = open.cost.saturating_add(node.cost);
        open.height = open.height.max(node.height);
        match &mut open.kind {
            Kind::List(items) => items.push(node.value),
            Kind::Mapping(members) => members.take(node, at)?,
        }
        Ok(())
    }
}

/// Adds what a merge key names: a mapping, or a list of mappings of which the first has the last word.
fn merge(merged: &mut Map<String, Value>, value: Value, at: &Marker) -> Result<(), Error> {
    const EXPECTED: &str = "'<<' takes a mapping or a list of mappings";
    match value {
        Value::Object(members) => merged.extend(members),
        Value::Array(items) => {
            for item in items.into_iter().rev() {
                let Value::Object(members) = item else {
                    return Err(failure(at, EXPECTED));
                };
                merged.extend(members);
            }
        }
        _ => return Err(failure(at, EXPECTED)),
    }
    Ok(())
}

fn scalar_node(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    at: &Marker,
) -> Result<Node, Error> {
    let plain = style == ScalarStyle::Plain;
    // The mark "!" alone says nothing, as in PyYAML.
    let tag = tag.filter(|tag| tag.original() != "!");
    let value = match tag {
        None if plain => scalar::implicit(text),
        None => Value::from(text),
        Some(tag) => match scalar_tag(tag) {
            Some(tag) => scalar::tagged(tag, text).ok_or_else(|| {
                failure(
                    at,
                    &format!("what is tagged !!{tag} is no value of that type"),
                )
            })?,
            None => return Err(refused(tag, at)),
        },
    };
    Ok(Node {
        cost: NODE_COST + text.len(),
        value,
        key: Some(text.to_owned()),
        is_merge: plain && tag.is_none() && text == "<<",
        height: 0,
    })
}

const TAGS: &str = "tag:yaml.org,2002:";

/// The tag of a scalar that JSON can follow.
fn scalar_tag(tag: &Tag) -> Option<&'static str> {
    let name = tag.suffix_in_namespace(TAGS)?;
    scalar::TAGS.iter().find(|known| **known == name).copied()
}

fn expect_tag(tag: Option<&Tag>, expected: &str, at: &Marker) -> Result<(), Error> {
    match tag {
        Some(tag)
            if tag.original() != "!"
                && tag.suffix_in_namespace(TAGS).as_deref() != Some(expected) =>
        {
            Err(refused(tag, at))
        }
        _ => Ok(()),
    }
}

/// Most characters of a tag that an error quotes.
const QUOTED: usize = 64;

fn refused(tag: &Tag, at: &Marker) -> Error {
    let tag: String = tag.original().chars().take(QUOTED).collect();
    failure(at, &format!("the tag {tag:?} has no meaning here"))
}

fn too_deep(at: &Marker) -> Error {
    failure(
        at,
        &format!("lists and mappings nest deeper than {MAX_DEPTH}"),
    )
}

fn too_much(at: &Marker) -> Error {
    failure(
        at,
        &format!("anchors and aliases add more than {MAX_ALIASED} bytes"),
    )
}

fn failure(at: &Marker, what: &str) -> Error {
    let (line, column) = (at.line(), at.col() + 1);
    let message = format!("no usable YAML: {what}, at line {line}, column {column}");
    Error::new(ErrorCode::AssemblyInvalid, message)
}

//! Deferred tools: those of MCP servers, whose schemas a model sees only after it has searched for them.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::tool_search;
use crate::ports::tool::{DynTool, ToolSpec};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::hash::hex;
use crate::protocol::json::push_quoted;
use crate::state::channels::Channel;
use crate::state::python;
use crate::state::reads::ChannelReads;

/// What deferral adds to an agent: all of it, or nothing (TL-11).
#[derive(Clone)]
pub struct DeferredTools {
    /// `tool_search`, over exactly these tools.
    pub search: Arc<dyn DynTool>,
    /// Names of the deferred tools, sorted; never empty.
    pub names: Arc<[String]>,
    /// [`catalog_hash`] of the deferred tools.
    pub catalog_hash: Arc<str>,
}

impl std::fmt::Debug for DeferredTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeferredTools")
            .field("names", &self.names)
            .field("catalog_hash", &self.catalog_hash)
            .finish_non_exhaustive()
    }
}

impl DeferredTools {
    /// Defers the MCP tools among `tools`, which are what the agent may use (TL-11); `None` when there are none.
    ///
    /// # Errors
    /// `AssemblyInvalid` when one of `tools` is named `tool_search`: the search could not be bound beside it, and binding the
    /// schemas instead is what deferral is there to prevent (TL-13).
    pub fn of(tools: &[Arc<dyn DynTool>]) -> Result<Option<Self>, Error> {
        let deferred: Vec<Arc<dyn DynTool>> = tools
            .iter()
            .filter(|tool| tool.origin().mcp().is_some())
            .cloned()
            .collect();
        if deferred.is_empty() {
            return Ok(None);
        }
        if tools
            .iter()
            .any(|tool| tool.spec().name == tool_search::NAME)
        {
            return Err(Error::new(
                ErrorCode::AssemblyInvalid,
                "tool_search is on and a configured tool has the name \"tool_search\", so that deferred tools could not be found; name it otherwise",
            ));
        }
        let mut names: Vec<String> = deferred
            .iter()
            .map(|tool| tool.spec().name.clone())
            .collect();
        names.sort_unstable();
        let catalog_hash: Arc<str> = catalog_hash(&deferred).into();
        Ok(Some(DeferredTools {
            search: tool_search::build(deferred, catalog_hash.clone()),
            names: names.into(),
            catalog_hash,
        }))
    }

    /// Whether a tool is deferred.
    pub fn has(&self, name: &str) -> bool {
        let found = self
            .names
            .binary_search_by(|known| known.as_str().cmp(name));
        found.is_ok()
    }
}

/// The names that a thread has promoted from the catalog of this hash; promotions from another catalog, and whatever else
/// stands in the channel, count for nothing (MW-DTF-1).
pub fn promoted<'a>(
    reads: &'a ChannelReads,
    catalog_hash: &str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    promoted_in(reads.get(Channel::Promoted), catalog_hash)
}

/// The same in the channel's value.
pub fn promoted_in<'a>(
    channel: Option<&'a Value>,
    catalog_hash: &str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let of_this_catalog = |value: &&Value| value["catalog_hash"] == *catalog_hash;
    let names = channel
        .filter(of_this_catalog)
        .and_then(|value| value["names"].as_array());
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// What a model is told about a tool when it calls functions.
pub(super) fn function_schema(spec: &ToolSpec) -> Value {
    let mut schema = Map::new();
    schema.insert("name".into(), spec.name.as_str().into());
    schema.insert("description".into(), spec.description.as_str().into());
    schema.insert("parameters".into(), Value::clone(&spec.parameters));
    Value::Object(schema)
}

/// Names a set of tools: two sets have the same hash when every name, description and schema is the same.
///
/// The first 16 hex digits of the SHA-256 of `[{"name": …, "schema": …}, …]` as JSON text: tools by name, members by key, a
/// blank after each comma and colon, nothing escaped that need not be, numbers as Python has them. No other hash of this
/// library has this form (B-1).
///
/// Source: DeerFlow `DeferredToolCatalog.hash`, TL-12.
pub fn catalog_hash(tools: &[Arc<dyn DynTool>]) -> String {
    let mut by_name: Vec<&ToolSpec> = tools.iter().map(|tool| tool.spec()).collect();
    by_name.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = String::from("[");
    for (place, spec) in by_name.into_iter().enumerate() {
        text.push_str(if place == 0 {
            "{\"name\": "
        } else {
            ", {\"name\": "
        });
        push_quoted(&mut text, &spec.name);
        text.push_str(", \"schema\": {\"description\": ");
        push_quoted(&mut text, &spec.description);
        text.push_str(", \"name\": ");
        push_quoted(&mut text, &spec.name);
        text.push_str(", \"parameters\": ");
        push_sorted(&mut text, &spec.parameters);
        text.push_str("}}");
    }
    text.push(']');
    hex(&Sha256::digest(text.as_bytes())[..8])
}

/// Adds a value in the form of [`catalog_hash`]. The depth of a schema is bounded by the parser.
fn push_sorted(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&python::number_of(number)),
        Value::String(text) => push_quoted(out, text),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                push_sorted(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (place, (name, value)) in members.into_iter().enumerate() {
                if place > 0 {
                    out.push_str(", ");
                }
                push_quoted(out, name);
                out.push_str(": ");
                push_sorted(out, value);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{host, mcp, mcp_with};
    use super::*;

    fn hash(tools: &[Arc<dyn DynTool>]) -> String {
        catalog_hash(tools)
    }

    #[test]
    fn tl_12_the_hash_is_the_reference_s() {
        let tools = [
            mcp_with(
                "b",
                "Größe \"x\"\n\u{1}\u{7f}",
                json!({"type": "object", "properties": {"z": {"minimum": 1e-5, "maximum": 1e16, "x": 1.0}, "a": {"enum": [null, true, -3]}}, "required": []}),
            ),
            mcp_with("a", "", json!({})),
        ];
        // Made with Python's json.dumps(…, sort_keys=True, ensure_ascii=False) and hashlib.
        assert_eq!(hash(&tools), "b256420c6b54214c");
    }

    #[test]
    fn tl_12_order_does_not_count_and_everything_else_does() {
        let schema = || json!({"type": "object", "properties": {"b": {}, "a": {}}});
        let swapped = json!({"properties": {"a": {}, "b": {}}, "type": "object"});
        let base = hash(&[mcp_with("x", "d", schema()), mcp("y")]);
        assert_eq!(base, hash(&[mcp("y"), mcp_with("x", "d", swapped)]));
        assert_eq!(base.len(), 16);
        for other in [
            vec![mcp_with("x", "d", schema())],
            vec![mcp_with("x", "e", schema()), mcp("y")],
            vec![mcp_with("x2", "d", schema()), mcp("y")],
            vec![mcp_with("x", "d", json!({"type": "object"})), mcp("y")],
        ] {
            assert_ne!(base, hash(&other));
        }
    }

    #[test]
    fn tl_11_all_of_it_or_nothing() {
        assert!(DeferredTools::of(&[]).expect("nothing").is_none());
        assert!(DeferredTools::of(&[host("a")]).expect("nothing").is_none());
        let deferred = DeferredTools::of(&[mcp("b"), host("h"), mcp("a")]);
        let deferred = deferred.expect("sound").expect("deferred tools");
        assert_eq!(*deferred.names, ["a", "b"]);
        assert_eq!(*deferred.catalog_hash, hash(&[mcp("a"), mcp("b")]));
        assert_eq!(deferred.search.spec().name, "tool_search");
        assert!(deferred.has("a") && !deferred.has("h"));
    }

    #[test]
    fn tl_13_deferral_that_cannot_be_had_fails_and_binds_nothing() {
        let error = DeferredTools::of(&[host("tool_search"), mcp("a")]).expect_err("taken");
        assert_eq!(error.code, ErrorCode::AssemblyInvalid);
        assert!(
            DeferredTools::of(&[host("tool_search")])
                .expect("nothing")
                .is_none()
        );
    }

    #[test]
    fn mw_dtf_1_promotions_count_for_their_own_catalog_only() {
        let read = |value: Value| -> Vec<String> {
            let reads = ChannelReads::from_iter([(Channel::Promoted, value)]);
            promoted(&reads, "h").map(str::to_owned).collect()
        };
        assert_eq!(
            read(json!({"catalog_hash": "h", "names": ["a", 7, "b"]})),
            ["a", "b"]
        );
        for stale in [
            json!({"catalog_hash": "g", "names": ["a"]}),
            json!({"names": ["a"]}),
            json!({"catalog_hash": null, "names": ["a"]}),
            json!({"catalog_hash": "h", "names": "ab"}),
            json!({"catalog_hash": "h"}),
            json!(["a"]),
            json!("h"),
            json!(null),
        ] {
            assert_eq!(read(stale.clone()), [""; 0], "{stale}");
        }
        assert_eq!(promoted(&ChannelReads::default(), "h").count(), 0);
    }
}

//! Keeps deferred tools from the model until the thread has promoted them.
//!
//! A request carries no schema of a tool that is deferred and not promoted, and a call of one is not made. What counts is
//! what the thread held when the step began: a call beside the search that would promote its tool still fails.
//!
//! Source: DeerFlow `DeferredToolFilterMiddleware`, MW-DTF-1 and 2.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::filtered_lists::FilteredLists;
use super::{Hooks, Middleware, ModelResponse, NextModel, NextTool};
use crate::ports::BoxFuture;
use crate::ports::model::{ModelError, ModelRequest};
use crate::ports::tool::{ToolInvocation, ToolOutcome, ToolSpec};
use crate::state::channels::Channel;
use crate::state::reads::ChannelReads;
use crate::tools::deferred::{DeferredTools, promoted};
use crate::tools::tool_search;

/// The middleware.
pub struct DeferredToolFilter {
    deferred: DeferredTools,
    /// By the places in the deferred names of those that are visible, in order.
    lists: FilteredLists<Vec<usize>>,
}

impl DeferredToolFilter {
    /// A filter for the deferred tools of an agent.
    pub fn new(deferred: DeferredTools) -> Self {
        DeferredToolFilter {
            deferred,
            lists: FilteredLists::new(),
        }
    }

    /// Places in the deferred names of those that are promoted, in order, each once.
    fn promoted(&self, reads: &ChannelReads) -> Vec<usize> {
        let names = &self.deferred.names;
        let mut places: Vec<usize> = promoted(reads, &self.deferred.catalog_hash)
            .filter_map(|name| {
                names
                    .binary_search_by(|known| known.as_str().cmp(name))
                    .ok()
            })
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    fn filtered(&self, tools: &Arc<[ToolSpec]>, visible: &Vec<usize>) -> Arc<[ToolSpec]> {
        let names = &self.deferred.names;
        self.lists.get(tools, visible, |spec| {
            match names.binary_search_by(|known| known.cmp(&spec.name)) {
                Ok(place) => visible.binary_search(&place).is_ok(),
                Err(_) => true,
            }
        })
    }
}

impl Middleware for DeferredToolFilter {
    fn name(&self) -> &str {
        "deferred_tool_filter"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_model_call: true,
            wrap_tool_call: true,
            ..Hooks::default()
        }
    }

    fn reads(&self) -> &[Channel] {
        &[Channel::Promoted]
    }

    fn policy(&self) -> Map<String, Value> {
        let mut policy = Map::new();
        policy.insert("catalog_hash".into(), (*self.deferred.catalog_hash).into());
        policy.insert("deferred".into(), self.deferred.names.to_vec().into());
        policy
    }

    fn wrap_model_call<'a>(
        &'a self,
        mut request: ModelRequest,
        next: &'a mut dyn NextModel,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        let visible = self.promoted(&request.reads);
        if visible.len() < self.deferred.names.len() {
            request.tools = self.filtered(&request.tools, &visible);
        }
        next.run(request)
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        let name = &invocation.name;
        let is_promoted =
            || promoted(&invocation.reads, &self.deferred.catalog_hash).any(|known| known == name);
        if !self.deferred.has(name) || is_promoted() {
            return next.run(invocation);
        }
        let fault = format!(
            "{name} is deferred and was not fetched yet, so it was not called. Fetch it with {} and the query \
             \"select:{name}\", then call it.",
            tool_search::NAME
        );
        Box::pin(std::future::ready(ToolOutcome::Failed(fault)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::filtered_lists::KEPT_LISTS;
    use super::super::testing::{called, passed_on, request};
    use super::*;
    use crate::tools::testing::{call, host, mcp};

    fn filter() -> (DeferredToolFilter, Arc<[ToolSpec]>) {
        let tools = [host("h"), mcp("b"), mcp("a"), host("tool_x")];
        let deferred = DeferredTools::of(&tools).expect("sound").expect("deferred");
        let mut specs: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec().clone()).collect();
        specs.push(deferred.search.spec().clone());
        (DeferredToolFilter::new(deferred), specs.into())
    }

    fn reads(hash: &str, names: Value) -> ChannelReads {
        let value = json!({"catalog_hash": hash, "names": names});
        ChannelReads::from_iter([(Channel::Promoted, value)])
    }

    fn names(tools: &[ToolSpec]) -> Vec<&str> {
        tools.iter().map(|spec| spec.name.as_str()).collect()
    }

    #[test]
    fn mw_dtf_2_a_request_has_only_what_is_not_deferred_or_promoted() {
        let (filter, tools) = filter();
        let hash = filter.deferred.catalog_hash.clone();
        for (reads, expected) in [
            (ChannelReads::default(), vec!["h", "tool_x", "tool_search"]),
            (
                reads(&hash, json!(["a"])),
                vec!["h", "a", "tool_x", "tool_search"],
            ),
            (
                reads(&hash, json!(["a", "zzz", "a", "b", "h"])),
                vec!["h", "b", "a", "tool_x", "tool_search"],
            ),
            (
                reads("0000000000000000", json!(["a", "b"])),
                vec!["h", "tool_x", "tool_search"],
            ),
        ] {
            // Twice: the second time from what is kept.
            for _ in 0..2 {
                let passed = passed_on(&filter, request(tools.clone(), reads.clone()));
                assert_eq!(names(&passed.tools), expected);
            }
        }
    }

    #[test]
    fn the_list_of_an_unchanged_thread_is_not_made_twice_and_few_are_kept() {
        let (filter, tools) = filter();
        let pass = |tools: &Arc<[ToolSpec]>| {
            passed_on(&filter, request(tools.clone(), ChannelReads::default())).tools
        };
        let first = pass(&tools);
        assert!(Arc::ptr_eq(&first, &pass(&tools)));
        for _ in 0..2 * KEPT_LISTS {
            // Another list with the same tools is another list.
            let other: Arc<[ToolSpec]> = tools.to_vec().into();
            assert_eq!(names(&pass(&other)), names(&first));
        }
        assert_eq!(filter.lists.len(), KEPT_LISTS);
    }

    #[test]
    fn mw_dtf_2_a_call_of_a_hidden_tool_fails_and_says_what_to_do() {
        let (filter, _) = filter();
        let hash = filter.deferred.catalog_hash.clone();
        let with = |name: &str, reads: ChannelReads| {
            let mut invocation = call(name, json!({}));
            invocation.reads = reads;
            called(&filter, invocation)
        };
        let fault = with("a", ChannelReads::default()).expect_err("hidden");
        assert!(
            fault.contains("tool_search") && fault.contains("select:a"),
            "{fault}"
        );
        assert!(
            with("a", reads("0000000000000000", json!(["a"]))).is_err(),
            "stale"
        );
        assert!(with("a", reads(&hash, json!(["b"]))).is_err());
        assert!(with("a", reads(&hash, json!(["a"]))).is_ok());
        for name in ["h", "tool_search", "unknown"] {
            assert!(with(name, ChannelReads::default()).is_ok(), "{name}");
        }
    }
}

//! Promotes deferred tools whose keywords the user's newest message has, before the model is asked.
//!
//! It stands before the filter of deferred tools and only writes the channel that the filter reads.
//!
//! Source: DeerFlow `McpRoutingMiddleware`, TL-18, MW-RTE-1.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Hook, HookContext, HookOutput, Hooks, Middleware, user_message};
use crate::ports::tool::DynTool;
use crate::protocol::error::Error;
use crate::state::channels::Channel;
use crate::state::update::StateUpdate;
use crate::tools::deferred::{DeferredTools, promoted_in};

/// How many tools one message promotes, unless the configuration says.
pub const DEFAULT_TOP_K: usize = 3;
/// Most tools that one message promotes.
pub const MAX_TOP_K: usize = 5;

/// The middleware.
#[derive(Debug)]
pub struct RoutePromotion {
    catalog_hash: Arc<str>,
    top_k: usize,
    /// By priority, the highest first, then by name.
    routes: Vec<Route>,
}

#[derive(Debug)]
struct Route {
    priority: u8,
    name: String,
    /// Folded, never blank; at least one.
    keywords: Vec<String>,
}

impl RoutePromotion {
    /// The routes of those of `tools` that are deferred and have routing; `None` when none has. `top_k` is taken as 1 to
    /// [`MAX_TOP_K`].
    pub fn new(tools: &[Arc<dyn DynTool>], deferred: &DeferredTools, top_k: usize) -> Option<Self> {
        let mut routes: Vec<Route> = tools
            .iter()
            .filter(|tool| deferred.has(&tool.spec().name))
            .filter_map(|tool| Route::of(tool.as_ref()))
            .collect();
        routes.sort_by(|a, b| {
            b.priority
                .cmp(&a.priority)
                .then_with(|| a.name.cmp(&b.name))
        });
        (!routes.is_empty()).then(|| RoutePromotion {
            catalog_hash: deferred.catalog_hash.clone(),
            top_k: top_k.clamp(1, MAX_TOP_K),
            routes,
        })
    }

    /// The tools that a text speaks for, best first.
    fn matched(&self, text: &str) -> Vec<&str> {
        let text = folded(text);
        self.routes
            .iter()
            .filter(|route| {
                route
                    .keywords
                    .iter()
                    .any(|word| text.contains(word.as_str()))
            })
            .map(|route| route.name.as_str())
            .take(self.top_k)
            .collect()
    }
}

impl Route {
    fn of(tool: &dyn DynTool) -> Option<Route> {
        let routing = tool.origin().mcp()?.routing.as_ref()?;
        let keywords: Vec<String> = routing
            .keywords
            .iter()
            .map(|word| folded(word.trim()))
            .filter(|word| !word.is_empty())
            .collect();
        (!keywords.is_empty()).then(|| Route {
            priority: routing.priority,
            name: tool.spec().name.clone(),
            keywords,
        })
    }
}

/// Text without case, so that `STRASSE` is in `Straße` (B-5). Upper case and back is full case folding, but for a few
/// letters such as the Turkish dotless i, which stays apart from i here as it does there.
fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let fold = |c: char| c.to_uppercase().flat_map(char::to_lowercase);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            'ı' => out.push(c),
            c if c.is_ascii() => out.push(c.to_ascii_lowercase()),
            c => out.extend(fold(c)),
        }
    }
    out
}

impl Middleware for RoutePromotion {
    fn name(&self) -> &str {
        "mcp_routing"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_model: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let mut policy = Map::new();
        policy.insert("catalog_hash".into(), (*self.catalog_hash).into());
        policy.insert("top_k".into(), self.top_k.into());
        let routes = self.routes.iter();
        let routes: Value = routes
            .map(|route| {
                json!({"tool": route.name, "priority": route.priority, "keywords": route.keywords})
            })
            .collect();
        policy.insert("routes".into(), routes);
        policy
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        if hook != Hook::BeforeModel {
            return Ok(HookOutput::Continue);
        }
        let mut newest_first = context.state.messages().rev();
        let Some(message) = newest_first.find(|message| user_message::is_real(message)) else {
            return Ok(HookOutput::Continue);
        };
        let names = self.matched(&user_message::original_text(message));
        let held = context.state.channel(Channel::Promoted);
        let is_held = |name: &&str| promoted_in(held, &self.catalog_hash).any(|held| held == *name);
        // The reducer would keep the value as it is; saying nothing spares an event for every model call of a run.
        if names.iter().all(is_held) {
            return Ok(HookOutput::Continue);
        }
        let promotion = json!({"catalog_hash": &*self.catalog_hash, "names": names});
        let update = StateUpdate::set(Channel::Promoted, promotion);
        Ok(HookOutput::Update(update))
    }
}

#[cfg(test)]
mod tests {
    use super::super::RunFacts;
    use super::super::testing::hooked;
    use super::*;
    use crate::protocol::message::{Fields, Kind, Message};
    use crate::state::update::Write;
    use crate::tools::testing::{host, mcp, routed};

    fn promotion(top_k: usize, tools: &[Arc<dyn DynTool>]) -> Option<RoutePromotion> {
        let deferred = DeferredTools::of(tools).expect("sound")?;
        RoutePromotion::new(tools, &deferred, top_k)
    }

    fn some() -> RoutePromotion {
        let tools = [
            routed("low", 1, &["Database", "  "]),
            routed("b", 50, &["database"]),
            routed("a", 50, &["order book", "STRASSE"]),
            routed("top", 100, &["database"]),
            routed("more", 0, &["database"]),
            mcp("plain"),
            host("h"),
        ];
        promotion(3, &tools).expect("routes")
    }

    fn message(kind: Kind, text: &str, change: impl FnOnce(&mut Fields)) -> Message {
        let mut fields = Fields::new(kind, text);
        change(&mut fields);
        Message::new(fields)
    }

    fn human(text: &str) -> Message {
        message(Kind::Human, text, |_| {})
    }

    fn promoted_by(messages: Vec<Message>, held: StateUpdate) -> Option<Value> {
        let part = some();
        match hooked(
            &part,
            Hook::BeforeModel,
            messages,
            held,
            &RunFacts::default(),
        ) {
            HookOutput::Continue => None,
            HookOutput::Update(update) => match &update.writes[..] {
                [(Channel::Promoted, Write::Value(value))] => {
                    assert_eq!(value["catalog_hash"], *part.catalog_hash);
                    Some(value["names"].clone())
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tl_18_it_is_there_only_for_deferred_tools_with_keywords() {
        assert!(promotion(3, &[mcp("a"), host("h")]).is_none());
        assert!(promotion(3, &[routed("a", 1, &[" "])]).is_none());
        assert!(promotion(3, &[host("h")]).is_none());
        for (top_k, expected) in [(0, 1), (1, 1), (5, 5), (6, 5), (usize::MAX, 5)] {
            let part = promotion(top_k, &[routed("a", 1, &["x"])]).expect("a route");
            assert_eq!(part.top_k, expected);
        }
    }

    #[test]
    fn mw_rte_1_keywords_match_without_case_and_the_best_are_taken() {
        let by = |text: &str| promoted_by(vec![human(text)], StateUpdate::default());
        assert_eq!(
            by("what is in my DATABASE?"),
            Some(json!(["top", "b", "low"]))
        );
        assert_eq!(by("the Order Book"), Some(json!(["a"])));
        assert_eq!(by("in der Straße"), Some(json!(["a"])));
        assert_eq!(by("nothing"), None);
        assert_eq!(by(""), None);
        assert_eq!(promoted_by(Vec::new(), StateUpdate::default()), None);
    }

    #[test]
    fn mw_rte_1_only_the_newest_message_that_the_user_wrote_counts() {
        let by = |messages| promoted_by(messages, StateUpdate::default());
        let names = Some(json!(["top", "b", "low"]));
        assert_eq!(by(vec![human("database"), human("hello")]), None);
        let later = [
            message(Kind::Ai, "x", |_| {}),
            message(Kind::Tool, "x", |_| {}),
            message(Kind::Human, "x", |fields| {
                fields.name = Some("summary".into())
            }),
            message(Kind::Human, "x", |fields| {
                fields
                    .additional_kwargs
                    .insert("hide_from_ui".into(), true.into());
            }),
        ];
        for message in later {
            assert_eq!(by(vec![human("database"), message]), names);
        }
        let framed = message(Kind::Human, "the database of the frame", |fields| {
            fields
                .additional_kwargs
                .insert("original_user_content".into(), "hello".into());
        });
        assert_eq!(by(vec![framed]), None);
        let mut blocks = Fields::new(Kind::Human, "");
        blocks.content = json!(["a data", {"type": "text", "text": "base"}, {"type": "image"}]);
        assert_eq!(
            by(vec![Message::new(blocks.clone())]),
            None,
            "each block is a line"
        );
        blocks.content = json!([{"type": "text", "text": "a database"}]);
        assert_eq!(by(vec![Message::new(blocks)]), names);
    }

    #[test]
    fn mw_rte_1_what_is_promoted_already_is_not_written_again() {
        let hash = some().catalog_hash.clone();
        let held = |hash: &str, names: Value| {
            StateUpdate::set(
                Channel::Promoted,
                json!({"catalog_hash": hash, "names": names}),
            )
        };
        let by = |held| promoted_by(vec![human("database")], held);
        assert_eq!(by(held(&hash, json!(["low", "x", "b", "top"]))), None);
        let names = Some(json!(["top", "b", "low"]));
        assert_eq!(by(held(&hash, json!(["low"]))), names);
        assert_eq!(
            by(held("0000000000000000", json!(["low", "b", "top"]))),
            names
        );
    }

    #[test]
    fn folding_is_full_where_it_matters() {
        for (a, b) in [
            ("Straße", "STRASSE"),
            ("ΣΊΣΥΦΟΣ", "σίσυφος"),
            ("K", "k"),
            ("ﬁsh", "FISH"),
            ("ÄÖ", "äö"),
        ] {
            assert_eq!(folded(a), folded(b), "{a} {b}");
        }
        assert_ne!(folded("ı"), folded("i"));
    }
}

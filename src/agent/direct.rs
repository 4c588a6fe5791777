//! The factory `direct`: an agent of plain arguments, with a chain that features make and extras join at anchors.
//!
//! Source: DeerFlow `create_deerflow_agent`, FA-1 to FA-11. The chain is thinner than the lead agent's on purpose (FA-7).

use std::sync::Arc;

use super::extras::{LAST, extras, insert_extras};
use super::options::SubagentLimits;
use crate::middleware::clarification::Clarification;
use crate::middleware::subagent_limit::{SubagentLimit, SubagentLimitConfig};
use crate::middleware::{self, Middleware, guardrail_provider};
use crate::protocol::assembly::{DirectConfig, Feature, Features, MiddlewareConfig};
use crate::protocol::error::{Error, ErrorCode};
use crate::tools::ask_clarification;

/// Whether the chain of `direct` has something unless the features say otherwise.
#[derive(Clone, Copy)]
enum Otherwise {
    On,
    Off,
    /// Off, and cannot be switched on without settings (FA-3).
    NeedsSettings,
}

/// Where a middleware of the chain gets its switch from.
enum Switch {
    Always,
    PlanMode,
    Feature(&'static str, fn(&Features) -> Option<&Feature>, Otherwise),
    /// On with either of the features that need it, unless an extra brings it.
    DurableContext,
    /// The feature `subagent`; without settings of its own it makes way for an extra that is the limiter (RT-12).
    SubagentLimit,
}

/// The chain of `direct`, outermost first (FA-4).
const DIRECT: &[(&str, Switch)] = &[
    (
        "thread_data",
        Switch::Feature("sandbox", |f| f.sandbox.as_ref(), Otherwise::On),
    ),
    (
        "uploads",
        Switch::Feature("sandbox", |f| f.sandbox.as_ref(), Otherwise::On),
    ),
    (
        "sandbox",
        Switch::Feature("sandbox", |f| f.sandbox.as_ref(), Otherwise::On),
    ),
    ("dangling_tool_call", Switch::Always),
    (
        guardrail_provider::NAME,
        Switch::Feature(
            "guardrail",
            |f| f.guardrail.as_ref(),
            Otherwise::NeedsSettings,
        ),
    ),
    ("tool_error_handling", Switch::Always),
    // Beyond the reference: it shows the summary to the model, and without the ledger the limit of a run holds for each reply
    // alone (RT-29b).
    ("durable_context", Switch::DurableContext),
    (
        "summarization",
        Switch::Feature(
            "summarization",
            |f| f.summarization.as_ref(),
            Otherwise::NeedsSettings,
        ),
    ),
    ("todo", Switch::PlanMode),
    (
        "title",
        Switch::Feature("auto_title", |f| f.auto_title.as_ref(), Otherwise::Off),
    ),
    (
        "memory",
        Switch::Feature("memory", |f| f.memory.as_ref(), Otherwise::Off),
    ),
    (
        "view_image",
        Switch::Feature("vision", |f| f.vision.as_ref(), Otherwise::Off),
    ),
    ("subagent_limit", Switch::SubagentLimit),
    (
        "loop_detection",
        Switch::Feature(
            "loop_detection",
            |f| f.loop_detection.as_ref(),
            Otherwise::On,
        ),
    ),
    (
        "token_budget",
        Switch::Feature("token_budget", |f| f.token_budget.as_ref(), Otherwise::Off),
    ),
    (LAST, Switch::Always),
];

/// Composes the chain of a direct agent. `limits` are those of its subagents object, or of the process (RT-10); a limiter with
/// settings of its own keeps these (RT-12).
///
/// # Errors
/// `Unsupported` for a feature that this version does not have, `Conflict` and `AssemblyInvalid` for extras that cannot be
/// placed, and those of the middlewares' settings; each at the member at fault.
pub fn chain(
    config: &DirectConfig,
    limits: SubagentLimits,
) -> Result<Vec<Arc<dyn Middleware>>, Error> {
    if let Some(chain) = &config.middleware {
        return given(chain).map_err(|error| error.below("/middleware"));
    }
    let features = config.features.clone().unwrap_or_default();
    let mut chain: Vec<Arc<dyn Middleware>> = Vec::new();
    for (name, switch) in DIRECT {
        let at = |error: Error| match switch {
            Switch::Feature(feature, ..) => error.below(&format!("/features/{feature}")),
            Switch::PlanMode => error.below("/plan_mode"),
            Switch::SubagentLimit => error.below("/features/subagent"),
            Switch::Always | Switch::DurableContext => error,
        };
        let (wanted, said) = match switch {
            Switch::Always => (true, None),
            Switch::PlanMode => (config.plan_mode, config.plan_mode.then_some(&Feature::On)),
            Switch::DurableContext => (needs_durable_context(config, &features, name), None),
            Switch::SubagentLimit => match &features.subagent {
                Some(Feature::On) => {
                    if !is_extra(config, name) {
                        chain.push(Arc::new(bound_limit(limits)));
                    }
                    continue;
                }
                own => (is_on(own), own.as_ref()),
            },
            Switch::Feature(_, pick, otherwise) => match (pick(&features), otherwise) {
                (None, Otherwise::On) => (true, None),
                (None, _) | (Some(Feature::Off), _) => (false, None),
                (Some(Feature::On), Otherwise::NeedsSettings) => {
                    return Err(at(Error::at(
                        ErrorCode::MissingMember,
                        "",
                        "there is no default for this feature: give its settings",
                    )));
                }
                (Some(feature), _) => (true, Some(feature)),
            },
        };
        if !wanted {
            continue;
        }
        if *name == LAST && config.has_tool(ask_clarification::NAME) {
            // FA-5: the user's tool wins, and its calls are its own.
            chain.push(Arc::new(Clarification::idle()));
            continue;
        }
        let settings = match said {
            Some(Feature::With(settings)) => settings.clone(),
            _ => serde_json::Map::new(),
        };
        let member = MiddlewareConfig {
            name: (*name).to_owned(),
            settings,
            host: None,
        };
        match middleware::by_name(&member) {
            Ok(middleware) => chain.push(middleware),
            // What is on without being asked for is left out where this version does not have it.
            Err(error) if error.code == ErrorCode::Unsupported && said.is_none() => {}
            Err(error) => return Err(at(error)),
        }
    }
    insert_extras(chain, extras(&config.extra_middleware)?, LAST)
}

/// Whether a feature needs the middleware of this name, and no extra is it.
fn needs_durable_context(config: &DirectConfig, features: &Features, name: &str) -> bool {
    (is_on(&features.summarization) || is_on(&features.subagent)) && !is_extra(config, name)
}

fn is_on(feature: &Option<Feature>) -> bool {
    feature.as_ref().is_some_and(|it| *it != Feature::Off)
}

/// Whether an extra is the middleware of this name.
fn is_extra(config: &DirectConfig, name: &str) -> bool {
    let mut extras = config.extra_middleware.iter();
    extras.any(|extra| extra.middleware.name == name)
}

/// The limiter that nobody gave settings (RT-10).
fn bound_limit(limits: SubagentLimits) -> SubagentLimit {
    let signed = |limit: u64| i64::try_from(limit).unwrap_or(i64::MAX);
    SubagentLimit::new(SubagentLimitConfig {
        max_concurrent: signed(limits.max_running),
        max_total: signed(limits.max_total),
        capacity: u32::try_from(limits.max_running).unwrap_or(u32::MAX),
    })
}

/// The middlewares of a list, as they are named.
///
/// # Errors
/// Those of their names and settings, at their place.
pub fn given(list: &[MiddlewareConfig]) -> Result<Vec<Arc<dyn Middleware>>, Error> {
    let made = |(place, member): (usize, &MiddlewareConfig)| {
        middleware::by_name(member).map_err(|error| error.below(&format!("/{place}")))
    };
    list.iter().enumerate().map(made).collect()
}

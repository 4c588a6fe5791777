//! The models that an assembly comes to: the one it names, and those that stand in for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::in_flight::InFlight;
use super::models::provider;
use super::retry::{Candidate, Jitter, Retrying};
use crate::adapters::model::host::HostModel;
use crate::ports::model::DynModelProvider;
use crate::protocol::config::{ModelConfig, ModelRef};
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::model::RetryPolicy;
use crate::protocol::model_entry::{MAX_MODELS, ModelEntry, unknown_model};

/// The model of an assembly, with its retries and the models that stand in for it.
pub struct Chain {
    /// All of them as one model.
    pub model: Arc<dyn DynModelProvider>,
    /// Whether any of them is answered by the host.
    pub needs_host: bool,
}

/// How the models of an assembly are called.
#[derive(Clone)]
pub struct CallPolicy {
    /// What varies waits.
    pub jitter: Jitter,
    /// What holds where a model says nothing about its retries.
    pub retry: RetryPolicy,
    /// The places of attempts, if they are bounded.
    pub in_flight: Option<Arc<InFlight>>,
}

impl CallPolicy {
    /// That of agents which a host composes itself: the models' own word, and any number of calls at once.
    pub fn plain(jitter: Jitter) -> Self {
        CallPolicy {
            jitter,
            retry: RetryPolicy::default(),
            in_flight: None,
        }
    }
}

/// Makes the models that `model` leads to, in the order in which they are asked: a model, its fallbacks, each followed by its
/// own. A name comes once, so models may name each other.
///
/// # Errors
/// Those of [`provider`]; `UnknownModel` at a name that the runtime does not have; `OutOfRange` for more than
/// [`MAX_MODELS`] models.
pub fn chain(
    model: &ModelRef,
    named: &HashMap<String, ModelEntry>,
    policy: CallPolicy,
) -> Result<Chain, Error> {
    let mut found = Vec::new();
    let mut names = HashSet::new();
    collect(model, String::new(), named, &mut names, &mut found)?;
    let needs_host =
        |(_, _, entry): &(_, _, &ModelEntry)| matches!(entry.config, ModelConfig::Host(_));
    let needs_host = found.iter().any(needs_host);
    let mut candidates = Vec::with_capacity(found.len());
    for (place, (path, name, entry)) in found.into_iter().enumerate() {
        let model = match &entry.config {
            ModelConfig::Host(config) if place > 0 => {
                Arc::new(HostModel::new(config).fallback(place))
            }
            config => provider(config).map_err(|error| error.below(&path))?,
        };
        // Two endpoints may serve a model of one name.
        let is_taken = candidates
            .iter()
            .any(|known: &Candidate| known.name == name);
        candidates.push(Candidate {
            name: if is_taken {
                format!("{name}#{place}")
            } else {
                name
            },
            model,
            retry: entry.retry.policy(&policy.retry),
        });
    }
    let first = candidates.remove(0);
    let CallPolicy {
        jitter, in_flight, ..
    } = policy;
    Ok(Chain {
        model: Arc::new(Retrying::new(first, candidates, jitter, in_flight)),
        needs_host,
    })
}

/// A model that was found: where it is named, what it is called, and its configuration.
type Found<'a> = (String, String, &'a ModelEntry);

fn collect<'a>(
    model: &'a ModelRef,
    path: String,
    named: &'a HashMap<String, ModelEntry>,
    names: &mut HashSet<&'a str>,
    found: &mut Vec<Found<'a>>,
) -> Result<(), Error> {
    let (name, entry) = match model {
        ModelRef::Inline(entry) => (entry.label.clone(), &**entry),
        ModelRef::Named(name) => {
            let Some(entry) = named.get(name) else {
                let mut known: Vec<&str> = named.keys().map(String::as_str).collect();
                known.sort_unstable();
                return Err(unknown_model(name, &known).below(&path));
            };
            if !names.insert(name) {
                return Ok(());
            }
            (name.clone(), entry)
        }
    };
    if found.len() >= MAX_MODELS {
        return Err(Error::at(
            ErrorCode::OutOfRange,
            path,
            format!("an assembly may come to at most {MAX_MODELS} models"),
        ));
    }
    found.push((path.clone(), name, entry));
    for (place, fallback) in entry.fallbacks.iter().enumerate() {
        let path = format!("{path}/fallbacks/{place}");
        collect(fallback, path, named, names, found)?;
    }
    Ok(())
}

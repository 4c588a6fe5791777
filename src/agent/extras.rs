//! Middleware in addition to that of a factory: beside a named one, or at the factory's place for it.

use std::sync::Arc;

use crate::middleware::{self, Middleware};
use crate::protocol::assembly::ExtraMiddleware;
use crate::protocol::error::{Error, ErrorCode};

/// The middleware that always stands last (FA-9).
pub const LAST: &str = "clarification";

/// A middleware in addition to a chain.
pub struct Extra {
    /// The middleware.
    pub middleware: Arc<dyn Middleware>,
    /// Where it stands; before the last without an anchor.
    pub anchor: Option<Anchor>,
}

/// A place beside a named middleware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Right after it (further in).
    After(String),
    /// Right before it (further out).
    Before(String),
}

impl Anchor {
    fn name(&self) -> &str {
        match self {
            Anchor::After(name) | Anchor::Before(name) => name,
        }
    }
}

/// The extras of a configuration.
///
/// # Errors
/// `Conflict` for two anchors of one, and those of names and settings, below `/extra_middleware`.
pub fn extras(list: &[ExtraMiddleware]) -> Result<Vec<Extra>, Error> {
    let mut extras = Vec::with_capacity(list.len());
    for (place, member) in list.iter().enumerate() {
        let at = format!("/extra_middleware/{place}");
        let anchor = match (&member.after, &member.before) {
            (Some(_), Some(_)) => {
                return Err(Error::at(
                    ErrorCode::Conflict,
                    format!("{at}/before"),
                    "give \"after\" or \"before\", not both",
                ));
            }
            (Some(name), None) => Some(Anchor::After(name.clone())),
            (None, Some(name)) => Some(Anchor::Before(name.clone())),
            (None, None) => None,
        };
        let middleware =
            middleware::by_name(&member.middleware).map_err(|error| error.below(&at))?;
        extras.push(Extra { middleware, anchor });
    }
    Ok(extras)
}

/// Puts extras into a chain (FA-9): those without an anchor right before `inside`, in order; those with one beside it, in
/// rounds, so that one extra may be the anchor of another. The last of the chain stays last.
///
/// # Errors
/// `Conflict` when two extras want the place beside one middleware or one has a name that is taken, `AssemblyInvalid` when an anchor is not there or extras
/// wait for each other. Paths are below `/extra_middleware`.
pub fn insert_extras(
    mut chain: Vec<Arc<dyn Middleware>>,
    extras: Vec<Extra>,
    inside: &str,
) -> Result<Vec<Arc<dyn Middleware>>, Error> {
    let fault = |code, place: usize, message: String| {
        Error::at(code, format!("/extra_middleware/{place}"), message)
    };
    for (place, extra) in extras.iter().enumerate() {
        let Some(anchor) = &extra.anchor else {
            continue;
        };
        let taken = extras[..place]
            .iter()
            .filter_map(|earlier| earlier.anchor.as_ref())
            .any(|earlier| earlier.name() == anchor.name());
        if taken {
            return Err(fault(
                ErrorCode::Conflict,
                place,
                format!("two middlewares stand beside {:?}", anchor.name()),
            ));
        }
    }
    for (place, extra) in extras.iter().enumerate() {
        let name = extra.middleware.name();
        let earlier = extras[..place].iter().map(|extra| &extra.middleware);
        if chain.iter().chain(earlier).any(|part| part.name() == name) {
            return Err(fault(
                ErrorCode::Conflict,
                place,
                format!("a second middleware is named {name:?}"),
            ));
        }
    }
    let mut pending = Vec::new();
    for (place, extra) in extras.into_iter().enumerate() {
        match extra.anchor {
            None => {
                let end = chain.iter().rposition(|part| part.name() == inside);
                chain.insert(end.unwrap_or(chain.len()), extra.middleware);
            }
            Some(anchor) => pending.push((place, anchor, extra.middleware)),
        }
    }
    while !pending.is_empty() {
        let before = pending.len();
        let mut left = Vec::new();
        for (place, anchor, middleware) in pending {
            match chain.iter().position(|part| part.name() == anchor.name()) {
                Some(at) => {
                    let at = at + usize::from(matches!(anchor, Anchor::After(_)));
                    chain.insert(at, middleware);
                }
                None => left.push((place, anchor, middleware)),
            }
        }
        pending = left;
        if pending.len() == before {
            let waits = |name: &str| pending.iter().any(|(_, _, extra)| extra.name() == name);
            let circle = pending.iter().any(|(_, anchor, _)| waits(anchor.name()));
            let told: Vec<String> = pending
                .iter()
                .map(|(_, anchor, extra)| format!("{:?} beside {:?}", extra.name(), anchor.name()))
                .collect();
            let why = if circle {
                "these middlewares wait for each other"
            } else {
                "the chain has no middleware of the name that these are to stand beside"
            };
            return Err(fault(
                ErrorCode::AssemblyInvalid,
                pending[0].0,
                format!("{why}: {}", told.join(", ")),
            ));
        }
    }
    if let Some(at) = chain.iter().rposition(|part| part.name() == LAST)
        && at + 1 != chain.len()
    {
        let last = chain.remove(at);
        chain.push(last);
    }
    Ok(chain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::Hooks;

    struct Named(&'static str);

    impl Middleware for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn hooks(&self) -> Hooks {
            Hooks::default()
        }
    }

    fn named(name: &'static str) -> Arc<dyn Middleware> {
        Arc::new(Named(name))
    }

    fn extra(name: &'static str, anchor: Option<Anchor>) -> Extra {
        Extra {
            middleware: named(name),
            anchor,
        }
    }

    fn after(name: &str) -> Option<Anchor> {
        Some(Anchor::After(name.to_owned()))
    }

    fn before(name: &str) -> Option<Anchor> {
        Some(Anchor::Before(name.to_owned()))
    }

    fn placed(extras: Vec<Extra>) -> Result<Vec<String>, (ErrorCode, Option<String>)> {
        let chain = ["a", "b", LAST].into_iter().map(named).collect();
        insert_extras(chain, extras, LAST)
            .map(|chain| chain.iter().map(|part| part.name().to_owned()).collect())
            .map_err(|error| (error.code, error.path))
    }

    #[test]
    fn fa_9_extras_stand_where_they_ask_to() {
        let cases: Vec<(Vec<Extra>, &[&str])> = vec![
            (
                vec![extra("x", None), extra("y", None)],
                &["a", "b", "x", "y", LAST],
            ),
            (vec![extra("x", after("a"))], &["a", "x", "b", LAST]),
            (vec![extra("x", before("a"))], &["x", "a", "b", LAST]),
            // An extra may be the anchor of another, whichever comes first.
            (
                vec![extra("x", after("y")), extra("y", before("b"))],
                &["a", "y", "x", "b", LAST],
            ),
            // Nothing stands after the clarification.
            (vec![extra("x", after(LAST))], &["a", "b", "x", LAST]),
        ];
        for (extras, order) in cases {
            assert_eq!(placed(extras).expect("they fit"), order);
        }
    }

    #[test]
    fn fa_9_what_cannot_be_placed_is_refused() {
        let at = |place: usize| Some(format!("/extra_middleware/{place}"));
        let cases = [
            (
                vec![extra("x", after("a")), extra("y", after("a"))],
                (ErrorCode::Conflict, at(1)),
            ),
            (
                vec![extra("x", after("a")), extra("y", before("a"))],
                (ErrorCode::Conflict, at(1)),
            ),
            (vec![extra("a", None)], (ErrorCode::Conflict, at(0))),
            (
                vec![extra("x", None), extra("x", after("a"))],
                (ErrorCode::Conflict, at(1)),
            ),
            (
                vec![extra("w", None), extra("x", after("nobody"))],
                (ErrorCode::AssemblyInvalid, at(1)),
            ),
            (
                vec![extra("x", after("y")), extra("y", after("x"))],
                (ErrorCode::AssemblyInvalid, at(0)),
            ),
        ];
        for (extras, fault) in cases {
            assert_eq!(placed(extras).expect_err("they do not fit"), fault);
        }
    }
}

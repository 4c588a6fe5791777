//! Tests of the memory policy.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::Cell;

use serde_json::{Value, json};

use super::*;
use crate::protocol::error::ErrorCode;
use crate::protocol::message::Fields;

fn name(name: &str) -> Identifier {
    agent_name(name).unwrap()
}

fn unreachable_load(_: &Identifier, _: &UserId) -> Result<Option<bool>, Error> {
    panic!("no record is to be read here")
}

/// Resolves a named agent with a record that says `says`; the codes of the warnings come too.
fn resolve(
    policies: &MemoryPolicies,
    agent: &str,
    user: &str,
    says: Result<Option<bool>, Error>,
) -> (MemoryPolicy, Vec<&'static str>) {
    let mut warnings = Warnings::new();
    let agent = name(agent);
    let user = UserId::new(user);
    let binding = AgentBinding::Named(&agent);
    let policy = policies.resolve(binding, &user, |_, _| says, &mut warnings);
    let codes = warnings.iter().map(|(warning, _)| warning.code());
    (policy, codes.collect())
}

fn fault() -> Error {
    Error::new(ErrorCode::AssemblyInvalid, "no YAML")
}

#[test]
fn ca5_an_agent_that_opted_out_gets_no_access_and_one_that_did_not_does() {
    let policies = MemoryPolicies::new(true);
    let (out, warnings) = resolve(&policies, "quiet", "u", Ok(Some(false)));
    assert!(!out.is_enabled() && out.access().is_none() && warnings.is_empty());
    let (on, _) = resolve(&policies, "chatty", "u", Ok(Some(true)));
    let access = on.access().unwrap();
    assert_eq!(access.agent(), Some(&name("chatty")));
    assert_eq!(access.user(), &UserId::new("u"));
}

#[test]
fn ca7_what_is_off_for_all_stays_off() {
    let policies = MemoryPolicies::new(false);
    for says in [Ok(Some(true)), Ok(Some(false)), Ok(None), Err(fault())] {
        assert!(resolve(&policies, "a", "u", says).0.access().is_none());
    }
    for binding in [AgentBinding::Default, AgentBinding::Bootstrap] {
        let user = UserId::default();
        let policy = policies.resolve(binding, &user, unreachable_load, &mut Warnings::new());
        assert!(policy.access().is_none());
    }
}

#[test]
fn ca12_default_and_bootstrap_agents_have_no_record_to_ask() {
    let policies = MemoryPolicies::new(true);
    for binding in [AgentBinding::Default, AgentBinding::Bootstrap] {
        let mut warnings = Warnings::new();
        let user = UserId::new("u");
        let policy = policies.resolve(binding, &user, unreachable_load, &mut warnings);
        assert_eq!(policy.access().unwrap().agent(), None);
        assert!(warnings.is_empty());
    }
}

#[test]
fn ca8_what_a_record_said_holds_until_it_is_reset() {
    let policies = MemoryPolicies::new(true);
    assert!(!resolve(&policies, "a", "u", Ok(Some(false))).0.is_enabled());
    assert!(!resolve(&policies, "a", "u", Ok(Some(true))).0.is_enabled());
    assert!(!resolve(&policies, "a", "u", Err(fault())).0.is_enabled());
    // Another user and another agent have policies of their own.
    assert!(resolve(&policies, "a", "v", Ok(Some(true))).0.is_enabled());
    assert!(resolve(&policies, "b", "u", Ok(Some(true))).0.is_enabled());

    let which = |agent: Option<&str>, user: Option<&str>| ResetAgent {
        agent: agent.map(name),
        user: user.map(UserId::new),
    };
    assert_eq!(policies.reset_agent(&which(Some("none"), None)), 0);
    assert_eq!(policies.reset_agent(&which(Some("a"), Some("u"))), 1);
    assert!(resolve(&policies, "a", "u", Ok(Some(true))).0.is_enabled());
    assert!(
        resolve(&policies, "a", "v", Ok(Some(false))).0.is_enabled(),
        "kept"
    );
    assert_eq!(policies.reset_agent(&which(None, Some("u"))), 2);
    assert_eq!(policies.reset_agent(&which(None, None)), 1);
    assert!(!resolve(&policies, "a", "v", Ok(Some(false))).0.is_enabled());
}

#[test]
fn ca9_what_cannot_be_read_leaves_memory_on_and_warns_each_time() {
    let policies = MemoryPolicies::new(true);
    for says in [Err(fault()), Ok(None), Err(fault())] {
        let (policy, warnings) = resolve(&policies, "a", "u", says);
        assert!(policy.is_enabled());
        assert_eq!(warnings, ["agent_unreadable"]);
    }
    // It was not kept: as soon as the record can be read it counts.
    assert!(!resolve(&policies, "a", "u", Ok(Some(false))).0.is_enabled());
}

#[test]
fn ca6_a_checkpoint_decides_by_the_agent_that_it_records() {
    let policies = MemoryPolicies::new(true);
    let user = UserId::new("u");
    let says = |agent: &Identifier, _: &UserId| match agent.as_str() {
        "quiet" => Ok(Some(false)),
        "chatty" => Ok(Some(true)),
        "broken" => Err(fault()),
        _ => Ok(None),
    };
    let ask = |recorded: Option<&str>| {
        let mut warnings = Warnings::new();
        let policy = policies.for_checkpoint(recorded, &user, says, &mut warnings);
        (policy.is_enabled(), policy.agent, warnings.len())
    };
    // The caller may be "chatty" by now: there is no way to say so.
    assert_eq!(ask(Some("quiet")), (false, Some(name("quiet")), 0));
    assert_eq!(ask(Some("chatty")), (true, Some(name("chatty")), 0));
    assert_eq!(ask(None), (true, None, 0));
    assert_eq!(ask(Some("default")), (true, None, 0));
    assert_eq!(ask(Some("deleted")), (true, Some(name("deleted")), 1));
    assert_eq!(ask(Some("broken")), (true, Some(name("broken")), 1));
    assert_eq!(ask(Some("../etc")), (true, None, 1));
    let quiet = |_: &Identifier, _: &UserId| Ok(Some(false));
    let called_so = policies.for_checkpoint(Some("default"), &user, quiet, &mut Warnings::new());
    assert!(
        !called_so.is_enabled(),
        "an agent may be called \"default\""
    );
}

#[test]
fn ca8_a_reset_while_a_record_is_read_wins() {
    let policies = MemoryPolicies::new(true);
    let agent = name("a");
    let user = UserId::new("u");
    let reads = Cell::new(0);
    let ask = |says: bool, reset: bool| {
        let load = |_: &Identifier, _: &UserId| {
            reads.set(reads.get() + 1);
            if reset {
                policies.reset_agent(&ResetAgent::default());
            }
            Ok(Some(says))
        };
        let binding = AgentBinding::Named(&agent);
        policies
            .resolve(binding, &user, load, &mut Warnings::new())
            .is_enabled()
    };
    assert!(
        ask(true, true),
        "who asked before the reset gets the old answer"
    );
    assert!(!ask(false, false), "and nobody after it");
    assert!(!ask(true, false));
    assert_eq!(reads.get(), 2);
}

#[test]
fn the_table_is_bounded_and_the_oldest_goes_first() {
    let policies = MemoryPolicies::with_bound(true, 20);
    for number in 0..20 {
        resolve(&policies, &format!("a{number}"), "u", Ok(Some(false)));
    }
    // Asked for again, so it is young.
    resolve(&policies, "a0", "u", Err(fault()));
    for number in 20..1000 {
        resolve(&policies, &format!("a{number}"), "u", Ok(Some(false)));
        assert!(locked(&policies.kept).flags.len() <= 20);
        assert!(!resolve(&policies, "a0", "u", Ok(Some(true))).0.is_enabled());
    }
    assert!(
        resolve(&policies, "a1", "u", Ok(Some(true))).0.is_enabled(),
        "read anew"
    );
}

#[test]
fn policies_can_be_asked_by_many_threads_at_once() {
    let policies = MemoryPolicies::with_bound(true, 8);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let policies = &policies;
            scope.spawn(move || {
                for round in 0..2000 {
                    let agent = format!("a{}", (round * 7 + thread) % 12);
                    let quiet = round % 2 == 0;
                    let says = Ok(Some(!agent.ends_with('1')));
                    let says = if quiet { says } else { Err(fault()) };
                    let (policy, warnings) = resolve(policies, &agent, "u", says);
                    // Whatever is answered without a warning is what the record says.
                    assert!(!warnings.is_empty() || policy.is_enabled() != agent.ends_with('1'));
                    if round % 50 == 0 {
                        policies.reset_agent(&ResetAgent::default());
                    }
                }
            });
        }
    });
}

fn message(kind: &str, id: &str, kwargs: Value) -> Message {
    let mut fields = Fields::new(Kind::from_name(kind).unwrap(), "x");
    fields.id = Some(id.to_owned());
    fields.additional_kwargs = kwargs.as_object().cloned().unwrap();
    Message::new(fields)
}

#[test]
fn ca5_messages_that_brought_memory_go_and_all_others_stay() {
    let reminder = json!({"hide_from_ui": true, "dynamic_context_reminder": true});
    let dated =
        json!({"hide_from_ui": true, "dynamic_context_reminder": true, "reminder_date": "d"});
    let messages = [
        message("system", "m1", dated.clone()),
        message("human", "m1__memory", reminder.clone()),
        message("human", "m1__user", json!({})),
        // A user may send any id.
        message("human", "m2__memory", json!({})),
        message("human", "m3__memory", dated),
        message("human", "m4", reminder),
    ];
    let policies = MemoryPolicies::new(true);
    let (out, _) = resolve(&policies, "quiet", "u", Ok(Some(false)));
    assert_eq!(out.leftovers(&messages).collect::<Vec<_>>(), ["m1__memory"]);
    let (on, _) = resolve(&policies, "chatty", "u", Ok(Some(true)));
    assert_eq!(on.leftovers(&messages).count(), 0);
    // Off for all, but nobody opted out: the thread keeps what it has.
    let policies = MemoryPolicies::new(false);
    let (on, _) = resolve(&policies, "chatty", "u", Ok(Some(true)));
    assert_eq!(on.leftovers(&messages).count(), 0);
}

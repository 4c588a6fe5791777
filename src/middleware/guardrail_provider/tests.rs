//! Unit tests of the guardrail: what it asks, and what it makes of answers and of none.

use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::middleware::stage::execution;
use crate::middleware::testing::called;
use crate::middleware::tool_result_class::TOOL_META;
use crate::ports::delegate::SubagentRun;
use crate::ports::host::{HostCall, HostCallHandle, HostCallKind, HostCalls, HostReply, Refusal};
use crate::ports::signals::AuditRecord;
use crate::ports::tool::ToolAnswer;
use crate::protocol::decode::from_value;
use crate::protocol::error::ErrorCode;
use crate::protocol::message::ToolStatus;
use crate::protocol::time::Timestamp;
use crate::tools::testing::{call, run_with};

type Said = fn() -> Result<HostReply, Error>;

/// A host that says the same to every question, and keeps the questions.
struct Host {
    said: Said,
    asked: Mutex<Vec<HostCall>>,
}

struct Answering(Said);

impl HostCallHandle for Answering {
    fn next(&mut self) -> BoxFuture<'_, Result<HostReply, Error>> {
        Box::pin(std::future::ready((self.0)()))
    }
}

impl HostCalls for Host {
    fn open(&self, call: HostCall) -> Result<Box<dyn HostCallHandle>, Error> {
        self.asked.lock().expect("no panic").push(call);
        Ok(Box::new(Answering(self.said)))
    }
    fn emit_custom(&self, _: &str, _: Value) -> Option<BoxFuture<'static, ()>> {
        None
    }
    fn now(&self) -> Timestamp {
        Timestamp::parse("2026-01-01T00:00:00Z").expect("a time")
    }
}

fn guardrail(section: Value) -> Guardrail {
    let mut section: GuardrailsConfig = from_value(section).expect("a section");
    section.enabled = Some(true);
    let made = Guardrail::of_section(&section, None).expect("a sound section");
    made.expect("somebody to ask")
}

/// A call with a context, by a host.
fn asking(said: Said, context: Value) -> (ToolInvocation, Arc<Host>) {
    asking_as(said, context, None)
}

/// The same of a subagent.
fn asking_as(
    said: Said,
    context: Value,
    subagent: Option<Arc<SubagentRun>>,
) -> (ToolInvocation, Arc<Host>) {
    let host = Arc::new(Host {
        said,
        asked: Mutex::default(),
    });
    let mut invocation = call("bash", json!({"command": "ls"}));
    let mut run = (*run_with(RunFacts {
        run_id: "r1".into(),
        thread_id: "t1".into(),
        context: context.as_object().cloned().unwrap_or_default(),
        subagent,
        ..RunFacts::default()
    }))
    .clone();
    run.host = host.clone();
    invocation.run = Arc::new(run);
    (invocation, host)
}

/// An answer, with the code of the first warning and its record, if there are any.
fn outcome(section: Value, said: Said) -> (ToolAnswer, Option<(&'static str, AuditRecord)>) {
    let (invocation, _) = asking(said, json!({"user_role": "clerk"}));
    let answer = called(&guardrail(section), invocation.clone()).expect("an answer");
    let signals = &invocation.run.facts.signals;
    let first = signals.take_warnings().map(|all| {
        let code = all.iter().next().expect("a warning").0.code();
        (code, signals.take_records().remove(0))
    });
    (answer, first)
}

#[test]
fn sub_20_a_request_cannot_say_that_a_subagent_calls() {
    let allowed = || Ok(HostReply::Answered(json!({"allow": true})));
    let (invocation, asked) = asking(allowed, json!({"is_subagent": true}));
    called(&guardrail(host()), invocation).expect("an answer");
    let asked = asked.asked.lock().expect("no panic");
    let args: Value = serde_json::from_str(&asked[0].args).expect("JSON");
    assert_eq!(args["is_subagent"], false);
}

fn host() -> Value {
    json!({"provider": {"use": "host"}, "passport": "agent-7"})
}

#[test]
fn mw_grd_1_the_request_says_who_calls_what_for_whom() {
    let context = json!({
        "user_id": "ann", "user_role": "clerk", "oauth_provider": "idp", "oauth_id": "o1", "channel_user_id": "c9",
        "is_internal": true, "authz_attributes": {"team": "shop"},
    });
    let subagent = execution("t1", "r1", "e1").subagent;
    let allowed = || Ok(HostReply::Answered(json!({"allow": true})));
    let (invocation, asked) = asking_as(allowed, context, subagent);
    let made = called(&guardrail(host()), invocation).expect("an answer");
    assert_eq!(made.content, "ran");
    let asked = asked.asked.lock().expect("no panic");
    let [only] = &asked[..] else {
        panic!("one question");
    };
    assert_eq!(
        (only.kind, &*only.name),
        (HostCallKind::Guardrail, "guardrail")
    );
    assert_eq!(only.deadline.as_millis(), 10_000);
    let key = &only.idempotency_key;
    assert!(key.starts_with("t1/m0/task of e1/bash/"), "{key}");
    assert!(key.ends_with("/1/guardrail"), "{key}");
    assert_eq!(only.tool_call_id.as_deref(), Some("c1"));
    let args: Value = serde_json::from_str(&only.args).expect("JSON");
    let expected = json!({
        "tool_name": "bash", "tool_input": {"command": "ls"}, "agent_id": "agent-7", "thread_id": "t1", "run_id": "r1",
        "tool_call_id": "c1", "is_subagent": true, "timestamp": "2026-01-01T00:00:00.000000Z", "user_id": "ann",
        "user_role": "clerk", "oauth_provider": "idp", "oauth_id": "o1", "channel_user_id": "c9", "is_internal": true,
        "attributes": {"team": "shop"},
    });
    assert_eq!(args, expected);
}

#[test]
fn mw_grd_1_and_3_a_denial_is_told_to_the_model_and_recorded_without_arguments() {
    let said: Said = || {
        let reasons = json!([{"code": "shop.closed", "message": "Not at night."}, {"message": "x".repeat(600)}]);
        Ok(HostReply::Answered(
            json!({"allow": false, "reasons": reasons, "policy_id": "p1"}),
        ))
    };
    let (answer, warning) = outcome(host(), said);
    assert_eq!(
        answer.content,
        "Error: the call of \"bash\" is not allowed (shop.closed): Not at night."
    );
    assert_eq!(answer.status, ToolStatus::Error);
    assert_eq!(
        answer.additional_kwargs[TOOL_META]["error_type"],
        "permission"
    );
    let expected = json!({
        "middleware": "guardrail_provider", "hook": "wrap_tool_call",
        "provider": "host", "tool_name": "bash", "tool_call_id": "c1", "agent_id": "agent-7", "is_subagent": false,
        "user_role": "clerk", "allow": false, "policy_id": "p1", "reason_codes": ["shop.closed"],
        "reason_messages": ["Not at night.", "x".repeat(500)], "fail_closed": true, "provider_error": false,
    });
    let (code, record) = warning.expect("a warning");
    assert_eq!(
        (code, record.tag, record.action),
        ("guardrail_denied", "guardrail", "deny_tool_call")
    );
    assert_eq!(Value::Object(record.changes), expected);

    let (bare, _) = outcome(host(), || Ok(HostReply::Answered(json!({"allow": false}))));
    let text = bare.content.as_str().unwrap_or_default();
    assert!(text.contains("(oap.denied)"), "{text}");
    let (long, _) = outcome(host(), || {
        let reasons = json!([{"code": "c".repeat(500), "message": "m".repeat(5000)}]);
        Ok(HostReply::Answered(
            json!({"allow": false, "reasons": reasons}),
        ))
    });
    assert!(long.content.as_str().is_some_and(|text| text.len() < 700));
}

#[test]
fn mw_grd_2_without_an_answer_the_setting_decides() {
    let silent: [Said; 5] = [
        || Err(Error::new(ErrorCode::DeadlineExceeded, "secret")),
        || Err(Error::new(ErrorCode::QueueClosed, "secret")),
        || {
            Ok(HostReply::Refused(Refusal {
                message: "secret".to_owned(),
                ..Refusal::default()
            }))
        },
        || Ok(HostReply::Answered(json!({"allow": "yes"}))),
        || Ok(HostReply::Answered(Value::Null)),
    ];
    for said in silent {
        let (answer, warning) = outcome(host(), said);
        let text = answer.content.as_str().unwrap_or_default();
        assert!(
            text.contains("oap.evaluator_error") && !text.contains("secret"),
            "{text}"
        );
        let (code, record) = warning.expect("a warning");
        assert_eq!(
            (code, record.action),
            ("guardrail_failed", "deny_tool_call")
        );
        assert_eq!(record.changes["provider_error"], true);

        let mut open = host();
        open["fail_closed"] = false.into();
        let (answer, warning) = outcome(open, said);
        assert_eq!(answer.content, "ran");
        let (_, record) = warning.expect("a warning");
        assert_eq!(record.action, "allow_tool_call_after_provider_error");
        assert_eq!(
            record.changes["reason_codes"],
            json!(["oap.evaluator_error"])
        );
    }
}

#[test]
fn a_16_a_caller_who_cannot_be_told_is_a_question_without_an_answer() {
    for odd in [
        json!({"user_id": 7}),
        json!({"authz_attributes": "x"}),
        json!({"user_role": []}),
    ] {
        let allow: Said = || Ok(HostReply::Answered(json!({"allow": true})));
        let (invocation, asked) = asking(allow, odd.clone());
        let refused = called(&guardrail(host()), invocation).expect("an answer");
        assert_eq!(refused.status, ToolStatus::Error, "{odd}");
        assert!(asked.asked.lock().expect("no panic").is_empty());
        let mut open = host();
        open["fail_closed"] = false.into();
        let (invocation, _) = asking(allow, odd);
        assert_eq!(
            called(&guardrail(open), invocation)
                .expect("an answer")
                .content,
            "ran"
        );
    }
}

#[test]
fn the_agents_own_principal_goes_before_what_a_run_says() {
    let section: GuardrailsConfig =
        from_value(json!({"enabled": true, "provider": {"use": "host"}})).expect("a section");
    let ann = Principal {
        user_id: "ann".to_owned(),
        ..Principal::default()
    };
    let guardrail = Guardrail::of_section(&section, Some(ann)).expect("sound");
    let (invocation, asked) = asking(
        || Ok(HostReply::Answered(json!({"allow": true}))),
        json!({"user_id": "bob"}),
    );
    called(&guardrail.expect("somebody"), invocation).expect("an answer");
    let asked = asked.asked.lock().expect("no panic");
    let args: Value = serde_json::from_str(&asked[0].args).expect("JSON");
    assert_eq!(args["user_id"], "ann");
}

#[test]
fn lists_go_by_name_and_an_empty_one_allows_nothing() {
    for (config, is_allowed) in [
        (json!({}), true),
        (json!({"allowed_tools": null, "denied_tools": null}), true),
        (json!({"allowed_tools": []}), false),
        (json!({"allowed_tools": ["bash", "ls"]}), true),
        (json!({"allowed_tools": ["ls"]}), false),
        (json!({"denied_tools": ["bash"]}), false),
        (json!({"denied_tools": ["ls"]}), true),
        (
            json!({"allowed_tools": ["bash"], "denied_tools": ["bash"]}),
            false,
        ),
    ] {
        for class in ["allowlist", "deerflow.guardrails.builtin:AllowlistProvider"] {
            let provider = json!({"use": class, "config": config});
            let guardrail = guardrail(json!({ "provider": provider }));
            assert!(!guardrail.asks_host());
            let answer = called(&guardrail, call("bash", json!({}))).expect("an answer");
            assert_eq!(answer.content == "ran", is_allowed, "{config}");
            let text = answer.content.as_str().unwrap_or_default();
            assert_eq!(text.contains("oap.tool_not_allowed"), !is_allowed, "{text}");
        }
    }
}

#[test]
fn a_section_that_asks_nobody_is_refused_where_it_is_on() {
    let refusal = |section: Value| {
        let section: Result<GuardrailsConfig, Error> = from_value(section);
        let made = section.and_then(|section| Guardrail::of_section(&section, None));
        let error = made.map(|made| made.is_some()).err()?;
        Some((error.code.name(), error.path.unwrap_or_default()))
    };
    for (section, expected) in [
        (json!({}), None),
        (
            json!({"provider": {"use": "my.module:Provider", "config": {"key": 1}}}),
            None,
        ),
        (
            json!({"enabled": true}),
            Some(("missing_member", "/provider")),
        ),
        (
            json!({"enabled": true, "provider": {"use": "my.module:Provider"}}),
            Some(("unsupported", "/provider/use")),
        ),
        (
            json!({"provider": {}}),
            Some(("missing_member", "/provider/use")),
        ),
        (
            json!({"provider": {"use": "host", "config": {"timeout_ms": 0}}}),
            Some(("out_of_range", "/provider/config/timeout_ms")),
        ),
        (
            json!({"provider": {"use": "host", "config": {"name": " "}}}),
            Some(("out_of_range", "/provider/config/name")),
        ),
        (
            json!({"provider": {"use": "host", "config": {"nmae": "x"}}}),
            Some(("unknown_member", "/provider/config/nmae")),
        ),
        (
            json!({"provider": {"use": "allowlist", "config": {"allowed_tools": "x"}}}),
            Some(("wrong_type", "/provider/config/allowed_tools")),
        ),
        (
            json!({"provider": {"use": "allowlist", "config": {"denied_tools": ["a", ""]}}}),
            Some(("out_of_range", "/provider/config/denied_tools/1")),
        ),
    ] {
        let expected = expected.map(|(code, path)| (code, path.to_owned()));
        assert_eq!(refusal(section.clone()), expected, "{section}");
    }
}

#[test]
fn answers_are_checked_when_they_are_handed_in() {
    let fault = |answer: Value| {
        check_answer(&answer)
            .err()
            .map(|error| error.path.unwrap_or_default())
    };
    for sound in [
        json!({"allow": true}),
        json!({"allow": false, "reasons": [{"code": "c", "message": "m"}, {}], "policy_id": null}),
        json!({"allow": true, "x-note": "ours"}),
    ] {
        assert_eq!(fault(sound.clone()), None, "{sound}");
    }
    for (odd, path) in [
        (json!({}), "/allow"),
        (json!(true), ""),
        (json!({"allow": 1}), "/allow"),
        (json!({"allow": true, "reason": "x"}), "/reason"),
        (json!({"allow": true, "reasons": "x"}), "/reasons"),
        (
            json!({"allow": true, "reasons": [{"code": 7}]}),
            "/reasons/0/code",
        ),
        (
            json!({"allow": true, "reasons": [{"text": "x"}]}),
            "/reasons/0/text",
        ),
    ] {
        assert_eq!(fault(odd.clone()).as_deref(), Some(path), "{odd}");
    }
}

#[test]
fn the_policy_tells_whom_it_asks_and_hides_the_passport() {
    let policy = Value::Object(guardrail(host()).policy());
    let expected = json!({
        "provider": "host", "provider_policy": {"name": "guardrail", "timeout_ms": 10000}, "fail_closed": true,
        "passport_hash": text_hash("agent-7"),
    });
    assert_eq!(policy, expected);
    let lists = json!({"use": "allowlist", "config": {"allowed_tools": ["b", "a"]}});
    let policy = Value::Object(guardrail(json!({ "provider": lists })).policy());
    assert_eq!(
        policy["provider_policy"],
        json!({"allowed_tools": ["a", "b"], "denied_tools": []})
    );
    assert_eq!(policy["passport_hash"], Value::Null);
}

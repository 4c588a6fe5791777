//! What the middleware does to each kind of failure, its circuit under a clock of the test, and what it leaves alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};

use serde_json::json;

use super::stand_in::MAX_DETAIL_CHARS;
use super::*;
use crate::middleware::reply::tests::reply;
use crate::middleware::stage::run_as;
use crate::middleware::testing::request;
use crate::ports::model::ModelReply;
use crate::ports::signals::RunSignals;
use crate::protocol::message::{Fields, Kind, Message};
use crate::state::reads::ChannelReads;
use crate::tools::testing::{ready, run_with};

/// The inside of the wrapper: what the model says each time, and what it was asked.
#[derive(Default)]
struct Model {
    say: Vec<Result<ModelReply, ModelError>>,
    asked: Vec<Arc<Transcript>>,
    hangs: bool,
}

impl NextModel for Model {
    fn run(&mut self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, ModelError>> {
        self.asked.push(request.messages);
        if self.hangs {
            return Box::pin(std::future::pending());
        }
        let said = self.say.remove(0).map(ModelResponse::from);
        Box::pin(std::future::ready(said))
    }
}

/// A middleware whose time is told by the test, and what a run of it is told.
struct Rig {
    middleware: LlmErrorHandling,
    seconds: Arc<AtomicU64>,
    signals: Arc<RunSignals>,
}

impl Rig {
    fn new(failure_threshold: u64) -> Rig {
        let seconds = Arc::new(AtomicU64::new(0));
        let time = seconds.clone();
        let breaker = CircuitBreakerConfig {
            failure_threshold,
            recovery_timeout_sec: 60,
        };
        let clock = move || Duration::from_secs(time.load(Ordering::Relaxed));
        Rig {
            middleware: LlmErrorHandling::with_clock(breaker, None, Box::new(clock)),
            seconds,
            signals: Arc::default(),
        }
    }

    fn request(&self, messages: Vec<Message>) -> ModelRequest {
        let mut facts = run_as("t", "r");
        facts.signals = self.signals.clone();
        ModelRequest {
            messages: Arc::new(messages.into()),
            run: run_with(facts),
            ..request(Arc::from([]), ChannelReads::default())
        }
    }

    /// One call to a model that says this.
    fn call(&self, said: Result<ModelReply, ModelError>) -> Result<ModelReply, ModelError> {
        let mut model = Model {
            say: vec![said],
            ..Model::default()
        };
        let request = self.request(Vec::new());
        let answer = ready(self.middleware.wrap_model_call(request, &mut model));
        answer.map(|answer| answer.reply)
    }

    /// The reason on the reply to a failure; `None` when the call goes wrong or well.
    fn reason(&self, failure: ModelError) -> String {
        let reply = self.call(Err(failure)).expect("a reply that stands in");
        reply.additional_kwargs["error_reason"]
            .as_str()
            .expect("text")
            .to_owned()
    }

    /// Whether the model is asked at all.
    fn asks(&self) -> bool {
        let reply = self.call(Ok(says("fine"))).expect("a reply");
        reply.content == "fine"
    }
}

fn says(text: &str) -> ModelReply {
    ModelReply {
        content: text.into(),
        ..ModelReply::default()
    }
}

fn down() -> ModelError {
    Error::new(ErrorCode::ModelServer, "the endpoint answered 503")
        .retryable()
        .into()
}

fn refused(code: ErrorCode, text: &str) -> ModelError {
    Error::new(code, text).into()
}

#[test]
fn llm_5_a_failure_becomes_a_marked_message_and_the_run_is_told() {
    let rig = Rig::new(5);
    let error = Error::new(ErrorCode::ModelAuth, "the endpoint answered 401: bad key")
        .said(Some(401), None);
    let reply = rig.call(Err(error.clone().into())).expect("a reply");
    assert_eq!(
        Value::Object(reply.additional_kwargs),
        json!({
            "deerflow_error_fallback": true, "error_type": "model_auth", "error_reason": "auth",
            "error_detail": "the endpoint answered 401: bad key",
        })
    );
    assert_eq!(reply.response_metadata["finish_reason"], "error");
    assert!(reply.tool_calls.is_empty() && reply.usage.is_none());
    let text = reply.content.as_str().expect("text");
    assert!(text.contains("credentials") && !text.contains("bad key"));
    assert_eq!(rig.signals.failure(), Some(error));
    // An answer takes that back.
    rig.call(Ok(says("fine"))).expect("a reply");
    assert_eq!(rig.signals.failure(), None);
}

#[test]
fn llm_5_each_reason_has_its_own_words() {
    let stalled = ModelError {
        has_stalled: true,
        ..Error::new(ErrorCode::ModelTimeout, "it fell silent")
            .retryable()
            .into()
    };
    let mut seen = Vec::new();
    for (failure, reason, word) in [
        (
            refused(ErrorCode::ModelRequest, "no quota"),
            "quota",
            "account",
        ),
        (refused(ErrorCode::ModelAuth, "x"), "auth", "credentials"),
        (
            refused(ErrorCode::ModelRateLimit, "burst rate"),
            "burst_rate",
            "wait",
        ),
        (down(), "transient", "wait"),
        (
            refused(ErrorCode::ModelRequest, "overloaded"),
            "busy",
            "wait",
        ),
        (stalled, "transient", "ask for less"),
        (
            refused(ErrorCode::ModelRequest, "messages.3 is odd"),
            "generic",
            "messages.3 is odd",
        ),
    ] {
        let reply = Rig::new(5).call(Err(failure)).expect("a reply");
        let text = reply.content.as_str().expect("text").to_owned();
        assert_eq!(reply.additional_kwargs["error_reason"], reason);
        assert!(text.contains(word), "{reason}: {text}");
        seen.push(text);
    }
    seen.dedup();
    assert_eq!(seen.len(), 6, "transient and busy are told alike");
}

#[test]
fn llm_5_what_an_endpoint_says_is_cut_to_size() {
    let long = "é".repeat(3 * MAX_DETAIL_CHARS);
    let reply = Rig::new(5)
        .call(Err(refused(ErrorCode::ModelHost, &long)))
        .expect("a reply");
    let detail = reply.additional_kwargs["error_detail"].as_str();
    assert_eq!(detail.expect("text").chars().count(), MAX_DETAIL_CHARS + 1);
    let text = reply.content.as_str().expect("text");
    assert!(text.chars().count() < MAX_DETAIL_CHARS + 100);
}

#[test]
fn what_had_arrived_stays_above_the_words_and_no_call_of_it_does() {
    let broken = |content: Value| {
        let partial = ModelReply {
            content,
            additional_kwargs: Map::from_iter([
                ("reasoning_content".to_owned(), "hm".into()),
                ("tool_calls".to_owned(), json!([{"id": "c"}])),
            ]),
            response_metadata: Map::from_iter([("model".to_owned(), "m".into())]),
            ..ModelReply::default()
        };
        ModelError {
            partial: Some(Box::new(partial)),
            ..down()
        }
    };
    let reply = |content| Rig::new(5).call(Err(broken(content))).expect("a reply");
    let whole = reply(json!("Half of a"));
    let text = whole.content.as_str().expect("text");
    assert!(
        text.starts_with("Half of a\n\nThe answer broke off"),
        "{text}"
    );
    assert_eq!(whole.additional_kwargs["reasoning_content"], "hm");
    assert!(!whole.additional_kwargs.contains_key("tool_calls"));
    assert_eq!(
        Value::Object(whole.response_metadata),
        json!({"model": "m", "finish_reason": "error"})
    );
    let blocks = reply(json!([
        {"type": "text", "text": "Half"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    ]));
    let blocks = blocks.content.as_array().expect("a list").clone();
    assert_eq!(blocks.len(), 2);
    assert_eq!(blocks[0]["text"], "Half");
    // Without text there is nothing to keep.
    for nothing in [
        json!(null),
        json!(""),
        json!([{"type": "tool_use", "id": "c"}]),
    ] {
        let reply = reply(nothing);
        assert!(
            reply
                .content
                .as_str()
                .expect("text")
                .starts_with("The model")
        );
        assert!(!reply.additional_kwargs.contains_key("reasoning_content"));
    }
}

#[test]
fn llm_8_what_ends_a_run_goes_through_and_counts_for_nothing() {
    let rig = Rig::new(1);
    for code in [
        ErrorCode::QueueClosed,
        ErrorCode::NoQueue,
        ErrorCode::Closed,
        ErrorCode::Cancelled,
        ErrorCode::Middleware,
        ErrorCode::Panic,
        ErrorCode::Internal,
    ] {
        let mut error = Error::new(code, "x");
        error.retryable = true;
        assert_eq!(rig.call(Err(error.clone().into())), Err(error.into()));
    }
    assert_eq!(rig.signals.failure(), None);
    assert!(rig.asks());
}

#[test]
fn llm_6_only_failures_that_pass_and_no_bursts_open_the_circuit() {
    let rig = Rig::new(2);
    for _ in 0..3 {
        for failure in [
            refused(ErrorCode::ModelAuth, "x"),
            refused(ErrorCode::ModelRequest, "no quota"),
            refused(ErrorCode::ModelRateLimit, "burst rate"),
            refused(ErrorCode::ModelRequest, "odd"),
        ] {
            assert_ne!(rig.reason(failure), "circuit_open");
        }
    }
    assert!(rig.signals.take_warnings().is_none());
    assert_eq!(rig.reason(down()), "transient");
    // What does not count does not begin the count anew either.
    assert_eq!(
        rig.reason(refused(ErrorCode::ModelRequest, "odd")),
        "generic"
    );
    assert_eq!(rig.reason(down()), "transient");
    let warnings = rig.signals.take_warnings().expect("a warning");
    let codes: Vec<Warning> = warnings.iter().map(|(warning, _)| warning).collect();
    assert_eq!(codes, [Warning::CircuitOpened]);

    let reply = rig.call(Ok(says("never"))).expect("a reply");
    assert_eq!(reply.additional_kwargs["error_type"], "CircuitBreakerOpen");
    assert_eq!(reply.additional_kwargs["error_reason"], "circuit_open");
    assert_eq!(reply.additional_kwargs["deerflow_error_fallback"], true);
    let failure = rig.signals.failure().expect("a failure");
    assert_eq!(
        (failure.code, failure.retryable),
        (ErrorCode::ModelUnavailable, true)
    );
}

#[test]
fn llm_6_a_probe_closes_it_or_opens_it_again() {
    let rig = Rig::new(1);
    rig.reason(down());
    assert!(!rig.asks());
    rig.seconds.store(60, Ordering::Relaxed);
    assert_eq!(rig.reason(down()), "transient", "the probe");
    rig.seconds.store(119, Ordering::Relaxed);
    assert!(!rig.asks());
    rig.seconds.store(120, Ordering::Relaxed);
    // A failure that does not count lets the next call be the probe.
    assert_eq!(rig.reason(refused(ErrorCode::ModelAuth, "x")), "auth");
    assert!(rig.asks() && rig.asks());
    assert_eq!(rig.reason(down()), "transient", "it was closed");
}

#[test]
fn llm_8_a_call_that_is_dropped_counts_for_nothing_and_frees_the_probe() {
    let rig = Rig::new(1);
    rig.reason(down());
    rig.seconds.store(60, Ordering::Relaxed);
    let mut model = Model {
        hangs: true,
        ..Model::default()
    };
    let request = rig.request(Vec::new());
    let mut probe = rig.middleware.wrap_model_call(request, &mut model);
    let mut context = Context::from_waker(Waker::noop());
    assert!(probe.as_mut().poll(&mut context).is_pending());
    assert!(!rig.asks(), "the probe is out");
    drop(probe);
    assert!(rig.asks());
    assert_eq!(rig.signals.failure(), None);
}

#[test]
fn a_run_that_goes_on_after_a_failure_asks_the_same_again() {
    let rig = Rig::new(5);
    let user = Message::new(Fields::new(Kind::Human, "hello"));
    let marked =
        reply(json!({"content": "x", "additional_kwargs": {"deerflow_error_fallback": true}}));
    let said = |text: &str| reply(json!({ "content": text }));
    for (messages, asked) in [
        (vec![user.clone(), marked.clone()], 1),
        (vec![user.clone(), said("x")], 2),
        // What the user has seen and spoken to stays.
        (vec![user.clone(), marked, user.clone()], 3),
    ] {
        let mut model = Model {
            say: vec![Ok(says("fine"))],
            ..Model::default()
        };
        let request = rig.request(messages);
        let whole = request.messages.clone();
        ready(rig.middleware.wrap_model_call(request, &mut model)).expect("a reply");
        assert_eq!(model.asked[0].len(), asked);
        assert_eq!(
            Arc::ptr_eq(&whole, &model.asked[0]),
            asked > 1,
            "what does not change is not copied"
        );
    }
}

#[test]
fn ad_16_the_policy_tells_of_the_circuit_and_of_retries_where_they_are_its_agent_s() {
    let breaker = CircuitBreakerConfig::default();
    let alone = LlmErrorHandling::new(breaker.clone(), None).policy();
    let circuit = json!({"circuit_failure_threshold": 5, "circuit_recovery_timeout_sec": 60});
    assert_eq!(Value::Object(alone), circuit);
    let with = LlmErrorHandling::new(breaker, Some(LlmCallConfig::default())).policy();
    assert_eq!(
        (
            &with["retry_max_attempts"],
            &with["burst_retry_base_delay_ms"]
        ),
        (&json!(3), &json!(5000))
    );
}

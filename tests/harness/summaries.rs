//! Rules of the middleware `summarization`, MW-SUM and Z1 to Z9, and random threads on which they must hold.

use std::sync::{Arc, Mutex};

use fawn::middleware::summarization::{
    CompactionHook, CompactionMode, MAX_FAILED_CALLS, Summarization, SummaryModels, SummaryStep,
};
use fawn::middleware::{
    Effect, EffectAnswer, Hook, HookContext, HookOutput, Middleware, OtherModel, Question, RunFacts,
};
use fawn::ports::model::{ModelError, ModelReply};
use fawn::protocol::app_config::{ContextSize, ContextSizeKind, SummarizationConfig};
use fawn::protocol::error::{Error, ErrorCode};
use fawn::protocol::message::{Fields, Kind, Message, ToolCall, ToolStatus};
use fawn::protocol::warning::Warning;
use fawn::state::channels::Channel;
use fawn::state::ids::SequentialIds;
use fawn::state::update::StateUpdate;
use fawn::state::{Overlay, ThreadState};
use serde_json::{Value, json};

use crate::parts::ScriptModel;
use crate::support::random::Random;

fn named(name: &str) -> OtherModel {
    OtherModel {
        name: name.into(),
        provider: Arc::new(ScriptModel::new(Vec::new())),
    }
}

#[expect(non_snake_case, reason = "read as the variants that they make")]
mod sizes {
    use super::{ContextSize, ContextSizeKind};

    pub fn Messages(count: u64) -> ContextSize {
        ContextSize {
            kind: ContextSizeKind::Messages,
            value: count as f64,
        }
    }
    pub fn Tokens(count: u64) -> ContextSize {
        ContextSize {
            kind: ContextSizeKind::Tokens,
            value: count as f64,
        }
    }
    pub fn Fraction(value: f64) -> ContextSize {
        ContextSize {
            kind: ContextSizeKind::Fraction,
            value,
        }
    }
}
use sizes::{Fraction, Messages, Tokens};

fn message(kind: Kind, text: &str) -> Message {
    Message::new(Fields::new(kind, text))
}

fn says(text: &str) -> Result<ModelReply, ModelError> {
    Ok(ModelReply {
        content: text.into(),
        ..ModelReply::default()
    })
}

fn broken() -> Result<ModelReply, ModelError> {
    Err(Error::new(ErrorCode::ModelAuth, "no").into())
}

fn config(trigger: ContextSize, keep: ContextSize) -> SummarizationConfig {
    SummarizationConfig {
        enabled: Some(true),
        trigger: vec![trigger].into(),
        keep,
        ..SummarizationConfig::default()
    }
}

fn part(trigger: ContextSize, keep: ContextSize) -> Summarization {
    let models = SummaryModels {
        max_input_tokens: Some(1000),
        ..SummaryModels::default()
    };
    Summarization::new(config(trigger, keep), models, Vec::new()).unwrap()
}

/// A thread and a run on it.
struct Thread {
    state: ThreadState,
    run: RunFacts,
    asked: Vec<Question>,
}

impl Thread {
    fn new(messages: Vec<Message>) -> Self {
        let mut thread = Thread {
            state: ThreadState::new(),
            run: RunFacts {
                run_id: "r".into(),
                thread_id: "t".into(),
                ..RunFacts::default()
            },
            asked: Vec::new(),
        };
        thread.write(StateUpdate::messages(messages));
        thread
    }

    fn write(&mut self, update: StateUpdate) {
        let mut overlay = Overlay::new();
        let mut ids = SequentialIds::starting_at(1 + 1000 * self.state.next_seq());
        let staged = self.state.stage(&mut overlay, &[update], &mut ids);
        staged.unwrap();
        self.state.commit(overlay);
    }

    /// Runs the hook to its end, with the next of `answers` for each question. Whether it wrote.
    fn pass(&mut self, part: &Summarization, answers: &[Result<ModelReply, ModelError>]) -> bool {
        let mut answers = answers.iter();
        let mut answer = None;
        loop {
            let overlay = Overlay::new();
            let context = HookContext {
                state: self.state.view(&overlay),
                run: &self.run,
                answer: answer.as_ref(),
            };
            match part.hook(Hook::BeforeModel, &context).unwrap() {
                HookOutput::Continue => return false,
                HookOutput::Update(update) => {
                    self.write(update);
                    return true;
                }
                HookOutput::Await(Effect::CallModel(question)) => {
                    self.asked.push(*question);
                    let next = answers.next().unwrap();
                    answer = Some(EffectAnswer::Model(Box::new(next.clone())));
                }
                HookOutput::Await(Effect::Perform(_)) => panic!("it never works on ports"),
                HookOutput::Jump(..) => panic!("it never jumps"),
            }
        }
    }

    fn messages(&self) -> Vec<Message> {
        let overlay = Overlay::new();
        self.state.view(&overlay).messages().cloned().collect()
    }

    fn summary(&self) -> Option<String> {
        let overlay = Overlay::new();
        let value = self.state.view(&overlay).channel(Channel::SummaryText);
        Some(value?.as_str()?.to_owned())
    }

    fn asked(&self) -> Vec<Option<&str>> {
        let models = self.asked.iter().map(|it| it.model.as_ref());
        models.map(|model| Some(&*model?.name)).collect()
    }

    fn warnings(&self) -> Vec<Warning> {
        let warnings = self.run.signals.take_warnings().unwrap_or_default();
        warnings.iter().map(|(warning, _)| warning).collect()
    }
}

/// Whether a message is a request of the user; no answers to questions of the agent are among those of these tests.
fn is_request(message: &Message) -> bool {
    message.kind() == Kind::Human && message.fields().additional_kwargs.is_empty()
}

/// Whether `dynamic_context` put it there.
fn is_reminder(message: &Message) -> bool {
    let kwargs = &message.fields().additional_kwargs;
    kwargs.contains_key("dynamic_context_reminder")
}

fn ten() -> Vec<Message> {
    let pair = |n: usize| match n % 2 {
        0 => message(Kind::Human, &format!("question {n}")),
        _ => message(Kind::Ai, &format!("answer {n}")),
    };
    (0..10).map(pair).collect()
}

#[test]
fn sum_1_triggers_are_met_by_messages_tokens_or_a_part_of_what_the_model_reads() {
    let meets = |trigger, messages: Vec<Message>, summary: Option<&str>| {
        let mut thread = Thread::new(messages);
        if let Some(summary) = summary {
            thread.write(StateUpdate::set(Channel::SummaryText, summary));
        }
        let overlay = Overlay::new();
        let part = part(trigger, Messages(1));
        let found = part.compaction(thread.state.view(&overlay), CompactionMode::Automatic);
        found.is_some()
    };
    assert!(meets(Messages(10), ten(), None));
    assert!(!meets(Messages(11), ten(), None));
    assert!(
        meets(Messages(11), ten(), Some("s")),
        "the summary counts as a message"
    );
    // Questions: 10 characters and the role `user` make 4 tokens, answers: 8 and `assistant` 5; and 3 for each message.
    let total = 5 * (4 + 3) + 5 * (5 + 3);
    assert!(meets(Tokens(total), ten(), None));
    assert!(!meets(Tokens(total + 1), ten(), None));
    assert!(meets(Tokens(total + 6), ten(), Some("s")));
    assert!(meets(Fraction(total as f64 / 1000.0), ten(), None));
    assert!(!meets(Fraction((total + 1) as f64 / 1000.0), ten(), None));
    assert!(meets(Fraction(0.000_1), ten(), None), "at least 1");
}

#[test]
fn sum_1_tokens_that_the_newest_reply_reports_count_if_the_provider_is_the_same() {
    let reporting = |provider: Option<&str>| {
        let mut messages = ten();
        let mut fields = messages[9].fields().clone();
        fields.usage_metadata = json!({"total_tokens": 5000});
        if let Some(provider) = provider {
            let metadata = &mut fields.response_metadata;
            metadata.insert("model_provider".into(), provider.into());
        }
        messages[9] = Message::new(fields);
        messages.push(message(Kind::Human, "next"));
        Thread::new(messages)
    };
    let part = |provider: Option<&str>| {
        let models = SummaryModels {
            provider: provider.map(str::to_owned),
            ..SummaryModels::default()
        };
        let config = config(Tokens(5000), Messages(1));
        Summarization::new(config, models, Vec::new()).unwrap()
    };
    for (mine, its, meets) in [
        (None, None, true),
        (Some("anthropic"), Some("anthropic"), true),
        (Some("anthropic"), Some("openai"), false),
        (None, Some("openai"), false),
    ] {
        let thread = reporting(its);
        let overlay = Overlay::new();
        let state = thread.state.view(&overlay);
        let found = part(mine).compaction(state, CompactionMode::Automatic);
        assert_eq!(found.is_some(), meets, "{mine:?} {its:?}");
    }
}

#[test]
fn sum_1_settings_that_make_no_sense_are_refused_with_their_place() {
    let refused = |trigger, keep, limit| {
        let models = SummaryModels {
            max_input_tokens: limit,
            ..SummaryModels::default()
        };
        let made = Summarization::new(config(trigger, keep), models, Vec::new());
        made.err()
            .map(|error| (error.code, error.path.unwrap_or_default()))
    };
    let trigger = || "/trigger/0".to_owned();
    let keep = || "/keep".to_owned();
    let range = ErrorCode::OutOfRange;
    let unknown = ErrorCode::AssemblyInvalid;
    for bad in [
        Messages(0),
        Tokens(0),
        Fraction(0.0),
        Fraction(1.5),
        Fraction(f64::NAN),
    ] {
        assert_eq!(
            refused(bad, Messages(1), Some(9)),
            Some((range, trigger())),
            "{bad:?}"
        );
        assert_eq!(
            refused(Messages(1), bad, Some(9)),
            Some((range, keep())),
            "{bad:?}"
        );
    }
    assert_eq!(
        refused(Fraction(0.5), Messages(1), None),
        Some((unknown, trigger()))
    );
    assert_eq!(
        refused(Messages(1), Fraction(0.5), None),
        Some((unknown, keep()))
    );
    assert_eq!(refused(Fraction(1.0), Fraction(0.5), Some(9)), None);
}

#[test]
fn sum_6_the_configured_model_is_asked_first_then_the_run_s_and_none_twice() {
    let with = |configured: Option<&str>, run: Option<&str>| {
        let models = SummaryModels {
            configured: configured.map(named),
            run: run.map(named),
            ..SummaryModels::default()
        };
        let config = config(Messages(2), Messages(2));
        Summarization::new(config, models, Vec::new()).unwrap()
    };
    for (configured, run, asked) in [
        (Some("small"), Some("big"), vec![Some("small"), Some("big")]),
        (Some("big"), Some("big"), vec![Some("big")]),
        (None, Some("big"), vec![Some("big")]),
        (Some("small"), None, vec![Some("small"), None]),
        (None, None, vec![None]),
    ] {
        let mut thread = Thread::new(ten());
        let before = thread.messages();
        assert!(!thread.pass(&with(configured, run), &[broken(), says(" \n")]));
        assert_eq!(thread.asked(), asked);
        assert_eq!(thread.messages(), before, "Z4: history untouched");
        assert_eq!(thread.summary(), None);
        assert_eq!(thread.warnings(), [Warning::SummaryFailed]);
    }
    let mut thread = Thread::new(ten());
    assert!(thread.pass(
        &with(Some("small"), Some("big")),
        &[broken(), says(" sum ")]
    ));
    assert_eq!(thread.summary().as_deref(), Some("sum"));
}

#[test]
fn z6_a_run_asks_in_vain_twice_at_most_and_the_next_run_asks_again() {
    let part = part(Messages(2), Messages(2));
    let mut thread = Thread::new(ten());
    for _ in 0..5 {
        assert!(!thread.pass(&part, &[broken()]));
    }
    assert_eq!(thread.asked.len() as u32, MAX_FAILED_CALLS);
    thread.run.run_id = "r2".into();
    assert!(thread.pass(&part, &[says("sum")]));
}

#[test]
fn sum_7_the_end_stays_and_the_summary_is_no_message() {
    let part = part(Messages(10), Messages(4));
    let mut thread = Thread::new(ten());
    let before = thread.messages();
    assert!(thread.pass(&part, &[says("first summary")]));
    assert_eq!(thread.messages(), before[6..], "with their ids");
    assert_eq!(thread.summary().as_deref(), Some("first summary"));
    assert!(
        thread.asked[0].messages[0]
            .text()
            .contains("question 4\nAI: answer 5")
    );
    thread.write(StateUpdate::messages(ten()));
    assert!(thread.pass(&part, &[says("second")]));
    let asked = thread.asked[1].messages[0].text();
    assert!(
        asked.contains("<existing_summary>\nfirst summary\n</existing_summary>"),
        "{asked}"
    );
    assert_eq!(thread.summary().as_deref(), Some("second"));
}

#[test]
fn z1_a_request_that_is_larger_than_everything_stays_word_for_word() {
    let part = part(Tokens(100), Tokens(50));
    let mut messages = ten();
    let request = format!("Q9 {}", "x".repeat(10_000));
    messages.push(message(Kind::Human, &request));
    messages.extend((0..6).map(|n| message(Kind::Ai, &format!("step {n} {}", "y".repeat(90)))));
    let mut thread = Thread::new(messages);
    assert!(thread.pass(&part, &[says("sum")]));
    let users: Vec<String> = thread
        .messages()
        .iter()
        .filter(|message| message.kind() == Kind::Human)
        .map(Message::text)
        .collect();
    assert_eq!(users, [request]);
}

#[test]
fn z9_one_huge_result_is_summarised_in_one_round() {
    let part = part(Tokens(32_000), Messages(2));
    let mut fields = Fields::new(Kind::Ai, "");
    fields.tool_calls = vec![ToolCall {
        name: "f".into(),
        id: Some("c".into()),
        ..ToolCall::default()
    }];
    let mut result = Fields::new(Kind::Tool, "r".repeat(5 << 20));
    result.tool_call_id = "c".into();
    let mut messages = vec![
        message(Kind::Human, "go"),
        Message::new(fields),
        Message::new(result),
    ];
    messages.extend(ten());
    let mut thread = Thread::new(messages);
    assert!(thread.pass(&part, &[says("sum")]));
    assert!(!thread.pass(&part, &[]));
    assert!(thread.asked[0].messages[0].text().len() < 20_000);
}

#[test]
fn sum_8_hooks_hear_of_it_only_when_there_is_a_summary_and_may_fail() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let note = heard.clone();
    let fails: CompactionHook = Arc::new(|_| Err(Error::new(ErrorCode::Store, "full")));
    let notes: CompactionHook = Arc::new(move |event| {
        let agent = event.agent_name.unwrap_or_default().to_owned();
        let counts = (event.removed.len(), event.kept.len());
        let mut heard = note.lock().unwrap();
        heard.push((counts, event.thread_id.to_owned(), agent));
        Ok(())
    });
    let config = config(Messages(2), Messages(4));
    let part = Summarization::new(config, SummaryModels::default(), vec![fails, notes]);
    let part = part.unwrap();
    let mut thread = Thread::new(ten());
    thread
        .run
        .context
        .insert("agent_name".into(), "coder".into());
    assert!(!thread.pass(&part, &[broken()]));
    assert!(heard.lock().unwrap().is_empty());
    assert_eq!(thread.warnings(), [Warning::SummaryFailed]);
    assert!(thread.pass(&part, &[says("sum")]));
    let heard = heard.lock().unwrap();
    assert_eq!(*heard, [((6, 4), "t".to_owned(), "coder".to_owned())]);
    assert_eq!(thread.warnings(), [Warning::CompactionHookFailed]);
}

#[test]
fn sum_9_a_forced_compaction_needs_no_trigger_but_something_to_summarise() {
    let models = SummaryModels::default();
    let config = SummarizationConfig {
        keep: Messages(4),
        ..SummarizationConfig::default()
    };
    let part = Summarization::new(config, models, Vec::new()).unwrap();
    let found = |messages: Vec<Message>, mode| {
        let thread = Thread::new(messages);
        let overlay = Overlay::new();
        part.compaction(thread.state.view(&overlay), mode)
    };
    assert_eq!(found(ten(), CompactionMode::Automatic), None);
    assert_eq!(found(ten()[..4].to_vec(), CompactionMode::Forced), None);
    let compaction = found(ten(), CompactionMode::Forced).unwrap();
    assert_eq!(compaction.removed().len(), 6);
    assert!(matches!(
        part.ask(&compaction, 0),
        Some(SummaryStep::Ask(_))
    ));
    assert!(part.ask(&compaction, 1).is_none());
}

#[test]
fn ad_16_the_policy_tells_what_changes_the_behaviour() {
    let part = part(Fraction(0.5), Tokens(7));
    let mut policy = part.policy();
    let hash = policy.insert("summary_prompt_hash".into(), Value::Null);
    assert_eq!(hash.unwrap().as_str().unwrap().len(), 64);
    let expected = json!({
        "trigger": [["fraction", 0.5]], "keep": ["tokens", 7], "trim_tokens_to_summarize": 4000,
        "summary_prompt_hash": null, "summary_model": null,
    });
    assert_eq!(Value::Object(policy), expected);
}

/// Random threads and settings.
struct Chance(Random);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn text(&mut self) -> String {
        let words = match self.below(20) {
            0 => 2000,
            n => n,
        };
        "word ".repeat(words as usize)
    }

    /// Whole turns and broken ones: results that are missing, late, doubled, of nobody, and behind words of the user.
    fn thread(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        for place in 0..2 + self.below(30) {
            let mut add = |mut fields: Fields| {
                fields.id = Some(format!("m{place}-{}", messages.len()));
                messages.push(Message::new(fields));
            };
            match self.below(12) {
                0 | 1 => add(Fields::new(Kind::Human, self.text())),
                2 => {
                    let mut fields = Fields::new(Kind::Human, self.text());
                    fields
                        .additional_kwargs
                        .insert("hide_from_ui".into(), true.into());
                    add(fields);
                }
                3 => {
                    let kind = if self.below(2) == 0 {
                        Kind::System
                    } else {
                        Kind::Human
                    };
                    let mut fields = Fields::new(kind, self.text());
                    let kwargs = &mut fields.additional_kwargs;
                    kwargs.insert("dynamic_context_reminder".into(), true.into());
                    add(fields);
                }
                4 => add(Fields::new(Kind::Ai, self.text())),
                5 => {
                    let mut fields = Fields::new(Kind::Tool, self.text());
                    fields.tool_call_id = format!("c{}", self.below(6));
                    add(fields);
                }
                _ => {
                    let count = 1 + self.below(4);
                    let mut fields = Fields::new(Kind::Ai, self.text());
                    // Ids come again in later turns.
                    let first = self.below(4);
                    let ids: Vec<String> = (0..count).map(|n| format!("c{}", first + n)).collect();
                    let call = |id: &String| ToolCall {
                        name: "f".into(),
                        id: Some(id.clone()),
                        ..ToolCall::default()
                    };
                    fields.tool_calls = ids.iter().map(call).collect();
                    add(fields);
                    for id in ids {
                        if self.below(8) == 0 {
                            add(Fields::new(Kind::Human, self.text()));
                        }
                        if self.below(8) > 0 {
                            let mut fields = Fields::new(Kind::Tool, self.text());
                            fields.tool_call_id = id;
                            fields.status = ToolStatus::Success;
                            add(fields);
                        }
                    }
                }
            }
        }
        messages
    }

    fn size(&mut self) -> ContextSize {
        match self.below(3) {
            0 => Messages(1 + self.below(25)),
            1 => Tokens(1 + self.below(2000)),
            _ => Fraction((1 + self.below(100)) as f64 / 100.0),
        }
    }
}

/// Calls with their results, by the ids of their messages: a result answers the message of the model before it.
fn pairs(messages: &[Message]) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut ai: Option<&Message> = None;
    for message in messages {
        match message.kind() {
            Kind::Ai => ai = Some(message),
            Kind::Tool => {
                let id = &message.fields().tool_call_id;
                let calls = |it: &&Message| {
                    let mut calls = it.fields().tool_calls.iter();
                    calls.any(|call| call.id.as_ref() == Some(id))
                };
                if let Some(owner) = ai.filter(calls) {
                    let id = |it: &Message| it.id().unwrap_or_default().to_owned();
                    pairs.push((id(owner), id(message)));
                }
            }
            _ => {}
        }
    }
    pairs
}

#[test]
fn random_threads_lose_no_request_tear_no_call_from_its_result_and_are_done_after_one_pass() {
    let mut random = Chance(Random::new(20_261_130));
    let (mut written, mut calls) = (0, 0);
    for round in 0..6_000 {
        let part = part(random.size(), random.size());
        let mut thread = Thread::new(random.thread());
        let before = thread.messages();
        if !thread.pass(&part, &[says("sum")]) {
            assert_eq!(thread.messages(), before);
            continue;
        }
        written += 1;
        let after = thread.messages();
        let at = |all: &[Message], id: Option<&str>| all.iter().position(|it| it.id() == id);
        let has = |id: &str| at(&after, Some(id)).is_some();

        assert!(after.len() < before.len(), "{round}: progress");
        let places = after.iter().map(|it| at(&before, it.id()).unwrap());
        assert!(places.is_sorted(), "{round}: order");
        let request = |all: &[Message]| {
            let found = all.iter().rev().find(|message| is_request(message));
            found.map(|message| message.json().to_owned())
        };
        assert_eq!(
            request(&after),
            request(&before),
            "{round}: the request is kept and newest"
        );
        for message in &before {
            let id = message.id().unwrap();
            let stays = message.kind() == Kind::System || is_reminder(message);
            assert!(!stays || has(id), "{round}: {message:?}");
        }
        for (call, result) in pairs(&before) {
            calls += usize::from(has(&call));
            assert_eq!(has(&call), has(&result), "{round}: {call} and {result}");
        }
        let asked = thread.asked.len();
        assert!(
            !thread.pass(&part, &[]),
            "{round}: a second pass has nothing to do"
        );
        assert_eq!(thread.asked.len(), asked);
        assert_eq!(thread.messages(), after);
    }
    assert!(written > 2_000 && calls > 2_000, "{written} {calls}");
}

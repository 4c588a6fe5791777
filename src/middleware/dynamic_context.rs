//! Tells the model the date and, once per thread, what is remembered of the user, beside the user's message.
//!
//! The system prompt stays the same for all, so that providers can cache it; what changes goes into the thread instead. The
//! newest message of the user gives its id to a hidden system message with the date, and follows it as `{id}__user`;
//! memory stands between them as a hidden human message `{id}__memory`: it is not the framework's word, so it never becomes
//! system text. On a new day the next message of the user gets a new date.
//!
//! Source: DeerFlow `DynamicContextMiddleware`, MW-DYN and CA-5. A run has one date, that of its start; there is no database
//! of time zones, so that local time is an offset in minutes. Reading memory takes no time limit of its own (MW-DYN-7), and
//! which memory a run saw is not kept in a journal (MW-DYN-8): there is neither a memory nor a journal yet.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::message_marks::{HIDDEN, REMINDER, SUMMARY, is_reminder};
use super::remembered::{Remembered, thread_key};
use super::{Hook, HookContext, HookOutput, Hooks, Middleware, RunFacts};
use crate::ports::memory_policy::MemoryAccess;
use crate::protocol::error::Error;
use crate::protocol::message::{Fields, Kind, Message, content_text};
use crate::protocol::time::Timestamp;
use crate::protocol::trust::{UntrustedText, escape_into};
use crate::state::View;
use crate::state::update::StateUpdate;

/// Where a reminder keeps its date.
const REMINDER_DATE: &str = "reminder_date";
/// What the id of a user's message ends with once it has given its own id away.
const USER_SUFFIX: &str = "__user";
/// What the id of a memory message ends with.
const MEMORY_SUFFIX: &str = "__memory";

const WEEKDAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

/// Settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicContextConfig {
    /// `dynamic_context.utc_offset_minutes`: how far local time is ahead of UTC. -1440 to 1440 make sense.
    pub utc_offset_minutes: i32,
    /// `memory.injection_enabled`: whether what is remembered is told to the model.
    pub memory_injection_enabled: bool,
}

impl Default for DynamicContextConfig {
    fn default() -> Self {
        DynamicContextConfig {
            utc_offset_minutes: 0,
            memory_injection_enabled: true,
        }
    }
}

/// Reads what is remembered for a run, `None` when there is nothing or it cannot be read.
///
/// An error ends the run: it is for a memory whose policy is that a run without it must not be (`fail_closed`).
pub type MemoryReader =
    Arc<dyn Fn(&MemoryAccess, &RunFacts) -> Result<Option<UntrustedText>, Error> + Send + Sync>;

/// The middleware.
pub struct DynamicContext {
    config: DynamicContextConfig,
    /// Without it nothing is read, and what earlier runs put into the thread is taken out (CA-5, CA-7).
    access: Option<MemoryAccess>,
    memory: Option<MemoryReader>,
    /// By thread: what was found there, so that the next run looks only at what came since.
    seen: Remembered<Arc<str>, Seen>,
}

/// What was found in the first `upto` messages of a thread.
#[derive(Clone)]
struct Seen {
    upto: usize,
    /// The newest reminder with a date.
    reminder: Option<Arc<str>>,
}

impl DynamicContext {
    /// The middleware; without `access` or a `memory` it tells the date alone.
    pub fn new(
        config: DynamicContextConfig,
        access: Option<MemoryAccess>,
        memory: Option<MemoryReader>,
    ) -> Self {
        DynamicContext {
            config,
            access,
            memory,
            seen: Remembered::new(),
        }
    }

    fn before_agent(&self, state: View<'_>, run: &RunFacts) -> Result<HookOutput, Error> {
        let today = local_date(run.started_at, self.config.utc_offset_minutes);
        let seen = self.seen.get(thread_key(run));
        let found = look(state, seen.as_ref(), self.access.is_none());
        let mut messages = found.memories;
        if found.date.as_deref() != Some(&today)
            && let Some(target) = state.messages().rev().find(|message| is_target(message))
            && let Some(id) = target.id()
        {
            // Only the first reminder of a thread brings memory; a new day brings its date alone (MW-DYN-5).
            let memory = match found.date {
                None => self.memory(run)?,
                Some(_) => None,
            };
            messages.extend(inject(id, target, &today, memory));
        } else if messages.is_empty() {
            let reminder = found.reminder;
            let upto = state.len();
            self.seen
                .set(thread_key(run).clone(), Seen { upto, reminder });
            return Ok(HookOutput::Continue);
        }
        // What this writes is looked at by the next run.
        self.seen.forget(thread_key(run));
        match messages.is_empty() {
            true => Ok(HookOutput::Continue),
            false => Ok(HookOutput::Update(StateUpdate::messages(messages))),
        }
    }

    /// The memory block, if there is anything to tell (MW-DYN-6).
    fn memory(&self, run: &RunFacts) -> Result<Option<String>, Error> {
        let (Some(access), Some(read)) = (&self.access, &self.memory) else {
            return Ok(None);
        };
        if !self.config.memory_injection_enabled {
            return Ok(None);
        }
        let Some(text) = read(access, run)? else {
            return Ok(None);
        };
        let text = text.expose().trim();
        if text.is_empty() {
            return Ok(None);
        }
        let mut block = "<memory>\n".to_owned();
        escape_into(&mut block, text);
        block.push_str("\n</memory>");
        Ok(Some(block))
    }
}

impl Middleware for DynamicContext {
    fn name(&self) -> &str {
        "dynamic_context"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_agent: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let memory = self.access.is_some() && self.config.memory_injection_enabled;
        Map::from_iter([
            (
                "utc_offset_minutes".to_owned(),
                self.config.utc_offset_minutes.into(),
            ),
            ("memory_enabled".to_owned(), memory.into()),
        ])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        match hook {
            Hook::BeforeAgent => self.before_agent(context.state, context.run),
            _ => Ok(HookOutput::Continue),
        }
    }
}

/// The id that a message had before it gave it to a reminder; whoever replays a stored message sends this one (MW-DYN-9).
pub fn original_id(id: &str) -> &str {
    match id.strip_suffix(USER_SUFFIX) {
        Some(original) if !original.is_empty() => original,
        _ => id,
    }
}

/// The date of a moment, such as `2026-05-08, Friday`.
pub(super) fn local_date(at: Timestamp, utc_offset_minutes: i32) -> String {
    const DAY: i64 = 86_400_000_000;
    let local = Timestamp(at.0.saturating_add(i64::from(utc_offset_minutes) * 60_000_000));
    let text = local.to_string();
    let date = text.split('T').next().unwrap_or_default();
    let weekday = local.0.div_euclid(DAY).rem_euclid(7) as usize;
    format!("{date}, {}", WEEKDAYS[weekday])
}

#[derive(Default)]
struct Found {
    /// Removals of memory messages.
    memories: Vec<Message>,
    /// The newest date that the thread was told, and the message that told it.
    date: Option<String>,
    reminder: Option<Arc<str>>,
}

/// Looks from the end backwards, as far as what was `seen` before.
fn look(state: View<'_>, seen: Option<&Seen>, without_memory: bool) -> Found {
    let mut found = Found::default();
    // A shorter thread was rewritten: what was seen says nothing about it.
    let seen = seen.filter(|seen| seen.upto <= state.len());
    let known = seen.and_then(|seen| state.by_id(seen.reminder.as_deref()?));
    let known = known.and_then(|reminder| Some((reminder, date_of(reminder)?)));
    let new = state.len() - seen.filter(|_| known.is_some()).map_or(0, |seen| seen.upto);
    for message in state.messages().rev().take(new) {
        if without_memory && is_memory(message) {
            let mut removal = Fields::new(Kind::Remove, "");
            removal.id = message.id().map(str::to_owned);
            found.memories.push(Message::new(removal));
        }
        if found.date.is_none()
            && let Some(date) = date_of(message)
        {
            found.date = Some(date);
            found.reminder = message.id().map(Arc::from);
            if !without_memory {
                return found;
            }
        }
    }
    if found.date.is_none()
        && let Some((reminder, date)) = known
    {
        found.date = Some(date);
        found.reminder = reminder.id().map(Arc::from);
    }
    found
}

/// Whether a message is memory that an earlier run put there. The mark alone would do; the id is looked at first because it
/// costs nothing.
fn is_memory(message: &Message) -> bool {
    message.kind() == Kind::Human
        && message.id().is_some_and(|id| id.ends_with(MEMORY_SUFFIX))
        && is_reminder(message)
}

/// The date that a message told, if it is a reminder with one (MW-DYN-3). Older threads have it in the text of system
/// messages; what a person may have written is not read for it.
fn date_of(message: &Message) -> Option<String> {
    if !is_reminder(message) {
        return None;
    }
    let fields = message.fields();
    let noted = fields.additional_kwargs.get(REMINDER_DATE);
    if let Some(date) = noted.and_then(Value::as_str)
        && !date.is_empty()
    {
        return Some(date.to_owned());
    }
    if message.kind() != Kind::System {
        return None;
    }
    let text = content_text(&fields.content);
    let (_, rest) = text.split_once("<current_date>")?;
    let (date, _) = rest.split_once("</current_date>")?;
    (!date.is_empty() && !date.contains('<')).then(|| date.to_owned())
}

/// Whether a message can carry a reminder (MW-DYN-2). One that is hidden can.
fn is_target(message: &Message) -> bool {
    message.kind() == Kind::Human
        && message.id().is_some_and(|id| !id.ends_with(USER_SUFFIX))
        && !is_reminder(message)
        && message.fields().name.as_deref() != Some(SUMMARY)
}

/// What takes the place of the message `target` (MW-DYN-4): the date under its id, memory, and the message itself.
fn inject(id: &str, target: &Message, date: &str, memory: Option<String>) -> Vec<Message> {
    let mut messages = vec![date_reminder(date, Some(id))];
    messages.extend(memory.map(|text| {
        let mut fields = marked(Kind::Human, text);
        fields.id = Some(format!("{id}{MEMORY_SUFFIX}"));
        Message::new(fields)
    }));
    messages.push(target.with_id(&format!("{id}{USER_SUFFIX}")));
    messages
}

/// The system message that tells a date, which is the framework's own text.
pub(super) fn date_reminder(date: &str, id: Option<&str>) -> Message {
    let text =
        format!("<system-reminder>\n<current_date>{date}</current_date>\n</system-reminder>");
    let mut fields = marked(Kind::System, text);
    fields.id = id.map(str::to_owned);
    let kwargs = &mut fields.additional_kwargs;
    kwargs.insert(REMINDER_DATE.into(), date.into());
    Message::new(fields)
}

fn marked(kind: Kind, content: String) -> Fields {
    let mut fields = Fields::new(kind, content);
    for mark in [HIDDEN, REMINDER] {
        fields.additional_kwargs.insert(mark.into(), true.into());
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ports::memory_policy::{AgentBinding, MemoryPolicies};
    use crate::protocol::user_id::UserId;
    use crate::protocol::warning::Warnings;
    use crate::state::ids::SequentialIds;
    use crate::state::{Overlay, ThreadState};

    const FRIDAY: &str = "2026-05-08T22:30:00Z";
    const SATURDAY: &str = "2026-05-09T01:00:00Z";

    struct Thread {
        state: ThreadState,
        part: DynamicContext,
    }

    impl Thread {
        fn new(part: DynamicContext) -> Self {
            Thread {
                state: ThreadState::new(),
                part,
            }
        }

        fn write(&mut self, update: StateUpdate) {
            let mut overlay = Overlay::new();
            let mut ids = SequentialIds::default();
            let staged = self.state.stage(&mut overlay, &[update], &mut ids);
            staged.expect("writes fit");
            self.state.commit(overlay);
        }

        fn say(&mut self, id: &str, text: &str) {
            let mut fields = Fields::new(Kind::Human, text);
            fields.id = Some(id.to_owned());
            self.write(StateUpdate::messages(vec![Message::new(fields)]));
        }

        /// Runs the hook; whether it wrote.
        fn run(&mut self, at: &str) -> bool {
            let run = RunFacts {
                thread_id: "t".into(),
                started_at: Timestamp::parse(at).expect("a time"),
                ..RunFacts::default()
            };
            let overlay = Overlay::new();
            let output = self.part.before_agent(self.state.view(&overlay), &run);
            match output.expect("memory can be read") {
                HookOutput::Update(update) => {
                    self.write(update);
                    true
                }
                HookOutput::Continue => false,
                other => panic!("{other:?}"),
            }
        }

        fn lines(&self) -> Vec<String> {
            let overlay = Overlay::new();
            let messages = self.state.view(&overlay).messages();
            let line = |message: &Message| {
                let id = message.id().unwrap_or_default();
                format!("{} {id} {}", message.kind().name(), message.text())
            };
            messages.map(line).collect()
        }
    }

    fn date_only() -> DynamicContext {
        DynamicContext::new(DynamicContextConfig::default(), access(), None)
    }

    fn date_line(id: &str, date: &str) -> String {
        format!(
            "system {id} <system-reminder>\n<current_date>{date}</current_date>\n</system-reminder>"
        )
    }

    #[test]
    fn dyn_1_the_date_is_local_by_an_offset() {
        let at = |text: &str, offset| local_date(Timestamp::parse(text).expect("a time"), offset);
        assert_eq!(at(FRIDAY, 0), "2026-05-08, Friday");
        assert_eq!(at(FRIDAY, 90), "2026-05-09, Saturday");
        assert_eq!(at("1970-01-01T00:00:00Z", 0), "1970-01-01, Thursday");
        assert_eq!(at("1970-01-01T00:00:00Z", -1), "1969-12-31, Wednesday");
        assert_eq!(at("2024-02-29T12:00:00Z", 0), "2024-02-29, Thursday");
    }

    #[test]
    fn dyn_4_and_5_the_message_gives_its_id_to_the_date_once_a_day() {
        let mut thread = Thread::new(date_only());
        assert!(!thread.run(FRIDAY), "an empty thread gets nothing");
        thread.say("h1", "hello");
        assert!(thread.run(FRIDAY));
        let first = [
            date_line("h1", "2026-05-08, Friday"),
            "human h1__user hello".to_owned(),
        ];
        assert_eq!(thread.lines(), first);
        thread.say("h2", "again");
        assert!(!thread.run(FRIDAY));
        assert!(!thread.run(FRIDAY));
        thread.say("h3", "tomorrow");
        assert!(thread.run(SATURDAY), "XT-10");
        let mut all = first.to_vec();
        all.extend([
            "human h2 again".to_owned(),
            date_line("h3", "2026-05-09, Saturday"),
            "human h3__user tomorrow".to_owned(),
        ]);
        assert_eq!(thread.lines(), all);
        thread.say("h4", "x");
        assert!(!thread.run(SATURDAY));
    }

    #[test]
    fn dyn_2_some_messages_are_no_targets_and_hidden_ones_are() {
        let mut thread = Thread::new(date_only());
        let mut hidden = Fields::new(Kind::Human, "hidden");
        hidden.id = Some("x".into());
        hidden.name = Some("reporter".into());
        hidden.additional_kwargs = json!({"hide_from_ui": true, "mine": 1})
            .as_object()
            .cloned()
            .expect("an object");
        let original = hidden.clone();
        thread.write(StateUpdate::messages(vec![Message::new(hidden)]));
        thread.say("y__user", "taken");
        let mut summary = Fields::new(Kind::Human, "what was");
        summary.name = Some("summary".into());
        thread.write(StateUpdate::messages(vec![Message::new(summary)]));
        assert!(thread.run(FRIDAY));
        let overlay = Overlay::new();
        let view = thread.state.view(&overlay);
        let moved = view.by_id("x__user").expect("moved").fields().clone();
        assert_eq!(
            Fields {
                id: original.id.clone(),
                ..moved
            },
            original,
            "content, name and kwargs stay"
        );
        let date = view.by_id("x").expect("the date").fields();
        let kwargs = json!({
            "hide_from_ui": true, "dynamic_context_reminder": true,
            "reminder_date": "2026-05-08, Friday",
        });
        assert_eq!(Value::Object(date.additional_kwargs.clone()), kwargs);

        let mut taken = Thread::new(date_only());
        taken.say("y__user", "taken");
        assert!(!taken.run(FRIDAY));
    }

    #[test]
    fn dyn_3_older_threads_tell_their_date_in_system_messages_only() {
        let reminder = |kind, text: &str| {
            let mut fields = Fields::new(kind, text);
            fields
                .additional_kwargs
                .insert(REMINDER.into(), true.into());
            Message::new(fields)
        };
        let text = "<current_date>2026-05-08, Friday</current_date>";
        let friday = Some("2026-05-08, Friday".to_owned());
        assert_eq!(date_of(&reminder(Kind::System, text)), friday);
        assert_eq!(date_of(&reminder(Kind::Human, text)), None);
        assert_eq!(
            date_of(&reminder(Kind::System, "<current_date></current_date>")),
            None
        );
        assert_eq!(
            date_of(&Message::new(Fields::new(Kind::System, text))),
            None
        );
    }

    fn access() -> Option<MemoryAccess> {
        let policies = MemoryPolicies::new(true);
        let user = UserId::new("u");
        let mut warnings = Warnings::new();
        let load = |_: &_, _: &_| Ok(None);
        let policy = policies.resolve(AgentBinding::Default, &user, load, &mut warnings);
        policy.access()
    }

    #[test]
    fn dyn_6_memory_comes_once_escaped_and_as_a_person_s_message() {
        let memory: MemoryReader =
            Arc::new(|_, _| Ok(Some(UntrustedText::model(" likes </memory> & tea "))));
        let mut thread = Thread::new(DynamicContext::new(
            DynamicContextConfig::default(),
            access(),
            Some(memory.clone()),
        ));
        thread.say("h1", "hello");
        assert!(thread.run(FRIDAY));
        assert_eq!(
            thread.lines()[1..],
            [
                "human h1__memory <memory>\nlikes &lt;/memory&gt; &amp; tea\n</memory>",
                "human h1__user hello"
            ]
        );
        thread.say("h2", "next day");
        assert!(thread.run(SATURDAY));
        assert_eq!(thread.lines().len(), 5, "a new day brings no memory");

        let without = DynamicContextConfig {
            memory_injection_enabled: false,
            ..DynamicContextConfig::default()
        };
        let mut thread = Thread::new(DynamicContext::new(without, access(), Some(memory)));
        thread.say("h1", "hello");
        assert!(thread.run(FRIDAY));
        assert_eq!(thread.lines().len(), 2);
    }

    #[test]
    fn dyn_6_a_memory_that_must_be_there_ends_the_run() {
        let memory: MemoryReader = Arc::new(|_, _| {
            let code = crate::protocol::error::ErrorCode::Store;
            Err(Error::new(code, "no memory"))
        });
        let part = DynamicContext::new(DynamicContextConfig::default(), access(), Some(memory));
        let mut thread = Thread::new(part);
        thread.say("h1", "hello");
        let overlay = Overlay::new();
        let view = thread.state.view(&overlay);
        assert!(
            thread
                .part
                .before_agent(view, &RunFacts::default())
                .is_err()
        );
    }

    #[test]
    fn ca_5_without_memory_what_was_remembered_is_taken_out_and_dates_stay() {
        let memory: MemoryReader = Arc::new(|_, _| Ok(Some(UntrustedText::user("likes tea"))));
        let mut thread = Thread::new(DynamicContext::new(
            DynamicContextConfig::default(),
            access(),
            Some(memory.clone()),
        ));
        thread.say("h1", "hello");
        thread.run(FRIDAY);
        thread.say("mine__memory", "not the framework's");
        let config = DynamicContextConfig::default();
        thread.part = DynamicContext::new(config, None, Some(memory));
        assert!(thread.run(FRIDAY));
        assert_eq!(
            thread.lines(),
            [
                date_line("h1", "2026-05-08, Friday"),
                "human h1__user hello".to_owned(),
                "human mine__memory not the framework's".to_owned(),
            ]
        );
        assert!(!thread.run(FRIDAY));
        thread.say("h2", "next day");
        assert!(thread.run(SATURDAY));
        assert_eq!(thread.lines().len(), 5);
    }

    #[test]
    fn what_was_seen_before_changes_no_decision() {
        let mut random: u64 = 11;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let mut thread = Thread::new(date_only());
            for step in 0..30 {
                match next(6) {
                    0 => {
                        let gone = thread.lines().len();
                        if gone > 0 {
                            let line = thread.lines()[next(gone as u64) as usize].clone();
                            let id = line.split(' ').nth(1).unwrap_or_default().to_owned();
                            let mut removal = Fields::new(Kind::Remove, "");
                            removal.id = Some(id);
                            thread.write(StateUpdate::messages(vec![Message::new(removal)]));
                        }
                    }
                    1 | 2 => thread.say(&format!("h{step}"), "x"),
                    _ => {
                        let at = if next(4) == 0 { SATURDAY } else { FRIDAY };
                        let overlay = Overlay::new();
                        let view = thread.state.view(&overlay);
                        let seen = thread.part.seen.get("t");
                        let fresh = look(view, None, false);
                        let known = look(view, seen.as_ref(), false);
                        assert_eq!(known.date, fresh.date, "{:?}", thread.lines());
                        assert_eq!(known.reminder, fresh.reminder);
                        thread.run(at);
                    }
                }
            }
        }
    }

    #[test]
    fn dyn_9_a_replay_sends_the_id_that_the_host_gave() {
        for (id, original) in [
            ("a__user", "a"),
            ("a", "a"),
            ("__user", "__user"),
            ("a__user__user", "a__user"),
        ] {
            assert_eq!(original_id(id), original);
        }
    }
}

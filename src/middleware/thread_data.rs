//! Says in the thread where its files stand, and of the newest message of the user which run took it up, and when.
//!
//! Without files of threads there are no paths to tell. The reference writes the whole message list back each time; only the
//! one message differs, so only that is written here.
//!
//! Source: DeerFlow `ThreadDataMiddleware`, MW-THD.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Effect, Hook, HookContext, HookOutput, Hooks, Middleware, RunFacts, Work};
use crate::ports::thread_files::ThreadFiles;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Kind, Message};
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};

/// The name of a message of the user that has none.
const USER_INPUT: &str = "user-input";

/// The middleware.
pub struct ThreadData {
    files: Option<Arc<dyn ThreadFiles>>,
    lazy: bool,
}

impl ThreadData {
    /// With the `files` of the threads it tells of, if there are any; unless `lazy`, their directories are made before each
    /// run.
    pub fn new(files: Option<Arc<dyn ThreadFiles>>, lazy: bool) -> Self {
        ThreadData { files, lazy }
    }

    fn before_agent(&self, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        let run = context.run;
        if run.thread_id.is_empty() {
            let text = "a run without the id of a thread has no files";
            return Err(Error::new(ErrorCode::MissingMember, text));
        }
        let mut update = match context.state.last() {
            Some(last) if last.kind() == Kind::Human => {
                StateUpdate::messages(vec![taken_up(last, run)])
            }
            _ => StateUpdate::default(),
        };
        if let Some(files) = &self.files {
            if !self.lazy {
                match context.performed() {
                    None => return Ok(HookOutput::Await(make_directories(files))),
                    Some(Err(error)) => return Err(error.clone()),
                    Some(Ok(_)) => {}
                }
            }
            let paths = files.paths(&run.thread_id)?;
            let paths = json!({
                "workspace_path": paths.workspace,
                "uploads_path": paths.uploads,
                "outputs_path": paths.outputs,
            });
            if context.state.channel(Channel::ThreadData) != Some(&paths) {
                update = update.and(Channel::ThreadData, Write::Value(paths));
            }
        }
        Ok(match update.is_empty() {
            true => HookOutput::Continue,
            false => HookOutput::Update(update),
        })
    }
}

fn make_directories(files: &Arc<dyn ThreadFiles>) -> Effect {
    let files = files.clone();
    Effect::Perform(Work::new(move |run| {
        let files = files.clone();
        async move {
            let made = files.make_directories(run.thread_id.to_string()).await;
            made.map(|()| Value::Null)
        }
    }))
}

/// The message with a name, its run and the time (MW-THD-2).
fn taken_up(message: &Message, run: &RunFacts) -> Message {
    let mut fields = message.fields().clone();
    if fields.name.as_deref().unwrap_or_default().is_empty() {
        fields.name = Some(USER_INPUT.to_owned());
    }
    let run_id = match &*run.run_id {
        "" => Value::Null,
        id => id.into(),
    };
    let kwargs = &mut fields.additional_kwargs;
    kwargs.insert("run_id".to_owned(), run_id);
    kwargs.insert("timestamp".to_owned(), run.started_at.to_string().into());
    Message::new(fields)
}

impl Middleware for ThreadData {
    fn name(&self) -> &str {
        "thread_data"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_agent: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        Map::from_iter([
            ("has_files".to_owned(), self.files.is_some().into()),
            ("lazy_init".to_owned(), self.lazy.into()),
        ])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        match hook {
            Hook::BeforeAgent => self.before_agent(context),
            _ => Ok(HookOutput::Continue),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::EffectAnswer;
    use crate::middleware::testing::{hooked, on_state};
    use crate::protocol::message::Fields;
    use crate::protocol::time::Timestamp;
    use crate::tools::testing::files::FakeFiles;
    use crate::tools::testing::{ready, run_with};

    fn run() -> RunFacts {
        RunFacts {
            run_id: "r1".into(),
            thread_id: "t1".into(),
            started_at: Timestamp::parse("2026-01-01T00:00:00Z").expect("a time"),
            ..RunFacts::default()
        }
    }

    fn human(name: Option<&str>) -> Message {
        let mut fields = Fields::new(Kind::Human, "Hi");
        fields.id = Some("h1".to_owned());
        fields.name = name.map(str::to_owned);
        fields.additional_kwargs = Map::from_iter([
            ("mine".to_owned(), 1.into()),
            ("run_id".to_owned(), "r0".into()),
        ]);
        Message::new(fields)
    }

    fn update(output: HookOutput) -> StateUpdate {
        match output {
            HookOutput::Update(update) => update,
            other => panic!("{other:?}"),
        }
    }

    fn written(update: &StateUpdate) -> &Message {
        match &update.writes[0] {
            (Channel::Messages, Write::Messages(messages)) => &messages[0],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn thd_2_the_newest_message_of_the_user_is_marked_and_otherwise_stays() {
        let part = ThreadData::new(None, true);
        let of = |message, run: &RunFacts| {
            let output = hooked(
                &part,
                Hook::BeforeAgent,
                vec![message],
                StateUpdate::default(),
                run,
            );
            let update = update(output);
            assert_eq!(update.writes.len(), 1, "without files no paths are told");
            written(&update).fields().clone()
        };
        let marked = of(human(None), &run());
        assert_eq!(marked.id.as_deref(), Some("h1"));
        assert_eq!(marked.content, "Hi");
        assert_eq!(marked.name.as_deref(), Some("user-input"));
        assert_eq!(
            Value::Object(marked.additional_kwargs),
            json!({"mine": 1, "run_id": "r1", "timestamp": "2026-01-01T00:00:00.000000Z"})
        );
        assert_eq!(of(human(Some("ann")), &run()).name.as_deref(), Some("ann"));
        assert_eq!(
            of(human(Some("")), &run()).name.as_deref(),
            Some("user-input")
        );
        let nameless = RunFacts {
            run_id: "".into(),
            ..run()
        };
        let marked = of(human(None), &nameless);
        assert_eq!(marked.additional_kwargs["run_id"], Value::Null);
    }

    #[test]
    fn thd_2_nothing_is_written_where_no_message_of_the_user_is_the_last() {
        let part = ThreadData::new(None, true);
        let ai = Message::new(Fields::new(Kind::Ai, "x"));
        for messages in [vec![], vec![human(None), ai]] {
            let update = StateUpdate::default();
            let output = hooked(&part, Hook::BeforeAgent, messages, update, &run());
            assert!(matches!(output, HookOutput::Continue), "{output:?}");
        }
    }

    #[test]
    fn thd_1_the_paths_are_told_once() {
        let part = ThreadData::new(Some(Arc::new(FakeFiles::default())), true);
        let empty = StateUpdate::default();
        let first = update(hooked(&part, Hook::BeforeAgent, vec![], empty, &run()));
        let told = json!({
            "workspace_path": "/h/t1/workspace",
            "uploads_path": "/h/t1/uploads",
            "outputs_path": "/h/t1/outputs",
        });
        assert_eq!(first, StateUpdate::set(Channel::ThreadData, told));
        let again = hooked(&part, Hook::BeforeAgent, vec![], first, &run());
        assert!(matches!(again, HookOutput::Continue), "{again:?}");
        let stale = StateUpdate::set(Channel::ThreadData, json!({"workspace_path": "/old"}));
        let moved = hooked(&part, Hook::BeforeAgent, vec![], stale, &run());
        assert!(matches!(moved, HookOutput::Update(_)), "{moved:?}");
    }

    #[test]
    fn thd_1_a_run_without_a_thread_ends() {
        let part = ThreadData::new(None, true);
        let nameless = RunFacts::default();
        on_state(vec![], StateUpdate::default(), |state| {
            let context = HookContext {
                state,
                run: &nameless,
                answer: None,
            };
            let error = part
                .hook(Hook::BeforeAgent, &context)
                .expect_err("no thread");
            assert_eq!(error.code, ErrorCode::MissingMember);
        });
    }

    #[test]
    fn thd_1_directories_are_made_first_where_that_is_asked_for() {
        let files = Arc::new(FakeFiles::default());
        let part = ThreadData::new(Some(files.clone()), false);
        let run = run();
        on_state(vec![], StateUpdate::default(), |state| {
            let hook = |answer: Option<&EffectAnswer>| {
                let context = HookContext {
                    state,
                    run: &run,
                    answer,
                };
                part.hook(Hook::BeforeAgent, &context)
            };
            let Ok(HookOutput::Await(Effect::Perform(work))) = hook(None) else {
                panic!("it asks for the directories");
            };
            let made = ready(work.begin(run_with(run.clone())));
            assert_eq!(*files.made.lock().expect("a lock"), ["t1"]);
            let answer = EffectAnswer::Performed(Box::new(made));
            assert!(matches!(hook(Some(&answer)), Ok(HookOutput::Update(_))));
            let failed = Err(Error::new(ErrorCode::Store, "full"));
            let failed = EffectAnswer::Performed(Box::new(failed));
            assert!(hook(Some(&failed)).is_err());
        });
    }
}

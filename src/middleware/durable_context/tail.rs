//! Which messages of a thread are the current run's, and which of them are new.

use crate::middleware::RunFacts;
use crate::middleware::user_message::is_genuine;
use crate::protocol::message::{Kind, Message};
use crate::state::View;

/// Where the host may say to which run a message belongs.
const RUN_ID: &str = "run_id";

/// The messages of a run that nobody has looked at.
pub(super) struct Tail<'a> {
    /// The messages with their places in the thread, in order.
    pub(super) new: Vec<(usize, &'a Message)>,
    /// The message of the model whose calls the first of the new results answer, if it is not among the new ones.
    pub(super) open_turn: Option<&'a Message>,
    /// How the run began, when it is looked at for the first time.
    pub(super) first_look: Option<Beginning>,
    /// Whether the messages are the run's beyond doubt.
    pub(super) certain: bool,
}

/// How a run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// With a new word of the user.
    NewTurn,
    /// It goes on with what an earlier run left.
    Continuation,
}

/// What belongs to a run that was not looked at before.
struct Found {
    /// How many messages, from the end.
    count: usize,
    beginning: Beginning,
    certain: bool,
}

impl<'a> Tail<'a> {
    /// The messages behind `seen`, the newest that was looked at; without it, or when it is gone, those of the run (LED-5).
    /// Outside of any run they are all messages. O(messages that it returns), but for the search for the run's beginning.
    pub(super) fn of(state: View<'a>, run: &RunFacts, seen: Option<&str>) -> Self {
        let seen = seen.filter(|id| state.by_id(id).is_some());
        let found = match seen {
            Some(seen) => Found {
                count: behind(state, seen),
                beginning: Beginning::Continuation,
                certain: true,
            },
            None if run.run_id.is_empty() => Found {
                count: state.len(),
                beginning: Beginning::Continuation,
                certain: false,
            },
            None => beginning(state, run),
        };
        let place = state.len() - found.count;
        let new: Vec<_> = (place..).zip(state.last_n(found.count)).collect();
        let mut kinds = new.iter().map(|(_, message)| message.kind());
        let is_answered = kinds.find(|kind| matches!(kind, Kind::Ai | Kind::Tool));
        let open_turn = (is_answered == Some(Kind::Tool)).then(|| {
            let mut before = state.messages().rev().skip(found.count);
            before.find(|message| message.kind() == Kind::Ai)
        });
        Tail {
            new,
            open_turn: open_turn.flatten(),
            first_look: seen.is_none().then_some(found.beginning),
            certain: found.certain,
        }
    }

    /// The new results, each with its place and the message of the model that it answers.
    pub(super) fn results(&self) -> impl Iterator<Item = (usize, &'a Message, &'a Message)> {
        let mut turn = self.open_turn;
        self.new.iter().filter_map(move |(place, message)| {
            match message.kind() {
                Kind::Ai => turn = Some(message),
                Kind::Tool => return Some((*place, *message, turn?)),
                _ => {}
            }
            None
        })
    }
}

/// How many messages stand behind the message of this id.
fn behind(state: View<'_>, id: &str) -> usize {
    let mut messages = state.messages().rev();
    let found = messages.position(|message| message.id() == Some(id));
    found.unwrap_or_default()
}

/// The messages of a run that is looked at for the first time (LED-5, MW-DUR-1).
fn beginning(state: View<'_>, run: &RunFacts) -> Found {
    let before = run.start().and_then(|start| start.after.as_deref());
    let mut behind_before = None;
    let mut human = None;
    for (count, message) in state.messages().rev().enumerate() {
        if message.kind() == Kind::Human {
            human = Some((count, message));
        }
        if behind_before.is_none() && before.is_some() && message.id() == before {
            behind_before = Some(count);
        }
        if human.is_some() {
            break;
        }
    }
    if let Some((count, message)) = human {
        let its_run = run_of(message);
        // Whatever stands before the newest message from before the run is as old.
        let is_new = behind_before.is_none();
        let is_ours = its_run.as_deref() == Some(&*run.run_id);
        if is_ours || its_run.is_none() && is_new {
            let begins_turn = is_new && run.start().is_some() && is_genuine(message);
            return Found {
                count,
                beginning: match begins_turn {
                    true => Beginning::NewTurn,
                    false => Beginning::Continuation,
                },
                certain: is_ours || run.start().is_some(),
            };
        }
    }
    let known = before.filter(|id| state.by_id(id).is_some());
    let count = match (behind_before, known) {
        (Some(count), _) => count,
        (None, Some(id)) => behind(state, id),
        (None, None) => 0,
    };
    Found {
        count,
        beginning: Beginning::Continuation,
        certain: true,
    }
}

/// The run that a message of the user is said to belong to. Only what might say so is decoded.
fn run_of(message: &Message) -> Option<String> {
    if !message.json().contains(RUN_ID) {
        return None;
    }
    let run = message.fields().additional_kwargs.get(RUN_ID)?.as_str()?;
    (!run.is_empty()).then(|| run.to_owned())
}

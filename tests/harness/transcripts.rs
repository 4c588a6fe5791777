//! The transcript of a thread, and what is known of it, through anything that happens to the thread.

use std::sync::Arc;

use fawn::protocol::message::{Fields, Kind, Message};
use fawn::state::ids::SequentialIds;
use fawn::state::transcript::{Rewriter, Transcript};
use fawn::state::update::StateUpdate;
use fawn::state::{Overlay, ThreadState, View};
use serde_json::Value;

use crate::support::random::Random;

/// Writes `!` behind what humans say.
#[derive(Debug)]
struct Marking;

impl Rewriter for Marking {
    fn look(&mut self, place: usize, message: &Message, replace: &mut dyn FnMut(usize, Message)) {
        if message.kind() == Kind::Human {
            replace(place, with_text(message, "!"));
        }
    }
}

fn with_text(message: &Message, more: &str) -> Message {
    let mut fields = message.fields().clone();
    fields.content = Value::String(message.text() + more);
    Message::new(fields)
}

/// A thread to which anything happens, and what is wanted of its transcript.
struct Stage {
    random: Random,
    ids: SequentialIds,
    state: ThreadState,
    overlay: Overlay,
    /// Those whose first messages were last noted to be whole turns.
    noted: Vec<Message>,
    held: Vec<Arc<Transcript>>,
}

impl Stage {
    fn one_in(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    fn message(&mut self) -> Message {
        let kinds = [Kind::Human, Kind::Ai, Kind::System];
        let kind = kinds[self.random.below(3) as usize];
        let mut fields = Fields::new(kind, "x".repeat(1 + self.random.below(4) as usize));
        fields.id = Some(format!("m{}", self.random.below(12)));
        Message::new(fields)
    }

    fn write(&mut self, message: Message) {
        let update = StateUpdate::messages(vec![message]);
        let staged = self
            .state
            .stage(&mut self.overlay, &[update], &mut self.ids);
        staged.unwrap();
    }

    /// A message comes or is written anew, the newest is written anew, or pending changes are given up or committed.
    fn change(&mut self) {
        match self.random.below(8) {
            0..=3 => {
                let message = self.message();
                self.write(message);
            }
            4 => {
                let newest = self.state.view(&self.overlay).last().cloned();
                newest
                    .into_iter()
                    .for_each(|newest| self.write(with_text(&newest, "y")));
            }
            5 => self.overlay = Overlay::new(),
            _ => self.state.commit(std::mem::take(&mut self.overlay)),
        }
    }

    fn check(&mut self) {
        let view: View<'_> = self.state.view(&self.overlay);
        let wanted: Vec<Message> = view.messages().cloned().collect();
        let transcript = view.transcript();
        assert_eq!(transcript.len(), wanted.len());
        assert_eq!(same(&transcript, &wanted), wanted.len());
        let of_kind = |kind| {
            wanted
                .iter()
                .filter(|message| message.kind() == kind)
                .count()
        };
        assert_eq!(transcript.ai_messages(), of_kind(Kind::Ai));
        assert_eq!(transcript.system_messages(), of_kind(Kind::System));
        let length = |message: &Message| message.text().len() as u64;
        let lengths = wanted.iter().map(length).sum::<u64>();
        assert_eq!(transcript.weight(1, length), lengths);

        let marked = transcript.rewritten(1, || Box::new(Marking));
        assert_eq!(marked.is_some(), of_kind(Kind::Human) > 0);
        let shown = marked.unwrap_or_else(|| transcript.clone());
        let texts = |messages: &[Message]| messages.iter().map(Message::text).collect::<Vec<_>>();
        let marks = wanted.iter().map(|message| match message.kind() {
            Kind::Human => message.text() + "!",
            _ => message.text(),
        });
        assert_eq!(texts(&shown), marks.collect::<Vec<_>>());

        // Nothing is known to be sound that was not noted of these very messages.
        let common = same(&self.noted, &wanted);
        assert!(transcript.sound_prefix() <= common);
        assert!(shown.sound_prefix() <= common);
        let unsound = self.random.below(3) as usize;
        shown.note_sound(wanted.len().saturating_sub(unsound));
        self.noted = wanted;
        match self.random.below(8) {
            0 => self.held.extend([shown, transcript]),
            1 | 2 => self.held.clear(),
            _ => {}
        }
    }
}

/// How many messages both begin with.
fn same(left: &[Message], right: &[Message]) -> usize {
    let pairs = left.iter().zip(right);
    pairs.take_while(|(left, right)| left.same(right)).count()
}

#[test]
fn a_transcript_is_its_thread_s_whatever_came_before() {
    for seed in 0..5000 {
        let mut stage = Stage {
            random: Random::new(seed),
            ids: SequentialIds::default(),
            state: ThreadState::new(),
            overlay: Overlay::new(),
            noted: Vec::new(),
            held: Vec::new(),
        };
        for _ in 0..stage.random.below(40) {
            stage.change();
            if !stage.one_in(3) {
                stage.check();
            }
        }
    }
}

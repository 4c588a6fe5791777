//! Where missing message ids come from. The order of allocation is part of the contract, so the source is passed in.

/// Gives ids to messages that have none.
pub trait IdSource {
    /// The next id.
    fn next_id(&mut self) -> String;
    /// The position to go back to when a write fails; see [`IdSource::rewind`].
    fn mark(&self) -> u64;
    /// Takes back every id given since `mark`, so that a failed write changes nothing.
    fn rewind(&mut self, mark: u64);
}

/// Random UUIDv4 ids.
#[derive(Debug, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next_id(&mut self) -> String {
        uuid::Uuid::new_v4().hyphenated().to_string()
    }
    fn mark(&self) -> u64 {
        0
    }
    fn rewind(&mut self, _mark: u64) {}
}

/// `00000000-0000-4000-8000-%012x`, counting up; for tests and replays.
#[derive(Clone, Debug)]
pub struct SequentialIds {
    next: u64,
}

impl SequentialIds {
    /// Starts at `first` (1 unless asked otherwise).
    pub fn starting_at(first: u64) -> Self {
        SequentialIds { next: first }
    }
}

impl Default for SequentialIds {
    fn default() -> Self {
        SequentialIds::starting_at(1)
    }
}

impl IdSource for SequentialIds {
    fn next_id(&mut self) -> String {
        let id = format!("00000000-0000-4000-8000-{:012x}", self.next);
        self.next += 1;
        id
    }
    fn mark(&self) -> u64 {
        self.next
    }
    fn rewind(&mut self, mark: u64) {
        self.next = mark;
    }
}

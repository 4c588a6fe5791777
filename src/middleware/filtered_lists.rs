//! Lists of tools with some left out, kept: copying the schemas of a list costs more than the rest of a model call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ports::tool::ToolSpec;

/// How many lists are kept. Threads of one agent mostly share a few.
pub(super) const KEPT_LISTS: usize = 8;

/// What was left of lists of tools, by the list and by `K`, which says what is left out. One middleware serves all runs of an
/// assembly, so it is locked.
pub(super) struct FilteredLists<K>(Mutex<VecDeque<Filtered<K>>>);

/// One list and what was left of it.
struct Filtered<K> {
    of: Arc<[ToolSpec]>,
    by: K,
    tools: Arc<[ToolSpec]>,
}

impl<K: PartialEq + Clone> FilteredLists<K> {
    /// Nothing was filtered yet.
    pub(super) fn new() -> Self {
        FilteredLists(Mutex::default())
    }

    /// What `is_kept` leaves of a list, which depends on `by` alone. The same object as before while it is remembered.
    pub(super) fn get(
        &self,
        tools: &Arc<[ToolSpec]>,
        by: &K,
        is_kept: impl Fn(&ToolSpec) -> bool,
    ) -> Arc<[ToolSpec]> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lists
            .iter()
            .find(|known| Arc::ptr_eq(&known.of, tools) && known.by == *by);
        if let Some(known) = known {
            return known.tools.clone();
        }
        let kept = tools.iter().filter(|spec| is_kept(spec));
        let kept: Arc<[ToolSpec]> = kept.cloned().collect();
        if lists.len() == KEPT_LISTS {
            lists.pop_front();
        }
        lists.push_back(Filtered {
            of: tools.clone(),
            by: by.clone(),
            tools: kept.clone(),
        });
        kept
    }

    /// How many lists are kept now.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().expect("a lock").len()
    }
}

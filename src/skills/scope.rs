//! Which skills an agent may find and activate (CA-2).

use std::collections::BTreeSet;

/// The skills of one agent: all, or those of a list, which may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(Option<BTreeSet<String>>);

impl Scope {
    /// Every skill.
    pub fn all() -> Self {
        Scope(None)
    }

    /// The skills of a list; `None` is no list, which means all, and an empty list means none.
    pub fn of(names: Option<&[String]>) -> Self {
        Scope(names.map(|names| names.iter().cloned().collect()))
    }

    /// The names of the list, sorted; `None` when there is no list.
    pub fn names(&self) -> Option<impl Iterator<Item = &str>> {
        let names = self.0.as_ref()?;
        Some(names.iter().map(String::as_str))
    }

    /// Whether the skill of this name is among them.
    pub fn allows(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_list_and_an_empty_list_differ() {
        let names = ["a".to_owned()];
        let allows = |scope: Scope| [scope.allows("a"), scope.allows("b")];
        assert_eq!(allows(Scope::all()), [true, true]);
        assert_eq!(allows(Scope::of(None)), [true, true]);
        assert_eq!(allows(Scope::of(Some(&[]))), [false, false]);
        assert_eq!(allows(Scope::of(Some(&names))), [true, false]);
    }
}

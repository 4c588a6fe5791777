//! The id of a user as it stands in paths: whatever the host says, made safe.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::hash::hex;

/// Longest id, in bytes: what a name in a folder may have.
const MAX_BYTES: usize = 255;

/// A user, by an id of `A-Z a-z 0-9 _ -` alone, 1 to 255 of them: safe as the name of a folder.
///
/// Equal ids of the host give equal ones here, different ids different ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(Arc<str>);

impl UserId {
    /// The user of an id that the host gave (RC-5). An id that is safe already stays. Otherwise every other character becomes
    /// a hyphen, and the first 16 hex digits of the SHA-256 of the id follow, so that no two users meet in one folder. The
    /// empty id is the default user.
    ///
    /// Source: DeerFlow `config/paths.py::make_safe_user_id`, whose folders are found again under these names.
    pub fn new(raw: &str) -> Self {
        if raw.is_empty() {
            return UserId::default();
        }
        let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if raw.len() <= MAX_BYTES && raw.chars().all(is_safe) {
            return UserId(raw.into());
        }
        let digest = hex(&Sha256::digest(raw.as_bytes())[..8]);
        let kept = raw.chars().take(MAX_BYTES - digest.len() - 1);
        let mut id: String = kept.map(|c| if is_safe(c) { c } else { '-' }).collect();
        id.push('-');
        id.push_str(&digest);
        UserId(id.into())
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for UserId {
    /// The user of a host that names none (RC-5).
    fn default() -> Self {
        UserId("default".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rc5_safe_ids_stay_and_all_others_are_told_apart() {
        for safe in ["u-1", "A_b", "default", &"x".repeat(255)] {
            assert_eq!(UserId::new(safe).as_str(), safe);
        }
        assert_eq!(UserId::new(""), UserId::default());
        let ids = [
            "feishu|ou_AbC/123",
            "..",
            ".",
            "a/b",
            "a\\b",
            "a\0b",
            "a\nb",
            "ä",
            "a b",
            "a.b",
            "\u{202e}x",
        ];
        let mut seen = std::collections::HashSet::new();
        let long = "é".repeat(300);
        for id in ids.iter().copied().chain([long.as_str()]) {
            let safe = UserId::new(id);
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
            assert!(safe.as_str().bytes().all(is_plain), "{id:?} gave {safe:?}");
            assert!(safe.as_str().len() <= 255);
            assert!(seen.insert(safe), "{id:?} meets another");
        }
        // Known answer: sha256("a/b") begins with c14cddc033f64b9d.
        assert_eq!(UserId::new("a/b").as_str(), "a-b-c14cddc033f64b9d");
    }
}

//! A path as an agent has it, taken apart: which of the three folders of a thread, and the names below it.

use crate::protocol::error::{Error, ErrorCode};

/// What agents see the folders of a thread under.
const PREFIX: &str = "/mnt/user-data/";
/// Longest path, in bytes.
const MAX_PATH_BYTES: usize = 4096;
/// Longest name in a folder, in bytes (UPL-1).
const MAX_NAME_BYTES: usize = 255;

/// The folders of a thread that files can be in (SBX-14).
pub const ROOTS: [&str; 3] = ["workspace", "uploads", "outputs"];

/// A file below one of [`ROOTS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualPath {
    /// Which of them.
    pub root: &'static str,
    /// The folders on the way, outermost first. Each is one plain name: not empty, no `.` or `..`, no separator.
    pub folders: Vec<String>,
    /// The name of the file, as plain.
    pub name: String,
}

impl VirtualPath {
    /// Takes a path apart. Empty and `.` parts do not count; what could lead out is refused and not resolved: `..`, and the
    /// backslash that separates folders on some systems (SBX-15, SBX-16).
    ///
    /// # Errors
    /// `OutOfRange` for a path that is none of a file below one of the three folders. Its text quotes at most 200 characters
    /// of the path.
    pub fn parse(path: &str) -> Result<Self, Error> {
        let refused = |why: &str| {
            let shown: String = path.chars().take(200).collect();
            Err(Error::new(
                ErrorCode::OutOfRange,
                format!("{shown:?} {why}"),
            ))
        };
        if path.len() > MAX_PATH_BYTES {
            return refused("is too long for a path");
        }
        if path.contains(|c: char| c.is_control() || c == '\\') {
            return refused("has characters that no path here has");
        }
        let Some(below) = path.strip_prefix(PREFIX) else {
            return refused("is not below /mnt/user-data");
        };
        let mut parts = Vec::new();
        for part in below.split('/') {
            match part {
                "" | "." => {}
                ".." => return refused("has a part \"..\""),
                part if part.len() > MAX_NAME_BYTES => {
                    return refused("has a name that is too long");
                }
                part => parts.push(part.to_owned()),
            }
        }
        let root = parts.first();
        let root = root.and_then(|first| ROOTS.into_iter().find(|root| root == first));
        let (Some(root), true) = (root, parts.len() > 1) else {
            return refused("names no file below workspace, uploads or outputs");
        };
        let name = parts.pop().unwrap_or_default();
        parts.remove(0);
        Ok(VirtualPath {
            root,
            folders: parts,
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sbx_15_a_path_is_its_root_its_folders_and_its_name() {
        for (path, root, folders, name) in [
            ("/mnt/user-data/uploads/a.md", "uploads", "", "a.md"),
            (
                "/mnt/user-data/outputs/x/./y//z.md",
                "outputs",
                "x y",
                "z.md",
            ),
            (
                "/mnt/user-data//workspace/..a/...",
                "workspace",
                "..a",
                "...",
            ),
            (
                "/mnt/user-data/workspace/レポート",
                "workspace",
                "",
                "レポート",
            ),
        ] {
            let parsed = VirtualPath::parse(path).expect(path);
            assert_eq!(parsed.root, root, "{path}");
            assert_eq!(parsed.folders.join(" "), folders, "{path}");
            assert_eq!(parsed.name, name, "{path}");
        }
    }

    #[test]
    fn sbx_15_and_16_what_lies_elsewhere_or_could_lead_there_is_refused() {
        let long_name = format!("/mnt/user-data/outputs/{}", "x".repeat(256));
        let long_path = format!("/mnt/user-data/outputs/{}", "x/".repeat(3000));
        for path in [
            "",
            "/",
            "a.md",
            "/mnt/user-data",
            "/mnt/user-data/",
            "/mnt/user-data/outputs",
            "/mnt/user-data/outputs/",
            "/mnt/user-data/outputs/.",
            "/mnt/user-data/other/a",
            "/mnt/user-data/Outputs/a",
            "/mnt/user-data-x/outputs/a",
            "/mnt/user-data/outputs/../workspace/a",
            "/mnt/user-data/outputs/a/..",
            "/mnt/user-data/../user-data/outputs/a",
            "/mnt/user-data/outputs/a\\..\\..\\b",
            "/mnt/user-data/outputs/a\0b",
            "/mnt/user-data/outputs/a\nb",
            "/etc/passwd",
            "mnt/user-data/outputs/a",
            "//mnt/user-data/outputs/a",
            long_name.as_str(),
            long_path.as_str(),
        ] {
            let error = VirtualPath::parse(path).expect_err(path);
            assert_eq!(error.code, ErrorCode::OutOfRange, "{path}");
            assert!(error.message.len() < 1000, "{}", error.message.len());
        }
    }
}

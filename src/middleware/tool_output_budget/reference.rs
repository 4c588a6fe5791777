//! What the model reads in place of an output that went to a file: where it stands, what it seems to be, and its two ends.

use super::cut::{Ends, both_ends};
use super::synopsis::{self, Kind, synopsis};
use crate::middleware::message_marks::first_chars;

/// Where agents see the files that they make.
const OUTPUTS: &str = "/mnt/user-data/outputs";
/// Tools whose output is a log (MW-TOB-2).
const LOGS: &[&str] = &["bash", "bash_tool", "web_fetch"];
/// Most characters of a tool's name in that of a file.
const MAX_TOOL: usize = 64;
/// Hex digits in the name of a file.
const DIGITS: usize = 12;
/// Most characters of the line that names the file, and of what stands between the other parts.
const AROUND: usize = 800;

/// Digits of the longest number of characters that a text has.
const LONGEST_COUNT: usize = 10;

const BEGINNING: &str = "\n\nIts beginning:\n";
const END: &str = "\n\nIts end:\n";

/// The name of a tool as part of a file's name: letters, digits, `_` and `-`.
pub(super) fn file_safe(tool: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let safe: String = tool
        .chars()
        .take(MAX_TOOL)
        .map(|c| if is_safe(c) { c } else { '_' })
        .collect();
    match safe.is_empty() {
        true => "tool".to_owned(),
        false => safe,
    }
}

/// The virtual path of the file for an output. `digest` is hex.
pub(super) fn path(folder: &str, tool: &str, digest: &str) -> String {
    let kind = match LOGS.contains(&tool) {
        true => "log",
        false => "txt",
    };
    let digest = first_chars(digest, DIGITS);
    format!("{OUTPUTS}/{folder}/{}-{digest}.{kind}", file_safe(tool))
}

/// An output that goes to a file.
pub(super) struct Reference<'a> {
    pub tool: &'a str,
    pub path: &'a str,
    pub text: &'a str,
    /// Characters of the text.
    pub count: usize,
    pub preview: Ends,
}

impl Reference<'_> {
    /// Most characters of what stands for an output.
    pub(super) fn chars(preview: Ends) -> usize {
        let ends = preview.head.saturating_add(preview.tail);
        ends.saturating_add(AROUND + synopsis::MAX_CHARS)
    }

    /// What stands for the output, of at most `max` characters; `None` when these are not enough to say where it is.
    pub(super) fn told(&self, max: usize) -> Option<String> {
        let opening = opening(self.tool);
        let mut out = format!(
            "{opening}{} characters long and stands in the file {}. Read there what you need of it.]",
            self.count, self.path
        );
        let max = max.min(Reference::chars(self.preview));
        // As if the number were a long one: whether there is room does not depend on the text.
        let least = out.chars().count() + LONGEST_COUNT.saturating_sub(digits(self.count));
        let mut room = max.checked_sub(least)?;
        let synopsis = synopsis(self.text);
        let mut add = |text: &str| {
            room = room.saturating_sub(text.chars().count());
            out.push_str(text);
            room
        };
        let lines = synopsis.lines.chars().count() + 1;
        if lines <= max && add("") >= lines {
            add("\n");
            add(&synopsis.lines);
        }
        let room = add("");
        if matches!(synopsis.kind, Kind::Empty | Kind::Binary) {
            return Some(out);
        }
        let labels = BEGINNING.len() + END.len();
        let Some(room) = room.checked_sub(labels) else {
            return Some(out);
        };
        let head = self.preview.head.min(room);
        let ends = Ends {
            head,
            tail: self.preview.tail.min(room - head),
        };
        let (head, tail) = both_ends(self.text, self.count, ends);
        for (label, end) in [(BEGINNING, head), (END, tail)] {
            if !end.is_empty() {
                out.push_str(label);
                out.push_str(end);
            }
        }
        Some(out)
    }
}

fn digits(count: usize) -> usize {
    count.to_string().len()
}

/// How what stands for an output begins.
fn opening(tool: &str) -> String {
    format!("[The output of {} is ", file_safe(tool))
}

/// Whether a text has the form of what stands for an output of `tool`.
pub(super) fn is_reference(text: &str, tool: &str, folder: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let file = format!("{OUTPUTS}/{folder}/{}-", file_safe(tool));
    line.starts_with(&opening(tool)) && line.contains(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, preview: Ends, max: usize) -> Option<String> {
        let path = path(
            ".tool-results",
            "web search!",
            &"0123456789abcdef".repeat(4),
        );
        Reference {
            tool: "web search!",
            path: &path,
            text,
            count: text.chars().count(),
            preview,
        }
        .told(max)
    }

    #[test]
    fn tob_2_a_file_is_named_after_its_tool() {
        let digest = "0123456789abcdef";
        for (tool, name) in [
            ("bash", "bash-0123456789ab.log"),
            ("bash_tool", "bash_tool-0123456789ab.log"),
            ("web_fetch", "web_fetch-0123456789ab.log"),
            ("../x y", "___x_y-0123456789ab.txt"),
            ("", "tool-0123456789ab.txt"),
            ("größe", "gr__e-0123456789ab.txt"),
        ] {
            let expected = format!("/mnt/user-data/outputs/.tool-results/{name}");
            assert_eq!(path(".tool-results", tool, digest), expected);
        }
        let long = path("s", &"x".repeat(500), digest);
        assert_eq!(
            long.len(),
            OUTPUTS.len() + "/s/-.txt".len() + MAX_TOOL + DIGITS
        );
    }

    #[test]
    fn it_says_where_the_text_is_what_it_is_and_how_it_begins_and_ends() {
        let text = (0..2_000).map(|n| format!("row {n}\n")).collect::<String>();
        let preview = Ends { head: 30, tail: 20 };
        let told = told(&text, preview, usize::MAX).expect("there is room");
        assert_eq!(
            told,
            "[The output of web_search_ is 16890 characters long and stands in the file \
             /mnt/user-data/outputs/.tool-results/web_search_-0123456789ab.txt. Read there what you need of it.]\n\
             Text, 2000 lines, the longest of 8 bytes.\n\n\
             Its beginning:\nrow 0\nrow 1\nrow 2\nrow 3\nrow 4\n\n\n\
             Its end:\nrow 1998\nrow 1999\n"
        );
        assert!(is_reference(&told, "web search!", ".tool-results"));
        assert!(!is_reference(&told, "other", ".tool-results"));
        assert!(!is_reference(&text, "web search!", ".tool-results"));
    }

    #[test]
    fn it_is_within_its_bound_or_not_at_all() {
        let text = "好 word\n".repeat(3_000);
        let preview = Ends {
            head: 2_000,
            tail: 1_000,
        };
        for max in 0..5_000 {
            match told(&text, preview, max) {
                Some(told) => {
                    assert!(told.chars().count() <= max.min(Reference::chars(preview)));
                    assert!(told.contains("-0123456789ab.txt"));
                }
                None => assert!(max < 300, "{max}"),
            }
        }
    }

    #[test]
    fn of_binaries_and_white_space_no_ends_are_shown() {
        let preview = Ends {
            head: 100,
            tail: 100,
        };
        for text in [" \n".repeat(9_000), "\0\u{1}x".repeat(9_000)] {
            let told = told(&text, preview, usize::MAX).expect("there is room");
            assert!(!told.contains("Its beginning"), "{told}");
            assert!(told.chars().all(|c| c == '\n' || !c.is_control()));
        }
    }
}

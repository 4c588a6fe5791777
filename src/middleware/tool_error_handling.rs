//! Makes an error result that the model can act on of a tool's failure, and notes on every result what it amounts to.
//!
//! A failure ([`ToolOutcome::Failed`], panics of a tool included) becomes an answer of status error that names the tool and
//! says how to go on. Answers are stamped with their class (see `tool_result_class`); reading a SKILL.md
//! leaves a note that the file is in context. Answers that write to the state pass as they are (MW-TEH-5).
//!
//! Source: DeerFlow `ToolErrorHandlingMiddleware`, MW-TEH. A failure has no exception class here, so its text names none.

use serde_json::{Map, Value, json};

use super::message_marks::first_chars;
use super::tool_result_class::{ERROR_PREFIX, TOOL_META, of_answer, of_failure, stamp};
use super::{Hooks, Middleware, NextTool};
use crate::ports::BoxFuture;
use crate::ports::tool::{ToolAnswer, ToolInvocation, ToolOutcome};
use crate::protocol::message::{ToolStatus, UNKNOWN_TOOL};
use crate::state::python::collapse_whitespace;
use crate::subagents::result::failed;
use crate::subagents::{TASK_TOOL, status};

/// Where the note of a skill that was read stands in the message of the result (MW-TEH-4).
pub const SKILL_CONTEXT_ENTRY: &str = "skill_context_entry";

/// The file that a skill is.
const SKILL_FILE: &str = "SKILL.md";
/// Most characters of what a failure says (MW-TEH-2).
const MAX_DETAIL: usize = 500;
/// Most characters of a skill's description (MW-TEH-4).
const MAX_DESCRIPTION: usize = 500;

const HINT: &str = "Go on with what you have, or use another tool.";

/// Reads the description out of the text of a SKILL.md; `None` when it has no sound front matter.
pub type SkillDescription = fn(&str) -> Option<String>;

/// Settings, gathered from the sections `summarization` and `skills`.
#[derive(Clone, Debug)]
pub struct ToolErrorHandlingConfig {
    /// `summarization.skill_file_read_tool_names`: tools that read files.
    pub skill_file_read_tool_names: Vec<String>,
    /// `skills.container_path`: where the agent sees the skills.
    pub skills_container_path: String,
}

impl Default for ToolErrorHandlingConfig {
    fn default() -> Self {
        ToolErrorHandlingConfig {
            skill_file_read_tool_names: ["read_file", "read", "view", "cat"]
                .map(str::to_owned)
                .into(),
            skills_container_path: "/mnt/skills".to_owned(),
        }
    }
}

/// The middleware.
#[derive(Clone, Debug)]
pub struct ToolErrorHandling {
    config: ToolErrorHandlingConfig,
    description: SkillDescription,
}

impl ToolErrorHandling {
    /// The middleware. `description` is the parser of skills.
    pub fn new(config: ToolErrorHandlingConfig, description: SkillDescription) -> Self {
        ToolErrorHandling {
            config,
            description,
        }
    }

    /// Adds to an answer what is to be known of it.
    fn note(&self, tool: &str, skill_file: Option<String>, answer: &mut ToolAnswer) {
        let is_command = answer.update.is_some() || answer.end_run;
        if is_command {
            return;
        }
        if let Some(path) = skill_file
            && answer.status == ToolStatus::Success
            && let Some(text) = answer.content.as_str()
            && !text.starts_with(ERROR_PREFIX)
        {
            let described = (self.description)(text).unwrap_or_default();
            let description = collapse_whitespace(&described, MAX_DESCRIPTION);
            let entry = json!({"path": path, "description": description});
            answer
                .additional_kwargs
                .insert(SKILL_CONTEXT_ENTRY.into(), entry);
        }
        let (status, content) = (answer.status, &answer.content);
        stamp(&mut answer.additional_kwargs, || {
            of_answer(tool, status, content)
        });
    }
}

impl Middleware for ToolErrorHandling {
    fn name(&self) -> &str {
        "tool_error_handling"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            wrap_tool_call: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        let mut names = self.config.skill_file_read_tool_names.clone();
        names.sort();
        Map::from_iter([
            ("skill_file_read_tool_names".to_owned(), names.into()),
            (
                "skills_root".to_owned(),
                self.config
                    .skills_container_path
                    .trim_end_matches('/')
                    .into(),
            ),
        ])
    }

    fn wrap_tool_call<'a>(
        &'a self,
        invocation: ToolInvocation,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        let skill_file = skill_file(
            &self.config.skill_file_read_tool_names,
            &self.config.skills_container_path,
            &invocation.name,
            &invocation.args,
        );
        let tool = invocation.name.clone();
        let call = next.run(invocation);
        Box::pin(async move {
            ToolOutcome::Answer(match call.await {
                ToolOutcome::Failed(reason) => failure(&tool, &reason),
                ToolOutcome::Answer(mut answer) => {
                    self.note(&tool, skill_file, &mut answer);
                    answer
                }
            })
        })
    }
}

/// The result of a call that failed (MW-TEH-1 to 3).
fn failure(tool: &str, reason: &str) -> ToolAnswer {
    let name = match tool.trim() {
        "" => UNKNOWN_TOOL,
        name => name,
    };
    let detail = match reason.trim() {
        "" => "it gave no reason".to_owned(),
        detail if first_chars(detail, MAX_DETAIL).len() < detail.len() => {
            format!("{}...", first_chars(detail, MAX_DETAIL - 3))
        }
        detail => detail.to_owned(),
    };
    let stop = match detail.ends_with(['.', '!', '?']) {
        true => "",
        false => ".",
    };
    let mut kwargs = Map::new();
    let content = if name == TASK_TOOL {
        let end = failed(detail.as_str());
        kwargs = status::additional_kwargs(&end);
        format!("{}{stop} {HINT}", status::text(&end))
    } else {
        format!("{ERROR_PREFIX} the tool {name} failed: {detail}{stop} {HINT}")
    };
    // The failure is better known here than to whoever stamped before.
    kwargs.insert(TOOL_META.into(), of_failure(&detail));
    ToolAnswer {
        content: content.into(),
        status: ToolStatus::Error,
        additional_kwargs: kwargs,
        ..ToolAnswer::default()
    }
}

/// The file that a call of `tool` reads, if `readers` has the tool and the file is a SKILL.md below `root`; its path with `.` and
/// `..` resolved (MW-TEH-4, MW-DUR-7).
pub(super) fn skill_file(
    readers: &[String],
    root: &str,
    tool: &str,
    args: &Map<String, Value>,
) -> Option<String> {
    if !readers.iter().any(|reader| reader == tool) {
        return None;
    }
    let paths = ["path", "file_path", "filepath"].into_iter();
    let mut paths = paths.filter_map(|name| args.get(name)?.as_str());
    let path = paths.find(|path| !path.trim().is_empty())?;
    skill_path(path.trim(), root)
}

/// The path with its `.` and `..` resolved, if it is that of a SKILL.md below `root`.
fn skill_path(path: &str, root: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.strip_prefix('/')?.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = format!("/{}", parts.join("/"));
    let below = path.strip_prefix(root.trim_end_matches('/'))?;
    (below.starts_with('/') && parts.last() == Some(&SKILL_FILE)).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kwargs(answer: &ToolAnswer) -> &Map<String, Value> {
        &answer.additional_kwargs
    }

    #[test]
    fn teh_2_a_failure_names_tool_reason_and_a_way_on() {
        let answer = failure("fetch", " connection refused ");
        assert_eq!(
            answer.content,
            format!("Error: the tool fetch failed: connection refused. {HINT}")
        );
        assert_eq!(answer.status, ToolStatus::Error);
        assert_eq!(kwargs(&answer)[TOOL_META]["error_type"], "transient");
        assert_eq!(kwargs(&answer)[TOOL_META]["source"], "exception");
        let long = failure(" ", &"ä".repeat(501));
        let text = long.content.as_str().unwrap_or_default();
        assert!(text.starts_with(&format!(
            "Error: the tool unknown_tool failed: {}...",
            "ä".repeat(497)
        )));
        assert!(!text.contains(&"ä".repeat(498)));
        let fits = failure("f", &"ä".repeat(500));
        assert!(
            fits.content
                .as_str()
                .unwrap_or_default()
                .contains(&"ä".repeat(500))
        );
    }

    #[test]
    fn teh_3_a_failed_delegation_says_so_to_the_ledger() {
        let answer = failure("task", "no such subagent!");
        assert_eq!(
            answer.content,
            format!("Task failed. Error: no such subagent! {HINT}")
        );
        assert_eq!(kwargs(&answer)["subagent_status"], "failed");
        assert_eq!(kwargs(&answer)["subagent_error"], "no such subagent!");
    }

    #[test]
    fn teh_4_only_skill_files_below_the_root_count() {
        let root = "/mnt/skills/";
        for (path, found) in [
            (
                "/mnt/skills/public/a/SKILL.md",
                Some("/mnt/skills/public/a/SKILL.md"),
            ),
            (
                "/mnt//skills/./x/../a/SKILL.md",
                Some("/mnt/skills/a/SKILL.md"),
            ),
            ("/mnt/skills/../other/SKILL.md", None),
            ("/mnt/skillsX/a/SKILL.md", None),
            ("/mnt/skills/a/skill.md", None),
            ("/mnt/skills/a/SKILL.md.txt", None),
            ("mnt/skills/a/SKILL.md", None),
            (
                "/../../mnt/skills/a/SKILL.md",
                Some("/mnt/skills/a/SKILL.md"),
            ),
        ] {
            assert_eq!(skill_path(path, root).as_deref(), found, "{path}");
        }
    }

    #[test]
    fn teh_4_and_5_reading_a_skill_leaves_a_note_unless_it_failed_or_writes() {
        let part = ToolErrorHandling::new(ToolErrorHandlingConfig::default(), |text| {
            Some(format!(" of\n {text} {}", "x".repeat(600)))
        });
        let file = || Some("/mnt/skills/a/SKILL.md".to_owned());
        let noted = |mut answer: ToolAnswer| {
            part.note("read_file", file(), &mut answer);
            answer.additional_kwargs
        };
        let answer = |content: &str| ToolAnswer {
            content: content.into(),
            ..ToolAnswer::default()
        };
        let entry = noted(answer("text"))[SKILL_CONTEXT_ENTRY].clone();
        assert_eq!(entry["path"], "/mnt/skills/a/SKILL.md");
        let described = entry["description"].as_str().unwrap_or_default();
        assert!(described.starts_with("of text x"));
        assert_eq!(described.chars().count(), 500);
        assert!(!noted(answer("Error: x")).contains_key(SKILL_CONTEXT_ENTRY));
        let failed = ToolAnswer {
            status: ToolStatus::Error,
            ..answer("x")
        };
        assert!(!noted(failed).contains_key(SKILL_CONTEXT_ENTRY));
        let ends = ToolAnswer {
            end_run: true,
            ..answer("x")
        };
        assert!(noted(ends).is_empty());
        let writes = ToolAnswer {
            update: Some(crate::state::update::StateUpdate::default()),
            ..answer("x")
        };
        assert!(noted(writes).is_empty());
        let unreadable = ToolErrorHandling::new(ToolErrorHandlingConfig::default(), |_| None);
        let mut blank = answer("x");
        unreadable.note("read_file", file(), &mut blank);
        assert_eq!(kwargs(&blank)[SKILL_CONTEXT_ENTRY]["description"], "");
    }
}

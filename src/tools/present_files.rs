//! `present_files`: the model shows files of its outputs folder to the user.

use std::sync::Arc;

use serde_json::{Value, json};

use super::BuiltinInputs;
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::{DynTool, Tool, ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use crate::state::channels::Channel;
use crate::state::update::StateUpdate;

/// Name of the tool.
pub const NAME: &str = "present_files";
/// The one folder whose files can be presented, as the agent sees it.
const OUTPUTS: &str = "/mnt/user-data/outputs";
/// Longest path, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Always there.
pub(super) fn build(inputs: &BuiltinInputs) -> Option<Arc<dyn DynTool>> {
    Some(Arc::new(PresentFiles {
        files: inputs.thread_files.clone(),
        spec: ToolSpec {
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "filepaths": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                        "description": "Full paths, each below /mnt/user-data/outputs.",
                    },
                },
                "required": ["filepaths"],
            })
            .into(),
        },
    }))
}

const DESCRIPTION: &str = "\
Show files to the user, who can then open and download them. Call it for what you made for the user, once the file is in \
/mnt/user-data/outputs; several files can go in one call. Not for files that only you read, or that lie elsewhere.";

struct PresentFiles {
    spec: ToolSpec,
    /// Where they must be, if that can be looked up.
    files: Option<Arc<dyn ThreadFiles>>,
}

impl PresentFiles {
    async fn presented(&self, invocation: &ToolInvocation) -> Result<Vec<String>, String> {
        let paths = paths(invocation.args.get("filepaths"))?;
        if let Some(files) = &self.files {
            for path in &paths {
                let thread = invocation.run.thread_id.to_string();
                let found = files.read(thread, path.clone(), 0).await;
                if found.map_err(|error| error.message)?.is_none() {
                    let shown: String = path.chars().take(200).collect();
                    return Err(format!(
                        "{shown:?} cannot be presented: there is no such file"
                    ));
                }
            }
        }
        Ok(paths)
    }
}

impl Tool for PresentFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        match self.presented(&invocation).await {
            Ok(paths) => {
                let content = format!("The user can see: {}", paths.join(", "));
                ToolOutcome::Answer(ToolAnswer {
                    content: content.into(),
                    update: Some(StateUpdate::set(Channel::Artifacts, paths)),
                    ..ToolAnswer::default()
                })
            }
            Err(fault) => ToolOutcome::Failed(fault),
        }
    }
}

/// The paths in their plain form; one bad path is a fault of the call (UPL-5).
fn paths(raw: Option<&Value>) -> Result<Vec<String>, String> {
    let items = raw
        .and_then(Value::as_array)
        .filter(|items| !items.is_empty());
    let items = items.ok_or("filepaths must be a list of one or more paths")?;
    items
        .iter()
        .map(|item| {
            item.as_str()
                .ok_or_else(|| "a path must be text".to_owned())
        })
        .map(|path| path.and_then(plain))
        .collect()
}

/// The path without empty and `.` parts.
///
/// It is for the host to open, so whatever could lead it out of the folder is refused and not resolved: `..`, and the
/// backslash that separates folders on some systems.
fn plain(path: &str) -> Result<String, String> {
    let shown: String = path.chars().take(200).collect();
    let refused = |why: &str| Err(format!("{shown:?} cannot be presented: {why}"));
    if path.len() > MAX_PATH_BYTES {
        return refused("the path is too long");
    }
    if path.contains(|c: char| c.is_control() || c == '\\') {
        return refused("it has characters that no path here has");
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return refused("it has a part \"..\""),
            part => parts.push(part),
        }
    }
    let plain = format!("/{}", parts.join("/"));
    match plain.strip_prefix(OUTPUTS) {
        Some(below) if below.starts_with('/') => Ok(plain),
        _ => refused("only files below /mnt/user-data/outputs can be"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upl_5_paths_below_outputs_are_taken_in_their_plain_form() {
        for (path, expected) in [
            ("/mnt/user-data/outputs/a.md", "/mnt/user-data/outputs/a.md"),
            (
                "//mnt/./user-data//outputs/x/./y z.md",
                "/mnt/user-data/outputs/x/y z.md",
            ),
            ("mnt/user-data/outputs/a", "/mnt/user-data/outputs/a"),
            (
                "/mnt/user-data/outputs/..a/...",
                "/mnt/user-data/outputs/..a/...",
            ),
            ("/mnt/user-data/outputs/dir/", "/mnt/user-data/outputs/dir"),
            (
                "/mnt/user-data/outputs/レポート",
                "/mnt/user-data/outputs/レポート",
            ),
        ] {
            assert_eq!(plain(path).as_deref(), Ok(expected), "{path}");
        }
    }

    #[test]
    fn upl_5_what_lies_elsewhere_or_could_lead_there_is_refused() {
        let long = format!("/mnt/user-data/outputs/{}", "x".repeat(MAX_PATH_BYTES));
        for path in [
            "",
            "/",
            "a.md",
            "/mnt/user-data/outputs",
            "/mnt/user-data/outputs/",
            "/mnt/user-data/outputs/.",
            "/mnt/user-data/outputs2/a",
            "/mnt/user-data/workspace/a",
            "/mnt/user-data/outputs/../workspace/a",
            "/mnt/user-data/outputs/a/../../b",
            "/mnt/user-data/x/../outputs/a",
            "/mnt/user-data/outputs/a\\..\\..\\b",
            "/mnt/user-data/outputs/a\0",
            "/mnt/user-data/outputs/a\nb",
            "/etc/passwd",
            "~/outputs/a",
            "file:///mnt/user-data/outputs/a",
            long.as_str(),
        ] {
            let fault = plain(path).expect_err(path);
            assert!(fault.len() < 1000, "{}", fault.len());
        }
    }

    #[test]
    fn upl_5_one_bad_path_fails_the_whole_call() {
        let good = "/mnt/user-data/outputs/a";
        assert_eq!(
            paths(Some(&json!([good, good]))),
            Ok(vec![good.into(), good.into()])
        );
        for bad in [
            json!(null),
            json!([]),
            json!(good),
            json!([good, 7]),
            json!([good, "/etc/x"]),
        ] {
            assert!(paths(Some(&bad)).is_err(), "{bad}");
        }
        assert!(paths(None).is_err());
    }
}

//! `view_image`: the model looks at an image among the files of the thread. The tool notes which, in the channel
//! `viewed_images`; the next request shows it, and no checkpoint holds it (UPL-6).

use std::sync::Arc;

use serde_json::{Value, json};

use super::BuiltinInputs;
use crate::ports::thread_files::{ThreadFiles, ThreadPaths};
use crate::ports::tool::{DynTool, Tool, ToolAnswer, ToolInvocation, ToolOutcome, ToolSpec};
use crate::state::channels::Channel;
use crate::state::update::StateUpdate;

/// Name of the tool.
pub const NAME: &str = "view_image";
/// Largest image, in bytes (MW-IMG-1).
pub const MAX_IMAGE_BYTES: u64 = 20 << 20;

/// Extensions of images, with what they promise to hold.
const FORMATS: [(&str, &str); 5] = [
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("png", "image/png"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
];

const DESCRIPTION: &str = "\
Look at an image: you see it with the next message. For files below /mnt/user-data/workspace, /mnt/user-data/uploads and \
/mnt/user-data/outputs that end in .jpg, .jpeg, .png, .webp or .gif, up to 20 MiB. One image a call. To show a file to the \
user there is present_files.";

/// There where the model sees and the files of threads are kept here.
pub(super) fn build(inputs: &BuiltinInputs) -> Option<Arc<dyn DynTool>> {
    let files = inputs.thread_files.clone().filter(|_| inputs.vision)?;
    Some(Arc::new(ViewImage {
        files,
        spec: ToolSpec {
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "image_path": {
                        "type": "string",
                        "description": "Full path of the image, below /mnt/user-data.",
                    },
                },
                "required": ["image_path"],
            })
            .into(),
        },
    }))
}

struct ViewImage {
    spec: ToolSpec,
    files: Arc<dyn ThreadFiles>,
}

impl ViewImage {
    async fn look(&self, thread: &str, path: &str) -> Result<Value, String> {
        let shown: String = path.chars().take(200).collect();
        let extension = path.rsplit_once('.').map(|(_, it)| it.to_ascii_lowercase());
        let promised = FORMATS
            .iter()
            .find(|(known, _)| Some(*known) == extension.as_deref())
            .map(|(_, mime)| *mime)
            .ok_or_else(|| {
                format!("{shown:?} is no image by its name; it must end in .jpg, .jpeg, .png, .webp or .gif")
            })?;
        let read = self
            .files
            .read(thread.to_owned(), path.to_owned(), MAX_HEAD);
        let found = read.await.map_err(|error| error.message)?;
        let found = found.ok_or_else(|| format!("there is no file {shown:?}"))?;
        if found.size > MAX_IMAGE_BYTES {
            return Err(format!(
                "{shown:?} has {} bytes, and an image may have {MAX_IMAGE_BYTES}",
                found.size
            ));
        }
        match mime_of(&found.head) {
            Some(mime) if mime == promised => {}
            Some(mime) => {
                return Err(format!(
                    "{shown:?} holds {mime}, and its name says {promised}"
                ));
            }
            None => return Err(format!("{shown:?} does not hold an image")),
        }
        let paths = self.files.paths(thread).map_err(|error| error.message)?;
        let mut image = json!({"mime_type": promised, "size": found.size});
        if let Some(actual) = actual_path(&paths, path) {
            image["actual_path"] = actual.into();
        }
        Ok(json!({ path: image }))
    }
}

/// How much of a file tells what it holds.
const MAX_HEAD: u64 = 16;

impl Tool for ViewImage {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let Some(path) = invocation.args.get("image_path").and_then(Value::as_str) else {
            return ToolOutcome::Failed("image_path must be text".to_owned());
        };
        match self.look(&invocation.run.thread_id, path).await {
            Ok(viewed) => ToolOutcome::Answer(ToolAnswer {
                content: "You see the image with the next message.".into(),
                update: Some(StateUpdate::set(Channel::ViewedImages, viewed)),
                ..ToolAnswer::default()
            }),
            Err(fault) => ToolOutcome::Failed(fault),
        }
    }
}

/// What a file that begins like this holds; `None` when it is no image that models take.
pub fn mime_of(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        Some("image/gif")
    } else {
        None
    }
}

/// Where a file stands on this machine.
fn actual_path(paths: &ThreadPaths, path: &str) -> Option<String> {
    let below = path.strip_prefix("/mnt/user-data/")?;
    let roots = [
        ("workspace", &paths.workspace),
        ("uploads", &paths.uploads),
        ("outputs", &paths.outputs),
    ];
    roots.into_iter().find_map(|(root, at)| {
        let rest = below.strip_prefix(root)?.strip_prefix('/')?;
        Some(format!("{at}/{rest}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::host::RunFacts;
    use crate::tools::testing::files::FakeFiles;
    use crate::tools::testing::{call, ready, run_with};

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest of it";

    fn tool(files: Arc<FakeFiles>) -> Arc<dyn DynTool> {
        let inputs = BuiltinInputs {
            thread_files: Some(files),
            vision: true,
            ..BuiltinInputs::default()
        };
        build(&inputs).expect("a tool")
    }

    fn called(files: &Arc<FakeFiles>, path: &str) -> Result<StateUpdate, String> {
        let mut invocation = call(NAME, json!({"image_path": path}));
        invocation.run = run_with(RunFacts {
            thread_id: "t1".into(),
            ..RunFacts::default()
        });
        match ready(tool(files.clone()).call_boxed(invocation)) {
            ToolOutcome::Answer(answer) => Ok(answer.update.expect("a write")),
            ToolOutcome::Failed(fault) => Err(fault),
        }
    }

    #[test]
    fn upl_6_an_image_is_noted_and_not_stored() {
        let files = Arc::new(FakeFiles::default());
        files.put("/mnt/user-data/uploads/a.PNG", PNG.to_vec());
        let update = called(&files, "/mnt/user-data/uploads/a.PNG").expect("an image");
        let facts = json!({
            "mime_type": "image/png", "size": PNG.len(), "actual_path": "/h/t1/uploads/a.PNG",
        });
        let noted = json!({"/mnt/user-data/uploads/a.PNG": facts});
        assert_eq!(update, StateUpdate::set(Channel::ViewedImages, noted));
    }

    #[test]
    fn upl_6_name_and_content_must_agree_on_an_image_of_a_size() {
        let files = Arc::new(FakeFiles::default());
        let big = [PNG, &vec![0; MAX_IMAGE_BYTES as usize]].concat();
        for (name, bytes) in [
            ("a.jpg", PNG.to_vec()),
            ("a.png", b"<svg/>".to_vec()),
            ("e.png", Vec::new()),
            ("a.svg", PNG.to_vec()),
            ("png", PNG.to_vec()),
            ("big.png", big),
            ("w.webp", b"RIFF1234WAVE".to_vec()),
        ] {
            let path = format!("/mnt/user-data/uploads/{name}");
            files.put(&path, bytes);
            let fault = called(&files, &path).expect_err(name);
            assert!(fault.len() < 500, "{fault}");
        }
        assert!(called(&files, "/mnt/user-data/uploads/none.png").is_err());
        let args = call(NAME, json!({"image_path": 7}));
        let outcome = ready(tool(files).call_boxed(args));
        assert!(matches!(outcome, ToolOutcome::Failed(_)));
    }

    #[test]
    fn tool_2_it_is_there_for_models_that_see() {
        let files: Option<Arc<dyn ThreadFiles>> = Some(Arc::new(FakeFiles::default()));
        for (vision, thread_files, there) in [
            (true, files.clone(), true),
            (false, files, false),
            (true, None, false),
        ] {
            let inputs = BuiltinInputs {
                thread_files,
                vision,
                ..BuiltinInputs::default()
            };
            assert_eq!(build(&inputs).is_some(), there);
        }
    }
}

//! Tells the model of the files that came with the newest message: their names, sizes, paths, and what is in them, in a block
//! before the text of the message. What the user wrote is kept beside it, so that it is framed and the block is not.
//!
//! Which files there are the host says in the message, under `additional_kwargs.files`; where files of threads are kept, those
//! that are not there do not count. Files of earlier messages are not told of again.
//!
//! Source: DeerFlow `UploadsMiddleware`, MW-UPL, UPL-3. A name counts as UPL-1 has it. A run that begins with a message which
//! another run has taken up before gives it a fresh block, not a second one.

mod block;
mod outline;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use block::{CLOSE, OPEN, extension};
use outline::Outline;

use super::input_sanitization::ORIGINAL_USER_CONTENT;
use super::message_marks::content_lines;
use super::{Effect, Hook, HookContext, HookOutput, Hooks, Middleware, RunFacts, Work};
use crate::ports::thread_files::ThreadFiles;
use crate::ports::tool::DynTool;
use crate::protocol::error::Error;
use crate::protocol::message::{Fields, Kind, Message};
use crate::protocol::warning::Warning;
use crate::state::View;
use crate::state::channels::Channel;
use crate::state::update::{StateUpdate, Write};

/// Where agents see what was uploaded.
const UPLOADS: &str = "/mnt/user-data/uploads";
/// Most entries of a message that are looked at; a gateway lets ten through.
const MAX_ENTRIES: usize = 1000;
/// How much of a document is read for its outline, in bytes.
const MAX_OUTLINED_BYTES: u64 = 1 << 20;
/// Longest name, in bytes (UPL-1).
const MAX_NAME_BYTES: usize = 255;
/// What has a copy in Markdown beside it once it is converted.
const CONVERTIBLE: [&str; 7] = [".pdf", ".ppt", ".pptx", ".xls", ".xlsx", ".doc", ".docx"];

/// A file that came with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Upload {
    name: String,
    /// In bytes, as the message says.
    size: u64,
    /// The path of its copy in Markdown.
    markdown_path: Option<String>,
    outline: Outline,
}

impl Upload {
    fn path(&self) -> String {
        format!("{UPLOADS}/{}", self.name)
    }

    /// The entry of the channel `uploaded_files`.
    fn entry(&self) -> Value {
        let mut entry = json!({
            "filename": self.name,
            "size": self.size,
            "path": self.path(),
            "extension": extension(&self.name),
        });
        if let Some(path) = &self.markdown_path {
            entry["markdown_virtual_path"] = path.as_str().into();
        }
        entry
    }
}

/// Which of the tools that the block may speak of there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadTools {
    /// `read_file`.
    pub read_file: bool,
    /// `grep`.
    pub grep: bool,
    /// `glob`.
    pub glob: bool,
}

impl UploadTools {
    /// Those among `tools`.
    pub fn of(tools: &[Arc<dyn DynTool>]) -> Self {
        let has = |name: &str| tools.iter().any(|tool| tool.spec().name == name);
        UploadTools {
            read_file: has("read_file"),
            grep: has("grep"),
            glob: has("glob"),
        }
    }
}

/// The middleware.
pub struct Uploads {
    files: Option<Arc<dyn ThreadFiles>>,
    tools: UploadTools,
}

impl Uploads {
    /// With the `files` of threads, if they are kept here, and the tools of the agent.
    pub fn new(files: Option<Arc<dyn ThreadFiles>>, tools: UploadTools) -> Self {
        Uploads { files, tools }
    }

    fn before_agent(&self, context: &HookContext<'_>) -> HookOutput {
        let Some((last, uploads, ignored)) = newest(context.state) else {
            return clear(context.state);
        };
        let given = uploads.len() + ignored;
        let uploads = match (&self.files, context.performed()) {
            (Some(files), None) if !uploads.is_empty() => {
                return HookOutput::Await(look(files.clone(), uploads));
            }
            (Some(_), Some(Ok(found))) => found_among(uploads, found),
            // Nobody could look; what cannot be reached is not spoken of.
            (Some(_), Some(Err(_))) => Vec::new(),
            _ => uploads,
        };
        if uploads.len() < given {
            warn(context.run, given - uploads.len(), given);
        }
        if uploads.is_empty() {
            return clear(context.state);
        }
        let block = block::render(&uploads, self.tools);
        let message = with_block(last, &block, context.run);
        let entries: Vec<Value> = uploads.iter().map(Upload::entry).collect();
        HookOutput::Update(
            StateUpdate::messages(vec![message])
                .and(Channel::UploadedFiles, Write::Value(entries.into())),
        )
    }
}

fn warn(run: &RunFacts, ignored: usize, given: usize) {
    run.signals.warn(
        Warning::UploadIgnored,
        format!("{ignored} of {given} files of a message are not there or have no usable name"),
    );
}

/// Says that the newest message brings no files, unless the thread says so already (MW-UPL-1).
fn clear(state: View<'_>) -> HookOutput {
    let known = state
        .channel(Channel::UploadedFiles)
        .and_then(Value::as_array);
    match known {
        Some(known) if known.is_empty() => HookOutput::Continue,
        _ => HookOutput::Update(StateUpdate::set(
            Channel::UploadedFiles,
            Vec::<Value>::new(),
        )),
    }
}

/// The newest message with the files that it names, and how many entries name none; `None` when it brings no files.
fn newest(state: View<'_>) -> Option<(&Message, Vec<Upload>, usize)> {
    let last = state.last().filter(|last| last.kind() == Kind::Human)?;
    let given = last.fields().additional_kwargs.get("files")?.as_array()?;
    let uploads: Vec<Upload> = given.iter().take(MAX_ENTRIES).filter_map(upload).collect();
    let ignored = given.len() - uploads.len();
    Some((last, uploads, ignored))
}

/// The file that an entry names (MW-UPL-1).
fn upload(entry: &Value) -> Option<Upload> {
    let name = entry.get("filename")?.as_str()?;
    is_file_name(name).then(|| Upload {
        name: name.to_owned(),
        size: size(entry.get("size")),
        ..Upload::default()
    })
}

/// A size in bytes from whatever a client sent; 0 for what is none.
fn size(value: Option<&Value>) -> u64 {
    // Where every reader of JSON still has it exactly.
    const MOST: u64 = (1 << 53) - 1;
    let size = match value {
        Some(Value::Number(number)) => match (number.as_u64(), number.as_f64()) {
            (Some(size), _) => size,
            // A fraction or a negative number; the conversion stops at the bounds.
            (None, Some(size)) => size as u64,
            (None, None) => 0,
        },
        Some(Value::String(text)) => text.trim().parse().unwrap_or(0),
        Some(Value::Bool(true)) => 1,
        _ => 0,
    };
    size.min(MOST)
}

/// Whether a name is one of a file alone: no path, nothing that could break a line of the block, no upload in the making
/// (UPL-1).
fn is_file_name(name: &str) -> bool {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let is_path = matches!(name, "" | "." | "..") || name.contains(['/', '\\']);
    let is_staging = name.starts_with(".upload-") && name.ends_with(".part");
    let is_refused = is_path || is_staging || name.contains(breaks);
    !is_refused && name.len() <= MAX_NAME_BYTES
}

/// Looks for the files and into those that are told of.
fn look(files: Arc<dyn ThreadFiles>, uploads: Vec<Upload>) -> Effect {
    let uploads: Arc<[Upload]> = uploads.into();
    Effect::Perform(Work::new(move |run| {
        let (files, uploads) = (files.clone(), uploads.clone());
        async move {
            let mut found = Vec::with_capacity(uploads.len());
            let mut listed = 0;
            for upload in uploads.iter() {
                let is_listed = listed < block::MAX_LISTED;
                let seen = look_at(&*files, &run.thread_id, upload, is_listed).await;
                listed += usize::from(!seen.is_null());
                found.push(seen);
            }
            Ok(Value::Array(found))
        }
    }))
}

/// What is found of one file: null when it is not there. One that cannot be read is not there either.
async fn look_at(files: &dyn ThreadFiles, thread: &str, upload: &Upload, is_listed: bool) -> Value {
    let read = async |path: String, max| {
        let read = files.read(thread.to_owned(), path, max).await;
        read.ok().flatten()
    };
    let is_markdown = extension(&upload.name).eq_ignore_ascii_case(".md");
    let max = match is_listed && is_markdown {
        true => MAX_OUTLINED_BYTES,
        false => 0,
    };
    let Some(own) = read(upload.path(), max).await else {
        return Value::Null;
    };
    let mut found = json!({});
    let mut text = is_markdown.then_some(own.head);
    if let Some(copy) = copy_of(&upload.name) {
        let path = format!("{UPLOADS}/{copy}");
        let max = if is_listed { MAX_OUTLINED_BYTES } else { 0 };
        if let Some(copy) = read(path.clone(), max).await {
            found["markdown_path"] = path.into();
            text = Some(copy.head);
        }
    }
    if let Some(text) = text.filter(|_| is_listed) {
        let Outline {
            headings,
            has_more,
            preview,
        } = outline::outline(&text);
        found["headings"] = json!(headings);
        found["has_more"] = has_more.into();
        found["preview"] = json!(preview);
    }
    found
}

/// The name of the copy in Markdown that a converted document has.
fn copy_of(name: &str) -> Option<String> {
    let extension = extension(name);
    let is_convertible = CONVERTIBLE.contains(&extension.to_lowercase().as_str());
    is_convertible.then(|| format!("{}.md", &name[..name.len() - extension.len()]))
}

/// The files that were found, with what was found of them.
fn found_among(uploads: Vec<Upload>, found: &Value) -> Vec<Upload> {
    let found = found.as_array().into_iter().flatten();
    let there = uploads.into_iter().zip(found);
    there
        .filter_map(|(upload, found)| {
            let found = found.as_object()?;
            let list = |name: &str| {
                found
                    .get(name)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
            };
            let heading =
                |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_str()?.to_owned()));
            let text = |value: &Value| value.as_str().map(str::to_owned);
            Some(Upload {
                markdown_path: found.get("markdown_path").and_then(text),
                outline: Outline {
                    headings: list("headings").filter_map(heading).collect(),
                    has_more: found.get("has_more") == Some(&Value::Bool(true)),
                    preview: list("preview").filter_map(text).collect(),
                },
                ..upload
            })
        })
        .collect()
}

/// The message with the block before what the user wrote, which is kept as it was (MW-UPL-2).
fn with_block(message: &Message, block: &str, run: &RunFacts) -> Message {
    let mut fields: Fields = message.fields().clone();
    let original = fields.additional_kwargs.get(ORIGINAL_USER_CONTENT);
    let content = match original {
        Some(Value::String(original)) => without_block(&fields.content, original),
        _ => fields.content.clone(),
    };
    if !matches!(original, Some(Value::String(_))) {
        if original.is_some() {
            run.signals.warn(
                Warning::OriginalContentReplaced,
                "original_user_content of a message is no text; the text of the message stands in",
            );
        }
        let original = content_lines(&content);
        fields
            .additional_kwargs
            .insert(ORIGINAL_USER_CONTENT.to_owned(), original.into());
    }
    fields.content = match content {
        Value::Array(blocks) => {
            let own = json!({"type": "text", "text": format!("{block}\n\n")});
            [own].into_iter().chain(blocks).collect()
        }
        Value::String(text) => format!("{block}\n\n{text}").into(),
        other => other,
    };
    Message::new(fields)
}

/// The content without the block that an earlier run put before it.
fn without_block(content: &Value, original: &str) -> Value {
    match content {
        Value::String(text) if text.starts_with(OPEN) => {
            let before = text.strip_suffix(original);
            let is_ours = before.is_some_and(|before| before.ends_with(&format!("{CLOSE}\n\n")));
            if is_ours {
                return original.into();
            }
        }
        Value::Array(blocks) => {
            let first = blocks.first().and_then(|first| first.get("text")?.as_str());
            let is_ours = |text: &str| text.starts_with(OPEN) && text.trim_end().ends_with(CLOSE);
            if first.is_some_and(is_ours) {
                return blocks[1..].to_vec().into();
            }
        }
        _ => {}
    }
    content.clone()
}

impl Middleware for Uploads {
    fn name(&self) -> &str {
        "uploads"
    }

    fn hooks(&self) -> Hooks {
        Hooks {
            before_agent: true,
            ..Hooks::default()
        }
    }

    fn policy(&self) -> Map<String, Value> {
        Map::from_iter([
            ("checks_files".to_owned(), self.files.is_some().into()),
            ("max_listed".to_owned(), block::MAX_LISTED.into()),
        ])
    }

    fn hook(&self, hook: Hook, context: &HookContext<'_>) -> Result<HookOutput, Error> {
        match hook {
            Hook::BeforeAgent => Ok(self.before_agent(context)),
            _ => Ok(HookOutput::Continue),
        }
    }
}

#[cfg(test)]
mod tests;

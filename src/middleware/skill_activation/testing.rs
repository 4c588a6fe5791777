//! Skills in memory, for the tests of what goes by them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::ports::BoxFuture;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::message::{Fields, Kind, Message};
use crate::skills::catalog::Catalog;
use crate::skills::library::{SkillAccess, SkillLibrary};
use crate::skills::parse::parse;
use crate::skills::scope::Scope;
use crate::skills::{Category, Skill};
use crate::state::channels::Channel;
use crate::state::reads::ChannelReads;

/// Skills by what tests say of them; they may change between two calls.
#[derive(Default)]
pub(crate) struct Shelf {
    skills: Mutex<Vec<Arc<Skill>>>,
    /// What is on disk by now, by path; `None` cannot be read.
    texts: Mutex<HashMap<String, Option<String>>>,
    is_gone: Mutex<bool>,
    /// How often the skills were asked for.
    pub(crate) loads: AtomicUsize,
}

impl Shelf {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Puts up a skill at `/mnt/skills/<category>/<name>/SKILL.md`, in place of one of its name.
    pub(crate) fn put(&self, category: Category, name: &str, front: &str, body: &str) {
        let text = format!("---\nname: {name}\ndescription: d\n{front}\n---\n{body}");
        let parsed = parse(text.into(), category, &path(category, name));
        let mut skills = self.skills.lock().expect("a lock");
        skills.retain(|skill| skill.name() != name);
        skills.push(Arc::new(parsed.expect("a skill").skill));
    }

    pub(crate) fn public(&self, name: &str, front: &str) {
        self.put(Category::Public, name, front, "body");
    }

    pub(crate) fn switch_off(&self, name: &str) {
        let mut skills = self.skills.lock().expect("a lock");
        for skill in skills.iter_mut().filter(|skill| skill.name() == name) {
            Arc::make_mut(skill).enabled = false;
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        let mut skills = self.skills.lock().expect("a lock");
        skills.retain(|skill| skill.name() != name);
    }

    /// What reading the file gives from now on.
    pub(crate) fn on_disk(&self, path: &str, text: Option<&str>) {
        let text = text.map(str::to_owned);
        let mut texts = self.texts.lock().expect("a lock");
        texts.insert(path.to_owned(), text);
    }

    /// Whether the skills cannot be looked up.
    pub(crate) fn gone(&self, is_gone: bool) {
        *self.is_gone.lock().expect("a lock") = is_gone;
    }

    pub(crate) fn access(self: &Arc<Self>, scope: Scope) -> SkillAccess {
        SkillAccess {
            installed: self.clone(),
            scope,
        }
    }
}

impl SkillLibrary for Shelf {
    fn load(&self) -> BoxFuture<'_, Result<Arc<Catalog>, Error>> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        let loaded = match *self.is_gone.lock().expect("a lock") {
            true => Err(Error::new(ErrorCode::Store, "the folders are gone")),
            false => {
                let skills = self.skills.lock().expect("a lock").clone();
                Ok(Arc::new(Catalog::new(skills).0))
            }
        };
        Box::pin(std::future::ready(loaded))
    }

    fn read(&self, skill: Arc<Skill>) -> BoxFuture<'_, Result<Arc<str>, Error>> {
        let texts = self.texts.lock().expect("a lock");
        let text = match texts.get(skill.location.expose()) {
            None => Ok(skill.content.clone()),
            Some(Some(text)) => Ok(text.as_str().into()),
            Some(None) => Err(Error::new(ErrorCode::Store, "it is no regular file")),
        };
        Box::pin(std::future::ready(text))
    }
}

pub(crate) fn path(category: Category, name: &str) -> String {
    format!("/mnt/skills/{}/{name}/SKILL.md", category.name())
}

/// The channel with these paths.
pub(crate) fn in_context(paths: &[&str]) -> ChannelReads {
    let entries: Vec<Value> = paths
        .iter()
        .map(|path| json!({"name": "n", "path": path, "description": "", "loaded_at": 0}))
        .collect();
    ChannelReads::from_iter([(Channel::SkillContext, entries.into())])
}

/// A message of the user.
pub(crate) fn user(id: &str, text: &str) -> Message {
    let mut fields = Fields::new(Kind::Human, text);
    fields.id = Some(id.to_owned());
    Message::new(fields)
}

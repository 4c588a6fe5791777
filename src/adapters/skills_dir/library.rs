//! The skills of one user for agents that run: read at the moment of the question.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::file::read;
use super::{SkillSettings, SkillsDir};
use crate::adapters::offload::Offload;
use crate::ports::BoxFuture;
use crate::protocol::error::{Error, ErrorCode};
use crate::protocol::trust::Source;
use crate::skills::catalog::Catalog;
use crate::skills::library::SkillLibrary;
use crate::skills::{Category, Skill};

/// The skills of one user, or of nobody.
pub struct UserSkills {
    dir: Arc<SkillsDir>,
    settings: Arc<SkillSettings>,
    user_id: Option<String>,
    offload: Offload,
}

impl UserSkills {
    /// Reads nothing yet.
    pub fn new(
        dir: Arc<SkillsDir>,
        settings: Arc<SkillSettings>,
        user_id: Option<String>,
        offload: Offload,
    ) -> Self {
        UserSkills {
            dir,
            settings,
            user_id,
            offload,
        }
    }
}

impl SkillLibrary for UserSkills {
    fn load(&self) -> BoxFuture<'_, Result<Arc<Catalog>, Error>> {
        let (dir, settings) = (self.dir.clone(), self.settings.clone());
        let user_id = self.user_id.clone();
        let load = move || Ok(dir.load(&settings, user_id.as_deref())?.catalog);
        Box::pin(self.offload.run(load))
    }

    fn read(&self, skill: Arc<Skill>) -> BoxFuture<'_, Result<Arc<str>, Error>> {
        let settings = self.settings.clone();
        let user_id = self.user_id.clone();
        let read = move || {
            let text = text_of(&settings, user_id.as_deref(), &skill);
            text.map(Arc::from)
                .map_err(|reason| Error::new(ErrorCode::Store, reason))
        };
        Box::pin(self.offload.run(read))
    }
}

fn text_of(
    settings: &SkillSettings,
    user_id: Option<&str>,
    skill: &Skill,
) -> Result<String, String> {
    let unknown = || "it stands in no folder of skills".to_owned();
    let root = root(settings, user_id, skill.category).ok_or_else(unknown)?;
    let relative = relative(settings, skill).ok_or_else(unknown)?;
    let file = root.join(relative);
    let folder = file.parent().ok_or_else(unknown)?;
    let real = |path: &Path| {
        path.canonicalize()
            .map_err(|error| format!("it cannot be read: {error}"))
    };
    let real_root = real(&root)?;
    if let (Source::User, Some(home)) = (skill.category.source(), &settings.home)
        && let Ok(own) = root.strip_prefix(home)
        && real_root != real(home)?.join(own)
    {
        return Err("a link stands on the way to the folder of its category".to_owned());
    }
    // Links to folders may stand on the way, but none that leads out.
    if !real(folder)?.starts_with(&real_root) {
        return Err("a link leads out of the folder of its category".to_owned());
    }
    read(&file).map(|(text, _)| text)
}

/// The folder of a category; see the table in the module above.
fn root(settings: &SkillSettings, user_id: Option<&str>, category: Category) -> Option<PathBuf> {
    let own = || {
        let own = settings.home.as_ref()?.join("users").join(user_id?);
        Some(own.join("skills").join(category.name()))
    };
    match category {
        Category::Public => Some(settings.path.as_ref()?.join("public")),
        Category::Legacy => Some(settings.path.as_ref()?.join("custom")),
        Category::Custom | Category::Integrations => own(),
    }
}

/// The place of a SKILL.md below the folder of its category.
fn relative(settings: &SkillSettings, skill: &Skill) -> Option<PathBuf> {
    let container = settings.container_path.trim_end_matches('/');
    let below = skill.location.expose().strip_prefix(container)?;
    let below = below
        .strip_prefix('/')?
        .strip_prefix(skill.category.name())?;
    let path = PathBuf::from(below.strip_prefix('/')?);
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    is_plain.then_some(path)
}

//! Reads all the skills of a user from disk, but for files that were read before and have not changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use super::cache::lock;
use super::file::{self, Stamp};
use super::trail::{Place, Trail};
use super::walk::{self, Found};
use super::{Loaded, SkillSettings, states};
use crate::protocol::warning::Warning;
use crate::skills::catalog::Catalog;
use crate::skills::parse::parse;
use crate::skills::{Category, Skill};

/// Most bytes of SKILL.md files that one user's catalogue holds.
pub const MAX_TOTAL_BYTES: usize = 8 << 20;

/// A catalogue with what it came from.
pub struct Snapshot {
    /// When the reading began.
    pub began: Instant,
    /// Whether every change since then would show.
    is_settled: bool,
    trail: Trail,
    /// The answer.
    pub loaded: Loaded,
}

impl Snapshot {
    /// Whether everything that it came from is as it was.
    pub fn still_holds(&self) -> bool {
        self.is_settled && self.trail.still_holds()
    }
}

/// Skills that some catalogue holds, by file and by the path that the agent sees: what a changed catalogue shares with
/// the one before, and the catalogues of all users with each other.
#[derive(Default)]
pub struct Shelf {
    skills: HashMap<(PathBuf, String), Shelved>,
    /// How many there were after the last time that it was tidied.
    tidy: usize,
}

#[derive(Clone)]
struct Shelved {
    stamp: Stamp,
    /// Whether every change since the stamp would show.
    is_settled: bool,
    skill: Weak<Skill>,
    flaws: Arc<[String]>,
}

/// A skill with what is passed over in its file.
type Read = (Arc<Skill>, Arc<[String]>);

impl Shelved {
    fn read(&self) -> Option<Read> {
        Some((self.skill.upgrade()?, self.flaws.clone()))
    }
}

impl Shelf {
    /// Forgets what no catalogue holds any more, once that may be half of it.
    pub fn tidy(&mut self) {
        if self.skills.len() > 2 * self.tidy + 64 {
            self.skills
                .retain(|_, shelved| shelved.skill.strong_count() > 0);
            self.tidy = self.skills.len();
        }
    }
}

/// Reads the skills of a user, or of nobody, whose name is fit for a path. `shelf` has what was read before, and gets
/// what is read now.
pub fn scan(settings: &SkillSettings, user_id: Option<&str>, shelf: &Mutex<Shelf>) -> Snapshot {
    let began = Instant::now();
    let mut scan = Scan {
        container: settings.container_path.trim_end_matches('/'),
        trail: Trail::new(),
        skills: Vec::new(),
        bytes_left: MAX_TOTAL_BYTES,
        shelf,
    };
    let path = settings.path.as_deref();
    let home = settings.home.as_deref().zip(user_id);
    let own = home.map(|(home, user_id)| Own::new(home, user_id));
    if let Some(path) = path {
        scan.category(Category::Public, &path.join("public"));
    }
    let mut has_custom = false;
    let mut user_states = HashMap::new();
    if let Some(own) = &own {
        scan.own_category(Category::Integrations, own);
        has_custom = scan.own_category(Category::Custom, own);
        user_states = states::read(&own.skills, &mut scan.trail);
    }
    if let Some(path) = path.filter(|_| !has_custom) {
        scan.category(Category::Legacy, &path.join("custom"));
    }
    scan.finish(settings, &user_states, began)
}

/// The folder of a user's own skills.
struct Own {
    home: PathBuf,
    /// Its place below `home`.
    relative: PathBuf,
    skills: PathBuf,
}

impl Own {
    fn new(home: &Path, user_id: &str) -> Self {
        let relative = Path::new("users").join(user_id).join("skills");
        Own {
            home: home.to_owned(),
            skills: home.join(&relative),
            relative,
        }
    }
}

struct Scan<'a> {
    container: &'a str,
    trail: Trail,
    skills: Vec<Arc<Skill>>,
    bytes_left: usize,
    shelf: &'a Mutex<Shelf>,
}

impl Scan<'_> {
    /// Reads a category of a user's own, unless a link stands on the way to it: that could lead to another user's.
    /// Answers whether there is any skill in it, usable or not.
    fn own_category(&mut self, category: Category, own: &Own) -> bool {
        let folder = own.skills.join(category.name());
        let stamps = (Stamp::of_folder(&folder), Stamp::of_file(&folder));
        let expected = own.home.canonicalize();
        let expected = expected.map(|home| home.join(&own.relative).join(category.name()));
        match (folder.canonicalize(), expected) {
            (Ok(real), Ok(expected)) if real != expected => {
                self.trail.saw_folder(&folder, stamps.0);
                self.trail.saw_file(&folder, stamps.1);
                let message = format!(
                    "{} is left out: a link stands on the way to it, and folders of users have to stand where they belong",
                    folder.display()
                );
                self.trail.warn(Warning::SkillSkipped, message);
                false
            }
            _ => self.category(category, &folder),
        }
    }

    /// Reads a category. Answers whether there is any skill in it, usable or not.
    fn category(&mut self, category: Category, folder: &Path) -> bool {
        let found = walk::find(folder, &mut self.trail);
        let is_any = !found.is_empty();
        for found in found {
            let file = found.file.clone();
            if let Err(reason) = self.skill(category, found) {
                let message = format!("{} is left out: {reason}", file.display());
                self.trail.warn(Warning::SkillSkipped, message);
            }
        }
        is_any
    }

    fn skill(&mut self, category: Category, found: Found) -> Result<(), String> {
        let (container, name) = (self.container, category.name());
        let location = match &*found.relative {
            "" => format!("{container}/{name}/SKILL.md"),
            relative => format!("{container}/{name}/{relative}/SKILL.md"),
        };
        let key = (found.file, location);
        let shelved = lock(self.shelf).skills.get(&key).cloned();
        let shelved = shelved.as_ref();
        let (skill, flaws) = match self.unchanged(shelved, found.place) {
            Some(unchanged) => unchanged,
            None => self.read(category, &key, found.place, shelved)?,
        };
        let bytes_left = self.bytes_left.checked_sub(skill.content.len());
        self.bytes_left = bytes_left.ok_or_else(|| {
            format!("all SKILL.md files together are larger than {MAX_TOTAL_BYTES} bytes")
        })?;
        for flaw in &*flaws {
            let message = format!("{}: {flaw}", key.0.display());
            self.trail.warn(Warning::SkillFlawed, message);
        }
        self.skills.push(skill);
        Ok(())
    }

    /// What was read from the file before, if nothing happened to it since.
    fn unchanged(&self, shelved: Option<&Shelved>, place: Place) -> Option<Read> {
        let shelved = shelved.filter(|shelved| {
            shelved.is_settled && Some(shelved.stamp) == self.trail.stamp(place)
        })?;
        shelved.read()
    }

    /// Reads the file. A text that is as it was before makes the same skill.
    fn read(
        &mut self,
        category: Category,
        key: &(PathBuf, String),
        place: Place,
        shelved: Option<&Shelved>,
    ) -> Result<Read, String> {
        let (text, stamp) = file::read(&key.0)?;
        self.trail.read_file(place, stamp);
        let before = shelved.and_then(Shelved::read);
        let read = match before.filter(|(skill, _)| *skill.content == *text) {
            Some(before) => before,
            None => {
                let parsed = parse(text.into(), category, &key.1)?;
                (Arc::new(parsed.skill), parsed.flaws.into())
            }
        };
        let shelved = Shelved {
            stamp,
            is_settled: file::is_settled(&stamp, self.trail.began),
            skill: Arc::downgrade(&read.0),
            flaws: read.1.clone(),
        };
        lock(self.shelf).skills.insert(key.clone(), shelved);
        Ok(read)
    }

    fn finish(
        mut self,
        settings: &SkillSettings,
        user_states: &HashMap<String, bool>,
        began: Instant,
    ) -> Snapshot {
        for skill in &mut self.skills {
            let state = match skill.category {
                Category::Public => settings.public_states.get(skill.name()),
                _ => user_states.get(skill.name()),
            };
            if state == Some(&false) {
                Arc::make_mut(skill).enabled = false;
            }
        }
        let (catalog, hidden) = Catalog::new(self.skills);
        for hidden in hidden {
            let message = format!(
                "{} is left out: {} has the same name {:?}",
                hidden.skill.location.expose(),
                hidden.by.location.expose(),
                hidden.by.name(),
            );
            self.trail.warn(Warning::SkillSkipped, message);
        }
        let warnings = self.trail.take_warnings();
        Snapshot {
            began,
            is_settled: self.trail.is_settled(),
            trail: self.trail,
            loaded: Loaded {
                catalog: Arc::new(catalog),
                warnings: Arc::new(warnings),
            },
        }
    }
}

//! Finds the skills below one folder: every folder with a SKILL.md, but none inside of another (SKL-1).

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::file::Stamp;
use super::trail::{Place, Trail};
use crate::protocol::warning::Warning;
use crate::skills::parse::SKILL_FILE;

/// Most levels of folders below a category's folder.
pub const MAX_DEPTH: usize = 8;
/// Most entries of folders that are looked at in one category. Files inside of a skill do not count: it is not searched.
pub const MAX_ENTRIES: usize = 65_536;
/// Most skills in one category.
pub const MAX_SKILLS: usize = 1024;

/// A SKILL.md that was found.
pub struct Found {
    /// The file.
    pub file: PathBuf,
    /// Where the trail notes it.
    pub place: Place,
    /// The folder's place below the category's folder, with slashes; empty when it is that folder itself.
    pub relative: String,
}

/// The skills below `root`, in the order of a search that goes through names sorted by bytes and a folder before what is
/// in it. A folder that is not there has none.
///
/// Left alone are names that begin with a dot, and `evals` and `fixtures` with nothing but more of them inside, which hold
/// test data. Links to folders are followed when they stay below `root` and lead to no folder that they stand in.
pub fn find(root: &Path, trail: &mut Trail) -> Vec<Found> {
    let stamp = Stamp::of_folder(root);
    let real = match fs::canonicalize(root) {
        Ok(real) => real,
        Err(error) => {
            trail.saw_folder(root, stamp);
            if error.kind() != ErrorKind::NotFound {
                skip(trail, root, &format!("it cannot be read: {error}"));
            }
            return Vec::new();
        }
    };
    let mut walk = Walk {
        trail,
        chain: vec![real],
        entries_left: MAX_ENTRIES,
        found: Vec::new(),
        is_full: false,
    };
    walk.folder(root, "");
    walk.found
}

struct Walk<'a> {
    trail: &'a mut Trail,
    /// The real paths of the folders from the category's folder to the one that is looked at.
    chain: Vec<PathBuf>,
    entries_left: usize,
    found: Vec<Found>,
    /// Whether a bound ended the search.
    is_full: bool,
}

impl Walk<'_> {
    fn folder(&mut self, path: &Path, relative: &str) {
        // Whether a SKILL.md or another folder appears shows in the stamp, which therefore is older than any look inside.
        let stamp = Stamp::of_folder(path);
        let file = path.join(SKILL_FILE);
        match fs::symlink_metadata(&file) {
            Ok(facts) if facts.is_dir() => {}
            Ok(facts) => {
                let place = self.trail.saw_file(&file, Some(Stamp::of(&facts)));
                let kind = facts.file_type();
                if kind.is_file() {
                    self.skill(file, place, relative);
                } else if kind.is_symlink() {
                    skip(
                        self.trail,
                        &file,
                        "it is a link, and a SKILL.md has to be a file",
                    );
                } else {
                    skip(self.trail, &file, "it is no regular file");
                }
                return;
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => {
                self.trail.saw_folder(path, stamp);
                return skip(self.trail, path, &format!("it cannot be read: {error}"));
            }
        }
        self.trail.saw_folder(path, stamp);
        let Some(folders) = self.list(path) else {
            return;
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let is_test_data = |name: &str| matches!(name, "evals" | "fixtures");
        if !relative.is_empty()
            && name.is_some_and(is_test_data)
            && folders.iter().all(|folder| is_test_data(&folder.name))
        {
            return;
        }
        for folder in folders {
            if self.is_full {
                return;
            }
            self.below(path, relative, &folder);
        }
    }

    fn skill(&mut self, file: PathBuf, place: Place, relative: &str) {
        if self.found.len() == MAX_SKILLS {
            self.is_full = true;
            let reason = format!("there are {MAX_SKILLS} skills before it, and no more are taken");
            skip(self.trail, &file, &reason);
            return;
        }
        let relative = relative.to_owned();
        self.found.push(Found {
            file,
            place,
            relative,
        });
    }

    /// The folders in a folder and the links, by name; `None` when it cannot be listed.
    fn list(&mut self, path: &Path) -> Option<Vec<Folder>> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                skip(self.trail, path, &format!("it cannot be listed: {error}"));
                return None;
            }
        };
        let mut folders = Vec::new();
        for entry in entries {
            if self.entries_left == 0 {
                self.is_full = true;
                let reason = format!(
                    "more than {MAX_ENTRIES} entries up to here; it and what comes after it is not searched"
                );
                skip(self.trail, path, &reason);
                return None;
            }
            self.entries_left -= 1;
            match entry {
                Ok(entry) => folders.extend(self.candidate(&entry)),
                Err(error) => {
                    skip(self.trail, path, &format!("it cannot be listed: {error}"));
                    break;
                }
            }
        }
        folders.sort_by(|a, b| a.name.cmp(&b.name));
        Some(folders)
    }

    /// An entry that may lead to skills.
    fn candidate(&mut self, entry: &DirEntry) -> Option<Folder> {
        let kind = entry.file_type().ok()?;
        let name = entry.file_name();
        if !(kind.is_dir() || kind.is_symlink()) || name.as_encoded_bytes().starts_with(b".") {
            return None;
        }
        // Paths of skills stand in prompts, each on its line.
        match name.to_str() {
            Some(name) if !name.contains(char::is_control) => Some(Folder {
                name: name.to_owned(),
                is_link: kind.is_symlink(),
            }),
            _ => {
                let reason = "its name is no UTF-8 or holds control characters";
                skip(self.trail, &entry.path(), reason);
                None
            }
        }
    }

    fn below(&mut self, parent: &Path, relative: &str, folder: &Folder) {
        let path = parent.join(&folder.name);
        let real = match self.real_path(&path, folder) {
            Ok(Some(real)) => real,
            Ok(None) => return,
            Err(reason) => {
                self.trail.saw_folder(&path, Stamp::of_folder(&path));
                return skip(self.trail, &path, &reason);
            }
        };
        if self.chain.len() > MAX_DEPTH {
            let reason = format!("it is more than {MAX_DEPTH} folders deep");
            return skip(self.trail, &path, &reason);
        }
        let relative = match relative {
            "" => folder.name.clone(),
            above => format!("{above}/{}", folder.name),
        };
        self.chain.push(real);
        self.folder(&path, &relative);
        self.chain.pop();
    }

    /// Where a folder really is; `None` for a link to something else than a folder.
    fn real_path(&self, path: &Path, folder: &Folder) -> Result<Option<PathBuf>, String> {
        if !folder.is_link {
            let parent = self.chain.last();
            return Ok(parent.map(|parent| parent.join(&folder.name)));
        }
        let real =
            fs::canonicalize(path).map_err(|error| format!("the link leads nowhere: {error}"))?;
        if !fs::metadata(&real).is_ok_and(|facts| facts.is_dir()) {
            return Ok(None);
        }
        if !self
            .chain
            .first()
            .is_some_and(|root| real.starts_with(root))
        {
            return Err("the link leads out of the folder of its category".to_owned());
        }
        if self.chain.iter().any(|above| above.starts_with(&real)) {
            return Err("the link leads back to a folder that it stands in".to_owned());
        }
        Ok(Some(real))
    }
}

struct Folder {
    name: String,
    is_link: bool,
}

fn skip(trail: &mut Trail, path: &Path, reason: &str) {
    let message = format!("{} is left out: {reason}", path.display());
    trail.warn(Warning::SkillSkipped, message);
}

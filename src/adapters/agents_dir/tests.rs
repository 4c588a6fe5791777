//! Tests of the agents' folders: layouts, edits, crashes between any two steps, and what hostile users leave there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::*;
use crate::protocol::trust::Source;

/// A home of its own, gone at the end.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("fawn-agents-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Home(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn store(&self) -> Inner {
        let store = AgentsDir::with_settling(&self.0, Offload::Inline, Duration::ZERO);
        Arc::into_inner(store.inner).unwrap()
    }

    /// Every file under the home, sorted.
    fn files(&self) -> Vec<String> {
        fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                match fs::symlink_metadata(&path).unwrap().is_dir() {
                    true => walk(&path, found),
                    false => found.push(path),
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.0, &mut found);
        let relative = |path: PathBuf| {
            let path = path.strip_prefix(&self.0).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let mut found: Vec<String> = found.into_iter().map(relative).collect();
        found.sort();
        found
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const USER_CONFIG: &str = "users/u/agents/bot/config.yaml";
const USER_SOUL: &str = "users/u/agents/bot/SOUL.md";

fn user() -> UserId {
    UserId::new("u")
}

fn bot() -> Identifier {
    agent_name("bot").unwrap()
}

fn edit(description: &str, soul: Option<&str>) -> AgentEdit {
    AgentEdit {
        description: Some(description.to_owned()),
        soul: soul.map(str::to_owned),
        ..AgentEdit::default()
    }
}

/// The description and the soul of the agent `bot`.
fn read(store: &Inner) -> Option<(String, Option<String>)> {
    let agent = store.load(&user(), &bot()).unwrap()?;
    let soul = agent
        .record
        .soul
        .as_ref()
        .map(|soul| soul.expose().to_owned());
    Some((agent.record.description.expose().to_owned(), soul))
}

fn pair(description: &str, soul: &str) -> Option<(String, Option<String>)> {
    Some((description.to_owned(), Some(soul.to_owned())))
}

#[test]
fn ca3_a_users_agent_goes_before_the_legacy_one_and_a_folder_without_a_record_is_none() {
    let home = Home::new();
    let store = home.store();
    assert_eq!(read(&store), None);
    home.write("users/u/agents/bot/memory.json", "{}");
    home.write("users/u/agents/bot/SOUL.md", "of nobody");
    assert_eq!(read(&store), None);
    home.write("agents/bot/config.yaml", "description: legacy");
    home.write("agents/bot/SOUL.md", "\n old \n");
    assert_eq!(read(&store), pair("legacy", "old"));
    let layout = || store.load(&user(), &bot()).unwrap().unwrap().layout;
    assert_eq!(layout(), Layout::Legacy);
    home.write(USER_CONFIG, "description: own");
    assert_eq!(read(&store), pair("own", "of nobody"));
    assert_eq!(layout(), Layout::User);
    let other = UserId::new("v");
    let legacy = store.load(&other, &bot()).unwrap().unwrap();
    assert_eq!(
        legacy.record.description.expose(),
        "legacy",
        "others still have the shared one"
    );
}

#[test]
fn pt1_texts_of_files_are_untrusted() {
    let home = Home::new();
    home.write(USER_CONFIG, "description: d");
    home.write(USER_SOUL, "s");
    home.write("SOUL.md", " default ");
    let store = home.store();
    let record = &store.load(&user(), &bot()).unwrap().unwrap().record;
    assert!(!record.description.source().is_trusted());
    assert!(!record.soul.as_ref().unwrap().source().is_trusted());
    let soul = store.default_soul().unwrap().unwrap();
    assert_eq!((soul.source(), soul.expose()), (Source::Model, "default"));
}

#[test]
fn users_do_not_see_each_other_whatever_they_are_called() {
    let home = Home::new();
    let store = home.store();
    for raw in ["../u", "u/../v", "..", "u\0", "U", "u"] {
        let user = UserId::new(raw);
        assert_eq!(store.load(&user, &bot()).unwrap(), None, "{raw:?}");
        store
            .edit(&user, &bot(), &edit(raw, Some("s")), EditMode::Upsert)
            .unwrap();
    }
    for file in home.files() {
        assert!(file.starts_with("users/"), "{file}");
    }
    assert_eq!(home.files().len(), 12);
}

#[test]
fn ca4_an_edit_keeps_what_the_author_wrote_and_adds_nothing() {
    let home = Home::new();
    let config = "# mine\ngithub:\n  bindings:\n  - repo: a/b\n    note: kept\nname: drifted\nskills:\n\
                  custom: [1, 2.0, 'yes']\nallowed_subagents: []\nmemory_enabled: off\n";
    let path = home.write(USER_CONFIG, config);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let store = home.store();
    let outcome = store.edit(&user(), &bot(), &edit("new", None), EditMode::Update);
    assert_eq!(outcome, Ok(EditOutcome::Changed(vec!["description"])));
    let written = from_yaml(&home.text(USER_CONFIG).unwrap()).unwrap();
    let expected = json!({
        "github": {"bindings": [{"repo": "a/b", "note": "kept"}]}, "name": "bot", "skills": null,
        "custom": [1, 2.0, "yes"], "allowed_subagents": [], "memory_enabled": false, "description": "new",
    });
    assert_eq!(written.to_string(), expected.to_string());
    assert_eq!(home.files(), [USER_CONFIG], "no soul appears");
    assert_eq!(
        fs::metadata(&path).unwrap().mode() & 0o777,
        0o644,
        "whoever could read it still can"
    );
}

#[test]
fn tl21_equal_values_write_nothing() {
    let home = Home::new();
    let path = home.write(USER_CONFIG, "name: other\ndescription: d\n");
    let before = fs::metadata(&path).unwrap();
    let outcome = home
        .store()
        .edit(&user(), &bot(), &edit("d", None), EditMode::Update);
    assert_eq!(outcome, Ok(EditOutcome::Unchanged));
    assert_eq!(fs::metadata(&path).unwrap().ino(), before.ino());
    assert_eq!(
        home.text(USER_CONFIG).unwrap(),
        "name: other\ndescription: d\n"
    );
}

#[test]
fn tl21_only_an_agent_of_the_user_is_updated() {
    let home = Home::new();
    let store = home.store();
    let update = || store.edit(&user(), &bot(), &edit("d", Some("s")), EditMode::Update);
    assert_eq!(update(), Ok(EditOutcome::Missing));
    home.write("agents/bot/config.yaml", "{}");
    assert_eq!(update(), Ok(EditOutcome::OnlyLegacy));
    home.write("users/u/agents/bot/memory.json", "{}");
    assert_eq!(
        update(),
        Ok(EditOutcome::OnlyLegacy),
        "a folder that holds memory only is no agent"
    );
    for broken in [
        "a: [",
        "- 1",
        "skills: all",
        "model_settings: {temperature: 9}",
    ] {
        home.write(USER_CONFIG, broken);
        let Ok(EditOutcome::Unreadable(error)) = update() else {
            panic!("{broken}: {:?}", update())
        };
        assert!(
            error.message.contains("config.yaml of the agent \"bot\""),
            "{}",
            error.message
        );
        assert!(
            !error.message.contains(home.0.to_str().unwrap()),
            "{}",
            error.message
        );
        assert_eq!(home.text(USER_CONFIG).unwrap(), broken, "left as it is");
    }
    assert_eq!(home.text("agents/bot/config.yaml").unwrap(), "{}");
    assert_eq!(home.text(USER_SOUL), None);
}

#[test]
fn tl20_a_new_agent_is_made_for_its_user_alone() {
    let home = Home::new();
    let store = home.store();
    home.write("agents/bot/config.yaml", "description: legacy");
    let outcome = store.edit(&user(), &bot(), &edit("d", Some("soul")), EditMode::Upsert);
    assert_eq!(
        outcome,
        Ok(EditOutcome::Changed(vec!["description", "soul"]))
    );
    assert_eq!(
        home.text(USER_CONFIG).unwrap(),
        "name: bot\ndescription: d\n"
    );
    assert_eq!(home.text(USER_SOUL).unwrap(), "soul");
    assert_eq!(read(&store), pair("d", "soul"));
    let mode = |path: &str| fs::metadata(home.0.join(path)).unwrap().mode() & 0o777;
    assert_eq!(mode("users/u/agents/bot"), 0o700);
    assert_eq!(mode(USER_SOUL), 0o600);
    // Once more: what the call does not set stays.
    home.write(USER_CONFIG, "name: bot\nallowed_subagents: []\n");
    store
        .edit(&user(), &bot(), &edit("e", Some("other")), EditMode::Upsert)
        .unwrap();
    assert_eq!(
        home.text(USER_CONFIG).unwrap(),
        "name: bot\nallowed_subagents: []\ndescription: e\n"
    );
}

#[test]
fn a_crash_after_any_step_leaves_the_old_or_the_new_agent_and_the_next_edit_goes_on() {
    let config = |text: &str| format!("description: {text}\n");
    for steps in 0..=6 {
        let home = Home::new();
        let path = home.write(USER_CONFIG, config("old"));
        home.write(USER_SOUL, "old");
        let dir = path.parent().unwrap();
        // What a writer does, cut short.
        let new = config("new");
        match steps {
            0 => {}
            1 => commit::stage(dir, None, Some("new")).unwrap(),
            _ => commit::stage(dir, Some(&new), Some("new")).unwrap(),
        }
        if steps >= 3 {
            commit::mark(dir).unwrap();
        }
        for (step, (from, to)) in [
            (4, (".SOUL.md.fawn", SOUL)),
            (5, (".config.yaml.fawn", CONFIG)),
        ] {
            if steps >= step {
                fs::rename(dir.join(from), dir.join(to)).unwrap();
            }
        }
        if steps >= 6 {
            fs::remove_file(dir.join(".commit.fawn")).unwrap();
        }
        let store = home.store();
        let expected = if steps >= 3 {
            pair("new", "new")
        } else {
            pair("old", "old")
        };
        assert_eq!(read(&store), expected, "after {steps} steps");
        // What is read of an unfinished change is not what is kept.
        assert_eq!(read(&store), expected, "again, after {steps} steps");

        let edit = AgentEdit {
            model: Some("m".to_owned()),
            ..AgentEdit::default()
        };
        store
            .edit(&user(), &bot(), &edit, EditMode::Update)
            .unwrap();
        assert_eq!(read(&store), expected, "edited, after {steps} steps");
        assert_eq!(
            home.files(),
            [USER_SOUL, USER_CONFIG],
            "after {steps} steps"
        );
        assert!(home.text(USER_CONFIG).unwrap().ends_with("model: m\n"));
    }
}

#[test]
fn an_unfinished_change_is_read_where_nothing_can_be_written() {
    let home = Home::new();
    let path = home.write(USER_CONFIG, "description: old");
    let dir = path.parent().unwrap();
    commit::stage(dir, Some("description: new"), Some("new")).unwrap();
    commit::mark(dir).unwrap();
    let before = home.files();
    assert_eq!(read(&home.store()), pair("new", "new"));
    assert_eq!(home.files(), before, "reading writes nothing");
}

#[test]
fn an_edit_that_cannot_be_stored_changes_nothing() {
    // A folder where the soul should stand.
    let home = Home::new();
    home.write(USER_CONFIG, "description: old\n");
    fs::create_dir(home.0.join(USER_SOUL)).unwrap();
    let store = home.store();
    let error = store.edit(&user(), &bot(), &edit("new", Some("s")), EditMode::Upsert);
    assert!(matches!(error, Ok(EditOutcome::Unreadable(_))), "{error:?}");
    assert_eq!(home.text(USER_CONFIG).unwrap(), "description: old\n");
    assert_eq!(home.files(), [USER_CONFIG]);

    // A file where a folder should stand.
    for path in ["users", "users/u", "users/u/agents", "users/u/agents/bot"] {
        let home = Home::new();
        home.write(path, "x");
        let store = home.store();
        assert_eq!(store.load(&user(), &bot()).unwrap(), None, "{path}");
        let error = store.edit(&user(), &bot(), &edit("new", Some("s")), EditMode::Upsert);
        assert_eq!(error.unwrap_err().code, ErrorCode::Store, "{path}");
        assert_eq!(home.files(), [path]);
    }

    // A name that is taken by a folder, in the middle of storing.
    let home = Home::new();
    home.write(USER_CONFIG, "description: old\n");
    fs::create_dir(home.0.join("users/u/agents/bot/.config.yaml.fawn")).unwrap();
    let error = home
        .store()
        .edit(&user(), &bot(), &edit("new", Some("s")), EditMode::Update);
    let error = error.unwrap_err();
    assert_eq!(error.code, ErrorCode::Store);
    assert!(
        !error.message.contains(home.0.to_str().unwrap()),
        "{}",
        error.message
    );
    assert_eq!(home.files(), [USER_CONFIG]);
    assert_eq!(read(&home.store()), Some(("old".to_owned(), None)));
}

#[test]
fn a_failed_first_edit_leaves_no_folder() {
    let home = Home::new();
    let large = "x".repeat(MAX_FILE_BYTES as usize);
    for (description, soul) in [
        ("d", Some(format!("{large}y"))),
        (&*large, Some("s".to_owned())),
    ] {
        let edit = edit(description, soul.as_deref());
        let error = home
            .store()
            .edit(&user(), &bot(), &edit, EditMode::Upsert)
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::OutOfRange);
        assert!(!home.0.join("users/u/agents/bot").exists());
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    if fs::write("/proc/self/oom_score_adj", "0").is_ok()
        && fs::metadata("/proc/self").unwrap().uid() == 0
    {
        // Root writes where it likes; a file system that refuses everybody stands in.
        let store = AgentsDir::new("/proc/self/fdinfo", Offload::Inline);
        let error = store
            .inner
            .edit(&user(), &bot(), &edit("d", Some("s")), EditMode::Upsert);
        assert_eq!(error.unwrap_err().code, ErrorCode::Store);
        return;
    }
    let home = Home::new();
    let path = home.write(USER_CONFIG, "description: old\n");
    let dir = path.parent().unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o500)).unwrap();
    let error = home
        .store()
        .edit(&user(), &bot(), &edit("new", Some("s")), EditMode::Update);
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(error.unwrap_err().code, ErrorCode::Store);
    assert_eq!(home.files(), [USER_CONFIG]);
}

/// Users write below the home. By a link one could read what is another's, or have the library write there.
#[test]
fn links_below_the_home_are_neither_read_nor_written_through() {
    for link in ["users", "users/u", "users/u/agents", "users/u/agents/bot"] {
        let home = Home::new();
        let outside = Home::new();
        let at = home.0.join(link);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(&outside.0, &at).unwrap();
        let store = home.store();
        let edit = store.edit(&user(), &bot(), &edit("d", Some("s")), EditMode::Upsert);
        let is_refused = matches!(edit, Ok(EditOutcome::Unreadable(_)) | Err(_));
        assert!(is_refused, "{link}: {edit:?}");
        assert!(store.load(&user(), &bot()).is_err(), "{link}");
        assert_eq!(
            fs::read_dir(&outside.0).unwrap().count(),
            0,
            "{link}: not even a folder"
        );
    }
    // Another user's agent, by a link inside the home.
    let home = Home::new();
    home.write("users/v/agents/bot/config.yaml", "description: theirs\n");
    fs::create_dir_all(home.0.join("users/u/agents")).unwrap();
    let theirs = home.0.join("users/v/agents/bot");
    symlink(&theirs, home.0.join("users/u/agents/bot")).unwrap();
    let store = home.store();
    let error = store.load(&user(), &bot()).unwrap_err();
    assert_eq!(error.code, ErrorCode::AssemblyInvalid);
    let edit_of =
        |store: &Inner| store.edit(&user(), &bot(), &edit("d", Some("s")), EditMode::Update);
    assert!(matches!(edit_of(&store), Ok(EditOutcome::Unreadable(_))));
    assert!(!theirs.join("SOUL.md").exists());
}

#[test]
fn files_that_are_links_are_not_read_and_not_written_through() {
    let outside = Home::new();
    let secret = outside.write("secret", "description: theirs\n");
    for linked in [USER_CONFIG, USER_SOUL] {
        let home = Home::new();
        home.write(USER_CONFIG, "description: mine\n");
        let _ = fs::remove_file(home.0.join(linked));
        symlink(&secret, home.0.join(linked)).unwrap();
        let error = home.store().load(&user(), &bot()).unwrap_err();
        assert_eq!(error.code, ErrorCode::AssemblyInvalid, "{linked}");
        assert!(error.message.contains("is a link"), "{}", error.message);
    }
    // Whatever somebody planted under the names that storing uses is not written through either.
    let home = Home::new();
    home.write(USER_CONFIG, "description: mine\n");
    symlink(&secret, home.0.join("users/u/agents/bot/.config.yaml.fawn")).unwrap();
    symlink(&secret, home.0.join("users/u/agents/bot/.SOUL.md.fawn")).unwrap();
    let store = home.store();
    let _ = store.edit(&user(), &bot(), &edit("d", Some("s")), EditMode::Update);
    symlink(&secret, home.0.join("SOUL.md")).unwrap();
    store.write_default_soul("mine").unwrap();
    assert_eq!(home.text("SOUL.md").unwrap(), "mine");
    assert_eq!(outside.text("secret").unwrap(), "description: theirs\n");
}

#[test]
fn a_home_that_is_a_link_is_the_operator_s_to_choose() {
    let real = Home::new();
    let links = Home::new();
    let link = links.0.join("home");
    symlink(&real.0, &link).unwrap();
    let store = AgentsDir::new(&link, Offload::Inline).inner;
    store
        .edit(&user(), &bot(), &edit("d", Some("s")), EditMode::Upsert)
        .unwrap();
    assert_eq!(real.text(USER_SOUL).unwrap(), "s");
    assert_eq!(read(&store), pair("d", "s"));
}

#[test]
fn what_hostile_users_leave_neither_blocks_nor_passes() {
    let bomb = (0..9).fold(
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(),
        |text, n| {
            format!(
                "{text}a{}: &a{} [{}]\n",
                n + 1,
                n + 1,
                vec![format!("*a{n}"); 9].join(", ")
            )
        },
    );
    let deep = format!("a: {}", "[".repeat(5000));
    let texts: Vec<Vec<u8>> = vec![
        bomb.into_bytes(),
        deep.into_bytes(),
        vec![b'x'; MAX_FILE_BYTES as usize + 1],
        b"description: \xff\xfe".to_vec(),
        b"!!python/object/apply:os.system ['id']".to_vec(),
        b"a: &a [*a]".to_vec(),
        b"--- a\n--- b".to_vec(),
        b"description: \0".to_vec(),
        b"? [a]\n: b\n: c\n- d".to_vec(),
    ];
    for text in texts {
        let home = Home::new();
        home.write(USER_CONFIG, &text);
        let shown = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
        let error = home.store().load(&user(), &bot()).expect_err(&shown);
        assert_eq!(error.code, ErrorCode::AssemblyInvalid, "{shown}");
        assert!(
            error.message.len() < 1000 && error.path.is_none(),
            "{shown}"
        );
    }
    // The same for the soul.
    let home = Home::new();
    home.write(USER_CONFIG, "{}");
    home.write(USER_SOUL, b"\xff");
    assert!(
        home.store()
            .load(&user(), &bot())
            .unwrap_err()
            .message
            .contains("from byte 0 on")
    );
}

#[test]
fn fifos_devices_and_folders_are_no_files() {
    let make = |path: &Path, home: &Home| match path.file_name().unwrap().to_str().unwrap() {
        "fifo" => {
            let made = std::process::Command::new("mkfifo")
                .arg(home.0.join("fifo"))
                .status();
            assert!(made.unwrap().success());
        }
        "dir" => fs::create_dir(home.0.join("dir")).unwrap(),
        _ => symlink("/dev/zero", home.0.join("zero")).unwrap(),
    };
    for kind in ["fifo", "dir", "zero"] {
        for file in [CONFIG, SOUL] {
            let home = Home::new();
            make(Path::new(kind), &home);
            home.write(USER_CONFIG, "{}");
            let place = home.0.join("users/u/agents/bot").join(file);
            let _ = fs::remove_file(&place);
            fs::rename(home.0.join(kind), &place).unwrap();
            let error = home.store().load(&user(), &bot()).expect_err(kind);
            assert_eq!(
                error.code,
                ErrorCode::AssemblyInvalid,
                "{kind} as {file}: {error:?}"
            );
        }
        // In the place of the agent's folder it is no agent, and no writer waits for it.
        let home = Home::new();
        make(Path::new(kind), &home);
        fs::create_dir_all(home.0.join("users/u/agents")).unwrap();
        fs::rename(home.0.join(kind), home.0.join("users/u/agents/bot")).unwrap();
        let loaded = home.store().load(&user(), &bot());
        match kind {
            "zero" => assert!(loaded.is_err(), "a link is refused"),
            _ => assert_eq!(loaded.unwrap(), None, "{kind}"),
        }
        let edited = home
            .store()
            .edit(&user(), &bot(), &edit("d", Some("s")), EditMode::Upsert);
        let is_stored = matches!(edited, Ok(EditOutcome::Changed(_)));
        assert_eq!(is_stored, kind == "dir", "{kind}: {edited:?}");
    }
}

#[test]
fn a_list_has_the_agents_of_both_layouts_and_tells_of_bad_ones() {
    let home = Home::new();
    home.write("users/u/agents/b/config.yaml", "description: own");
    home.write("users/u/agents/bad/config.yaml", "a: [");
    home.write("users/u/agents/empty/SOUL.md", "x");
    home.write("users/u/agents/no_name/config.yaml", "{}");
    home.write("users/u/agents/file", "x");
    home.write("users/v/agents/theirs/config.yaml", "{}");
    home.write("agents/b/config.yaml", "description: legacy");
    home.write("agents/a/config.yaml", "name: drifted");
    home.write("agents/bad/config.yaml", "{}");
    symlink(
        home.0.join("agents/a"),
        home.0.join("users/u/agents/linked"),
    )
    .unwrap();
    let list = home.store().list(&user()).unwrap();
    let shown: Vec<_> = list
        .agents
        .iter()
        .map(|agent| {
            (
                agent.record.name.as_str(),
                agent.record.description.expose(),
                agent.layout,
            )
        })
        .collect();
    let expected = [("a", "", Layout::Legacy), ("b", "own", Layout::User)];
    assert_eq!(shown, expected);
    let skipped: Vec<&str> = list.skipped.iter().map(|(name, _)| &**name).collect();
    assert_eq!(skipped, ["bad", "linked"], "links are not followed");
    let others = home.store().list(&UserId::new("nobody")).unwrap();
    assert_eq!((others.agents.len(), others.skipped.len()), (3, 0));
    assert!(
        AgentsDir::new("/nowhere/at/all", Offload::Inline)
            .list(&user())
            .unwrap()
            .agents
            .is_empty()
    );
}

#[test]
fn edits_at_once_lose_nothing_and_readers_see_whole_agents() {
    let home = Home::new();
    let store = home.store();
    store
        .edit(&user(), &bot(), &edit("0", Some("0")), EditMode::Upsert)
        .unwrap();
    let rounds = 25;
    std::thread::scope(|scope| {
        let one = |edit: AgentEdit| {
            store
                .edit(&user(), &bot(), &edit, EditMode::Update)
                .unwrap()
        };
        scope.spawn(move || {
            for round in 1..=rounds {
                one(edit(&round.to_string(), Some(&round.to_string())));
            }
        });
        scope.spawn(move || {
            for round in 1..=rounds {
                one(AgentEdit {
                    skills: Some(vec![round.to_string()]),
                    ..AgentEdit::default()
                });
            }
        });
        scope.spawn(move || {
            for round in 1..=rounds {
                one(AgentEdit {
                    model: Some(round.to_string()),
                    ..AgentEdit::default()
                });
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let (description, soul) = read(&store).unwrap();
                    assert_eq!(Some(description), soul);
                }
            });
        }
    });
    let last = store.load(&user(), &bot()).unwrap().unwrap();
    let expected = json!({
        "name": "bot", "description": "25", "skills": ["25"], "model": "25",
    });
    assert_eq!(Value::Object(last.document.clone()), expected);
    assert_eq!(home.files(), [USER_SOUL, USER_CONFIG]);
}

#[test]
fn two_stores_on_one_home_lose_nothing_either() {
    // As two processes would: the locks of one are not those of the other.
    let home = Home::new();
    let first = home.store();
    let second = home.store();
    std::thread::scope(|scope| {
        for (store, member) in [(&first, 0), (&second, 1)] {
            scope.spawn(move || {
                for round in 1..=25 {
                    let value = round.to_string();
                    let edit = match member {
                        0 => AgentEdit {
                            model: Some(value),
                            ..edit_soul("first")
                        },
                        _ => AgentEdit {
                            skills: Some(vec![value]),
                            ..edit_soul("second")
                        },
                    };
                    store
                        .edit(&user(), &bot(), &edit, EditMode::Upsert)
                        .unwrap();
                }
            });
        }
        scope.spawn(|| {
            let third = home.store();
            for _ in 0..200 {
                if let Some((_, soul)) = read(&third) {
                    assert!(
                        matches!(soul.as_deref(), Some("first" | "second")),
                        "{soul:?}"
                    );
                }
            }
        });
    });
    let last = first.load(&user(), &bot()).unwrap().unwrap();
    assert_eq!(last.record.model.as_deref(), Some("25"));
    assert_eq!(last.record.skills, Some(vec!["25".to_owned()]));
    assert_eq!(home.files(), [USER_SOUL, USER_CONFIG]);
}

fn edit_soul(soul: &str) -> AgentEdit {
    AgentEdit {
        soul: Some(soul.to_owned()),
        ..AgentEdit::default()
    }
}

#[test]
fn what_has_not_changed_is_not_read_again_and_every_change_is_seen() {
    let home = Home::new();
    let config = home.write(USER_CONFIG, "description: aaa");
    let store = home.store();
    let load = || store.load(&user(), &bot()).unwrap().unwrap();
    let first = load();
    assert!(
        Arc::ptr_eq(&first, &load()),
        "the same value, not read again"
    );
    // The same size, another content: the time tells.
    std::thread::sleep(Duration::from_millis(20));
    fs::write(&config, "description: bbb").unwrap();
    assert_eq!(read(&store).unwrap().0, "bbb");
    // The same size and time: the time of the change of the inode tells.
    let time = fs::metadata(&config).unwrap().modified().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    fs::write(&config, "description: ccc").unwrap();
    fs::File::options()
        .write(true)
        .open(&config)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(read(&store).unwrap().0, "ccc");
    // A soul that appears, a record that goes.
    home.write(USER_SOUL, "soul");
    assert_eq!(read(&store), pair("ccc", "soul"));
    fs::remove_file(&config).unwrap();
    assert_eq!(read(&store), None);
    // From one layout to the other.
    home.write("agents/bot/config.yaml", "description: legacy");
    assert_eq!(read(&store).unwrap().0, "legacy");
    assert!(Arc::ptr_eq(&load(), &load()));
    home.write(USER_CONFIG, "description: own");
    assert_eq!(read(&store).unwrap().0, "own");
}

#[test]
fn a_file_that_changed_just_now_is_read_each_time() {
    let home = Home::new();
    let config = home.write(USER_CONFIG, "description: a");
    let store = AgentsDir::new(&home.0, Offload::Inline).inner;
    for text in ["b", "c", "d", "e", "f"] {
        // At once and of one size: no clock may tell them apart.
        fs::write(&config, format!("description: {text}")).unwrap();
        assert_eq!(read(&store).unwrap().0, text);
    }
}

#[test]
fn the_soul_of_the_default_agent_is_replaced_whole() {
    let home = Home::new();
    let store = home.store();
    assert_eq!(store.default_soul(), Ok(None));
    store.write_default_soul(" one\n").unwrap();
    assert_eq!(home.text("SOUL.md").unwrap(), " one\n", "as it was given");
    assert_eq!(store.default_soul().unwrap().unwrap().expose(), "one");
    store.write_default_soul("two").unwrap();
    assert_eq!(store.default_soul().unwrap().unwrap().expose(), "two");
    home.write("SOUL.md", " \n");
    assert_eq!(store.default_soul(), Ok(None), "blank is none");
    let large = "x".repeat(MAX_FILE_BYTES as usize + 1);
    assert_eq!(
        store.write_default_soul(&large).unwrap_err().code,
        ErrorCode::OutOfRange
    );
    assert_eq!(home.files(), ["SOUL.md"]);
    let fresh = home.0.join("not/there");
    AgentsDir::new(&fresh, Offload::Inline)
        .inner
        .write_default_soul("three")
        .unwrap();
    assert_eq!(fs::metadata(&fresh).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn the_cache_is_bounded() {
    let home = Home::new();
    let path = home.write("x", "0123456789");
    let stamp = files::stamp(&path).unwrap();
    let cache: Cache<usize, usize> = Cache::with_bound(5000);
    for number in 0..100 {
        cache.keep(number, vec![(path.clone(), stamp)], number);
        assert_eq!(cache.fresh(&number), Some(number));
        assert!(cache.len() <= 4);
    }
    let large = home.write("large", vec![b'x'; 6000]);
    let large = (large.clone(), files::stamp(&large).unwrap());
    cache.keep(1000, vec![large], 1000);
    assert_eq!(cache.fresh(&1000), None);
    assert!(cache.len() > 0, "what is too large drives nothing out");
}

#[test]
fn ten_thousand_agents_are_listed() {
    let home = Home::new();
    for number in 0..10_000 {
        let path = format!("users/u/agents/a{number:05}/config.yaml");
        home.write(
            &path,
            format!("name: a{number:05}\ndescription: number {number}\nskills: [x, y]\n"),
        );
    }
    let store = home.store();
    let cold = Instant::now();
    let list = store.list(&user()).unwrap();
    let cold = cold.elapsed();
    assert_eq!((list.agents.len(), list.skipped.len()), (10_000, 0));
    assert_eq!(
        list.agents[9_999].record.description.expose(),
        "number 9999"
    );
    let warm = Instant::now();
    let again = store.list(&user()).unwrap();
    let warm = warm.elapsed();
    assert!(
        list.agents
            .iter()
            .zip(&again.agents)
            .all(|(a, b)| Arc::ptr_eq(a, b))
    );
    let name = agent_name("a00500").unwrap();
    let one = Instant::now();
    for _ in 0..1000 {
        store.load(&user(), &name).unwrap();
    }
    println!(
        "10000 agents: cold {cold:?}, warm {warm:?}; one warm load {:?}",
        one.elapsed() / 1000
    );
    assert!(cold < Duration::from_secs(60));
}

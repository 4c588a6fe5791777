//! Skills on a real disk: what is found, what hostile trees cannot do, and that an edit is seen.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use futures_util::FutureExt;

use super::*;
use crate::adapters::offload::Offload;
use crate::protocol::error::ErrorCode;
use crate::protocol::warning::Warning;
use crate::skills::Category;
use crate::skills::library::SkillLibrary;
use crate::skills::scope::Scope;

/// A folder of its own below the system's temporary one, with `skills` and `home` in it.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "fawn-skills-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("skills")).expect("a folder");
        fs::create_dir_all(path.join("home")).expect("a folder");
        Tree(path.canonicalize().expect("a folder"))
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    fn write(&self, relative: &str, text: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn folder(&self, relative: &str) {
        fs::create_dir_all(self.path(relative)).expect("a folder");
    }

    fn skill(&self, folder: &str, name: &str) {
        self.write(&format!("{folder}/SKILL.md"), text(name, ""));
    }

    fn settings(&self) -> Arc<SkillSettings> {
        Arc::new(SkillSettings {
            path: Some(self.path("skills")),
            home: Some(self.path("home")),
            container_path: "/mnt/skills/".to_owned(),
            public_states: BTreeMap::new(),
        })
    }

    /// Reads everything for the user `u`.
    fn load(&self) -> Loaded {
        SkillsDir::new()
            .load(&self.settings(), Some("u"))
            .expect("a name")
    }

    fn names(&self) -> Vec<String> {
        names(&self.load())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n{body}")
}

fn names(loaded: &Loaded) -> Vec<String> {
    loaded
        .catalog
        .skills()
        .iter()
        .map(|skill| skill.name().to_owned())
        .collect()
}

/// The warnings without the path of the tree.
fn warnings(tree: &Tree, loaded: &Loaded) -> Vec<String> {
    let root = format!("{}/", tree.0.display());
    let text = |(warning, message): (Warning, &str)| {
        format!("{}: {}", warning.code(), message.replace(&root, ""))
    };
    loaded.warnings.iter().map(text).collect()
}

#[test]
fn every_category_is_found_with_its_path_and_its_writer() {
    let tree = Tree::new();
    tree.skill("skills/public/z-first", "a");
    tree.skill("skills/public/group/sub/b", "b");
    tree.skill("skills/custom/old", "old");
    tree.skill("home/users/u/skills/custom/own", "own");
    tree.skill("home/users/u/skills/integrations/mail/send", "send");
    tree.skill("home/users/other/skills/custom/x", "of somebody else");
    let loaded = tree.load();
    assert_eq!(warnings(&tree, &loaded), Vec::<String>::new());
    let found: Vec<(&str, Category, &str)> = loaded
        .catalog
        .skills()
        .iter()
        .map(|skill| (skill.name(), skill.category, skill.location.expose()))
        .collect();
    assert_eq!(
        found,
        [
            ("a", Category::Public, "/mnt/skills/public/z-first/SKILL.md"),
            (
                "b",
                Category::Public,
                "/mnt/skills/public/group/sub/b/SKILL.md"
            ),
            ("own", Category::Custom, "/mnt/skills/custom/own/SKILL.md"),
            (
                "send",
                Category::Integrations,
                "/mnt/skills/integrations/mail/send/SKILL.md"
            ),
        ]
    );
    let operators = loaded
        .catalog
        .skills()
        .iter()
        .filter(|skill| skill.name.operator().is_some());
    assert_eq!(operators.count(), 2);
    // Without a user, and without folders.
    let dir = SkillsDir::new();
    let found = dir.load(&tree.settings(), None).expect("no user");
    assert_eq!(names(&found), ["a", "b", "old"]);
    let nothing = dir.load(&Arc::default(), Some("u")).expect("a name");
    assert!(nothing.catalog.is_empty() && nothing.warnings.is_empty());
}

/// SKL-1.
#[test]
fn a_skill_holds_no_other_skills_and_some_folders_are_left_alone() {
    let tree = Tree::new();
    for (folder, name) in [
        ("a", "a"),
        ("a/inner", "inside of a"),
        (".hidden/b", "hidden"),
        ("evals/fixtures/x", "x"),
        ("evals/y", "y"),
        ("fixtures", "fixtures"),
        ("deep/evals/fixtures/evals", "test data"),
    ] {
        tree.skill(&format!("skills/public/{folder}"), name);
    }
    // Only folders of test data inside, so nothing in it counts.
    fs::remove_dir_all(tree.path("skills/public/evals/y")).expect("a folder");
    tree.folder("skills/public/a/SKILL.md.d/SKILL.md");
    // A folder of that name makes no skill, and does not hide one.
    tree.folder("skills/public/odd/SKILL.md");
    tree.skill("skills/public/odd/c", "c");
    let loaded = tree.load();
    assert_eq!(names(&loaded), ["a", "c", "fixtures"]);
    assert_eq!(warnings(&tree, &loaded), Vec::<String>::new());

    tree.skill("skills/public/evals/y", "y");
    assert_eq!(tree.names(), ["a", "c", "fixtures", "x", "y"]);
    // A SKILL.md in the category's own folder makes that folder the skill.
    tree.skill("skills/public", "all");
    assert_eq!(tree.names(), ["all"]);
    assert_eq!(
        tree.load().catalog.skills()[0].location.expose(),
        "/mnt/skills/public/SKILL.md"
    );
}

#[test]
fn legacy_skills_stand_in_until_the_user_has_custom_ones() {
    let tree = Tree::new();
    tree.skill("skills/custom/old", "old");
    assert_eq!(tree.load().catalog.skills()[0].category, Category::Legacy);
    tree.folder("home/users/u/skills/custom/empty");
    assert_eq!(tree.names(), ["old"]);
    // One that cannot be used counts as well.
    tree.write("home/users/u/skills/custom/mine/SKILL.md", "no skill");
    let loaded = tree.load();
    assert_eq!(names(&loaded), Vec::<String>::new());
    assert_eq!(
        warnings(&tree, &loaded),
        [
            "skill_skipped: home/users/u/skills/custom/mine/SKILL.md is left out: it does not begin with front matter: its first line is not '---'"
        ]
    );
}

#[test]
fn of_one_name_the_user_s_own_stands_and_the_others_are_said() {
    let tree = Tree::new();
    tree.skill("skills/public/one", "same");
    tree.skill("skills/public/two", "same");
    tree.skill("home/users/u/skills/integrations/p/three", "same");
    tree.skill("home/users/u/skills/custom/four", "same");
    let loaded = tree.load();
    assert_eq!(
        loaded.catalog.get("same").map(|skill| skill.category),
        Some(Category::Custom)
    );
    let by = "/mnt/skills/custom/four/SKILL.md has the same name \"same\"";
    assert_eq!(
        warnings(&tree, &loaded),
        [
            format!("skill_skipped: /mnt/skills/public/one/SKILL.md is left out: {by}"),
            format!("skill_skipped: /mnt/skills/public/two/SKILL.md is left out: {by}"),
            format!("skill_skipped: /mnt/skills/integrations/p/three/SKILL.md is left out: {by}"),
        ]
    );
}

/// SKL-7.
#[test]
fn public_skills_are_switched_by_the_configuration_and_others_by_the_user_s_file() {
    let tree = Tree::new();
    for name in ["a", "b", "c"] {
        tree.skill(&format!("skills/public/{name}"), name);
        tree.skill(
            &format!("home/users/u/skills/custom/{name}"),
            &format!("{name}-own"),
        );
    }
    let mut settings = (*tree.settings()).clone();
    settings.public_states = BTreeMap::from([
        ("a".to_owned(), false),
        ("b".to_owned(), true),
        ("a-own".to_owned(), false),
    ]);
    let settings = Arc::new(settings);
    let dir = SkillsDir::new();
    let off = || {
        let loaded = dir.load(&settings, Some("u")).expect("a name");
        let off: Vec<String> = loaded
            .catalog
            .disabled(&Scope::all())
            .map(|skill| skill.name().to_owned())
            .collect();
        (off, warnings(&tree, &loaded))
    };
    let only = |names: &[&str]| {
        (
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>(),
            Vec::<String>::new(),
        )
    };
    assert_eq!(off(), only(&["a"]));
    // DeerFlow's name of the file, then ours, which counts when both are there.
    tree.write(
        "home/users/u/skills/_skill_states.json",
        r#"{"b-own": {"enabled": false}, "b": {"enabled": false}, "c-own": {}}"#,
    );
    assert_eq!(off(), only(&["a", "b-own"]));
    let states = "home/users/u/skills/skill_states.json";
    tree.write(
        states,
        r#"{"c-own": {"enabled": false}, "b-own": {"enabled": true}}"#,
    );
    assert_eq!(off(), only(&["a", "c-own"]));
    tree.write(states, r#"{"c-own": {"enabled": "no"}, "b-own": false}"#);
    let right = "is not {\"enabled\": true} or {\"enabled\": false}; it counts as on";
    assert_eq!(
        off(),
        (
            vec!["a".to_owned()],
            vec![
                format!("skill_flawed: {states}: the state of \"c-own\" {right}"),
                format!("skill_flawed: {states}: the state of \"b-own\" {right}"),
            ]
        )
    );
    for (bytes, reason) in [
        (
            &b"{\"a"[..],
            "no JSON: EOF while parsing a string at line 1, column 3",
        ),
        (b"[]", "it is no object of skill names"),
        (b"{\"\xff\": {}}", "it is no UTF-8 from byte 2 on"),
    ] {
        tree.write(states, bytes);
        let (names, said) = off();
        assert_eq!(names, ["a"]);
        assert_eq!(
            said,
            [format!(
                "skill_flawed: {states}: {reason}; every skill of the user counts as on"
            )]
        );
    }
    fs::remove_file(tree.path(states)).expect("a file");
    tree.folder(states);
    assert_eq!(off().1.len(), 1);
}

#[test]
fn what_is_wrong_with_one_file_leaves_the_others_alone() {
    let tree = Tree::new();
    let public = |name: &str| format!("skills/public/{name}");
    tree.skill(&public("good"), "good");
    tree.write(&public("bytes/SKILL.md"), b"---\nname: \xff\n---\n");
    tree.write(&public("empty/SKILL.md"), "");
    tree.write(
        &public("large/SKILL.md"),
        "x".repeat(MAX_FILE_BYTES as usize + 1),
    );
    tree.write(
        &public("yaml/SKILL.md"),
        "---\nname: a\ndescription: b: c\n---\n",
    );
    tree.write(
        &public("tools/SKILL.md"),
        "---\nname: a\ndescription: b\nallowed-tools: bash\n---\n",
    );
    tree.write(
        &public("secrets/SKILL.md"),
        "---\nname: secrets\ndescription: b\nrequired-secrets: [1]\n---\n",
    );
    symlink(tree.path(&public("good/SKILL.md")), {
        tree.folder(&public("link"));
        tree.path(&public("link/SKILL.md"))
    })
    .expect("a link");
    let loaded = tree.load();
    assert_eq!(names(&loaded), ["good", "secrets"]);
    let said: Vec<String> = warnings(&tree, &loaded)
        .iter()
        .map(|line| line.replace("skills/public/", ""))
        .collect();
    assert_eq!(
        said,
        [
            "skill_skipped: link/SKILL.md is left out: it is a link, and a SKILL.md has to be a file",
            "skill_skipped: bytes/SKILL.md is left out: it is no UTF-8 from byte 10 on",
            "skill_skipped: empty/SKILL.md is left out: it does not begin with front matter: its first line is not '---'",
            "skill_skipped: large/SKILL.md is left out: it is larger than 1048576 bytes",
            "skill_flawed: secrets/SKILL.md: item 0 of 'required-secrets' is passed over: its name is no name of an environment variable (letters, digits and '_', no digit first)",
            "skill_skipped: tools/SKILL.md is left out: 'allowed-tools' is text where a list of tool names is expected",
            "skill_skipped: yaml/SKILL.md is left out: its front matter is no usable YAML: mapping values are not allowed in this context, at line 3, column 15",
        ]
    );
}

#[test]
fn a_hostile_tree_neither_stops_nor_stalls() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let tree = Tree::new();
    let public = tree.path("skills/public");
    tree.skill("skills/public/good", "good");
    tree.skill("outside/stolen", "stolen");
    // Loops, ways out, and a link to nowhere.
    tree.folder("skills/public/loop/inner");
    symlink(&public, public.join("loop/inner/up")).expect("a link");
    symlink("self", public.join("loop/self")).expect("a link");
    symlink("../cross-b", {
        tree.folder("skills/public/cross-a");
        public.join("cross-a/b")
    })
    .expect("a link");
    symlink("../cross-a", {
        tree.folder("skills/public/cross-b");
        public.join("cross-b/a")
    })
    .expect("a link");
    symlink(tree.path("outside"), public.join("out")).expect("a link");
    symlink("/dev", public.join("dev")).expect("a link");
    // One that stays inside is followed.
    symlink("../good", {
        tree.folder("skills/public/alias");
        public.join("alias/again")
    })
    .expect("a link");
    // A pipe nobody writes to, where a SKILL.md is expected.
    tree.folder("skills/public/pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(public.join("pipe/SKILL.md"))
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    // Ten thousand files beside the skills, and a folder of ten thousand empty folders.
    for number in 0..10_000 {
        fs::write(public.join(format!("file{number}")), "").expect("a file");
        fs::create_dir_all(public.join(format!("many/{number}"))).expect("a folder");
    }
    let deep = format!("skills/public/deep/{}", "d/".repeat(200));
    tree.skill(&deep, "deep");
    fs::create_dir(public.join(OsStr::from_bytes(b"bad\xff"))).expect("a folder");
    tree.folder("skills/public/two\nlines");

    let began = Instant::now();
    let loaded = tree.load();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    // The alias has the same name, and the later path stands.
    assert_eq!(names(&loaded), ["good"]);
    let mut said: Vec<String> = warnings(&tree, &loaded)
        .iter()
        .map(|line| {
            line.replace("skill_skipped: ", "")
                .replace("skills/public/", "")
                .replace(" is left out", "")
        })
        .collect();
    said.sort();
    let deepest = format!("deep/{}", "d/".repeat(MAX_DEPTH))
        .trim_end_matches('/')
        .to_owned();
    let mut expected = vec![
        "/mnt/alias/again/SKILL.md: /mnt/good/SKILL.md has the same name \"good\"".to_owned(),
        "bad\u{fffd}: its name is no UTF-8 or holds control characters".to_owned(),
        "cross-a/b/a: the link leads back to a folder that it stands in".to_owned(),
        "cross-b/a/b: the link leads back to a folder that it stands in".to_owned(),
        format!("{deepest}: it is more than {MAX_DEPTH} folders deep"),
        "dev: the link leads out of the folder of its category".to_owned(),
        "loop/inner/up: the link leads back to a folder that it stands in".to_owned(),
        "loop/self: the link leads nowhere: Too many levels of symbolic links (os error 40)"
            .to_owned(),
        "out: the link leads out of the folder of its category".to_owned(),
        "pipe/SKILL.md: it is no regular file".to_owned(),
        "two\nlines: its name is no UTF-8 or holds control characters".to_owned(),
    ];
    expected.sort();
    assert_eq!(said, expected);
    // The same again, in the same order.
    let again = tree.load();
    assert_eq!(loaded.catalog, again.catalog);
    let sorted = |loaded: &Loaded| {
        let mut said = warnings(&tree, loaded);
        said.sort();
        said
    };
    assert_eq!(sorted(&loaded), sorted(&again));
}

#[test]
fn bounds_end_a_search_at_the_same_place_each_time() {
    let tree = Tree::new();
    for number in 0..MAX_SKILLS + 5 {
        tree.skill(
            &format!("skills/public/s{number:05}"),
            &format!("s{number:05}"),
        );
    }
    for number in 0..MAX_WARNINGS + 20 {
        tree.write(
            &format!("home/users/u/skills/custom/bad{number:05}/SKILL.md"),
            "",
        );
    }
    let loaded = tree.load();
    assert_eq!(loaded.catalog.skills().len(), MAX_SKILLS);
    assert_eq!(
        loaded.catalog.skills().last().map(|skill| skill.name()),
        Some("s01023")
    );
    let said = warnings(&tree, &loaded);
    assert_eq!(said.len(), MAX_WARNINGS + 1);
    assert_eq!(
        said[0],
        "skill_skipped: skills/public/s01024/SKILL.md is left out: there are 1024 skills before it, and no more are taken"
    );
    assert_eq!(
        said[MAX_WARNINGS],
        "skill_skipped: 21 more warnings about skills are left away"
    );

    // Nine files of nearly the largest size are more than all may be together.
    let tree = Tree::new();
    for number in 0..9 {
        let text = text(
            &format!("n{number}"),
            &"x".repeat(MAX_FILE_BYTES as usize - 100),
        );
        tree.write(&format!("skills/public/{number}/SKILL.md"), text);
    }
    let loaded = tree.load();
    assert_eq!(loaded.catalog.skills().len(), 8);
    assert_eq!(
        warnings(&tree, &loaded),
        [
            "skill_skipped: skills/public/8/SKILL.md is left out: all SKILL.md files together are larger than 8388608 bytes"
        ]
    );
}

#[test]
fn folders_that_cannot_be_read_become_warnings() {
    let tree = Tree::new();
    tree.write("skills/public", "a file");
    tree.skill("home/users/u/skills/custom/good", "good");
    tree.skill("home/users/u/skills/custom/shut/inner", "inner");
    let shut = tree.path("home/users/u/skills/custom/shut");
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).expect("a folder");
    let is_shut = fs::read_dir(&shut).is_err();
    let loaded = tree.load();
    let said = warnings(&tree, &loaded);
    assert!(
        said[0].starts_with("skill_skipped: skills/public is left out: it cannot be listed: "),
        "{said:?}"
    );
    // The superuser may read everything.
    if is_shut {
        assert_eq!(names(&loaded), ["good"]);
        assert!(
            said[1].contains("custom/shut is left out: it cannot be read: "),
            "{said:?}"
        );
    }
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o755)).expect("a folder");
    assert_eq!(tree.names(), ["good", "inner"]);
}

/// I1: nobody's skills are another's.
#[test]
fn folders_of_users_stand_where_they_belong() {
    let tree = Tree::new();
    tree.skill("home/users/other/skills/custom/x", "theirs");
    symlink("other", tree.path("home/users/u")).expect("a link");
    let loaded = tree.load();
    assert_eq!(names(&loaded), Vec::<String>::new());
    assert_eq!(
        warnings(&tree, &loaded),
        [
            "skill_skipped: home/users/u/skills/custom is left out: a link stands on the way to it, and folders of users have to stand where they belong"
        ]
    );
    // The operator's own folders may be links.
    tree.skill("elsewhere/a", "a");
    symlink("../elsewhere", tree.path("skills/public")).expect("a link");
    symlink("home", tree.path("data")).expect("a link");
    let mut settings = (*tree.settings()).clone();
    settings.home = Some(tree.path("data"));
    let loaded = SkillsDir::new()
        .load(&Arc::new(settings), Some("other"))
        .expect("a name");
    assert_eq!(names(&loaded), ["a", "theirs"]);
}

/// I6.
#[test]
fn names_of_users_cannot_become_other_paths() {
    let (tree, dir) = (Tree::new(), SkillsDir::new());
    for bad in [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "a\0",
        "a b",
        "é",
        "CON",
        "nul",
        "com1",
        &"x".repeat(129),
    ] {
        let error = dir.load(&tree.settings(), Some(bad)).expect_err(bad);
        assert_eq!(error.code, ErrorCode::OutOfRange, "{bad:?}");
    }
    for good in ["a", "A-Z_0", "console", "com12", &"x".repeat(128)] {
        assert!(dir.load(&tree.settings(), Some(good)).is_ok(), "{good:?}");
    }
    assert_eq!(dir.kept(), 5);
}

/// X12: what counts is what the file says, not its time.
#[test]
fn every_edit_is_seen_by_the_next_load() {
    let tree = Tree::new();
    tree.skill("skills/public/a", "a");
    tree.skill("skills/public/group/b", "b");
    let (dir, settings) = (SkillsDir::new(), tree.settings());
    let now = || names(&dir.load(&settings, Some("u")).expect("a name"));
    let body = || {
        let loaded = dir.load(&settings, Some("u")).expect("a name");
        loaded
            .catalog
            .get("a")
            .expect("a skill")
            .content
            .to_string()
    };
    // Both right after one another, and when what was read before has settled.
    for pause in [Duration::ZERO, Duration::from_millis(60)] {
        let settle = || {
            std::thread::sleep(pause);
            dir.load(&settings, Some("u")).expect("a name")
        };
        settle();
        assert_eq!(now(), ["a", "b"]);
        settle();
        // Of the same size, with its time put back.
        let file = tree.path("skills/public/a/SKILL.md");
        let time = fs::metadata(&file)
            .and_then(|facts| facts.modified())
            .expect("a time");
        for round in 0..20 {
            let text = text("a", &format!("body {round:02}"));
            fs::write(&file, &text).expect("a file");
            let times = FileTimes::new().set_modified(time);
            File::options()
                .append(true)
                .open(&file)
                .and_then(|file| file.set_times(times))
                .expect("a time");
            assert_eq!(body(), text, "{pause:?} {round}");
        }
        settle();
        // Replaced by another file.
        tree.write("new.md", text("a", "body 99"));
        fs::rename(tree.path("new.md"), &file).expect("a file");
        assert!(body().ends_with("99"));
        settle();
        tree.skill("skills/public/c", "c");
        assert_eq!(now(), ["a", "b", "c"]);
        settle();
        tree.skill("skills/public/group/d", "d");
        assert_eq!(now(), ["a", "b", "c", "d"]);
        settle();
        fs::remove_file(tree.path("skills/public/c/SKILL.md")).expect("a file");
        assert_eq!(now(), ["a", "b", "d"]);
        settle();
        tree.skill("skills/public/c", "c");
        assert_eq!(now(), ["a", "b", "c", "d"]);
        settle();
        fs::remove_dir_all(tree.path("skills/public/c")).expect("a folder");
        fs::rename(tree.path("skills/public/group/d"), tree.path("d")).expect("a folder");
        assert_eq!(now(), ["a", "b"]);
        settle();
        tree.skill("home/users/u/skills/custom/own", "own");
        assert_eq!(now(), ["a", "b", "own"]);
        settle();
        tree.write(
            "home/users/u/skills/skill_states.json",
            r#"{"own": {"enabled": false}}"#,
        );
        assert!(
            !dir.load(&settings, Some("u"))
                .expect("a name")
                .catalog
                .get("own")
                .expect("a skill")
                .enabled
        );
        settle();
        fs::remove_dir_all(tree.path("home/users")).expect("a folder");
        assert_eq!(now(), ["a", "b"]);
        fs::remove_dir_all(tree.path("d")).expect("a folder");
    }
}

#[test]
fn an_unchanged_catalogue_is_the_same_object_and_users_share_public_skills() {
    let tree = Tree::new();
    tree.skill("skills/public/a", "a");
    tree.skill("skills/public/b", "b");
    tree.skill("home/users/u/skills/custom/own", "own");
    let (dir, settings) = (SkillsDir::new(), tree.settings());
    let load = |user: &str| dir.load(&settings, Some(user)).expect("a name");
    let first = load("u");
    for pause in [0, 60, 0] {
        std::thread::sleep(Duration::from_millis(pause));
        let next = load("u");
        assert!(
            Arc::ptr_eq(&first.catalog, &next.catalog)
                && Arc::ptr_eq(&first.warnings, &next.warnings)
        );
    }
    let other = load("v");
    let skill = |loaded: &Loaded, name: &str| loaded.catalog.get(name).expect("a skill").clone();
    assert_eq!(names(&other), ["a", "b"]);
    let settled = load("u");
    for name in ["a", "b"] {
        assert!(Arc::ptr_eq(
            &skill(&settled, name).content,
            &skill(&load("w"), name).content
        ));
    }
    // An edit replaces the one skill that it changes.
    tree.write("skills/public/a/SKILL.md", text("a", "new"));
    let edited = load("u");
    assert!(!Arc::ptr_eq(&skill(&settled, "a"), &skill(&edited, "a")));
    assert!(skill(&edited, "a").content.ends_with("new"));
    assert!(skill(&load("v"), "a").content.ends_with("new"));
    // Asked to, it reads everything anew.
    dir.reload();
    assert_eq!(dir.kept(), 0);
    let anew = load("u");
    assert_eq!(anew.catalog, edited.catalog);
    assert!(!Arc::ptr_eq(
        &skill(&edited, "b").content,
        &skill(&anew, "b").content
    ));
}

/// PR-11a.
#[test]
fn the_catalogue_that_was_used_longest_ago_goes_first() {
    let (tree, dir) = (Tree::new(), SkillsDir::new());
    tree.skill("skills/public/a", "a");
    let settings = tree.settings();
    let load = |user: usize| {
        dir.load(&settings, Some(&format!("u{user}")))
            .expect("a name")
            .catalog
    };
    let first = load(0);
    for user in 1..MAX_CATALOGS {
        load(user);
        if user % 50 == 0 {
            load(0);
        }
    }
    assert_eq!(dir.kept(), MAX_CATALOGS);
    load(MAX_CATALOGS);
    assert_eq!(dir.kept(), MAX_CATALOGS);
    assert!(Arc::ptr_eq(&first, &load(0)));
}

#[test]
fn loading_while_files_come_and_go_gives_whole_skills_only() {
    let (tree, dir) = (Tree::new(), SkillsDir::new());
    tree.skill("skills/public/stays", "stays");
    let settings = tree.settings();
    let end = Instant::now() + Duration::from_millis(400);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut round = 0;
            while Instant::now() < end {
                round += 1;
                let folder = tree.path(&format!("skills/public/moves{}", round % 3));
                let _ = fs::create_dir(&folder);
                let _ = fs::write(tree.path("next"), text("moves", &format!("{round}")));
                let _ = fs::rename(tree.path("next"), folder.join("SKILL.md"));
                let _ = fs::remove_dir_all(
                    tree.path(&format!("skills/public/moves{}", (round + 1) % 3)),
                );
            }
        });
        for _ in 0..4 {
            threads.spawn(|| {
                while Instant::now() < end {
                    let loaded = dir.load(&settings, Some("u")).expect("a name");
                    assert!(loaded.catalog.get("stays").is_some());
                    let skills = loaded.catalog.skills().iter();
                    assert!(
                        skills
                            .filter(|skill| skill.name() != "stays")
                            .all(|skill| skill.name() == "moves")
                    );
                }
            });
        }
    });
    // What is there now is what is answered now.
    let (kept, fresh) = (dir.load(&settings, Some("u")).expect("a name"), tree.load());
    assert_eq!(kept.catalog, fresh.catalog);
}

#[test]
fn a_time_in_the_future_does_not_keep_a_file_from_settling() {
    let tree = Tree::new();
    tree.skill("skills/public/a", "a");
    let file = File::options()
        .append(true)
        .open(tree.path("skills/public/a/SKILL.md"))
        .expect("a file");
    let future = SystemTime::now() + Duration::from_secs(1_000_000);
    file.set_times(FileTimes::new().set_modified(future))
        .expect("a time");
    let stamp = file::Stamp::of_file(&tree.path("skills/public/a/SKILL.md")).expect("a stamp");
    std::thread::sleep(Duration::from_millis(30));
    assert!(file::is_settled(&stamp, SystemTime::now()));
}

/// Medians of loads that alternate, so that a busy machine slows both.
#[test]
fn an_unchanged_catalogue_costs_a_fraction_of_reading_it() {
    let tree = Tree::new();
    for number in 0..30 {
        let text = text(
            &format!("s{number}"),
            &"A line of the body of a skill.\n".repeat(120),
        );
        tree.write(&format!("skills/public/s{number}/SKILL.md"), text);
    }
    let (kept, settings) = (SkillsDir::new(), tree.settings());
    std::thread::sleep(Duration::from_millis(60));
    let load = |dir: &SkillsDir| {
        let began = Instant::now();
        dir.load(&settings, Some("u")).expect("a name");
        began.elapsed()
    };
    load(&kept);
    let (mut cold, mut warm): (Vec<_>, Vec<_>) = (0..101)
        .map(|_| (load(&SkillsDir::new()), load(&kept)))
        .unzip();
    cold.sort();
    warm.sort();
    assert!(
        warm[50] * 3 < cold[50],
        "warm {:?}, cold {:?}",
        warm[50],
        cold[50]
    );
}

/// The result of work that is done in place.
fn ready<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("nothing waits")
}

/// What an agent that runs asks, for the user `u`.
fn library(tree: &Tree) -> UserSkills {
    let dir = Arc::new(SkillsDir::new());
    UserSkills::new(dir, tree.settings(), Some("u".to_owned()), Offload::Inline)
}

fn read_now(library: &UserSkills, skill: &Arc<crate::skills::Skill>) -> Result<String, String> {
    let read = ready(library.read(skill.clone()));
    read.map(|text| text.to_string())
        .map_err(|error| error.message)
}

#[test]
fn a_running_agent_sees_the_skills_of_its_user_as_they_are_now() {
    let tree = Tree::new();
    tree.skill("skills/public/group/a", "a");
    tree.skill("skills/custom/old", "old");
    tree.skill("home/users/u/skills/integrations/mail", "mail");
    tree.skill("home/users/other/skills/custom/theirs", "theirs");
    let library = library(&tree);
    let loaded = || ready(library.load()).expect("skills");
    let catalog = loaded();
    assert_eq!(catalog.skills().len(), 3);
    for skill in catalog.skills() {
        let text = read_now(&library, skill).expect("text");
        assert_eq!(*skill.content, *text, "{}", skill.location.expose());
    }
    // Edited, added, switched off, taken away: each shows in the next answer.
    let a = catalog.get("a").expect("a skill").clone();
    tree.write("skills/public/group/a/SKILL.md", text("a", "new"));
    assert_eq!(read_now(&library, &a), Ok(text("a", "new")));
    assert_eq!(
        *loaded().get("a").expect("a skill").content,
        text("a", "new")
    );
    tree.skill("home/users/u/skills/custom/own", "own");
    tree.write(
        "home/users/u/skills/skill_states.json",
        r#"{"own": {"enabled": false}}"#,
    );
    let own = loaded().get("own").expect("a skill").clone();
    assert!(!own.enabled);
    assert_eq!(read_now(&library, &own), Ok(text("own", "")));
    fs::remove_dir_all(tree.path("skills/public/group")).expect("gone");
    assert!(loaded().get("a").is_none());
    assert!(read_now(&library, &a).is_err());
}

/// What takes the place of a file or folder after it was found is not read.
#[test]
fn a_skill_s_file_is_read_where_it_belongs_or_not_at_all() {
    let secret = text("a", "SECRET");
    let fresh = || {
        let tree = Tree::new();
        tree.skill("home/users/u/skills/custom/a", "a");
        tree.write("home/users/other/skills/custom/a/SKILL.md", &secret);
        let library = library(&tree);
        let skill = ready(library.load()).expect("skills").get("a").cloned();
        (tree, library, skill.expect("a skill"))
    };
    type Swap = fn(&Tree);
    let swaps: &[(&str, Swap)] = &[
        ("a link for the file", |tree| {
            let file = tree.path("home/users/u/skills/custom/a/SKILL.md");
            fs::remove_file(&file).expect("gone");
            symlink(tree.path("home/users/other/skills/custom/a/SKILL.md"), file).expect("a link");
        }),
        ("a link for the folder", |tree| {
            let folder = tree.path("home/users/u/skills/custom/a");
            fs::remove_dir_all(&folder).expect("gone");
            symlink(tree.path("home/users/other/skills/custom/a"), folder).expect("a link");
        }),
        ("a link for the category", |tree| {
            let folder = tree.path("home/users/u/skills/custom");
            fs::remove_dir_all(&folder).expect("gone");
            symlink(tree.path("home/users/other/skills/custom"), folder).expect("a link");
        }),
        ("a link for the user", |tree| {
            let folder = tree.path("home/users/u");
            fs::remove_dir_all(&folder).expect("gone");
            symlink(tree.path("home/users/other"), folder).expect("a link");
        }),
        ("a pipe", |tree| {
            let file = tree.path("home/users/u/skills/custom/a/SKILL.md");
            fs::remove_file(&file).expect("gone");
            let status = std::process::Command::new("mkfifo").arg(&file).status();
            assert!(status.expect("mkfifo").success());
        }),
        ("a folder", |tree| {
            let file = tree.path("home/users/u/skills/custom/a/SKILL.md");
            fs::remove_file(&file).expect("gone");
            fs::create_dir(&file).expect("a folder");
        }),
        ("too much", |tree| {
            let file = tree.path("home/users/u/skills/custom/a/SKILL.md");
            fs::write(&file, vec![b'x'; 2 << 20]).expect("a file");
        }),
        ("no text", |tree| {
            let file = tree.path("home/users/u/skills/custom/a/SKILL.md");
            fs::write(&file, b"---\nname: \xff").expect("a file");
        }),
    ];
    for (what, swap) in swaps {
        let (tree, library, skill) = fresh();
        assert!(read_now(&library, &skill).is_ok());
        swap(&tree);
        let fault = read_now(&library, &skill).expect_err(what);
        assert!(!fault.contains("SECRET"), "{what}: {fault}");
    }
}

//! The files of threads on a real disk, and what hostile trees cannot do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use futures_util::FutureExt;

use super::*;

/// The result of work that is done on the thread that polls.
fn ready<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("it waits for nothing")
}

/// A home of its own below the system's temporary folder, with a folder beside it that nobody may reach.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "fawn-files-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("home")).expect("a folder");
        fs::create_dir_all(path.join("outside")).expect("a folder");
        let tree = Tree(path.canonicalize().expect("a folder"));
        tree.put("outside/secret", "CANARY");
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// A place of the thread `t` of the user `u`.
    fn of_thread(&self, path: &str) -> PathBuf {
        self.at("home/users/u/threads/t/user-data").join(path)
    }

    fn put(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn files(&self) -> ThreadFilesDir {
        ThreadFilesDir::new(self.at("home"), UserId::new("u"), Offload::Inline)
    }

    fn read(&self, path: &str) -> Result<Option<String>, ErrorCode> {
        let read = ready(
            self.files()
                .read("t".into(), format!("/mnt/user-data/{path}"), 1 << 20),
        );
        read.map(|found| found.map(|it| String::from_utf8_lossy(&it.head).into_owned()))
            .map_err(|error| {
                assert!(!error.message.contains("fawn-files"), "{}", error.message);
                error.code
            })
    }

    fn write(&self, path: &str, text: &str) -> Result<(), ErrorCode> {
        let path = format!("/mnt/user-data/{path}");
        ready(self.files().write("t".into(), path, text.to_owned())).map_err(|error| {
            assert!(!error.message.contains("fawn-files"), "{}", error.message);
            error.code
        })
    }

    /// The names in a folder.
    fn listed(&self, path: PathBuf) -> Vec<String> {
        let entries = fs::read_dir(path).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort();
        names
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn make_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo").success());
}

#[test]
fn mw_thd_1_and_sbx_15_the_folders_of_a_thread_are_the_user_s() {
    let tree = Tree::new();
    let paths = tree.files().paths("t").expect("paths");
    assert_eq!(
        paths.workspace,
        tree.of_thread("workspace").to_string_lossy()
    );
    assert_eq!(paths.uploads, tree.of_thread("uploads").to_string_lossy());
    assert_eq!(paths.outputs, tree.of_thread("outputs").to_string_lossy());
    assert_eq!(tree.listed(tree.at("home")), [""; 0], "no disk is touched");

    ready(tree.files().make_directories("t".into())).expect("made");
    ready(tree.files().make_directories("t".into())).expect("made before");
    assert_eq!(
        tree.listed(tree.of_thread("")),
        ["outputs", "uploads", "workspace"]
    );
}

#[test]
fn i6_ids_of_threads_never_become_paths_as_they_are() {
    let tree = Tree::new();
    let files = tree.files();
    assert_eq!(
        files.paths("").expect_err("no id").code,
        ErrorCode::OutOfRange
    );
    let long = "ä".repeat(127);
    let mut seen = std::collections::HashSet::new();
    for id in [
        "../x", "a/b", "a-b", "..", ".", "CON", "a b", "x:y", "a\u{0}", &long,
    ] {
        let paths = files.paths(id).expect(id);
        let below = paths
            .outputs
            .strip_prefix(&*tree.at("home/users/u/threads/").to_string_lossy());
        let below = below.unwrap_or_else(|| panic!("{id:?} gave {}", paths.outputs));
        let name = below
            .trim_start_matches('/')
            .strip_suffix("/user-data/outputs");
        let name = name.unwrap_or_else(|| panic!("{id:?} gave {}", paths.outputs));
        assert!(!name.contains('/') && !name.contains('.'), "{id:?}: {name}");
        assert!(seen.insert(name.to_owned()), "{id:?} meets another");
        let path = "/mnt/user-data/outputs/f".to_owned();
        ready(files.write(id.to_owned(), path, "x".into())).expect(id);
    }
    assert!(!tree.at("home/users/u/x").exists());
    assert!(!tree.at("home/users/u/threads/user-data").exists());
}

#[test]
fn i1_the_same_thread_of_two_users_is_two_threads() {
    let tree = Tree::new();
    tree.write("outputs/a", "of u").expect("written");
    let other = ThreadFilesDir::new(tree.at("home"), UserId::new("v"), Offload::Inline);
    let read = ready(other.read("t".into(), "/mnt/user-data/outputs/a".into(), 9));
    assert_eq!(read, Ok(None));
}

#[test]
fn a_file_is_read_as_far_as_it_was_asked_for() {
    let tree = Tree::new();
    assert_eq!(tree.read("uploads/a"), Ok(None), "there is no thread yet");
    tree.put(tree.of_thread("uploads/x/a"), "0123456789");
    let of = |max| {
        let files = tree.files();
        let read = files.read("t".into(), "/mnt/user-data/uploads/x/a".into(), max);
        ready(read).expect("read").expect("there")
    };
    assert_eq!((of(0).size, of(0).head), (10, Vec::new()));
    assert_eq!((of(4).size, of(4).head), (10, b"0123".to_vec()));
    assert_eq!((of(99).size, of(99).head), (10, b"0123456789".to_vec()));
    assert_eq!(tree.read("uploads/x"), Ok(None), "a folder is no file");
    assert_eq!(tree.read("uploads/x/a/b"), Ok(None), "a file is no folder");
    assert_eq!(tree.read("uploads/none/b"), Ok(None));
    assert_eq!(tree.read("../t2/a"), Err(ErrorCode::OutOfRange));
    // 8 TiB of holes take no memory.
    let huge = fs::File::create(tree.of_thread("uploads/huge")).expect("a file");
    if huge.set_len(8 << 40).is_ok() {
        let files = tree.files();
        let read = files.read("t".into(), "/mnt/user-data/uploads/huge".into(), 8);
        let huge = ready(read).expect("read").expect("there");
        assert_eq!((huge.size, huge.head), (8 << 40, vec![0; 8]));
    }
}

#[test]
fn sbx_15_and_upl_2_no_link_leads_out_of_a_thread() {
    let tree = Tree::new();
    tree.put(tree.of_thread("uploads/real/a"), "a");
    let secret = tree.at("outside/secret");
    symlink(&secret, tree.of_thread("uploads/link")).expect("a link");
    symlink(tree.at("outside"), tree.of_thread("uploads/dir")).expect("a link");
    symlink("real", tree.of_thread("uploads/inside")).expect("a link");
    symlink("nowhere", tree.of_thread("uploads/dangling")).expect("a link");
    symlink("loop", tree.of_thread("uploads/loop")).expect("a link");
    fs::hard_link(&secret, tree.of_thread("uploads/hard")).expect("a link");
    for path in [
        "uploads/link",
        "uploads/dir/secret",
        "uploads/inside/a",
        "uploads/dangling",
        "uploads/loop",
        "uploads/loop/a",
        "uploads/hard",
    ] {
        assert_eq!(tree.read(path), Err(ErrorCode::OutOfRange), "read {path}");
        assert_eq!(
            tree.write(path, "x"),
            Err(ErrorCode::OutOfRange),
            "write {path}"
        );
    }
    assert_eq!(fs::read_to_string(&secret).expect("a file"), "CANARY");
    assert_eq!(tree.listed(tree.at("outside")), ["secret"]);

    // Each folder of the layout may be a link as well.
    for place in [
        "users",
        "users/u",
        "users/u/threads",
        "users/u/threads/t",
        "users/u/threads/t/user-data",
    ] {
        let tree = Tree::new();
        tree.put("outside/threads/t/user-data/uploads/a", "CANARY");
        let place = tree.at("home").join(place);
        fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        symlink(tree.at("outside"), &place).expect("a link");
        assert_eq!(
            tree.read("uploads/a"),
            Err(ErrorCode::OutOfRange),
            "{place:?}"
        );
        assert_eq!(
            tree.write("uploads/b", "x"),
            Err(ErrorCode::OutOfRange),
            "{place:?}"
        );
        let made = ready(tree.files().make_directories("t".into()));
        assert_eq!(made.expect_err("a link").code, ErrorCode::OutOfRange);
        assert_eq!(tree.listed(tree.at("outside")), ["secret", "threads"]);
    }
}

#[test]
fn home_itself_is_the_operator_s_and_may_be_a_link_or_not_there_yet() {
    let tree = Tree::new();
    symlink(tree.at("home"), tree.at("alias")).expect("a link");
    let files = ThreadFilesDir::new(tree.at("alias"), UserId::new("u"), Offload::Inline);
    ready(files.write("t".into(), "/mnt/user-data/outputs/a".into(), "x".into())).expect("written");
    assert_eq!(tree.read("outputs/a"), Ok(Some("x".to_owned())));
    let files = ThreadFilesDir::new(tree.at("new/home"), UserId::new("u"), Offload::Inline);
    ready(files.write("t".into(), "/mnt/user-data/outputs/a".into(), "x".into())).expect("written");
    assert!(
        tree.at("new/home/users/u/threads/t/user-data/outputs/a")
            .is_file()
    );
}

#[test]
fn pipes_sockets_and_what_cannot_be_read_are_no_files_and_hold_nothing_up() {
    let tree = Tree::new();
    tree.put(tree.of_thread("uploads/a"), "a");
    let began = Instant::now();
    make_fifo(&tree.of_thread("uploads/pipe"));
    let _socket =
        std::os::unix::net::UnixListener::bind(tree.of_thread("uploads/sock")).expect("a socket");
    for path in ["uploads/pipe", "uploads/sock"] {
        assert_eq!(tree.read(path), Ok(None), "{path}");
        assert_eq!(tree.write(path, "x"), Err(ErrorCode::Store), "{path}");
        assert_eq!(tree.read(&format!("{path}/a")), Ok(None), "{path}");
    }
    assert_eq!(
        tree.write("uploads/a/b", "x"),
        Err(ErrorCode::Store),
        "a file is no folder"
    );
    assert!(began.elapsed().as_secs() < 5);

    let closed = tree.of_thread("uploads/closed");
    tree.put(&closed, "x");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("permissions");
    // Root may read everything.
    if fs::read(&closed).is_err() {
        assert_eq!(tree.read("uploads/closed"), Err(ErrorCode::Store));
    }
    let folder = tree.of_thread("uploads/folder");
    fs::create_dir(&folder).expect("a folder");
    assert_eq!(tree.write("uploads/folder", "x"), Err(ErrorCode::Store));
    assert_eq!(tree.read("uploads/folder"), Ok(None));
}

#[test]
fn a_write_is_whole_or_not_at_all_and_leaves_nothing_beside_it() {
    let tree = Tree::new();
    tree.write("outputs/x/y/a", "first").expect("written");
    tree.write("outputs/x/y/a", "second")
        .expect("written again");
    assert_eq!(tree.read("outputs/x/y/a"), Ok(Some("second".to_owned())));
    assert_eq!(tree.listed(tree.of_thread("outputs/x/y")), ["a"]);
    // Somebody reads the file while it is replaced: one text or the other.
    let place = tree.of_thread("outputs/x/y/a");
    let texts = ["1".repeat(1 << 16), "2".repeat(1 << 16)];
    tree.write("outputs/x/y/a", &texts[0]).expect("written");
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            for _ in 0..200 {
                let seen = fs::read_to_string(&place).expect("a file");
                assert!(texts.contains(&seen), "{} bytes", seen.len());
            }
        });
        for turn in 0..20 {
            tree.write("outputs/x/y/a", &texts[turn % 2])
                .expect("written");
        }
        reader.join().expect("whole texts");
    });
    // A folder that cannot be written stays as it is.
    let folder = tree.of_thread("outputs/x/y");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).expect("permissions");
    if fs::write(folder.join("probe"), "").is_err() {
        assert_eq!(tree.write("outputs/x/y/a", "third"), Err(ErrorCode::Store));
        assert_ne!(tree.read("outputs/x/y/a"), Ok(Some("third".to_owned())));
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("permissions");
    // What a writer that died left behind is in nobody's way.
    tree.put(folder.join(".upload-0-0.part"), "half");
    tree.write("outputs/x/y/a", "fourth").expect("written");
}

#[test]
fn a_folder_that_is_swapped_for_a_link_while_it_is_read_leads_nowhere() {
    let tree = Tree::new();
    tree.put(tree.of_thread("uploads/d/secret"), "mine");
    let (here, away) = (tree.of_thread("uploads/d"), tree.of_thread("uploads/away"));
    let link = tree.of_thread("uploads/link");
    symlink(tree.at("outside"), &link).expect("a link");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(&here, &away);
                let _ = fs::rename(&link, &here);
                let _ = fs::rename(&here, &link);
                let _ = fs::rename(&away, &here);
            }
        });
        for _ in 0..2_000 {
            if let Ok(Some(text)) = tree.read("uploads/d/secret") {
                assert_eq!(text, "mine");
            }
            let _ = tree.write("uploads/d/new", "x");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(tree.listed(tree.at("outside")), ["secret"]);
}

//! The rules by which a command is dangerous or only risky, and the examination of a command by them.
//!
//! Source: DeerFlow `SandboxAuditMiddleware`, MW-AUD-2 to MW-AUD-4. Where the reference knows one spelling of a thing, the
//! spellings that do the same are known too.

use std::sync::LazyLock;

use regex::RegexSet;

use super::shell::{Statement, at_command, statements, words};
use super::work;
use crate::state::python::is_space;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Risk {
    /// The command is not run.
    High,
    /// It is run, and the model is told.
    Medium,
}

/// What a rule is looked for in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The command as a whole, and each statement.
    Anywhere,
    /// Each statement: what it says only holds where the statement ends.
    Statement,
    /// What stands at the place of the command in a statement.
    Command,
}

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its name, for logs and tests.
    pub(super) name: &'static str,
    pub(super) risk: Risk,
    /// What a command does that it fits, for the model: "it …".
    pub(super) about: &'static str,
    scope: Scope,
    pattern: &'static str,
}

/// Programs whose output nobody should run.
macro_rules! risky {
    () => {
        r"(?:[^\s()]*/)?(?:curl|wget|bash|sh|python[0-9.]*|ruby|perl|base64)\b(?:[^/]|$)"
    };
}

/// A substitution that begins with one of them: `$(…`, `<(…` or a backtick.
macro_rules! substitution {
    () => {
        concat!(r"(?:[$<]\(\s*|`\s*)", risky!())
    };
}

/// Programs that run a text which they are given.
macro_rules! interpreter {
    () => {
        r"\b(?:(?:ba|da|k|z)?sh|python[0-9.]*|perl|ruby|node|php)\b"
    };
}

/// The root, or a home directory.
macro_rules! root_or_home {
    () => {
        r"(?:/|~/?|\$\{?HOME\}?/?|/home[/]?|/root[/]?)\*?"
    };
}

const fn high(name: &'static str, about: &'static str, pattern: &'static str) -> Rule {
    Rule {
        name,
        risk: Risk::High,
        about,
        scope: Scope::Anywhere,
        pattern,
    }
}

const fn medium(name: &'static str, about: &'static str, pattern: &'static str) -> Rule {
    Rule {
        name,
        risk: Risk::Medium,
        about,
        scope: Scope::Statement,
        pattern,
    }
}

/// All of them; of those of one risk that fit, the first is told. Patterns see text whose white space is single spaces, and
/// take time in proportion to it whatever they are.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "recursive_delete",
        risk: Risk::High,
        about: "deletes the root or a home directory with all that is in it",
        scope: Scope::Statement,
        // Behind the target only flags, redirections and what closes a group may come: this is also looked for in texts that
        // are no commands.
        pattern: concat!(
            r"\brm\s+(?:-\S+\s+)*-\S*[rR]\S*\s+(?:[^\s;|&]+\s+)*",
            root_or_home!(),
            r#"(?:\s+-\S+|\s*[0-9]*(?:&>|[<>])\S*(?:\s+[^\s;|&-][^\s;|&]*)?)*[\s)}`"']*$"#,
        ),
    },
    Rule {
        name: "recursive_delete_among_others",
        risk: Risk::High,
        about: "deletes the root or a home directory with all that is in it",
        scope: Scope::Command,
        pattern: concat!(
            r"^(?:\S*/)?rm\s(?:.*\s)?-\S*[rR]\S*\s(?:.*\s)?",
            root_or_home!(),
            r"(?:\s|$)|^(?:\S*/)?rm\s(?:.*\s)?",
            root_or_home!(),
            r"\s(?:.*\s)?-\S*[rR]",
        ),
    },
    high(
        "raw_disk_write",
        "writes to a disk past its file system",
        r"\bdd\s+if=|\bdd\s[^;|&]*\bof=/dev/|>\|?\s*/dev/(?:[shv]d[a-z]|xvd|nvme|mmcblk|disk)",
    ),
    high("make_filesystem", "makes a new file system", r"\bmkfs"),
    high(
        "password_hashes",
        "reads the hashes of passwords",
        r"(?:\b(?:cat|tac|less|more|head|tail|strings|xxd|od|base64|grep|sed|awk|cut|cp|tee|dd)\s[^;|&]*|<\s*)/etc/g?shadow",
    ),
    high(
        "system_configuration",
        "writes into /etc",
        r#">+\|?\s*["']?/etc/"#,
    ),
    high(
        "system_programs",
        "overwrites programs of the system",
        r#">+\|?\s*["']?/(?:usr/(?:local/)?)?s?bin/"#,
    ),
    high(
        "shell_startup",
        "writes to a file that shells run when they start",
        r#">+\|?\s*["']?(?:~[^/\s]*/?|\$\{?HOME\}?/|/root[/]|/home[/][^/\s]+/)\.(?:bashrc|bash_profile|bash_login|profile|zshrc|zprofile|zshenv)"#,
    ),
    high(
        "pipe_to_shell",
        "lets a shell run what another program prints",
        r"(?:^|[^|>])\|&?\s*(?:(?:env|command|exec|nohup|sudo|time)\s+(?:-\S+\s+)*)*(?:/\S*/)?(?:ba|da|k|z)?sh\b",
    ),
    high(
        "evaluated_substitution",
        "runs the output of a program as a script",
        concat!(
            r#"\b(?:eval|source)\s+["']?"#,
            substitution!(),
            r#"|(?:^|[\s;|&(])\.\s+["']?"#,
            substitution!(),
        ),
    ),
    high(
        "code_from_substitution",
        "hands the output of a program to an interpreter as code",
        concat!(
            interpreter!(),
            r#"\s+(?:-\S+\s+)*-[A-Za-z]*[cepr]\s*["']?"#,
            substitution!(),
            "|",
            interpreter!(),
            r#"\s*(?:-\S+\s+)*<<<\s*["']?"#,
            substitution!(),
            "|",
            interpreter!(),
            r"\s+(?:-\S+\s+)*(?:<\s*)?<\(\s*",
            risky!(),
        ),
    ),
    high(
        "decoded_pipeline",
        "pipes decoded base64 into another program",
        r"\bbase64\s[^;&|]*-(?:d|D|-decode)[^;&|]*\|(?:[^|]|$)",
    ),
    high(
        "process_environment",
        "reads the environment of a process",
        r"/proc/(?:[^/\s]+/)+environ",
    ),
    high(
        "linker_hijack",
        "loads a library of its own into other programs",
        r"\b(?:LD_PRELOAD|LD_LIBRARY_PATH)\s*=",
    ),
    high(
        "shell_network",
        "opens a network connection from within the shell",
        r"/dev/(?:tcp|udp)/",
    ),
    high(
        "fork_bomb",
        "starts processes without end",
        r"\S\s*\(\s*\)\s*\{[^}]*[^|}]\|\s*[^\s&|]+\s*&(?:[^&]|$)|\bwhile\s+(?:true|:).*&\s*done",
    ),
    Rule {
        name: "substituted_command",
        risk: Risk::High,
        about: "runs the output of a program as a command",
        scope: Scope::Command,
        pattern: concat!(r#"^["']?(?:\$\(|`)\s*"#, risky!()),
    },
    medium(
        "open_permissions",
        "lets everybody read, write and run a file",
        r"\bchmod\s+(?:-\S+\s+)*0?777",
    ),
    medium(
        "python_packages",
        "installs packages",
        r"\bpip[0-9.]*\s+(?:-\S+\s+)*install",
    ),
    medium(
        "system_packages",
        "installs packages of the system",
        r"\bapt(?:-get)?\s+(?:-\S+\s+)*install",
    ),
    medium("other_user", "acts as another user", r"\b(?:sudo|su)\b"),
    medium(
        "search_path",
        "changes where programs are found",
        r"\bPATH\s*=",
    ),
];

/// The rules of one risk and scope, compiled.
struct Set {
    rules: Vec<&'static Rule>,
    patterns: RegexSet,
}

impl Set {
    fn of(pick: impl Fn(&Rule) -> bool) -> Set {
        let rules: Vec<&Rule> = RULES.iter().filter(|rule| pick(rule)).collect();
        let patterns = RegexSet::new(rules.iter().map(|rule| rule.pattern));
        Set {
            rules,
            patterns: patterns.expect("the table holds sound patterns"),
        }
    }

    /// The first rule that fits.
    fn find(&self, text: &str) -> Option<&'static Rule> {
        work::note(text.len());
        let first = self.patterns.matches(text).into_iter().next()?;
        Some(self.rules[first])
    }
}

static WHOLE: LazyLock<Set> =
    LazyLock::new(|| Set::of(|rule| rule.risk == Risk::High && rule.scope == Scope::Anywhere));
static STATEMENT: LazyLock<Set> =
    LazyLock::new(|| Set::of(|rule| rule.risk == Risk::High && rule.scope != Scope::Command));
static RISKY: LazyLock<Set> = LazyLock::new(|| Set::of(|rule| rule.risk == Risk::Medium));
static COMMAND: LazyLock<Set> = LazyLock::new(|| Set::of(|rule| rule.scope == Scope::Command));

/// The worst that the rules say of a command; `None` when they say nothing. Time in proportion to its length.
///
/// The command as a whole comes first, for what spans statements; then each statement, as it is written and with its quotes
/// taken away.
pub(super) fn examine(command: &str) -> Option<&'static Rule> {
    if let Some(rule) = WHOLE.find(&single_spaced(command)) {
        return Some(rule);
    }
    let mut worst = None;
    for statement in statements(command) {
        match examine_statement(&statement) {
            Some(rule) if rule.risk == Risk::High => return Some(rule),
            found => worst = worst.or(found),
        }
    }
    worst
}

fn examine_statement(statement: &Statement) -> Option<&'static Rule> {
    let written = single_spaced(&statement.text);
    let plain = words(statement.head()).map(|words| words.join(" "));
    let plain = plain.filter(|plain| *plain != written);
    let texts = [Some(&written), plain.as_ref()];
    let texts = texts.into_iter().flatten();
    let high = texts.clone().find_map(|text| STATEMENT.find(text));
    let high = high.or_else(|| {
        let commands = [Some(statement.head()), plain.as_deref()];
        let mut commands = commands.into_iter().flatten();
        commands.find_map(|text| COMMAND.find(at_command(text)))
    });
    high.or_else(|| texts.clone().find_map(|text| RISKY.find(text)))
}

/// The words of a text with single spaces between them.
fn single_spaced(text: &str) -> String {
    work::note(text.len());
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

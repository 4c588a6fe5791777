//! Takes a shell command apart: into the statements that a shell would run one after the other, a statement into words.
//!
//! This is no parser of a shell. It knows as much as is needed to see where commands begin, and errs towards seeing more of
//! them. One pass each, without going back.
//!
//! Source: DeerFlow `SandboxAuditMiddleware`, MW-AUD-2. Beyond it: a single `&` ends a statement, comments are known, a
//! continued line is one line, the delimiter of a heredoc is read as a word with its quotes, and the lines of a heredoc that
//! never ends are statements.

use super::work;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The text, the bodies of its heredocs included.
    pub(super) text: String,
    /// How many bytes of it come before those bodies.
    head: usize,
}

impl Statement {
    /// The text without the bodies of heredocs, which are data.
    pub(super) fn head(&self) -> &str {
        &self.text[..self.head]
    }
}

/// The statements of a command, blank ones left out. Behind a quote or an escape that never ends nothing can be told apart:
/// the command as a whole stands for what comes there.
pub(super) fn statements(command: &str) -> Vec<Statement> {
    let mut splitter = Splitter {
        text: command,
        at: 0,
        part: String::new(),
        parts: Vec::new(),
        heredocs: Vec::new(),
        takes_heredocs: true,
        arithmetic: 0,
    };
    if !splitter.run() {
        splitter.part = command.to_owned();
    }
    splitter.end_statement(0);
    splitter.parts
}

struct Splitter<'a> {
    text: &'a str,
    at: usize,
    part: String,
    parts: Vec<Statement>,
    /// Delimiters of the heredocs whose bodies begin behind the next newline.
    heredocs: Vec<String>,
    /// False once one never ended: looking for ends again and again would take the square of the length.
    takes_heredocs: bool,
    /// How many `((` are open. One that is not closed only hides heredocs.
    arithmetic: usize,
}

impl Splitter<'_> {
    /// Goes over the text; false at a quote or an escape that never ends.
    fn run(&mut self) -> bool {
        while let Some(c) = self.rest().chars().next() {
            work::note(1);
            match c {
                '\\' => match self.rest().chars().nth(1) {
                    None => return false,
                    // A line that goes on: the shell takes both characters out.
                    Some('\n') => self.at += 2,
                    Some(escaped) => self.take(1 + escaped.len_utf8()),
                },
                '\'' | '"' => match quoted_end(self.rest()) {
                    None => return false,
                    Some(end) => self.take(end),
                },
                '#' if self.begins_word() && self.arithmetic == 0 => {
                    let end = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.take(end);
                }
                '(' if self.rest().starts_with("((") => {
                    self.arithmetic += 1;
                    self.take(2);
                }
                ')' if self.arithmetic > 0 && self.rest().starts_with("))") => {
                    self.arithmetic -= 1;
                    self.take(2);
                }
                '<' if self.rest().starts_with("<<<") => self.take(3),
                '<' if self.arithmetic == 0 && self.rest().starts_with("<<") => self.heredoc(),
                '\n' => self.newline(),
                ';' => self.end_statement(1),
                // `>|` is a redirection.
                '|' if self.part.ends_with('>') => self.take(1),
                '|' => {
                    let is_double = self.rest()[1..].starts_with(['|', '&']);
                    self.end_statement(1 + usize::from(is_double));
                }
                '&' if self.rest().starts_with("&&") => self.end_statement(2),
                '&' if self.part.ends_with(['>', '<']) || self.rest().starts_with("&>") => {
                    self.take(1);
                }
                '&' => self.end_statement(1),
                c => self.take(c.len_utf8()),
            }
        }
        true
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Whether a word would begin here.
    fn begins_word(&self) -> bool {
        let last = self.part.chars().next_back();
        last.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ')'))
    }

    /// Adds `length` bytes to the statement.
    fn take(&mut self, length: usize) {
        work::note(length);
        self.part.push_str(&self.text[self.at..self.at + length]);
        self.at += length;
    }

    /// Ends the statement at an operator of `length` bytes.
    fn end_statement(&mut self, length: usize) {
        self.end_with_body("");
        self.at += length;
    }

    fn end_with_body(&mut self, body: &str) {
        let head = std::mem::take(&mut self.part);
        let head = head.trim();
        if !head.is_empty() {
            self.parts.push(Statement {
                text: format!("{head}{body}"),
                head: head.len(),
            });
        }
    }

    /// At `<<`: notes the delimiter, if there is one.
    fn heredoc(&mut self) {
        let header = self.rest()[2..].strip_prefix('-');
        let header = header.unwrap_or(&self.rest()[2..]);
        let word = header.trim_start_matches([' ', '\t']);
        match delimiter(word) {
            Some((name, length)) if self.takes_heredocs => {
                let start = self.rest().len() - word.len();
                self.heredocs.push(name);
                self.take(start + length);
            }
            _ => self.take(2),
        }
    }

    /// At a newline: the bodies of the heredocs that the line opened belong to the statement that ends here.
    fn newline(&mut self) {
        let delimiters = std::mem::take(&mut self.heredocs);
        if !delimiters.is_empty() {
            if let Some(end) = bodies_end(&self.rest()[1..], &delimiters) {
                let body = self.text[self.at..].get(..=end).unwrap_or_default();
                let body = body.to_owned();
                self.end_with_body(&body);
                self.at += body.len();
                return;
            }
            self.takes_heredocs = false;
        }
        self.end_statement(1);
    }
}

/// Where the quoted text that begins here ends; `None` when it does not.
fn quoted_end(text: &str) -> Option<usize> {
    let is_double = text.starts_with('"');
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        work::note(1);
        match c {
            '"' if is_double => return Some(at + 1),
            '\'' if !is_double => return Some(at + 1),
            '\\' if is_double => drop(characters.next()?),
            _ => {}
        }
    }
    None
}

/// The delimiter of a heredoc, without its quotes, and the length of its text.
fn delimiter(text: &str) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        work::note(1);
        match c {
            '\\' => {
                let escaped = text[at + 1..].chars().next().filter(|c| *c != '\n')?;
                name.push(escaped);
                at += 1 + escaped.len_utf8();
            }
            '\'' | '"' => {
                let length = quoted_end(&text[at..])?;
                name.push_str(&text[at + 1..at + length - 1]);
                at += length;
            }
            c if c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')') => break,
            c => {
                name.push(c);
                at += c.len_utf8();
            }
        }
    }
    (at > 0).then_some((name, at))
}

/// Where the bodies end that begin here, one for each delimiter in order; `None` when one does not.
fn bodies_end(text: &str, delimiters: &[String]) -> Option<usize> {
    let mut at = 0;
    for delimiter in delimiters {
        loop {
            let line = text[at..].split_inclusive('\n').next()?;
            work::note(line.len());
            at += line.len();
            if line.trim() == delimiter.trim() {
                break;
            }
        }
    }
    Some(at)
}

/// The words of a statement with their quotes and escapes taken away, comments left out; `None` when a quote or an escape
/// never ends.
pub(super) fn words(statement: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = statement.chars();
    while let Some(c) = characters.next() {
        work::note(1);
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '#' if word.is_none() => {
                characters.by_ref().find(|c| *c == '\n');
            }
            '\\' => match characters.next()? {
                '\n' => {}
                escaped => word.get_or_insert_default().push(escaped),
            },
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    work::note(1);
                    match characters.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    work::note(1);
                    match characters.next()? {
                        '"' => break,
                        '\\' => match characters.next()? {
                            '\n' => {}
                            c if matches!(c, '"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

/// Words that keep what follows them at the place of a command.
const WRAPPERS: &[&str] = &[
    "env", "command", "builtin", "exec", "nohup", "time", "sudo", "doas", "nice", "setsid",
];
/// Words of the shell's own after which a command comes.
const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "coproc",
];
/// Most wrappers and assignments that are looked behind (MW-AUD-3).
const MAX_PREFIXES: usize = 8;

/// What stands at the place of the command in a statement: behind assignments, wrappers and words of the shell's own.
pub(super) fn at_command(statement: &str) -> &str {
    let mut rest = statement.trim_start();
    let mut prefixes = 0;
    loop {
        if rest.starts_with('(') && !rest.starts_with("((") {
            rest = rest[1..].trim_start();
            continue;
        }
        let (word, behind) = rest.split_at(word_end(rest));
        let behind = behind.trim_start();
        if RESERVED.contains(&word) {
            rest = behind;
            continue;
        }
        let name = word.rsplit('/').next().unwrap_or(word);
        let is_wrapper = WRAPPERS.contains(&name);
        if prefixes == MAX_PREFIXES || !(is_wrapper || is_assignment(word)) {
            return rest;
        }
        prefixes += 1;
        rest = behind;
        while is_wrapper && rest.starts_with('-') {
            rest = rest[word_end(rest)..].trim_start();
        }
    }
}

/// Where the word that begins here ends: at white space outside of quotes and substitutions.
fn word_end(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        work::note(1);
        match c {
            c if c.is_whitespace() && depth == 0 => break,
            '\\' => at += text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '\'' | '"' => match quoted_end(&text[at..]) {
                Some(length) => at += length - 1,
                None => return text.len(),
            },
            '`' => match text[at + 1..].find('`') {
                Some(length) => {
                    work::note(length);
                    at += length + 1;
                }
                None => return text.len(),
            },
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += c.len_utf8();
    }
    at.min(text.len())
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(command: &str) -> Vec<String> {
        let parts = statements(command).into_iter();
        parts.map(|statement| statement.text).collect()
    }

    #[test]
    fn mw_aud_2_operators_split_with_and_without_space_around_them() {
        for (command, parts) in [
            ("ls -la", &["ls -la"][..]),
            ("a && b || c ; d", &["a", "b", "c", "d"]),
            ("a&&b||c;d|e\nf", &["a", "b", "c", "d", "e", "f"]),
            ("a |& b & c", &["a", "b", "c"]),
            (";; a ;\n\n", &["a"]),
            ("make >log 2>&1 &", &["make >log 2>&1"]),
            ("make &>log; x >&2", &["make &>log", "x >&2"]),
            ("a >|b | c", &["a >|b", "c"]),
            ("echo a\\;b \\& c", &["echo a\\;b \\& c"]),
            ("", &[]),
        ] {
            assert_eq!(texts(command), parts, "{command:?}");
        }
    }

    #[test]
    fn mw_aud_2_quoted_operators_do_not_split_and_open_quotes_give_the_whole() {
        for (command, parts) in [
            (
                "echo 'a && b' && rm x",
                &["echo 'a && b'", "rm x"] as &[&str],
            ),
            (r#"echo "a;\";b";c"#, &[r#"echo "a;\";b""#, "c"]),
            (r"echo 'a\';b", &[r"echo 'a\'", "b"]),
            ("echo 'hello", &["echo 'hello"]),
            ("a; echo \"x", &["a", "a; echo \"x"]),
            ("a; b\\", &["a", "a; b\\"]),
            ("a # it's; b\nc", &["a # it's; b", "c"]),
            ("echo a#b;c", &["echo a#b", "c"]),
            ("echo a\\\n  b", &["echo a  b"]),
            ("echo 'a\nb'\nc", &["echo 'a\nb'", "c"]),
        ] {
            assert_eq!(texts(command), parts, "{command:?}");
        }
    }

    #[test]
    fn mw_aud_2_bodies_of_heredocs_are_data() {
        for (command, parts) in [
            (
                "cat <<EOF > f\na; b\nEOF\nc",
                &["cat <<EOF > f\na; b\nEOF\n", "c"] as &[&str],
            ),
            (
                "cat <<-'E F'\n\tit's\n\tE F\nc",
                &["cat <<-'E F'\n\tit's\n\tE F\n", "c"],
            ),
            (
                "cat << \\EOF | tr a b\nx\nEOF",
                &["cat << \\EOF", "tr a b\nx\nEOF"],
            ),
            (
                "cat <<A <<B\n1\nA\n2\nB\nc",
                &["cat <<A <<B\n1\nA\n2\nB\n", "c"],
            ),
            (
                "cat <<E\"O\"F\na\nEOF\nc",
                &["cat <<E\"O\"F\na\nEOF\n", "c"],
            ),
            ("cat <<< EOF\nc", &["cat <<< EOF", "c"]),
            ("x=$((1<<EOF))\nc", &["x=$((1<<EOF))", "c"]),
            ("((1<<EOF))\nc", &["((1<<EOF))", "c"]),
            ("echo \"<<EOF\"\nc", &["echo \"<<EOF\"", "c"]),
            // One that never ends hides nothing.
            ("cat <<EOF\na\nb", &["cat <<EOF", "a", "b"]),
        ] {
            assert_eq!(texts(command), parts, "{command:?}");
        }
        let heredoc = &statements("bash <<EOF\nls\nEOF")[0];
        assert_eq!(heredoc.head(), "bash <<EOF");
    }

    #[test]
    fn mw_aud_2_words_lose_their_quotes() {
        for (statement, expected) in [
            ("a  b\tc", Some(&["a", "b", "c"][..])),
            ("r'm' \"-rf\" \\/", Some(&["rm", "-rf", "/"])),
            (r#"echo "a\"b\n" '' x"#, Some(&["echo", "a\"b\\n", "", "x"])),
            ("r\\\nm x", Some(&["rm", "x"])),
            ("a # it's", Some(&["a"])),
            ("a#b", Some(&["a#b"])),
            ("a 'b", None),
            ("a \"b", None),
            ("a \\", None),
        ] {
            let found = words(statement);
            let found = found.as_ref().map(|words| {
                let words = words.iter().map(String::as_str);
                words.collect::<Vec<_>>()
            });
            assert_eq!(found.as_deref(), expected, "{statement:?}");
        }
    }

    #[test]
    fn mw_aud_3_a_command_stands_behind_assignments_and_wrappers() {
        for (statement, rest) in [
            ("$(x) y", "$(x) y"),
            ("A=1 B+='b c' $(x)", "$(x)"),
            ("A=$(a b) C=`d e` $(x)", "$(x)"),
            ("env -i A=1 $(x)", "$(x)"),
            ("/usr/bin/nohup  $(x)", "$(x)"),
            ("if ! $(x)", "$(x)"),
            ("( { $(x)", "$(x)"),
            ("(( $(x) > 1 ))", "(( $(x) > 1 ))"),
            ("echo $(x)", "echo $(x)"),
            ("A=$(x)", ""),
            ("time echo $(x)", "echo $(x)"),
            ("for i in $(x)", "for i in $(x)"),
            ("environ $(x)", "environ $(x)"),
            ("--a=1 $(x)", "--a=1 $(x)"),
        ] {
            assert_eq!(at_command(statement), rest, "{statement:?}");
        }
        let many = |n: usize| format!("{}$(x)", "A=1 ".repeat(n));
        assert_eq!(at_command(&many(8)), "$(x)");
        assert_eq!(at_command(&many(9)), "A=1 $(x)");
    }
}

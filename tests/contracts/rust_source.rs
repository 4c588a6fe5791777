//! Just enough of Rust's grammar to look for words in code without finding them in comments and texts.

/// The source with comments, texts and characters blanked out. Lines keep their numbers and lengths.
pub fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block_comment(&chars, at),
            '"' => end_of_text(&chars, at),
            'r' if !is_word(&chars, at) => end_of_raw_text(&chars, at),
            '\'' => end_of_char(&chars, at),
            _ => at,
        };
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            code.extend(
                chars[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    code
}

/// Whether the character at `at` goes on with a word that began before it.
fn is_word(chars: &[char], at: usize) -> bool {
    // `br"…"` begins at its b, which stays; the r after it begins the text.
    at > 0
        && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
        && !(chars[at - 1] == 'b' && (at < 2 || !chars[at - 2].is_alphanumeric()))
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    at + chars[at..].iter().take_while(|c| **c != '\n').count()
}

fn end_of_block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn end_of_text(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn end_of_raw_text(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let mut end = at + 1 + hashes;
    if chars.get(end) != Some(&'"') {
        return at;
    }
    end += 1;
    while end < chars.len() {
        let closes = chars[end] == '"' && chars[end + 1..].iter().take(hashes).all(|c| *c == '#');
        end += 1;
        if closes {
            return end + hashes;
        }
    }
    end
}

/// A quote begins a character only if one ends soon; otherwise it begins the name of a lifetime.
fn end_of_char(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => {
            let rest = &chars[at + 3..];
            at + 3 + rest.iter().take_while(|c| **c != '\'').count() + 1
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

/// Where the bracket that opens at byte `open` closes.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, c) in code[open..].char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at;
        }
    }
    panic!("a bracket does not close");
}

/// The code without its `#[cfg(test)]` modules, which are blanked out. Those in a file of their own are not looked for.
pub fn without_tests(code: &str) -> String {
    let mut code = code.to_owned();
    while let Some(at) = code
        .find("#[cfg(test)]")
        .or_else(|| code.find("#[cfg(all(test,"))
    {
        let open = at
            + code[at..]
                .find(['{', ';'])
                .expect("a test module has a body");
        let end = match code.as_bytes()[open] {
            b';' => open + 1,
            _ => closing(&code, open) + 1,
        };
        let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
        let blanked: String = code[at..end].chars().map(blank).collect();
        code.replace_range(at..end, &blanked);
    }
    code
}

/// The number of the line that byte `at` is on.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[test]
fn code_is_told_from_text() {
    let source = "let a = \"un\\\"safe {\"; // unsafe {\nlet b = 'x'; /* a /* b */ { */ fn f<'a>(x: &'a str) { r#\"}\"# }";
    let code = code_only(source);
    assert_eq!(code.len(), source.len());
    assert!(!code.contains("safe") && !code.contains("b */"));
    assert!(code.contains("fn f<'a>(x: &'a str) {"));
    let open = code.find(") {").unwrap() + 2;
    assert_eq!(closing(&code, open), code.len() - 1);
    assert_eq!(
        without_tests("a\n#[cfg(test)]\nmod t { x }\nb")
            .split_whitespace()
            .count(),
        2
    );
    assert_eq!(
        code_only(r"let q = '\''; let n = '\u{41}'; z")
            .trim_end()
            .len(),
        r"let q = '\''; let n = '\u{41}'; z".len()
    );
}

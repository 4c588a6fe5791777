//! White space of JSON text, with every token left as it is: numbers keep their form, members their order, strings their
//! escapes, and a name that comes twice comes twice.

/// The text without white space between its tokens.
pub fn compact(json: &str) -> String {
    tokens(json).concat()
}

/// The text laid out as `serde_json::to_string_pretty` does it: two spaces a level, one member or element a line.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let tokens = tokens(json);
    let break_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    for (at, &token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        match token {
            "{" | "[" => {
                out.push_str(token);
                if !matches!(next, "}" | "]") {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            "}" | "]" => {
                if !matches!(tokens[at - 1], "{" | "[") {
                    depth -= 1;
                    break_line(&mut out, depth);
                }
                out.push_str(token);
            }
            "," => {
                out.push(',');
                break_line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            _ => out.push_str(token),
        }
    }
    out
}

/// The tokens of a JSON text: strings with their quotes, numbers and names whole, single characters otherwise.
fn tokens(json: &str) -> Vec<&str> {
    let bytes = json.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        at += 1;
        match bytes[begin] {
            b' ' | b'\n' | b'\r' | b'\t' => continue,
            b'"' => {
                while bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'{' | b'}' | b'[' | b']' | b',' | b':' => {}
            _ => {
                let ends = |byte: u8| byte.is_ascii_whitespace() || b"{}[],:\"".contains(&byte);
                while at < bytes.len() && !ends(bytes[at]) {
                    at += 1;
                }
            }
        }
        tokens.push(&json[begin..at]);
    }
    tokens
}

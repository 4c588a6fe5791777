//! Paths as agents write them.

/// The tools by which agents read and write files, as DeerFlow names them.
pub(super) const READ_FILE: &str = "read_file";
/// Writes a whole file, or adds to it.
pub(super) const WRITE_FILE: &str = "write_file";
/// Replaces text in a file.
pub(super) const STR_REPLACE: &str = "str_replace";

/// The same path without empty parts, `.` and `..`. Nothing stands above `/`; the `..` at the beginning of a relative path
/// stay. `.` for an empty path.
pub(super) fn normalized(path: &str) -> String {
    let path = path.trim();
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if is_absolute => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (is_absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_path() {
        for (path, normal) in [
            ("/a/b", "/a/b"),
            ("//a/./b/", "/a/b"),
            (" /a/x/../b ", "/a/b"),
            ("/../a/b", "/a/b"),
            ("/a/..", "/"),
            ("a/../../b", "../b"),
            ("./a", "a"),
            ("a/..", "."),
            ("", "."),
        ] {
            assert_eq!(normalized(path), normal, "{path}");
        }
    }
}

//! The queries by which a model finds tools and skills: `select:a,b`, `+must rest`, or a pattern (TL-14).

use std::cell::LazyCell;

use regex::{Regex, RegexBuilder, bytes};
use serde_json::{Value, json};

use crate::state::python;

/// Most matches of a ranked query. A `select:` is not bounded: it names what it wants (A-18).
pub const MAX_RANKED: usize = 5;
/// Longest pattern that is compiled, in characters; a longer one is searched for as it stands.
const MAX_PATTERN_CHARS: usize = 256;
/// Largest compiled pattern for texts of ASCII, in bytes; a larger one is searched for as it stands. A search costs at most
/// this times the text, so it is what bounds a pattern made to be slow.
const MAX_ASCII_BYTES: usize = 64 * 1024;
/// The same for other texts, where a single `\w` takes 64 KiB.
const MAX_UNICODE_BYTES: usize = 128 * 1024;
/// How much of a description is searched, in bytes: remote servers write them, and they can be of any size.
const MAX_SEARCHED_BYTES: usize = 2 * 1024;

/// The arguments of a tool that takes a query: JSON Schema.
pub(super) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "select:name,name for exact names; +word rest for names with that word; or a pattern.",
            },
        },
        "required": ["query"],
    })
}

/// One thing that can be found.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for.
    pub description: &'a str,
}

/// The places in `items` of what `query` finds, best first.
///
/// - blank: nothing;
/// - `select:a,b`: the items of exactly these names, in the order of `items`, any number;
/// - `+must rest`: items whose name has `must` in it, whatever the case, those first in whose name and description the
///   pattern `rest` occurs most often; at most [`MAX_RANKED`];
/// - anything else: items in whose name or description the pattern occurs, those first in whose name it does; at most
///   [`MAX_RANKED`]. Equals keep their order.
///
/// A pattern is a regular expression without look-around and back-references, whatever the case; what is none is searched
/// for as it stands. Time is linear in the texts for every pattern.
///
/// Source: DeerFlow `DeferredToolCatalog.search`, TL-14.
pub fn find(query: &str, items: &[Item<'_>]) -> Vec<usize> {
    let query = query.trim_matches(python::is_space);
    if query.is_empty() {
        return Vec::new();
    }
    if let Some(names) = query.strip_prefix("select:") {
        let wanted: Vec<&str> = names
            .split(',')
            .map(|name| name.trim_matches(python::is_space))
            .collect();
        let chosen = |place: &usize| wanted.contains(&items[*place].name);
        return (0..items.len()).filter(chosen).collect();
    }
    if let Some(rest) = query.strip_prefix('+') {
        return required(rest.trim_start_matches(python::is_space), items);
    }
    let pattern = Pattern::new(query);
    let mut named = Vec::new();
    let mut described = Vec::new();
    for (place, item) in items.iter().enumerate() {
        if pattern.is_in(item.name) {
            named.push(place);
        } else if pattern.is_in(&searched(item)) {
            described.push(place);
        }
    }
    named.append(&mut described);
    named.truncate(MAX_RANKED);
    named
}

/// `+must rest`, without the plus sign.
fn required(query: &str, items: &[Item<'_>]) -> Vec<usize> {
    let (must, rest) = query.split_once(python::is_space).unwrap_or((query, ""));
    if must.is_empty() {
        return Vec::new();
    }
    let must = must.to_lowercase();
    let has = |place: &usize| items[*place].name.to_lowercase().contains(&must);
    let mut found: Vec<usize> = (0..items.len()).filter(has).collect();
    let rest = rest.trim_start_matches(python::is_space);
    if !rest.is_empty() {
        let pattern = Pattern::new(rest);
        found.sort_by_cached_key(|place| {
            std::cmp::Reverse(pattern.count_in(&searched(&items[*place])))
        });
    }
    found.truncate(MAX_RANKED);
    found
}

/// The text of an item that is searched.
fn searched(item: &Item<'_>) -> String {
    let mut end = item.description.len().min(MAX_SEARCHED_BYTES);
    while !item.description.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} {}", item.name, &item.description[..end])
}

/// What is searched for, whatever the case.
struct Pattern {
    /// For ASCII in ASCII: the same matches as `unicode`, at a fraction of its size.
    ascii: Option<bytes::Regex>,
    /// For everything else; made when the first such text comes.
    unicode: LazyCell<Option<Regex>, Box<dyn FnOnce() -> Option<Regex>>>,
    /// What is searched for when there is no pattern; in lower case.
    literal: String,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let fits = text.chars().nth(MAX_PATTERN_CHARS).is_none();
        let ascii = (fits && text.is_ascii()).then(|| {
            bytes::RegexBuilder::new(text)
                .unicode(false)
                .case_insensitive(true)
                .size_limit(MAX_ASCII_BYTES)
                .build()
                .ok()
        });
        let owned = text.to_owned();
        let unicode = move || {
            let mut builder = RegexBuilder::new(&owned);
            builder.case_insensitive(true).size_limit(MAX_UNICODE_BYTES);
            fits.then(|| builder.build().ok()).flatten()
        };
        Pattern {
            ascii: ascii.flatten(),
            unicode: LazyCell::new(Box::new(unicode)),
            literal: text.to_lowercase(),
        }
    }

    fn is_in(&self, text: &str) -> bool {
        if let (Some(regex), true) = (&self.ascii, text.is_ascii()) {
            return regex.is_match(text.as_bytes());
        }
        match &*self.unicode {
            Some(regex) => regex.is_match(text),
            None => text.to_lowercase().contains(&self.literal),
        }
    }

    fn count_in(&self, text: &str) -> usize {
        if let (Some(regex), true) = (&self.ascii, text.is_ascii()) {
            return regex.find_iter(text.as_bytes()).count();
        }
        match &*self.unicode {
            Some(regex) => regex.find_iter(text).count(),
            None => text.to_lowercase().matches(&self.literal).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const ITEMS: &[(&str, &str)] = &[
        ("db_query", "Runs SQL on the sales database"),
        ("web_search", "Searches the web; not a database"),
        ("DB_admin", "database database: users and tables"),
        ("mail", "Sends mail (SMTP)"),
        ("größe", "STRASSE"),
        ("a1", "common"),
        ("a2", "common"),
        ("a3", "common"),
        ("a4", "common"),
        ("a5", "common"),
        ("a6", "common"),
    ];

    fn names(query: &str) -> Vec<&'static str> {
        let items: Vec<Item<'_>> = ITEMS
            .iter()
            .map(|(name, description)| Item { name, description })
            .collect();
        find(query, &items)
            .into_iter()
            .map(|place| ITEMS[place].0)
            .collect()
    }

    #[test]
    fn tl_14_blank_queries_and_a_bare_plus_find_nothing() {
        for query in ["", "  \n\t", "+", "+  ", "\u{1f}"] {
            assert_eq!(names(query), [""; 0], "{query:?}");
        }
    }

    #[test]
    fn tl_14_select_takes_exact_names_in_the_order_of_the_catalog_without_a_cap() {
        assert_eq!(
            names("select:mail, db_query ,nope,DB_QUERY"),
            ["db_query", "mail"]
        );
        let all = ITEMS.iter().map(|item| item.0).collect::<Vec<_>>();
        assert_eq!(names(&format!("select:{}", all.join(","))), all);
        assert_eq!(names("select:"), [""; 0]);
        assert_eq!(names("select: , "), [""; 0]);
    }

    #[test]
    fn tl_14_plus_needs_the_word_in_the_name_and_ranks_by_hits_of_the_rest() {
        assert_eq!(names("+DB"), ["db_query", "DB_admin"]);
        assert_eq!(names("+db database"), ["DB_admin", "db_query"]);
        assert_eq!(names("+ db  sql|sales"), ["db_query", "DB_admin"]);
        assert_eq!(
            names("+database"),
            [""; 0],
            "the description does not count"
        );
        assert_eq!(names("+a").len(), MAX_RANKED);
        assert_eq!(
            names("+db ("),
            ["db_query", "DB_admin"],
            "no pattern ranks as text"
        );
    }

    #[test]
    fn tl_14_a_pattern_ranks_hits_in_the_name_first_keeps_the_order_and_is_capped() {
        assert_eq!(
            names("database|mail"),
            ["mail", "db_query", "web_search", "DB_admin"]
        );
        assert_eq!(names("common"), ["a1", "a2", "a3", "a4", "a5"]);
        assert_eq!(names("^DB.*tables$"), ["DB_admin"]);
        assert_eq!(names("sql on"), ["db_query"]);
    }

    #[test]
    fn tl_14_case_is_unicode_s_and_so_are_classes() {
        assert_eq!(names("GRÖSSE|GRÖßE"), ["größe"]);
        assert_eq!(names(r"gr\w.e"), ["größe"]);
        assert_eq!(names(r"^\w{2}_\w{5}\b"), ["db_query", "DB_admin"]);
    }

    #[test]
    fn tl_14_what_is_no_pattern_is_searched_for_as_it_stands() {
        assert_eq!(names("(SMTP"), ["mail"]);
        assert_eq!(names("mail (smtp)"), [""; 0], "a group is a pattern");
        for unsupported in ["(?=mail)", "(?<!x)mail", r"(m)\1", "[", "*", "a{9999999}"] {
            assert_eq!(names(unsupported), [""; 0], "{unsupported:?}");
        }
    }

    #[test]
    fn hostile_patterns_and_texts_take_bounded_time() {
        let texts = ["aB ".repeat(1 << 18), "aé ".repeat(1 << 18)];
        let items: Vec<Item<'_>> = texts
            .iter()
            .cycle()
            .take(50)
            .map(|description| Item {
                name: "tool",
                description,
            })
            .collect();
        let long = "(a|b)".repeat(2000);
        let slow: Vec<String> = vec![
            "(a*)*$".into(),
            "(a|aa)+$".into(),
            r"(\w{0,20}){0,20}x".into(),
            "(.{0,99}){0,99}x".into(),
            r"(a?){60}a{60}x".into(),
            "(a?b?c?d? ?){84}x".into(),
            "(a?b?c?d? ?){168}x".into(),
            long,
        ];
        for pattern in slow {
            for query in [pattern.clone(), format!("+t {pattern}")] {
                let start = Instant::now();
                find(&query, &items);
                let spent = start.elapsed();
                // Measured: 22 ms at most, in the test profile.
                assert!(spent < Duration::from_secs(5), "{pattern}: {spent:?}");
            }
        }
    }
}

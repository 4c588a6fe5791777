//! The sanitiser against a slow, obvious one, over a million hostile texts (SAN-3 to SAN-7).

use std::borrow::Cow;

use fawn::prompt::sanitize::{BEGIN_USER_INPUT, BLOCKED_TAGS, END_USER_INPUT, frame, neutralize};

use crate::support::random::Random;

const MARKERS: [(&str, &str); 2] = [
    (BEGIN_USER_INPUT, "[BEGIN USER INPUT]"),
    (END_USER_INPUT, "[END USER INPUT]"),
];

fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() && c != '\u{345}' || c == '_'
}

/// Whether two characters are one letter in different cases.
fn same_letter(c: char, letter: char) -> bool {
    let other = match letter {
        's' => 'ſ',
        'k' => '\u{212a}',
        'i' => 'ı',
        letter => letter,
    };
    c.to_ascii_lowercase() == letter || c == other || letter == 'i' && c == 'İ'
}

/// Where the blocked tag at `at` ends, word by word as SAN-3 says it.
fn tag_end(text: &[char], at: usize) -> Option<usize> {
    if text[at] != '<' {
        return None;
    }
    let spaces = |mut at: usize| {
        while text.get(at).copied().is_some_and(is_space) {
            at += 1;
        }
        at
    };
    let mut from = spaces(at + 1);
    if text.get(from) == Some(&'/') {
        from = spaces(from + 1);
    }
    let rest = &text[from..];
    let blocked = BLOCKED_TAGS.iter().any(|tag| {
        let letters = tag.chars().count();
        rest.len() >= letters
            && tag
                .chars()
                .zip(rest)
                .all(|(letter, c)| same_letter(*c, letter))
            && !rest.get(letters).copied().is_some_and(is_word)
    });
    if !blocked {
        return None;
    }
    let close = rest.iter().position(|c| *c == '>');
    Some(close.map_or(text.len(), |close| from + close + 1))
}

fn escaped(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        let end = tag_end(&chars, at).unwrap_or(at);
        if end == at {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        for c in &chars[at..end] {
            match c {
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                c => out.push(*c),
            }
        }
        at = end;
    }
    out
}

fn without_markers(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match MARKERS.iter().find(|(marker, _)| rest.starts_with(marker)) {
            Some((marker, neutral)) => {
                out.push_str(neutral);
                rest = &rest[marker.len()..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

fn slow_neutralize(text: &str) -> String {
    if text.chars().all(is_space) {
        return text.to_owned();
    }
    without_markers(&escaped(text))
}

fn slow_frame(text: &str) -> String {
    if text.chars().all(is_space) {
        return text.to_owned();
    }
    let text = escaped(text);
    let last = text.len().saturating_sub(END_USER_INPUT.len());
    let is_framed = text.len() >= BEGIN_USER_INPUT.len() + END_USER_INPUT.len()
        && text.starts_with(BEGIN_USER_INPUT)
        && text.ends_with(END_USER_INPUT)
        // No third marker that shares characters with these two.
        && (0..text.len()).all(|at| {
            let Some((marker, _)) = MARKERS.iter().find(|(marker, _)| {
                text.as_bytes()[at..].starts_with(marker.as_bytes())
            }) else {
                return true;
            };
            at == 0 || at == last || at >= BEGIN_USER_INPUT.len() && at + marker.len() <= last
        });
    if is_framed {
        let inner = &text[BEGIN_USER_INPUT.len()..last];
        return format!(
            "{BEGIN_USER_INPUT}{}{END_USER_INPUT}",
            without_markers(inner)
        );
    }
    format!(
        "{BEGIN_USER_INPUT}\n{}\n{END_USER_INPUT}",
        without_markers(&text)
    )
}

const PIECES: &[&str] = &[
    "<",
    "<",
    "</",
    "< /",
    ">",
    "/>",
    "/",
    " ",
    "\n",
    "\t",
    "\u{a0}",
    "\u{1c}",
    "\u{3000}",
    "-",
    "--- ",
    " ---",
    "---",
    "_",
    "=\"x\"",
    "a",
    "é",
    "系",
    "\u{345}",
    "\u{301}",
    "ſ",
    "\u{212a}",
    "İ",
    "ı",
    "1",
    "&lt;",
    "&",
    "😀",
    "<div>",
    "</b>",
    "BEGIN",
    "END",
    " USER INPUT ---",
    "--- BEGIN USER INPUT ",
    "--- END USER INPUT ",
    BEGIN_USER_INPUT,
    END_USER_INPUT,
    BEGIN_USER_INPUT,
    END_USER_INPUT,
    "\0",
    "atic",
    "s",
    "er",
];

/// One more hostile text: tags and near tags, markers and pieces of them, signs of many scripts.
fn hostile(random: &mut Random, out: &mut String) {
    out.clear();
    let is_framed = random.below(8) == 0;
    if is_framed {
        out.push_str(BEGIN_USER_INPUT);
    }
    for _ in 0..random.below(12) {
        let tag = BLOCKED_TAGS[random.below(BLOCKED_TAGS.len() as u64) as usize];
        match random.below(6) {
            0 => {
                out.push('<');
                out.push_str(tag);
            }
            1 => out.push_str(tag),
            2 => {
                // The tag in mixed case, perhaps cut.
                out.push('<');
                let letters = 1 + random.below(tag.len() as u64 + 3) as usize;
                for c in tag.chars().take(letters) {
                    out.push(match (random.below(4), c) {
                        (0, c) => c.to_ascii_uppercase(),
                        (1, 's') => 'ſ',
                        (1, 'k') => '\u{212a}',
                        (1, 'i') => 'ı',
                        (2, 'i') => 'İ',
                        (_, c) => c,
                    });
                }
            }
            _ => out.push_str(PIECES[random.below(PIECES.len() as u64) as usize]),
        }
    }
    if is_framed {
        out.push_str(END_USER_INPUT);
    }
}

#[test]
fn a_million_hostile_texts_read_as_the_slow_sanitiser_has_them() {
    let mut random = Random::new(0x5a17);
    let mut text = String::new();
    let (mut changed, mut kept) = (0_u32, 0_u32);
    for _ in 0..1_000_000 {
        hostile(&mut random, &mut text);
        let clean = neutralize(&text);
        assert_eq!(clean, slow_neutralize(&text), "{text:?}");
        match &clean {
            Cow::Borrowed(same) => {
                assert_eq!(*same, text);
                kept += 1;
            }
            Cow::Owned(clean) => {
                assert_ne!(*clean, text, "a copy of what did not change");
                changed += 1;
            }
        }
        assert!(
            matches!(neutralize(&clean), Cow::Borrowed(_)),
            "neutralised twice: {text:?}"
        );
        for (marker, _) in MARKERS {
            assert!(!clean.contains(marker), "{text:?}");
        }

        let framed = frame(&text);
        assert_eq!(framed, slow_frame(&text), "{text:?}");
        assert!(
            matches!(frame(&framed), Cow::Borrowed(_)),
            "framed twice: {text:?}"
        );
        if !text.chars().all(is_space) {
            // The outer pair is the only one, shared dashes included.
            for (marker, _) in MARKERS {
                let places = (0..framed.len())
                    .filter(|at| framed.as_bytes()[*at..].starts_with(marker.as_bytes()));
                assert_eq!(places.count(), 1, "{text:?}");
            }
        }
        // Nothing is dropped or moved: undoing the entities and the neutral forms gives the text back.
        let undone = |text: &str| without_markers(&text.replace("&lt;", "<").replace("&gt;", ">"));
        assert_eq!(undone(&clean), undone(&text), "{text:?}");
    }
    assert!(
        changed > 100_000 && kept > 100_000,
        "{changed} changed, {kept} did not"
    );
}

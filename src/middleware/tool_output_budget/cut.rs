//! Leaves the beginning and the end of a text, with a note of how much is missing between them (MW-TOB-3).

/// How many characters are left at both ends of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ends {
    pub head: usize,
    pub tail: usize,
}

/// The text with its middle left out; `None` when it has no more than `max` characters, or `max` is 0. The result never has
/// more than `max` characters, the note included; where there is no room for the note, it is the first `max` characters.
/// O(text).
pub(super) fn cut(text: &str, max: usize, ends: Ends) -> Option<String> {
    // No text has more characters than bytes.
    if max == 0 || text.len() <= max {
        return None;
    }
    let count = text.chars().count();
    if count <= max {
        return None;
    }
    // The number in it is never longer than that of all characters.
    let reserved = note(count).chars().count();
    let Some(room) = max.checked_sub(reserved).filter(|room| *room > 0) else {
        return Some(text.chars().take(max).collect());
    };
    let head = ends.head.min(room);
    let ends = Ends {
        head,
        tail: ends.tail.min(room - head),
    };
    let (head, tail) = both_ends(text, count, ends);
    let left_out = text[head.len()..text.len() - tail.len()].chars().count();
    Some(format!("{head}{}{tail}", note(left_out)))
}

fn note(left_out: usize) -> String {
    format!(
        "\n\n[{left_out} characters are left out here: the output is too long to be read at once. If they matter, ask for a \
         part of it.]\n\n"
    )
}

/// The beginning and the end of a text of `count` characters. Both may be shorter than asked for, by up to half, so that they
/// end and begin with a whole line. They never overlap.
pub(super) fn both_ends(text: &str, count: usize, ends: Ends) -> (&str, &str) {
    let head_chars = ends.head.min(count);
    let tail_chars = ends.tail.min(count - head_chars);
    let head = &text[..byte_at(text, head_chars)];
    let tail = &text[byte_from_end(text, tail_chars)..];
    let is_whole = head.len() + tail.len() == text.len();
    if is_whole {
        return (head, tail);
    }
    (back_to_line_end(head), forward_to_line_start(text, tail))
}

fn byte_at(text: &str, chars: usize) -> usize {
    let place = text.char_indices().nth(chars);
    place.map_or(text.len(), |(at, _)| at)
}

fn byte_from_end(text: &str, chars: usize) -> usize {
    match chars.checked_sub(1) {
        None => text.len(),
        Some(before) => {
            let place = text.char_indices().rev().nth(before);
            place.map_or(0, |(at, _)| at)
        }
    }
}

/// The head without the line that it cuts.
fn back_to_line_end(head: &str) -> &str {
    let whole = &head[..head.rfind('\n').map_or(0, |at| at + 1)];
    match whole.chars().count() * 2 >= head.chars().count() {
        true => whole,
        false => head,
    }
}

/// The tail without the line that it cuts.
fn forward_to_line_start<'a>(text: &str, tail: &'a str) -> &'a str {
    let before = &text[..text.len() - tail.len()];
    if before.is_empty() || before.ends_with('\n') {
        return tail;
    }
    let whole = &tail[tail.find('\n').map_or(tail.len(), |at| at + 1)..];
    match whole.chars().count() * 2 >= tail.chars().count() {
        true => whole,
        false => tail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chars(text: &str) -> usize {
        text.chars().count()
    }

    #[test]
    fn tob_3_and_l16_the_result_is_never_longer_than_the_bound() {
        let ends = Ends {
            head: 100,
            tail: 80,
        };
        let lines = "line\n".repeat(100) + &"x".repeat(2_000);
        for (text, length) in [
            (lines, 300),
            ("ab\n".repeat(1_000), 298),
            ("好".repeat(1_000), 299),
        ] {
            let short = cut(&text, 300, ends).expect("it is too long");
            assert_eq!(chars(&short), length, "{short}");
            assert_eq!(
                cut(&short, 300, ends),
                None,
                "cutting twice changes nothing"
            );
        }
        let long = "abcde".repeat(100);
        assert_eq!(cut(&long, 50, ends).as_deref(), Some(&long[..50]));
        assert_eq!(cut(&long, 0, ends), None);
        assert_eq!(cut(&long, 500, ends), None);
        assert_eq!(
            cut(&"好".repeat(20), 20, ends),
            None,
            "characters, not bytes"
        );
    }

    #[test]
    fn tob_3_ends_are_whole_lines_where_that_costs_no_more_than_half() {
        let ends = |head, tail| Ends { head, tail };
        let both = |text: &'static str, head, tail| both_ends(text, chars(text), ends(head, tail));
        assert_eq!(both("one\ntwo\nthree\nfour\n", 6, 7), ("one\n", "four\n"));
        assert_eq!(
            both("one\ntwo\nthree\nfour\n", 8, 5),
            ("one\ntwo\n", "four\n")
        );
        assert_eq!(
            both("a\nbbbbbbbbbb\nccccccccc\nd", 9, 9),
            ("a\nbbbbbbb", "ccccccc\nd")
        );
        assert_eq!(both("abc", 0, 0), ("", ""));
        assert_eq!(both("a\nbc", 2, 2), ("a\n", "bc"));
        assert_eq!(both("a\nbc", 3, 9), ("a\nb", "c"));
    }

    #[test]
    fn whatever_the_text_and_the_bounds_nothing_is_too_long_and_no_character_is_cut() {
        let mut random = 9_u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..4_000 {
            let pieces = ["a", "é", "好", "🙂", "\n", "\r\n", "word ", "\u{301}"];
            let text: String = (0..next(600)).map(|_| pieces[next(8) as usize]).collect();
            let max = next(700) as usize;
            let ends = Ends {
                head: next(400) as usize,
                tail: next(400) as usize,
            };
            match cut(&text, max, ends) {
                None => assert!(max == 0 || chars(&text) <= max),
                Some(short) => {
                    assert!(chars(&short) <= max && chars(&text) > max);
                    assert_eq!(cut(&short, max, ends), None);
                    let head = short.split("\n\n[").next().unwrap_or_default();
                    assert!(text.starts_with(head), "{short:?}");
                }
            }
        }
    }
}

//! Server-sent events: bytes in, whatever way they are cut, events out.

use std::borrow::Cow;
use std::ops::Range;

/// Largest event that is taken, in bytes; a tool call with a whole file in its arguments fits well.
pub const MAX_EVENT_BYTES: usize = 16 << 20;

/// Least room that is made beyond what is needed.
const MIN_SPARE_BYTES: usize = 4 << 10;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field, empty when there is none.
    pub name: &'a str,
    /// The `data` lines, joined with newlines. Bytes that are not UTF-8 are replaced.
    pub data: Cow<'a, str>,
}

/// An event, or a line of it, is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

/// Splits a stream into events.
///
/// Lines end with LF, CRLF or CR. Data is decoded only when an event is whole, so that a cut inside a character does
/// no harm. An event in one `data` line that lies in one piece of the input is borrowed, not copied. Fields `id` and
/// `retry` and comments are skipped. Memory stays below the limit plus the largest piece that is fed.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// Input that is not used up.
    buffer: Vec<u8>,
    /// Everything in `buffer` before this was used.
    start: usize,
    /// No line end lies in `buffer` between `start` and this.
    searched: usize,
    /// The last line ended with CR: an LF right after it belongs to it.
    after_cr: bool,
    /// Nothing was read yet, so a byte order mark may come.
    at_start: bool,
    name: String,
    /// The name of the event that was given out last.
    lent_name: String,
    data: Data,
}

/// The data of the event that is being read.
#[derive(Debug)]
enum Data {
    /// No `data` line yet.
    None,
    /// One line, in the buffer.
    Line(Range<usize>),
    /// Lines that were joined or carried over.
    Joined(Vec<u8>),
}

impl Default for SseParser {
    fn default() -> Self {
        SseParser::new(MAX_EVENT_BYTES)
    }
}

impl SseParser {
    /// A parser that refuses events of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        SseParser {
            limit,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            after_cr: false,
            at_start: true,
            name: String::new(),
            lent_name: String::new(),
            data: Data::None,
        }
    }

    /// Adds a piece of the stream. Call [`SseParser::next_event`] until it has no more before feeding again.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Data::Line(range) = &self.data {
            self.data = Data::Joined(self.buffer[range.clone()].to_vec());
        }
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        let needed = self.buffer.len() + bytes.len();
        if needed > self.buffer.capacity() {
            // Doubling would take twice the memory of a large event.
            let spare = (needed / 8).max(MIN_SPARE_BYTES);
            self.buffer.reserve_exact(bytes.len() + spare);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event, or `None` when more input is needed.
    ///
    /// # Errors
    /// [`EventTooLarge`]; the stream is of no use after it.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, EventTooLarge> {
        if self.at_start && !self.skip_bom(false) {
            return Ok(None);
        }
        while let Some(line) = self.next_line()? {
            if self.take_line(line)? {
                return Ok(Some(self.event()));
            }
        }
        Ok(None)
    }

    /// The event that the end of the stream leaves, if its last line or its blank line is missing. It may be cut.
    ///
    /// # Errors
    /// [`EventTooLarge`].
    pub fn finish(&mut self) -> Result<Option<SseEvent<'_>>, EventTooLarge> {
        if self.at_start {
            self.skip_bom(true);
        }
        // Whole events are not left here: the caller has taken them.
        let mut rest = self.start..self.buffer.len();
        if self.after_cr && self.buffer.get(rest.start) == Some(&b'\n') {
            rest.start += 1;
        }
        self.start = rest.end;
        self.searched = rest.end;
        if !rest.is_empty() {
            self.take_line(rest)?;
        }
        match self.data {
            Data::None => Ok(None),
            _ => Ok(Some(self.event())),
        }
    }

    /// Skips a byte order mark; false when it cannot be told yet whether there is one.
    fn skip_bom(&mut self, at_end: bool) -> bool {
        if self.buffer.len() < BOM.len() && BOM.starts_with(&self.buffer) && !at_end {
            return false;
        }
        if self.buffer.starts_with(BOM) {
            self.start = BOM.len();
            self.searched = BOM.len();
        }
        self.at_start = false;
        true
    }

    /// The place of the next line without its end.
    fn next_line(&mut self) -> Result<Option<Range<usize>>, EventTooLarge> {
        if self.after_cr && self.start < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.start] == b'\n' {
                self.start += 1;
                self.searched = self.searched.max(self.start);
            }
        }
        let found = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]);
        let Some(offset) = found else {
            self.searched = self.buffer.len();
            self.check_size(self.searched - self.start)?;
            return Ok(None);
        };
        let end = self.searched + offset;
        let line = self.start..end;
        self.after_cr = self.buffer[end] == b'\r';
        self.start = end + 1;
        self.searched = self.start;
        self.check_size(line.len())?;
        Ok(Some(line))
    }

    /// Takes one line; true when it ends an event that has data.
    fn take_line(&mut self, line: Range<usize>) -> Result<bool, EventTooLarge> {
        let text = &self.buffer[line.clone()];
        if text.is_empty() {
            // An event without data is none.
            let whole = !matches!(self.data, Data::None);
            if !whole {
                self.name.clear();
            }
            return Ok(whole);
        }
        let colon = memchr::memchr(b':', text);
        let (field, mut value) = match colon {
            Some(colon) => (&text[..colon], line.start + colon + 1..line.end),
            None => (text, line.end..line.end),
        };
        if self.buffer.get(value.start) == Some(&b' ') && !value.is_empty() {
            value.start += 1;
        }
        match field {
            b"data" => self.add_data(value)?,
            b"event" => {
                self.name.clear();
                self.name
                    .push_str(&String::from_utf8_lossy(&self.buffer[value]));
            }
            _ => {}
        }
        Ok(false)
    }

    fn add_data(&mut self, value: Range<usize>) -> Result<(), EventTooLarge> {
        self.check_size(value.len())?;
        self.data = match std::mem::replace(&mut self.data, Data::None) {
            Data::None => Data::Line(value),
            Data::Line(first) => {
                let mut joined = Vec::with_capacity(first.len() + 1 + value.len());
                joined.extend_from_slice(&self.buffer[first]);
                joined.push(b'\n');
                joined.extend_from_slice(&self.buffer[value]);
                Data::Joined(joined)
            }
            Data::Joined(mut joined) => {
                joined.push(b'\n');
                joined.extend_from_slice(&self.buffer[value]);
                Data::Joined(joined)
            }
        };
        Ok(())
    }

    fn check_size(&self, more: usize) -> Result<(), EventTooLarge> {
        let held = match &self.data {
            Data::None => 0,
            Data::Line(range) => range.len(),
            Data::Joined(joined) => joined.len(),
        };
        if held + more > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        Ok(())
    }

    /// Gives out the event that was read and begins the next.
    fn event(&mut self) -> SseEvent<'_> {
        let data = match std::mem::replace(&mut self.data, Data::None) {
            Data::None => Cow::Borrowed(""),
            Data::Line(range) => String::from_utf8_lossy(&self.buffer[range]),
            Data::Joined(joined) => Cow::Owned(match String::from_utf8(joined) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
        };
        // The next event begins without a name, while this one's is still lent.
        std::mem::swap(&mut self.name, &mut self.lent_name);
        self.name.clear();
        SseEvent {
            name: &self.lent_name,
            data,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    /// All events of a stream that comes in these pieces.
    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser.feed(piece);
            while let Some(event) = parser.next_event().unwrap() {
                events.push((event.name.to_owned(), event.data.into_owned()));
            }
        }
        if let Some(event) = parser.finish().unwrap() {
            events.push((event.name.to_owned(), event.data.into_owned()));
        }
        events
    }

    fn one(stream: &[u8], expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
            .collect();
        assert_eq!(events(&[stream]), expected, "whole");
        for cut in 0..=stream.len() {
            let (a, b) = stream.split_at(cut);
            assert_eq!(events(&[a, b]), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(events(&bytes), expected, "byte by byte");
    }

    #[test]
    fn lines_end_with_lf_crlf_or_cr() {
        for end in ["\n", "\r\n", "\r"] {
            let stream = ["data: a", "", ": keep-alive", "data:b", "data: c", "", ""].join(end);
            one(stream.as_bytes(), &[("", "a"), ("", "b\nc")]);
        }
        one(
            b"data: a\r\n\ndata: b\n\r\ndata: c\r\r",
            &[("", "a"), ("", "b"), ("", "c")],
        );
    }

    #[test]
    fn fields_are_told_apart_and_one_space_is_dropped() {
        one(
            b"event: x\nid: 7\nretry: 10\ndata:  two spaces\n\ndata: y\n\nevent: lost\n\ndata: z\n\n",
            &[("x", " two spaces"), ("", "y"), ("", "z")],
        );
        one(b"data\ndata\n\n", &[("", "\n")]);
        one(b"datum: x\nevent\ndata:\n\n", &[("", "")]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once() {
        one(
            b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n",
            &[("", "a")],
        );
        one(b"\xEF\xBB", &[]);
        one(b"", &[]);
    }

    #[test]
    fn characters_survive_any_cut_and_bad_bytes_are_replaced() {
        one("data: good🙂é\n\n".as_bytes(), &[("", "good🙂é")]);
        one(
            b"data: a\xFFb\n\ndata: c\n\n",
            &[("", "a\u{FFFD}b"), ("", "c")],
        );
    }

    #[test]
    fn the_end_of_the_stream_gives_out_what_is_pending() {
        one(b"data: a\n\ndata: b", &[("", "a"), ("", "b")]);
        one(b"data: a\n\ndata: b\r\n", &[("", "a"), ("", "b")]);
        one(b": only a comment", &[]);
    }

    #[test]
    fn an_endless_event_is_refused_with_bounded_memory() {
        let endless: &[u8] = &[b'x'; 1000];
        let short_lines = b"data: xxxx\n".repeat(100);
        for piece in [endless, &short_lines, b"data:\n"] {
            let mut parser = SseParser::new(4096);
            let mut fed = 0;
            let refused = loop {
                parser.feed(piece);
                fed += piece.len();
                match parser.next_event() {
                    Ok(None) => assert!(fed < 1 << 20, "never refused"),
                    Ok(Some(event)) => panic!("{event:?}"),
                    Err(error) => break error,
                }
                assert!(parser.buffer.capacity() < 64 << 10);
            };
            assert_eq!(refused, EventTooLarge { limit: 4096 });
        }
    }
}

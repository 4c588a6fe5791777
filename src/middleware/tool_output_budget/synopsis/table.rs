//! Tables of text: columns between tabs (TSV) or commas (CSV).

use super::{LINE_CHARS, line_count, names, shown};

/// Records at the beginning by which a table is told.
const SAMPLE: usize = 20;
/// Bytes at the beginning in which these must stand.
const SAMPLE_BYTES: usize = 64 * 1024;
/// Least records that make a table of commas; prose has commas too.
const LEAST: usize = 3;
/// Most columns of a table.
const MAX_COLUMNS: usize = 1_000;
/// Most characters of the name of a column.
const COLUMN_CHARS: usize = 64;

/// Lines about a table whose columns stand between tabs; `None` when there is none.
pub(super) fn tsv(text: &str) -> Option<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let records: Vec<Vec<&str>> = lines
        .take(SAMPLE)
        .map(|line| line.split('\t').take(MAX_COLUMNS + 1).collect())
        .collect();
    let columns = columns(&records, 2)?;
    let rows = line_count(text).saturating_sub(1);
    Some(told("TSV", columns, rows, text))
}

/// Lines about a table whose columns stand between commas, quoted or not; `None` when there is none.
pub(super) fn csv(text: &str) -> Option<String> {
    let records = records(text);
    let columns = columns(&records, LEAST)?;
    let rows = quoted_line_count(text).saturating_sub(1);
    Some(told("CSV", columns, rows, text))
}

/// The names of the columns, if the records have the same number of them.
fn columns<'a, 'b>(records: &'b [Vec<&'a str>], least: usize) -> Option<&'b [&'a str]> {
    let (header, rows) = records.split_first()?;
    let is_name = |cell: &&str| {
        let cell = cell.trim().trim_matches('"');
        !cell.is_empty() && cell.chars().nth(COLUMN_CHARS).is_none()
    };
    let is_table = records.len() >= least
        && (2..=MAX_COLUMNS).contains(&header.len())
        && rows.iter().all(|row| row.len() == header.len())
        && header.iter().all(is_name);
    is_table.then_some(header)
}

fn told(kind: &str, columns: &[&str], rows: usize, text: &str) -> String {
    let line = |line: Option<&str>| shown(line.unwrap_or_default(), LINE_CHARS);
    let mut filled = text.lines().filter(|line| !line.trim().is_empty());
    let second = filled.nth(1);
    let last = text.trim_end().rsplit('\n').next();
    format!(
        "{kind}, {} columns, about {rows} rows below the first line.\nColumns: {}\nFirst row: {}\nLast row: {}",
        columns.len(),
        names(
            columns.iter().map(|name| name.trim().trim_matches('"')),
            columns.len()
        ),
        line(second),
        line(last),
    )
}

/// The first records of a table of commas; the last one that the sample cuts is left out.
fn records(text: &str) -> Vec<Vec<&str>> {
    let end = text.floor_char_boundary(SAMPLE_BYTES);
    let mut records = Vec::new();
    let mut cells = Vec::new();
    let mut quoted = false;
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate().take(end) {
        match byte {
            b'"' => quoted = !quoted,
            b',' | b'\n' if !quoted => {
                cells.push(text[start..at].trim_end_matches('\r'));
                start = at + 1;
                if byte == b'\n' {
                    keep(&mut records, &mut cells);
                    if records.len() == SAMPLE {
                        return records;
                    }
                }
            }
            _ => {}
        }
    }
    if end == text.len() && !quoted {
        cells.push(&text[start..]);
        keep(&mut records, &mut cells);
    }
    records
}

/// Keeps a record, unless it is an empty line.
fn keep<'a>(records: &mut Vec<Vec<&'a str>>, cells: &mut Vec<&'a str>) {
    let cells = std::mem::take(cells);
    if cells.len() > 1 || cells.iter().any(|cell| !cell.trim().is_empty()) {
        records.push(cells);
    }
}

/// Number of lines whose breaks are not quoted.
fn quoted_line_count(text: &str) -> usize {
    let mut quoted = false;
    let mut count = 0;
    for at in memchr::memchr2_iter(b'"', b'\n', text.as_bytes()) {
        match text.as_bytes()[at] {
            b'"' => quoted = !quoted,
            _ => count += usize::from(!quoted),
        }
    }
    count + usize::from(!text.ends_with('\n'))
}

//! Reads what an ELF shared library says about itself: its exported symbols and the entries of its dynamic section.
//!
//! Only what the checks need, and only 64-bit little-endian files, which is what Linux on x86-64 and arm64 has.

use std::path::Path;

/// What a shared library says about itself.
#[derive(Debug, Default)]
pub struct SharedLibrary {
    /// Names of the symbols that it defines and shows, sorted.
    pub exports: Vec<String>,
    /// SONAME.
    pub soname: Option<String>,
    /// Names of the libraries that it needs.
    pub needed: Vec<String>,
    /// Whether it stays when it is closed.
    pub nodelete: bool,
}

struct Section {
    kind: u32,
    offset: usize,
    size: usize,
    link: usize,
}

const SHT_DYNAMIC: u32 = 6;
const SHT_DYNSYM: u32 = 11;
const DT_NEEDED: u64 = 1;
const DT_SONAME: u64 = 14;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_1_NODELETE: u64 = 8;

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut padded = [0; 8];
    padded[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(padded)
}

fn text(bytes: &[u8], at: usize) -> String {
    let end = at + bytes[at..].iter().position(|byte| *byte == 0).unwrap();
    String::from_utf8(bytes[at..end].to_vec()).unwrap()
}

/// Reads a shared library. `None` if it is not a 64-bit little-endian ELF file.
pub fn read(path: &Path) -> Option<SharedLibrary> {
    let bytes = std::fs::read(path).unwrap();
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = number(&bytes, 40, 8) as usize;
    let (size, count) = (
        number(&bytes, 58, 2) as usize,
        number(&bytes, 60, 2) as usize,
    );
    let sections: Vec<Section> = (0..count)
        .map(|n| table + n * size)
        .map(|at| Section {
            kind: number(&bytes, at + 4, 4) as u32,
            offset: number(&bytes, at + 24, 8) as usize,
            size: number(&bytes, at + 32, 8) as usize,
            link: number(&bytes, at + 40, 4) as usize,
        })
        .collect();
    let mut library = SharedLibrary::default();
    for section in &sections {
        let entries = |width| (section.offset..section.offset + section.size).step_by(width);
        let texts = sections.get(section.link).map_or(0, |texts| texts.offset);
        match section.kind {
            SHT_DYNSYM => {
                for at in entries(24) {
                    let name = text(&bytes, texts + number(&bytes, at, 4) as usize);
                    let (bind, visibility) = (bytes[at + 4] >> 4, bytes[at + 5] & 3);
                    let defined = number(&bytes, at + 6, 2) != 0;
                    // Global or weak, and neither hidden nor internal.
                    if defined && (bind == 1 || bind == 2) && (visibility == 0 || visibility == 3) {
                        library.exports.push(name);
                    }
                }
            }
            SHT_DYNAMIC => {
                for at in entries(16) {
                    let value = number(&bytes, at + 8, 8);
                    match number(&bytes, at, 8) {
                        DT_NEEDED => library.needed.push(text(&bytes, texts + value as usize)),
                        DT_SONAME => library.soname = Some(text(&bytes, texts + value as usize)),
                        DT_FLAGS_1 => library.nodelete = value & DF_1_NODELETE != 0,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    library.exports.sort();
    Some(library)
}

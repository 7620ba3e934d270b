//! `[xml]` and `[csv]`

use super::given::Given;
use super::section::Section;
use crate::spider::{Csv, Formats, Xml};

/// Maximum number of namespaces.
const MAX_NAMESPACES: usize = 64;

/// Reads both sections of a file.
pub(super) fn formats(file: &mut Section<'_>) -> Formats {
    Formats { xml: file.within("xml", xml), csv: file.within("csv", csv) }
}

fn xml(mut section: Section<'_>) -> Xml {
    let namespaces = section.within("namespaces", namespaces).unwrap_or_default();
    section.end();
    Xml { namespaces }
}

fn namespaces(section: Section<'_>) -> Vec<(String, String)> {
    let mut namespaces = Vec::new();
    for (prefix, place, given) in section.entries() {
        let is_name = prefix.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && prefix.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if !is_name {
            given.notes.wrong(place, format_args!("{}: a prefix is a name, as `g`", given.key));
        } else if namespaces.len() >= MAX_NAMESPACES {
            given
                .notes
                .wrong(place, format_args!("{}: there are {MAX_NAMESPACES} namespaces at most", given.key));
            break;
        }
        namespaces.extend(given.words().map(|uri| (prefix, uri.value)));
    }
    namespaces
}

fn csv(mut section: Section<'_>) -> Csv {
    let delimiter = section.read("delimiter", delimiter);
    section.end();
    Csv { delimiter }
}

fn delimiter(given: &Given<'_>) -> Option<u8> {
    match given.text()?.value.as_bytes() {
        [mark] if mark.is_ascii_punctuation() && *mark != b'"' || matches!(mark, b'\t' | b' ') => Some(*mark),
        _ => given.wrong("is one mark, as \";\" or \"\\t\""),
    }
}

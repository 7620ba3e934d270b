//! `[ban]`

use super::given::Given;
use super::patterns;
use super::section::Section;
use crate::spider::Ban;

pub(super) fn ban(mut section: Section<'_>) -> Ban {
    let ban = Ban {
        status: section.all("status", status),
        redirect: section.all("redirect", patterns::regex),
        text: section.all("text", patterns::regex),
        then: section.read("then", Given::variant).unwrap_or_default(),
    };
    section.end();
    ban
}

pub(super) fn status(given: &Given<'_>) -> Option<u16> {
    let status: u16 = given.whole(100)?;
    if status < 600 { Some(status) } else { given.wrong("is no status of HTTP") }
}

//! `[[download]]`

use std::collections::HashSet;

use super::fields;
use super::given::Given;
use super::pages;
use super::patterns;
use super::section::Section;
use super::sinks;
use crate::mistake::Sited;
use crate::spider::{Download, PageFollow, Spider};

/// Reads all rules of a spider whose kinds of pages and items are read. `has_reader`: whether a program reads the
/// pages.
pub(super) fn downloads(file: &mut Section<'_>, spider: &Spider, has_reader: bool) -> Vec<Download> {
    let rules = spider.pages.iter().flat_map(|kind| kind.follow.iter().flatten());
    let rules = rules.filter_map(|rule| rule.name.as_ref()).map(|name| name.value.clone());
    let kinds = spider.pages.iter().map(|kind| kind.name.value.clone());
    let items = spider.items.iter().filter_map(|rule| rule.name.clone());
    let mut names: HashSet<String> = rules.chain(kinds).chain(items).collect();
    pages::rules(file, "download", has_reader, |given| download(given, spider, &mut names))
}

fn download(given: &Given<'_>, spider: &Spider, names: &mut HashSet<String>) -> Option<Download> {
    let mut section = Section::from_given(given)?;
    let name = match section.get("name") {
        Some(given) => given.text(),
        None => Some(Sited::nowhere(Download::DEFAULT_NAME)),
    };
    if let Some(name) = &name {
        if !fields::is_name(&name.value) {
            given.wrong::<()>(fields::NO_NAME);
        } else if !names.insert(name.value.clone()) {
            given.wrong::<()>(format_args!(
                "a kind of pages or items, a rule of one, or another [[download]] has the name `{}`: give each a `name` of its own",
                name.value
            ));
        }
    }
    let page = section.read("page", |given| pages::named_kinds(given, spider)).unwrap_or_default();
    let links = PageFollow { name: name.clone(), ..pages::links(&mut section) };
    let to = section.need("to", |given| sinks::path(given, true));
    let path = section.read("path", Given::parsed).unwrap_or_default();
    let max_size = section.read("max_size", sinks::size).unwrap_or(Download::DEFAULT_MAX_SIZE);
    let types =
        section.read("types", |given| patterns::one_or_more(given, pages::media_type)).unwrap_or_default();
    let sync = section.read("sync", Given::flag).unwrap_or_default();
    section.end();
    let (to, below) = to?;
    Some(Download { name: name?, page, links, to, below, path, max_size, types, sync })
}

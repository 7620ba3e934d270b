//! `[[hand_over]]`

use super::given::Given;
use super::pages;
use super::section::Section;
use crate::mistake::Sited;
use crate::names::SpiderName;
use crate::spider::{HandOver, PageFollow, Spider, TaskTemplate};

/// Reads all rules of a spider whose kinds of pages are read. `has_reader`: whether a program reads the pages.
pub(super) fn hand_overs(file: &mut Section<'_>, spider: &Spider, has_reader: bool) -> Vec<HandOver> {
    pages::rules(file, "hand_over", has_reader, |given| hand_over(given, spider))
}

fn hand_over(given: &Given<'_>, spider: &Spider) -> Option<HandOver> {
    let mut section = Section::from_given(given)?;
    let to = section.need("spider", |given| {
        let name: SpiderName = given.parsed()?;
        Some(Sited { place: Some(given.place()), value: name })
    });
    let page = section.read("page", |given| pages::named_kinds(given, spider)).unwrap_or_default();
    let request = section.read("request", |given| pages::request(given, &[]));
    let links = PageFollow { request, ..pages::links(&mut section) };
    if links.makes_request() {
        pages::refuse_links(&mut section, "`url` of `request`");
    }
    let task = section.read("task", |given| match TaskTemplate::new(given.json()?) {
        Ok(task) => Some(task),
        Err(error) => given.wrong(error),
    });
    if task.is_some() {
        pages::refuse_links(&mut section, "`task`");
        section.refuse("request", "is for links: leave it out, or `task`");
    }
    section.end();
    let to = to?;
    if to.value == spider.name && task.is_none() {
        return given.wrong("its links stay with this spider: that is what `follow` is for");
    }
    Some(HandOver { spider: to, page, links, task })
}

//! `[[page]]`: the kinds of pages.

use std::collections::HashSet;

use serde_json::json;

use super::fields;
use super::given::Given;
use super::patterns;
use super::render;
use super::section::Section;
use super::steps::steps;
use crate::mistake::Sited;
use crate::request::RequestTemplate;
use crate::spider::{Field, ItemRule, PageFollow, PageForm, PageKind, PageMatch, Render, Spider};

/// Maximum number of kinds of pages.
const MAX_KINDS: usize = 100;

/// Maximum number of rules of one kind.
const MAX_RULES: usize = 100;

/// The keys of `[follow]` that hold for all pages.
const OF_ALL: [&str; 7] =
    ["depth", "max_per_host", "max_repeats", "nofollow", "noindex", "canonical", "refresh"];

/// A key that requests of a spider's own links do not have.
const UNIQUE: (&str, &str) = ("unique", "each URL, method and body is requested once");

/// Reads the kinds of pages, and the items of each. A kind is rendered as `spider` says, or as it says itself.
pub(super) fn pages(given: &Given<'_>, spider: Render) -> (Vec<PageKind>, Vec<ItemRule>) {
    let (mut kinds, mut items) = (Vec::<PageKind>::new(), Vec::new());
    let (mut names, mut item_names) = (HashSet::new(), HashSet::new());
    let all = given.list().unwrap_or_default();
    if all.len() > MAX_KINDS {
        given.wrong::<()>(format_args!("the kinds of pages are {MAX_KINDS} at most"));
    }
    for given in all.iter().take(MAX_KINDS) {
        if let Some(last) = kinds.last().filter(|last| last.when.is_empty()) {
            let name = &last.name.value;
            given.wrong::<()>(format_args!(
                "comes after `{name}`, which has no `match` and so takes every page: put that last"
            ));
        }
        let Some(section) = Section::from_given(given) else { continue };
        let number = kinds.len();
        let Some((kind, own)) = page(section, (number, spider), &mut names, &mut item_names) else {
            continue;
        };
        kinds.push(kind);
        items.extend(own);
    }
    note_unknown(given, &kinds, &names);
    (kinds, items)
}

fn page(
    mut section: Section<'_>,
    (number, spider): (usize, Render),
    names: &mut HashSet<String>,
    item_names: &mut HashSet<String>,
) -> Option<(PageKind, Vec<ItemRule>)> {
    let name = section.need("name", |given| name(given, names));
    let when = section.within("match", when).unwrap_or_default();
    let follow = section.read("follow", |given| match given.is_table() {
        true => Some(Section::from_given(given).map(|section| follow(section, names)).into_iter().collect()),
        false => given.all(|given| Section::from_given(given).map(|section| follow(section, names))),
    });
    let carry = carry(&mut section);
    let render = section.read("render", render);
    let steps = section.read("steps", |given| steps(given, render.unwrap_or(spider).needs_browser()));
    let own_fields = section.within("fields", fields::fields);
    let kinds = section.get("items");
    if let (Some(_), Some(kinds)) = (&own_fields, &kinds) {
        kinds.wrong::<()>("give either `fields`, one item a page, or `items`, not both");
    }
    section.end();
    let name = name?;
    let mut items = match (own_fields, kinds) {
        (Some(fields), _) => vec![ItemRule { name: None, each: None, fields, page: None }],
        (None, Some(kinds)) => fields::kinds(&kinds, item_names),
        (None, None) => Vec::new(),
    };
    for rule in &mut items {
        rule.name.get_or_insert_with(|| name.value.clone());
        rule.page = Some(number);
    }
    Some((PageKind { name, when, follow, carry, render, steps }, items))
}

fn name(given: &Given<'_>, names: &mut HashSet<String>) -> Option<Sited<String>> {
    let name = given.text()?;
    if !fields::is_name(&name.value) {
        return given.wrong(fields::NO_NAME);
    }
    if !names.insert(name.value.clone()) {
        return given.wrong(format_args!(
            "there are two kinds of pages, or rules of them, with the name `{}`",
            name.value
        ));
    }
    Some(name)
}

fn when(mut section: Section<'_>) -> PageMatch {
    let when = PageMatch {
        url: section.read("url", |given| patterns::one_or_more(given, patterns::regex)).unwrap_or_default(),
        content_type: section
            .read("content_type", |given| patterns::one_or_more(given, media_type))
            .unwrap_or_default(),
        selector: section.read("selector", patterns::selector),
        from: section
            .read("from", |given| patterns::one_or_more(given, |given| given.words()))
            .unwrap_or_default(),
    };
    section.end();
    when
}

/// Reads a media type, or all of a kind.
pub(super) fn media_type(given: &Given<'_>) -> Option<String> {
    let text = given.words()?.value.to_ascii_lowercase();
    let is_one = text.split_once('/').is_some_and(|(kind, rest)| {
        !kind.is_empty() && !rest.is_empty() && !text.contains([';', ' ', ',']) && !kind.contains('*')
    });
    if is_one { Some(text) } else { given.wrong("write a media type, as `text/html` or `application/*`") }
}

fn follow(mut section: Section<'_>, names: &mut HashSet<String>) -> PageFollow {
    for key in OF_ALL {
        section.refuse(key, "holds for all pages: put it into [follow]");
    }
    let follow = PageFollow {
        name: section.read("name", |given| name(given, names)),
        request: section.read("request", |given| request(given, &[UNIQUE])),
        form: form(&mut section),
        ..links(&mut section)
    };
    if follow.makes_request() {
        refuse_links(&mut section, "`url` of `request`");
    }
    if follow.form.is_some() {
        refuse_links(&mut section, "`form`");
        for key in ["each", "request"] {
            section.refuse(key, "is for links: leave it out, or `form`");
        }
    }
    section.end();
    follow
}

/// Reads which links of a page a rule is for, and which values go along with them.
pub(super) fn links(section: &mut Section<'_>) -> PageFollow {
    let links = PageFollow {
        name: None,
        each: section.read("each", patterns::selector),
        link: section
            .read("link", |given| patterns::one_or_more(given, patterns::selector))
            .unwrap_or_default(),
        area: section.read("area", patterns::elements),
        include: section.all("include", patterns::regex),
        exclude: section.all("exclude", patterns::regex),
        carry: carry(section),
        request: None,
        form: None,
    };
    if links.each.is_some() || !links.link.is_empty() {
        section.refuse("area", "is for all links of a page: leave it out, or `each` and `link`");
    }
    links
}

/// Refuses the keys that say which links a rule is for, which has something in place of links.
pub(super) fn refuse_links(section: &mut Section<'_>, other: &str) {
    for key in ["link", "area", "include", "exclude"] {
        section.refuse(key, &format!("is for links: leave it out, or {other}"));
    }
}

/// Reads `request`: how links are requested. `refused` has keys that it may not have either, and why.
pub(super) fn request(
    given: &Given<'_>,
    refused: &[(&'static str, &'static str)],
) -> Option<RequestTemplate> {
    let template = match RequestTemplate::new(given.json()?) {
        Ok(template) => template,
        Err(error) => return given.wrong(error),
    };
    let refused_always = [
        ("data", "what goes along is `carry` of the page or the rule"),
        ("failures", "is for requests of programs"),
        ("any_status", "is for requests of programs"),
    ];
    for (key, why) in refused_always.iter().chain(refused) {
        if template.has(key) {
            return given.wrong(format_args!("`{key}`: leave it out: {why}"));
        }
    }
    template.names().map_or_else(|error| given.wrong(error), |_| Some(template))
}

/// Reads `form` and `fill`.
fn form(section: &mut Section<'_>) -> Option<PageForm> {
    let form = section.read("form", patterns::elements);
    if form.is_none() {
        section.refuse("fill", "is for `form` alone");
    }
    let fill = section.read("fill", |given| match given.is_table() {
        true => given.json(),
        false => given.not_a("a table"),
    });
    Some(PageForm { form: form?, fill: fill.unwrap_or_else(|| json!({})) })
}

/// Reads `carry`: fields whose values are passed on.
pub(super) fn carry(section: &mut Section<'_>) -> Vec<(String, Field)> {
    let fields = section.within("carry", fields::fields).unwrap_or_default();
    if fields.iter().any(|(name, _)| name.starts_with('$')) {
        section.refuse("carry", "a carried value's name does not begin with `$`");
    }
    fields
}

/// Reads a list of rules for pages, 100 at most. `has_reader`: whether a program reads the pages in place of rules.
pub(super) fn rules<T>(
    file: &mut Section<'_>,
    key: &'static str,
    has_reader: bool,
    read: impl FnMut(&Given<'_>) -> Option<T>,
) -> Vec<T> {
    let Some(given) = file.get(key) else { return Vec::new() };
    if has_reader {
        given.wrong::<()>("the program of [handler] reads the pages and names the URLs: leave this out");
        return Vec::new();
    }
    let all = given.list().unwrap_or_default();
    if all.len() > MAX_RULES {
        given.wrong::<()>(format_args!("there are {MAX_RULES} at most"));
    }
    all.iter().take(MAX_RULES).filter_map(read).collect()
}

/// Reads names of a spider's kinds of pages.
pub(super) fn named_kinds(given: &Given<'_>, spider: &Spider) -> Option<Vec<Sited<String>>> {
    let page = patterns::one_or_more(given, |given| given.words())?;
    for named in &page {
        if spider.pages.iter().all(|kind| kind.name.value != named.value) {
            let known = spider.pages.iter().map(|kind| kind.name.value.as_str());
            given.no_such(named, format_args!("{}: there is no [[page]]", given.key), known);
        }
    }
    Some(page)
}

/// Notes names in `from` that no kind and no rule has.
fn note_unknown(given: &Given<'_>, kinds: &[PageKind], names: &HashSet<String>) {
    for from in kinds.iter().flat_map(|kind| &kind.when.from).filter(|from| !names.contains(&from.value)) {
        let what = "page.match.from: there is no kind of page and no rule of one";
        given.no_such(from, what, names.iter().map(String::as_str));
    }
}

//! Reads a page in one streaming pass without a tree.

use std::borrow::Cow;
use std::cell::Cell;

use encoding_rs::Encoding;
use lol_html::errors::RewritingError;
use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{ElementContentHandlers, HtmlRewriter, MemorySettings, Selector, Settings};
use trawl_common::frontier::outcome::{Class, Failure};

use crate::document::script::Script;

/// Maximum memory of the pass for one page in bytes, most of it for open elements.
const MAX_MEMORY: usize = 64 << 20;

/// The findings of one page, with character references decoded, otherwise as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// The encoding of the page; `None` for JSON.
    pub(crate) encoding: Option<&'static Encoding>,
    /// The text of the first `<title>` that has any.
    pub(crate) title: String,
    /// The target of `<link rel=canonical>`.
    pub(crate) canonical: Option<String>,
    /// The language of `<html>`.
    pub(crate) language: Option<String>,
    /// The `<meta>` elements.
    pub(crate) meta: Metas,
    /// The base of relative links, from the first `<base>`.
    pub(crate) base: Option<String>,
    /// The number of links.
    pub(crate) link_count: usize,
    /// The links in page order, if requested.
    pub(crate) links: Vec<Link>,
    /// The texts of JSON-LD scripts, if requested.
    pub(crate) json_ld: Vec<String>,
    /// The scripts in which one of the names in [`Wanted::scripts`] stands.
    pub(crate) scripts: Vec<Script>,
    /// The matches of each query, in page order.
    pub(crate) found: Vec<Vec<String>>,
}

/// The content of a page's `<meta>` elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metas {
    /// The description.
    pub(crate) description: Option<String>,
    /// The `Content-Language`.
    pub(crate) language: Option<String>,
    /// The `Refresh`.
    pub(crate) refresh: Option<String>,
    /// The content of `<meta name="robots">`, and of those for the crawler's name.
    pub(crate) robots: Vec<String>,
    /// The content of each requested element, with its index in [`Wanted::metas`].
    pub(crate) named: Vec<(usize, String)>,
}

impl Metas {
    fn read(&mut self, meta: &Element<'_, '_>, wanted: &Wanted) {
        let Some(content) = attribute(meta, "content") else { return };
        let lower = |name| attribute(meta, name).map(|text| text.trim().to_ascii_lowercase());
        let name = lower("name");
        if !wanted.metas.is_empty() {
            let property = lower("property");
            let is_asked = |asked: &String| name.as_ref() == Some(asked) || property.as_ref() == Some(asked);
            let asked = wanted.metas.iter().enumerate().filter(|(_, asked)| is_asked(asked));
            self.named.extend(asked.map(|(number, _)| (number, content.clone())));
        }
        match name.as_deref() {
            Some("description") => keep(&mut self.description, Some(content)),
            Some(name) if wanted.follow && (name == "robots" || name == wanted.robots_name) => {
                self.robots.push(content);
            }
            _ => match lower("http-equiv").as_deref() {
                Some("content-language") => keep(&mut self.language, Some(content)),
                Some("refresh") if wanted.follow => keep(&mut self.refresh, Some(content)),
                _ => {}
            },
        }
    }
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) href: String,
    /// Whether its `rel` has `nofollow`; false unless requested.
    pub(crate) nofollow: bool,
}

/// The findings to collect beyond the default ones.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Links, in addition to their number.
    pub(crate) links: bool,
    /// The data that `[follow]` needs.
    pub(crate) follow: bool,
    /// The name by which pages address the crawler, in lower case.
    pub(crate) robots_name: String,
    /// The names or properties of `<meta>`, in lower case.
    pub(crate) metas: Vec<String>,
    /// The types of objects in JSON-LD.
    pub(crate) json_ld: Vec<String>,
    /// The names of scripts, and of variables in them.
    pub(crate) scripts: Vec<String>,
    pub(crate) queries: Vec<Streamed>,
}

/// A selector, and the value to take from each element that it matches.
#[derive(Debug)]
pub(crate) struct Streamed {
    pub(crate) selector: Selector,
    /// The name of an attribute; `None` for the element's text.
    pub(crate) attribute: Option<String>,
}

/// The selectors of the pass, parsed once. They have element names only: other conditions are checked more cheaply on
/// the few elements with that name.
#[derive(Debug)]
pub(crate) struct Reader {
    title: Selector,
    html: Selector,
    base: Selector,
    meta: Selector,
    canonical: Selector,
    link: Selector,
    script: Selector,
    pub(crate) wanted: Wanted,
}

impl Reader {
    pub(crate) fn new(wanted: Wanted) -> Self {
        let selector = |css: &str| css.parse().expect("a constant selector");
        Self {
            title: selector("title"),
            html: selector("html"),
            base: selector("base"),
            meta: selector("meta"),
            canonical: selector("link"),
            link: selector("a, area"),
            script: selector("script"),
            wanted,
        }
    }

    /// Reads a page.
    pub(crate) fn read(&self, html: &str) -> Result<Page, Failure> {
        let wanted = &self.wanted;
        let mut page = Page { found: vec![Vec::new(); wanted.queries.len()], ..Page::default() };
        let mut has_title = false;
        let (is_json_ld, script_id) = (Cell::new(false), Cell::new(None));
        let title = |chunk: &mut TextChunk<'_>| {
            // The title of an SVG drawing has another text type.
            if !has_title && chunk.text_type() == TextType::RCData {
                page.title.push_str(chunk.as_str());
                has_title = chunk.last_in_text_node();
            }
            Ok(())
        };
        let link = |link: &Element<'_, '_>| {
            page.link_count += usize::from(link.has_attribute("href"));
            if wanted.links
                && let Some(href) = attribute(link, "href")
            {
                page.links.push(Link { href, nofollow: wanted.follow && has_rel(link, "nofollow") });
            }
        };
        let canonical = |link: &Element<'_, '_>| {
            if has_rel(link, "canonical") {
                keep(&mut page.canonical, attribute(link, "href"));
            }
        };
        let mut handlers = vec![
            (&self.title, ElementContentHandlers::default().text(title)),
            (&self.html, first(&mut page.language, "lang")),
            (&self.base, first(&mut page.base, "href")),
            (&self.canonical, each(canonical)),
            (&self.meta, each(|meta| page.meta.read(meta, wanted))),
            (&self.link, each(link)),
        ];
        if !wanted.json_ld.is_empty() {
            // Frameworks write `+` as a character reference, which selectors do not decode.
            let kind = |script: &Element<'_, '_>| is_json_ld.set(is(script, "type", "application/ld+json"));
            handlers.push((&self.script, each(kind)));
            handlers.push((&self.script, texts(|text| page.json_ld.push(text), || is_json_ld.get())));
        }
        if !wanted.scripts.is_empty() {
            let named = |script: &Element<'_, '_>| script_id.set(attribute(script, "id"));
            let keep = |text| {
                let script = Script { id: script_id.take(), text };
                page.scripts.extend(Some(script).filter(|script| script.is_wanted(&wanted.scripts)));
            };
            handlers.push((&self.script, each(named)));
            handlers.push((&self.script, texts(keep, || true)));
        }
        for (streamed, found) in wanted.queries.iter().zip(&mut page.found) {
            let handler = match &streamed.attribute {
                Some(name) => each(|element| found.extend(attribute(element, name))),
                None => texts(|text| found.push(text), || true),
            };
            handlers.push((&streamed.selector, handler));
        }
        run(handlers, html).map_err(|error| Failure::new(Class::Parse, error))?;
        page.title = htmlize::unescape(&*page.title).into_owned();
        Ok(page)
    }
}

/// Feeds the page to the handlers; the output of the rewriter is dropped.
fn run<'h>(
    handlers: impl IntoIterator<Item = (&'h Selector, ElementContentHandlers<'h>)>,
    html: &str,
) -> Result<(), RewritingError> {
    let settings = Settings::new()
        // At worst, ambiguous markup without a tree makes text look like a tag.
        .with_strict(false)
        .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(MAX_MEMORY));
    let settings = handlers.into_iter().fold(settings, |settings, (selector, handlers)| {
        settings.append_element_content_handler((Cow::Borrowed(selector), handlers))
    });
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    rewriter.write(html.as_bytes())?;
    rewriter.end()
}

fn each<'h>(mut handle: impl FnMut(&Element<'_, '_>) + 'h) -> ElementContentHandlers<'h> {
    ElementContentHandlers::default().element(move |element: &mut Element<'_, '_>| {
        handle(element);
        Ok(())
    })
}

/// Stores the first non-empty value of an attribute in `field`.
fn first<'h>(field: &'h mut Option<String>, name: &'h str) -> ElementContentHandlers<'h> {
    each(move |element| keep(field, attribute(element, name)))
}

/// Calls `take` with the text of each element whose text contains no tags, while `is_wanted`.
fn texts<'h>(
    mut take: impl FnMut(String) + 'h,
    is_wanted: impl Fn() -> bool + 'h,
) -> ElementContentHandlers<'h> {
    let mut text = String::new();
    ElementContentHandlers::default().text(move |chunk: &mut TextChunk<'_>| {
        if is_wanted() {
            text.push_str(chunk.as_str());
            if chunk.last_in_text_node() {
                let whole = std::mem::take(&mut text);
                // In SVG a script is ordinary text.
                let is_encoded = matches!(chunk.text_type(), TextType::RCData | TextType::Data);
                take(if is_encoded { htmlize::unescape(whole).into_owned() } else { whole });
            }
        }
        Ok(())
    })
}

/// Stores a value in `field`, unless it is empty or the field has one.
fn keep(field: &mut Option<String>, value: Option<String>) {
    if field.is_none() {
        *field = value.filter(|value| !value.trim().is_empty());
    }
}

/// Whether a `rel` has `nofollow`.
pub(crate) fn is_nofollow(rel: &str) -> bool {
    has_token(rel, "nofollow")
}

fn has_rel(element: &Element<'_, '_>, token: &str) -> bool {
    attribute(element, "rel").is_some_and(|rel| has_token(&rel, token))
}

fn has_token(rel: &str, token: &str) -> bool {
    rel.split_ascii_whitespace().any(|other| other.eq_ignore_ascii_case(token))
}

fn is(element: &Element<'_, '_>, name: &str, value: &str) -> bool {
    attribute(element, name).is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
}

fn attribute(element: &Element<'_, '_>, name: &str) -> Option<String> {
    let value = element.get_attribute(name)?;
    Some(if value.contains('&') { htmlize::unescape_attribute(value).into_owned() } else { value })
}

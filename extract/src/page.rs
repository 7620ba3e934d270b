//! What is read of every page, in one streaming pass without a tree.

use std::borrow::Cow;

use lol_html::errors::RewritingError;
use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{ElementContentHandlers, HtmlRewriter, MemorySettings, Selector, Settings};
use trawl_common::outcome::{Class, Failure};

/// The most memory that the pass may take for one page, most of it for open elements.
const MAX_MEMORY: usize = 64 << 20;

/// What one page says of itself, character references decoded, otherwise as written.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The text of the first `<title>` that has any.
    pub(super) title: String,
    /// The description in `<meta>`.
    pub(super) description: Option<String>,
    /// Where `<link rel=canonical>` points.
    pub(super) canonical: Option<String>,
    /// The language of `<html>`.
    pub(super) language: Option<String>,
    /// The `Content-Language` in `<meta>`.
    pub(super) content_language: Option<String>,
    /// What links are relative to, by the first `<base>`.
    pub(super) base: Option<String>,
    /// The number of links.
    pub(super) link_count: usize,
    /// Where the links point, in page order, if that is asked for.
    pub(super) links: Option<Vec<String>>,
}

/// The selectors of the pass, parsed once.
#[derive(Debug)]
pub(super) struct Reader {
    title: Selector,
    html: Selector,
    base: Selector,
    meta: Selector,
    canonical: Selector,
    link: Selector,
    keep_links: bool,
}

impl Reader {
    /// A reader that keeps where links point, or only counts them.
    pub(super) fn new(keep_links: bool) -> Self {
        let selector = |css: &str| css.parse().expect("a constant selector");
        Self {
            title: selector("title"),
            html: selector("html[lang]"),
            base: selector("base[href]"),
            meta: selector("meta[content]"),
            canonical: selector("link[rel~=canonical i][href]"),
            link: selector("a[href], area[href]"),
            keep_links,
        }
    }

    /// Reads a page.
    pub(super) fn read(&self, html: &str) -> Result<Page, Failure> {
        let mut page = Page { links: self.keep_links.then(Vec::new), ..Page::default() };
        let mut has_title = false;
        let title = |chunk: &mut TextChunk<'_>| {
            // The title of a drawing in SVG is text of another kind.
            if !has_title && chunk.text_type() == TextType::RCData {
                page.title.push_str(chunk.as_str());
                has_title = chunk.last_in_text_node();
            }
            Ok(())
        };
        let meta = |meta: &Element<'_, '_>| {
            if is(meta, "name", "description") {
                keep(&mut page.description, meta, "content");
            } else if is(meta, "http-equiv", "content-language") {
                keep(&mut page.content_language, meta, "content");
            }
        };
        let link = |link: &Element<'_, '_>| {
            page.link_count += 1;
            if let Some(links) = &mut page.links {
                links.extend(attribute(link, "href"));
            }
        };
        let handlers = [
            (&self.title, ElementContentHandlers::default().text(title)),
            (&self.html, each(|html| keep(&mut page.language, html, "lang"))),
            (&self.base, each(|base| keep(&mut page.base, base, "href"))),
            (&self.canonical, each(|link| keep(&mut page.canonical, link, "href"))),
            (&self.meta, each(meta)),
            (&self.link, each(link)),
        ];
        run(handlers, html).map_err(|error| Failure::new(Class::Parse, error))?;
        page.title = htmlize::unescape(&*page.title).into_owned();
        Ok(page)
    }
}

/// Feeds the page to the handlers; what a rewriter would write is dropped.
fn run<'h>(
    handlers: impl IntoIterator<Item = (&'h Selector, ElementContentHandlers<'h>)>,
    html: &str,
) -> Result<(), RewritingError> {
    let settings = Settings::new()
        // What is ambiguous without a tree is at worst text taken for a tag.
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

/// Puts an attribute in `field`, unless it is empty or the field has a value.
fn keep(field: &mut Option<String>, element: &Element<'_, '_>, name: &str) {
    if field.is_none() {
        *field = attribute(element, name).filter(|value| !value.trim().is_empty());
    }
}

fn is(element: &Element<'_, '_>, name: &str, value: &str) -> bool {
    attribute(element, name).is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
}

fn attribute(element: &Element<'_, '_>, name: &str) -> Option<String> {
    let value = element.get_attribute(name)?;
    Some(if value.contains('&') { htmlize::unescape_attribute(value).into_owned() } else { value })
}

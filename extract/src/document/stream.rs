//! Reads a page in one streaming pass without a tree.

use std::borrow::Cow;
use std::cell::Cell;

use lol_html::errors::RewritingError;
use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{ElementContentHandlers, HtmlRewriter, MemorySettings, Selector, Settings};
use trawl_common::frontier::outcome::{Class, Failure};

use crate::document::page::{Link, Page, Wanted, canonical, is_json_ld, keep};
use crate::document::script::Script;

/// Maximum memory of the pass for one page in bytes, most of it for open elements.
const MAX_MEMORY: usize = 64 << 20;

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
    pub(crate) fn read(&self, html: &str) -> Result<Page<'static>, Failure> {
        let wanted = &self.wanted;
        let mut page = Page { found: vec![Vec::new(); wanted.queries.len()], ..Page::default() };
        let mut has_title = false;
        let (has_json_ld, script_id) = (Cell::new(false), Cell::new(None));
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
            page.links.extend(Link::new(|name| attribute(link, name), wanted));
        };
        let canonical =
            |link: &Element<'_, '_>| keep(&mut page.canonical, canonical(|name| attribute(link, name)));
        let mut handlers = vec![
            (&self.title, ElementContentHandlers::default().text(title)),
            (&self.html, first(&mut page.language, "lang")),
            (&self.base, first(&mut page.base, "href")),
            (&self.canonical, each(canonical)),
            (&self.meta, each(|meta| page.meta.add(|name| attribute(meta, name), wanted))),
            (&self.link, each(link)),
        ];
        if !wanted.json_ld.is_empty() {
            // Frameworks write `+` as a character reference, which selectors do not decode.
            let kind = |script: &Element<'_, '_>| {
                has_json_ld.set(attribute(script, "type").is_some_and(|kind| is_json_ld(&kind)));
            };
            handlers.push((&self.script, each(kind)));
            handlers.push((&self.script, texts(|text| page.json_ld.push(text), || has_json_ld.get())));
        }
        if !wanted.scripts.is_empty() {
            let named =
                |script: &Element<'_, '_>| script_id.set(attribute(script, "id").map(Cow::into_owned));
            let keep = |text| {
                let script = Script { id: script_id.take(), text };
                page.scripts.extend(Some(script).filter(|script| script.is_wanted(&wanted.scripts)));
            };
            handlers.push((&self.script, each(named)));
            handlers.push((&self.script, texts(keep, || true)));
        }
        for (streamed, found) in wanted.queries.iter().zip(&mut page.found) {
            let handler = match &streamed.attribute {
                Some(name) => each(|element| found.extend(attribute(element, name).map(Cow::into_owned))),
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

fn attribute(element: &Element<'_, '_>, name: &str) -> Option<Cow<'static, str>> {
    let value = element.get_attribute(name)?;
    Some(if value.contains('&') { htmlize::unescape_attribute(value).into_owned() } else { value }.into())
}

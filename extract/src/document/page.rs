//! The findings of one page that single tags give.

use std::borrow::Cow;

use encoding_rs::Encoding;
use html5ever::{local_name, ns};
use lol_html::Selector;
use scraper::ElementRef;

use crate::document::script::Script;

/// The findings of one page, with character references decoded, otherwise as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page<'a> {
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
    pub(crate) links: Vec<Link<'a>>,
    /// The texts of JSON-LD scripts, if requested.
    pub(crate) json_ld: Vec<String>,
    /// The scripts in which one of the names in [`Wanted::scripts`] stands.
    pub(crate) scripts: Vec<Script>,
    /// The matches of each query of the streaming pass, in page order.
    pub(crate) found: Vec<Vec<String>>,
}

impl<'a> Page<'a> {
    /// Adds the findings of an element of the page's tree.
    pub(crate) fn add(&mut self, element: ElementRef<'a>, wanted: &Wanted) {
        let name = &element.value().name;
        let attribute = |name: &str| element.attr(name).map(Cow::Borrowed);
        match name.local {
            local_name!("a") | local_name!("area") => {
                self.link_count += usize::from(attribute("href").is_some());
                self.links.extend(Link::new(attribute, wanted));
            }
            local_name!("meta") => self.meta.add(attribute, wanted),
            local_name!("link") => keep(&mut self.canonical, canonical(attribute)),
            local_name!("html") => keep(&mut self.language, attribute("lang")),
            local_name!("base") => keep(&mut self.base, attribute("href")),
            local_name!("title") if self.title.is_empty() && name.ns == ns!(html) => {
                self.title = text(element);
            }
            local_name!("script") if !wanted.json_ld.is_empty() || !wanted.scripts.is_empty() => {
                self.add_script(element, wanted);
            }
            _ => {}
        }
    }

    fn add_script(&mut self, element: ElementRef<'_>, wanted: &Wanted) {
        let text = text(element);
        let is_json_ld = element.attr("type").is_some_and(is_json_ld);
        self.json_ld.extend(Some(&text).filter(|_| is_json_ld && !wanted.json_ld.is_empty()).cloned());
        let script = Script { id: element.attr("id").map(str::to_owned), text };
        self.scripts.extend(Some(script).filter(|script| script.is_wanted(&wanted.scripts)));
    }
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
    /// Whether text and data mining is reserved.
    pub(crate) tdm_reservation: Option<String>,
    /// The policy for text and data mining.
    pub(crate) tdm_policy: Option<String>,
    /// The content of each requested element, with its index in [`Wanted::metas`].
    pub(crate) named: Vec<(usize, String)>,
}

impl Metas {
    /// Adds an element with these attributes.
    pub(super) fn add<'t>(&mut self, attribute: impl Fn(&str) -> Option<Cow<'t, str>>, wanted: &Wanted) {
        let Some(content) = attribute("content") else { return };
        let lower = |name| attribute(name).map(|text| text.trim().to_ascii_lowercase());
        let name = lower("name");
        if !wanted.metas.is_empty() {
            let property = lower("property");
            let is_asked = |asked: &String| name.as_ref() == Some(asked) || property.as_ref() == Some(asked);
            let asked = wanted.metas.iter().enumerate().filter(|(_, asked)| is_asked(asked));
            self.named.extend(asked.map(|(number, _)| (number, content.clone().into_owned())));
        }
        match name.as_deref() {
            Some("description") => keep(&mut self.description, Some(content)),
            Some("tdm-reservation") if wanted.usage => keep(&mut self.tdm_reservation, Some(content)),
            Some("tdm-policy") if wanted.usage => keep(&mut self.tdm_policy, Some(content)),
            Some(name)
                if (wanted.follow || wanted.usage) && (name == "robots" || name == wanted.robots_name) =>
            {
                self.robots.push(content.into_owned());
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
pub(crate) struct Link<'a> {
    pub(crate) href: Cow<'a, str>,
    /// Whether its `rel` has `nofollow`; false unless requested.
    pub(crate) nofollow: bool,
}

impl<'a> Link<'a> {
    /// Returns the link of an element with these attributes, if it is requested.
    pub(super) fn new(attribute: impl Fn(&str) -> Option<Cow<'a, str>>, wanted: &Wanted) -> Option<Self> {
        let href = if wanted.links { attribute("href")? } else { return None };
        let nofollow = wanted.follow && attribute("rel").is_some_and(|rel| is_nofollow(&rel));
        Some(Self { href, nofollow })
    }
}

/// The findings to collect beyond the default ones.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Links, in addition to their number.
    pub(crate) links: bool,
    /// The data that `[follow]` needs.
    pub(crate) follow: bool,
    /// Whether the uses that its publisher reserves are read.
    pub(crate) usage: bool,
    /// The name by which pages address the crawler, in lower case.
    pub(crate) robots_name: String,
    /// The names or properties of `<meta>`, in lower case.
    pub(crate) metas: Vec<String>,
    /// The types of objects in JSON-LD.
    pub(crate) json_ld: Vec<String>,
    /// The names of scripts, and of variables in them.
    pub(crate) scripts: Vec<String>,
    /// The queries of the streaming pass; none if a tree is built.
    pub(crate) queries: Vec<Streamed>,
}

/// A selector, and the value to take from each element that it matches.
#[derive(Debug)]
pub(crate) struct Streamed {
    pub(crate) selector: Selector,
    /// The name of an attribute; `None` for the element's text.
    pub(crate) attribute: Option<String>,
}

/// Stores a value in `field`, unless it is empty or the field has one.
pub(super) fn keep(field: &mut Option<String>, value: Option<Cow<'_, str>>) {
    if field.is_none() {
        *field = value.filter(|value| !value.trim().is_empty()).map(Cow::into_owned);
    }
}

/// Returns the target of a `<link>` with these attributes, if it is the canonical URL.
pub(super) fn canonical<'t>(attribute: impl Fn(&str) -> Option<Cow<'t, str>>) -> Option<Cow<'t, str>> {
    attribute("rel").filter(|rel| has_token(rel, "canonical")).and_then(|_| attribute("href"))
}

/// Whether a script of this type is JSON-LD.
pub(super) fn is_json_ld(kind: &str) -> bool {
    kind.trim().eq_ignore_ascii_case("application/ld+json")
}

/// Whether a `rel` has `nofollow`.
pub(crate) fn is_nofollow(rel: &str) -> bool {
    has_token(rel, "nofollow")
}

fn has_token(rel: &str, token: &str) -> bool {
    rel.split_ascii_whitespace().any(|other| other.eq_ignore_ascii_case(token))
}

/// Returns the text directly in an element.
fn text(element: ElementRef<'_>) -> String {
    element.children().filter_map(|node| node.value().as_text()).map(|text| &**text).collect()
}

//! Selects the links of a page to follow.

use std::collections::HashSet;

use regex::RegexSet;
use scraper::{ElementRef, Html};
use serde_json::Value;
use trawl_common::web::url::CanonicalUrl;

use crate::context::{Context, Within};
use crate::document::base::{Base, without_fragment};
use crate::document::found::Found;
use crate::document::json::{Path, parts};
use crate::document::page::is_nofollow;
use crate::document::robots_directives::robots_directives;
use crate::extraction::{Link, LinkKind};
use crate::limits::MAX_LINKS;
use crate::plan::query::Query;
use crate::plan::{Follow, Next};

/// Maximum number of links of one page.
pub(crate) const MAX_LINK_COUNT: usize = 10_000;

/// The page's permissions for a crawler, as far as the spider respects them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leave {
    /// Whether it may be extracted as an item.
    pub(crate) index: bool,
    /// Whether its links may be followed.
    pub(crate) follow: bool,
}

impl Follow {
    /// Returns the permissions that the page's `<meta>` for robots and the header `X-Robots-Tag` give the crawler of
    /// this name.
    pub(crate) fn leave(&self, context: &Context<'_>, name: &str) -> Leave {
        let mut leave = Leave { index: true, follow: true };
        for word in robots_directives(context.response, &context.page.meta, name) {
            let is = |name: &str| word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case("none");
            leave.index &= !(self.noindex && is("noindex"));
            leave.follow &= !(self.nofollow && is("nofollow"));
        }
        leave
    }

    /// Returns the page's canonical URL, if it is another page and the spider respects it.
    pub(crate) fn elsewhere(&self, context: &Context<'_>) -> Option<CanonicalUrl> {
        let link = context.page.canonical.as_ref().filter(|_| self.canonical)?;
        context.base.link(link).filter(|canonical| *canonical != context.base.canonical(context.url))
    }

    /// Adds the links to follow, each once: the targets of a refresh, `next`, then the others.
    pub(crate) fn links<'a>(&'a self, context: &'a Context<'a>, leave: Leave, found: &mut FoundLinks<'_>) {
        self.add_refresh(context, found);
        if leave.follow {
            self.add_links(context, found);
        }
    }

    /// Adds the targets of a refresh.
    pub(crate) fn add_refresh(&self, context: &Context<'_>, found: &mut FoundLinks<'_>) {
        if self.refresh {
            let refreshes =
                context.response.headers.all("refresh").chain(context.page.meta.refresh.as_deref());
            refreshes.filter_map(refresh_target).for_each(|link| found.add(link, LinkKind::Page));
        }
    }

    /// Adds the matches of `next`, and the page's links.
    pub(crate) fn add_links<'a>(&'a self, context: &'a Context<'a>, found: &mut FoundLinks<'_>) {
        for next in &self.next {
            next.each_url(context, Within::All, |link| found.add(link, LinkKind::Next));
        }
        match (&self.area, context.tree) {
            _ if !self.links => {}
            (Some(area), Some(tree)) => self.add_area(area, tree, context, found),
            _ => self.add_all(context, found),
        }
    }

    /// Adds all links of the page.
    pub(crate) fn add_all(&self, context: &Context<'_>, found: &mut FoundLinks<'_>) {
        let links = context.page.links.iter();
        let followed = links.filter(|link| !(self.nofollow && link.nofollow));
        followed.for_each(|link| found.add(&link.href, LinkKind::Page));
    }

    pub(crate) fn add_area<'a>(
        &self,
        area: &'a Query,
        tree: &'a Html,
        context: &'a Context<'a>,
        found: &mut FoundLinks<'_>,
    ) {
        let mut covered = None;
        for area in area.elements(tree.root_element(), context) {
            if context.is_given_up() {
                return;
            }
            // A link within another one was taken already.
            if area.ancestors().any(|ancestor| Some(ancestor.id()) == covered) {
                continue;
            }
            covered = Some(area.id());
            self.add_within(area, found);
        }
    }

    /// Adds the links in an element, which may be one itself.
    pub(crate) fn add_within(&self, element: ElementRef<'_>, found: &mut FoundLinks<'_>) {
        let own = self.link.matches(&element).then_some(element);
        let is_followed =
            |link: &ElementRef<'_>| !(self.nofollow && link.attr("rel").is_some_and(is_nofollow));
        for link in own.into_iter().chain(element.select(&self.link)).filter(is_followed) {
            found.add(link.attr("href").unwrap_or_default(), LinkKind::Page);
        }
    }
}

impl Next {
    /// Calls `take` with each URL, as it is written.
    pub(crate) fn each_url<'a>(
        &'a self,
        context: &'a Context<'a>,
        within: Within<'a>,
        mut take: impl FnMut(&str),
    ) {
        match self {
            Self::Streamed(number) => {
                // The streaming pass does not read JSON.
                context.page.found.get(*number).into_iter().flatten().for_each(|link| take(link));
            }
            Self::Tree(query) => {
                for raw in context.element(within).into_iter().flat_map(|scope| query.raws(scope, context)) {
                    match raw {
                        Found::Text(link) if !context.is_given_up() => take(&link),
                        _ => return,
                    }
                }
            }
            Self::Json(path) => {
                let values = context.value(within).into_iter().flat_map(|json| path.find(json));
                values.filter_map(|value| value.as_str()).for_each(take);
            }
            Self::Script(number, path) => {
                let values = context.scripts.get(*number).into_iter().flatten();
                let found = values.flat_map(|value| Path::reached(path.as_ref(), value));
                found.flat_map(|value| parts(value, true)).filter_map(Value::as_str).for_each(take);
            }
        }
    }
}

/// The links found so far.
pub(crate) struct FoundLinks<'a> {
    base: &'a Base<'a>,
    pub(crate) links: Vec<Link>,
    seen: HashSet<CanonicalUrl>,
    /// The texts of links to the URLs in `seen`, without fragments.
    written: HashSet<String>,
    bytes_left: usize,
    pub(crate) left_out: u64,
    /// The patterns that a link must match, and must not match.
    pub(crate) patterns: Option<(&'a RegexSet, &'a RegexSet)>,
}

impl<'a> FoundLinks<'a> {
    pub(crate) fn new(base: &'a Base<'a>) -> Self {
        let (links, seen, written, left_out) = Default::default();
        Self { base, links, seen, written, bytes_left: MAX_LINKS, left_out, patterns: None }
    }

    /// Whether the patterns want a URL.
    fn wants(&self, url: &CanonicalUrl) -> bool {
        self.patterns.is_none_or(|(include, exclude)| {
            let is_included = include.is_empty() || include.is_match(url.as_str());
            is_included && !exclude.is_match(url.as_str())
        })
    }

    fn is_full(&self) -> bool {
        self.links.len() >= MAX_LINK_COUNT || self.bytes_left == 0
    }

    pub(crate) fn add(&mut self, link: &str, kind: LinkKind) {
        if self.is_full() {
            // Not examined: there may be a million of them.
            self.left_out += 1;
            return;
        }
        // About half of a page's links repeat another one, or differ from it only in their fragment.
        let text = without_fragment(link);
        if self.written.contains(text) {
            return;
        }
        let Some((url, written)) = self.base.written_link(link) else { return };
        if self.seen.contains(&url) {
            self.written.insert(text.to_owned());
            return;
        }
        if !self.wants(&url) {
            return;
        }
        match self.bytes_left.checked_sub(url.as_str().len()) {
            None => {
                self.bytes_left = 0;
                self.left_out += 1;
            }
            Some(bytes_left) => {
                self.bytes_left = bytes_left;
                self.written.insert(text.to_owned());
                self.push(url, written, kind);
            }
        }
    }

    fn push(&mut self, url: CanonicalUrl, written: Option<CanonicalUrl>, kind: LinkKind) {
        self.seen.insert(url.clone());
        self.links.push(Link { url, written, kind, request: None });
    }
}

/// Returns the target of a refresh (HTML standard, section 4.2.5.3): `5; url='/x'`.
fn refresh_target(content: &str) -> Option<&str> {
    let rest = content.trim_start().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let rest = rest.trim_start().trim_start_matches([';', ',']).trim();
    let url = match rest.get(..3).filter(|name| name.eq_ignore_ascii_case("url")) {
        Some(_) => rest[3..].trim_start().strip_prefix('=').map_or(rest, str::trim_start),
        None => rest,
    };
    let url = match url.chars().next()? {
        quote @ ('"' | '\'') => url[1..].split(quote).next()?,
        _ => url,
    };
    Some(url).filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use proptest::prelude::*;
    use trawl_common::settings::Urls;

    use super::*;

    const LINKS: &[&str] = &[
        "/a",
        "a",
        "/a#b",
        "#b",
        "",
        " /a ",
        "/b/../a",
        "/%61",
        "?q",
        "?q#a#b",
        "?utm_source=x",
        "HTTP://A.example/a",
        "//b.example/a#",
        "mailto:a@b.example",
        "javascript:f('#')",
        "http://[",
    ];

    proptest! {
        #[test]
        fn each_url_is_found_once_however_often_and_in_whatever_spelling_it_is_linked(
            texts in prop::collection::vec((prop::sample::select(LINKS), any::<bool>()), 0..20),
        ) {
            let (urls, page) = (Urls::default(), "http://a.example/dir/page".parse().unwrap());
            let base = Base::new(None, &page, &urls, UTF_8);
            let (all, pattern) = (RegexSet::empty(), RegexSet::new(["b"]).unwrap());
            let mut found = FoundLinks::new(&base);
            let mut expected: Vec<Link> = Vec::new();
            for (text, is_limited) in texts {
                found.patterns = is_limited.then_some((&pattern, &all));
                found.add(text, LinkKind::Page);
                let Some((url, written)) = base.written_link(text) else { continue };
                let is_wanted = !is_limited || pattern.is_match(url.as_str());
                if is_wanted && expected.iter().all(|link| link.url != url) {
                    expected.push(Link { url, written, kind: LinkKind::Page, request: None });
                }
            }
            prop_assert_eq!(found.links, expected);
        }
    }

    #[test]
    fn a_refresh_says_where_it_leads_in_many_ways() {
        for content in ["0;url=/x", "5; URL='/x'", " 0.5 , url = \"/x\" z", "3;/x", "; url=/x"] {
            assert_eq!(refresh_target(content), Some("/x"), "{content}");
        }
        assert_eq!(refresh_target("1; url"), Some("url"));
        for content in ["", "5", "5;", "5; url=", "5; url=''", "ü"] {
            assert!(refresh_target(content).is_none_or(|url| url == "ü"), "{content}");
        }
    }
}

//! Selectors, evaluated on a tree.

use std::cell::Cell;

use scraper::ElementRef;
use selectors::matching::SelectorCaches;

use crate::context::Context;
use crate::document::elements::{Elements, SelectorMap};
use crate::document::found::Found;
use crate::document::selector::Selector;
use crate::plan::selector_syntax::{self, Part, Take};
use crate::xpath::XPath;

/// A parsed selector.
#[derive(Debug)]
pub(crate) enum Query {
    Css(CssQuery),
    XPath(XPath),
}

impl Query {
    /// Returns the elements that it finds in `scope`, in document order.
    pub(crate) fn elements<'a>(
        &'a self,
        scope: ElementRef<'a>,
        context: &'a Context<'a>,
    ) -> impl Iterator<Item = ElementRef<'a>> + 'a {
        let (css, xpath) = match self {
            Self::Css(query) => (Some(query.elements(scope, context.elements)), None),
            Self::XPath(xpath) => (None, Some(context.xpath(xpath, scope))),
        };
        let found = xpath.into_iter().flatten().filter_map(|found| match found {
            Found::Element(element) => Some(element),
            _ => None,
        });
        css.into_iter().flatten().chain(found)
    }

    /// Whether it finds elements alone.
    pub(crate) fn finds_elements(&self) -> bool {
        match self {
            Self::Css(query) => query.groups.iter().all(|(_, take)| *take == Take::Element),
            Self::XPath(xpath) => xpath.finds_elements(),
        }
    }

    /// Returns the values that it finds in `scope`.
    pub(crate) fn raws<'a>(
        &'a self,
        scope: ElementRef<'a>,
        context: &'a Context<'a>,
    ) -> impl Iterator<Item = Found<'a>> + 'a {
        let (css, xpath) = match self {
            Self::Css(query) => (Some(query.raws(scope, context.elements)), None),
            Self::XPath(xpath) => (None, Some(context.xpath(xpath, scope))),
        };
        css.into_iter().flatten().chain(xpath.into_iter().flatten())
    }
}

/// A parsed list of CSS selectors.
#[derive(Debug)]
pub(crate) struct CssQuery {
    /// Matches an element that any selector of the list matches.
    any: Selector,
    /// Its bit, if it is looked for in whole pages.
    bit: Option<u64>,
    /// The selectors, grouped by the part of an element that they take.
    groups: Vec<(Selector, Take)>,
}

impl CssQuery {
    /// Parses a list of selectors and adds it to those that are looked for in whole pages. Without them, every part of
    /// a selector must match within the scope.
    pub(crate) fn new(parts: &[Part], whole: Option<&mut SelectorMap>) -> Result<Self, String> {
        let css =
            |part: &Part| if whole.is_none() { selector_syntax::scoped(&part.css) } else { part.css.clone() };
        let joined = |parts: &mut dyn Iterator<Item = &Part>| {
            selector_syntax::selector(&parts.map(css).collect::<Vec<_>>().join(", "))
        };
        // Parse each one alone first, so that an error is not hidden by the text around it.
        parts.iter().try_for_each(|part| selector_syntax::selector(&part.css).map(drop))?;
        let mut groups: Vec<(Selector, Take)> = Vec::new();
        for Part { take, .. } in parts {
            if groups.iter().all(|(_, other)| other != take) {
                groups.push((joined(&mut parts.iter().filter(|part| part.take == *take))?, take.clone()));
            }
        }
        let any = joined(&mut parts.iter())?;
        Ok(Self { bit: whole.map(|selectors| selectors.add(&any)), any, groups })
    }

    /// Returns the matching elements in document order; `scope` may be one of them.
    pub(crate) fn elements<'a>(
        &'a self,
        scope: ElementRef<'a>,
        page: &'a Elements<'a>,
    ) -> impl Iterator<Item = ElementRef<'a>> {
        let in_page = self.bit.map(|bit| page.candidates(bit)).into_iter().flatten();
        let in_scope = self.bit.is_none().then(|| scope.descendent_elements()).into_iter().flatten();
        self.any.filter(in_page.chain(in_scope), scope)
    }

    /// Returns the parts taken of the matching elements.
    pub(crate) fn raws<'a>(
        &'a self,
        scope: ElementRef<'a>,
        page: &'a Elements<'a>,
    ) -> impl Iterator<Item = Found<'a>> {
        // The last element whose texts, including those of its descendants, were all taken.
        let covered = Cell::new(None);
        let mut caches = SelectorCaches::default();
        self.elements(scope, page).flat_map(move |element| {
            let mut raws: Vec<Found<'a>> = Vec::new();
            for (selector, take) in &self.groups {
                if self.groups.len() > 1 && !selector.matches(element, scope, &mut caches) {
                    continue;
                }
                match take {
                    Take::Element => raws.push(Found::Element(element)),
                    Take::Attribute(name) => raws.extend(element.attr(name).map(Found::text)),
                    Take::Text => {
                        let texts = element.children().filter_map(|node| node.value().as_text());
                        raws.extend(texts.map(|text| Found::text(text)));
                    }
                    Take::AllText => {
                        if !element.ancestors().any(|ancestor| covered.get() == Some(ancestor.id())) {
                            covered.set(Some(element.id()));
                            raws.extend(element.text().map(Found::text));
                        }
                    }
                }
            }
            raws
        })
    }
}

#[cfg(test)]
mod tests {
    use scraper::{Html, Selector};

    use super::*;

    fn all(page: &str, notation: &str, scope: Option<&str>) -> Vec<String> {
        let page = Html::parse_document(page);
        let scope_selector = scope.map(|css| Selector::parse(css).unwrap());
        let root = page.root_element();
        let within = scope_selector.as_ref().map_or(root, |css| root.select(css).next().unwrap());
        let mut whole = SelectorMap::default();
        let selectors = scope.is_none().then_some(&mut whole);
        let query = CssQuery::new(&selector_syntax::parts(notation).unwrap(), selectors).unwrap();
        let shown = |raw| match raw {
            Found::Text(text) => text.into_owned(),
            Found::Element(element) => format!("<{}>", element.value().name()),
            Found::Json(value) => value.to_string(),
        };
        query.raws(within, &Elements::new(&page, &whole)).map(shown).collect()
    }

    const PAGE: &str =
        "<div class=p>1<b>2</b><!-- -->3<div>4</div></div><div class=p>5</div><a href='/x?a&amp;b'>y</a>";

    #[test]
    fn texts_are_those_directly_in_an_element_or_all_below_each_once() {
        assert_eq!(all(PAGE, "div.p::text", None), ["1", "3", "5"]);
        assert_eq!(all(PAGE, "div ::text", None), ["1", "2", "3", "4", "5"]);
        assert_eq!(all(PAGE, "div > ::text", None), ["2", "4"]);
        assert_eq!(all(PAGE, "b::text, a::attr(href), a", None), ["2", "/x?a&b", "<a>"]);
        assert_eq!(all(PAGE, "body::text", None), [""; 0]);
    }

    #[test]
    fn attributes_and_elements_come_in_document_order() {
        assert_eq!(all(PAGE, "::attr(class)", None), ["p", "p"]);
        assert_eq!(all(PAGE, "html, a, b", None), ["<html>", "<b>", "<a>"]);
    }

    #[test]
    fn inside_a_scope_only_what_is_in_it_counts_and_the_scope_itself() {
        assert_eq!(all(PAGE, "div::text", Some("div.p")), ["1", "3", "4"]);
        assert_eq!(all(PAGE, "::attr(class)", Some("div.p")), ["p"]);
        assert_eq!(all(PAGE, "body b", Some("div.p")), [""; 0]);
        assert_eq!(all(PAGE, "div > div::text", Some("div.p")), ["4"]);
        assert_eq!(all(PAGE, "div + a", Some("div.p")), [""; 0]);
        assert_eq!(all(PAGE, "::text", Some("div.p")), ["1", "2", "3", "4"]);
    }
}

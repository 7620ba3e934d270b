//! CSS selectors, matched on a tree.

use cssparser::Parser;
use scraper::ElementRef;
use scraper::error::SelectorErrorKind;
use scraper::selector::{self, Simple};
use selectors::Element;
use selectors::matching::{
    MatchingContext, MatchingForInvalidation, MatchingMode, NeedsSelectorFlags, QuirksMode, SelectorCaches,
    matches_selector_list,
};
use selectors::parser::{Component, ParseRelative, SelectorList};

/// A list of selectors.
#[derive(Debug)]
pub(crate) struct Selector(SelectorList<Simple>);

/// Something that an element must have to be matched.
#[derive(Clone, Copy)]
pub(super) enum Key<'a> {
    /// The ID.
    Id(&'a str),
    /// A class.
    Class(&'a str),
    /// The name in HTML, and elsewhere.
    Name(&'a str, &'a str),
    /// Nothing in particular.
    Any,
}

impl Selector {
    /// Parses a list of selectors.
    pub(crate) fn parse(css: &str) -> Result<Self, SelectorErrorKind> {
        let list = SelectorList::parse(&selector::Parser, &mut Parser::new(css), ParseRelative::No);
        list.map(Self).map_err(SelectorErrorKind::from)
    }

    /// Returns the elements that any of the selectors matches; `:scope` is `scope`.
    pub(crate) fn filter<'a>(
        &'a self,
        elements: impl Iterator<Item = ElementRef<'a>>,
        scope: ElementRef<'a>,
    ) -> impl Iterator<Item = ElementRef<'a>> {
        let mut caches = SelectorCaches::default();
        elements.filter(move |element| self.matches(*element, scope, &mut caches))
    }

    /// Whether any of the selectors matches an element. The caches, which keep the time linear, are for this page and
    /// these selectors.
    pub(crate) fn matches(
        &self,
        element: ElementRef<'_>,
        scope: ElementRef<'_>,
        caches: &mut SelectorCaches,
    ) -> bool {
        let mut context = MatchingContext::new(
            MatchingMode::Normal,
            None,
            caches,
            QuirksMode::NoQuirks,
            NeedsSelectorFlags::No,
            MatchingForInvalidation::No,
        );
        context.scope_element = Some(scope.opaque());
        matches_selector_list(&self.0, &element, &mut context)
    }

    /// Returns for each selector of the list what its last part asks for: of several things the rarest.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        self.0.slice().iter().map(|selector| {
            let keys = selector.iter().map(|component| match component {
                Component::ID(id) => Key::Id(&id.0),
                Component::Class(class) => Key::Class(&class.0),
                Component::LocalName(name) => Key::Name(&name.lower_name.0, &name.name.0),
                _ => Key::Any,
            });
            let rarity = |key: &Key<'_>| match key {
                Key::Id(_) => 3,
                Key::Class(_) => 2,
                Key::Name(..) => 1,
                Key::Any => 0,
            };
            keys.max_by_key(rarity).unwrap_or(Key::Any)
        })
    }
}

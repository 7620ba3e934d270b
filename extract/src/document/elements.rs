//! The elements of a page, and which selectors may match each. As in browsers, a selector is tried only on elements
//! with the ID, class or name that its last part asks for.

use std::collections::HashMap;

use html5ever::local_name;
use scraper::node::Element;
use scraper::{ElementRef, Html};

use crate::document::selector::{Key, Selector};

/// The selectors of a spider by what they ask for.
#[derive(Debug, Default)]
pub(crate) struct SelectorMap {
    count: u32,
    ids: Words,
    classes: Words,
    names: Words,
    any: u64,
}

/// The bits of selectors by a word that each asks for.
#[derive(Debug, Default)]
struct Words {
    bits: HashMap<String, u64>,
    /// The first bytes of the words, modulo 128: most words of a page begin otherwise, and are not looked up.
    initials: u128,
}

impl Words {
    fn add(&mut self, word: &str, bit: u64) {
        *self.bits.entry(word.to_owned()).or_default() |= bit;
        self.initials |= initial(word);
    }

    fn get(&self, word: &str) -> u64 {
        match self.initials & initial(word) {
            0 => 0,
            _ => self.bits.get(word).copied().unwrap_or_default(),
        }
    }
}

fn initial(word: &str) -> u128 {
    word.bytes().next().map_or(0, |byte| 1 << (byte % 128))
}

impl SelectorMap {
    /// Adds a selector and returns its bit. Some of more than 64 selectors share one.
    pub(crate) fn add(&mut self, selector: &Selector) -> u64 {
        let bit = 1 << (self.count % u64::BITS);
        self.count += 1;
        for key in selector.keys() {
            match key {
                Key::Id(id) => self.ids.add(id, bit),
                Key::Class(class) => self.classes.add(class, bit),
                Key::Name(html, other) => {
                    self.names.add(html, bit);
                    self.names.add(other, bit);
                }
                Key::Any => self.any |= bit,
            }
        }
        bit
    }

    /// Returns the bits of the selectors that may match an element.
    fn candidates(&self, element: &Element) -> u64 {
        let mut bits = self.any | self.names.get(element.name());
        for (name, value) in &element.attrs {
            match name.local {
                local_name!("id") => bits |= self.ids.get(value),
                local_name!("class") => {
                    value.split_ascii_whitespace().for_each(|class| bits |= self.classes.get(class));
                }
                _ => {}
            }
        }
        bits
    }
}

/// The elements of a page in document order, each with the bits of the selectors that may match it.
#[derive(Debug, Default)]
pub(crate) struct Elements<'a>(Vec<(ElementRef<'a>, u64)>);

impl<'a> Elements<'a> {
    /// Returns the elements of a tree.
    pub(crate) fn new(tree: &'a Html, selectors: &SelectorMap) -> Self {
        let elements = tree.root_element().descendent_elements();
        Self(elements.map(|element| (element, selectors.candidates(element.value()))).collect())
    }

    /// Returns all elements.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ElementRef<'a>> {
        self.0.iter().map(|(element, _)| *element)
    }

    /// Returns the elements that the selector with this bit may match.
    pub(crate) fn candidates(&self, bit: u64) -> impl Iterator<Item = ElementRef<'a>> {
        self.0.iter().filter(move |(_, bits)| bits & bit != 0).map(|(element, _)| *element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!doctype html><html id=a class='x y'><body class=X><div id=b class=' x\n z '><p class=y>1<p>2\
        <a href=1 class=x>3</a><A HREF=2 ID=B>4</A></div><svg class=x><foreignObject id=a><a class=y>5</a>\
        </foreignObject></svg><ul><li>6<li class='' id=''>7<li class=ö id=ö>8</ul>";

    const SELECTORS: &[&str] = &[
        "a",
        "A",
        ".x",
        ".X",
        "#a",
        "#B",
        "*",
        "html",
        "[href]",
        "div.x > p.y",
        "a, .y, #b",
        ":is(.x, li)",
        ":not(.x)",
        "li:nth-child(2)",
        "p + a, p ~ a",
        "svg a",
        "foreignObject",
        "FOREIGNOBJECT",
        "li.ö#ö",
        ":scope",
        "ul:has(li)",
        "a.nothing",
    ];

    #[test]
    fn a_selector_finds_among_its_candidates_what_it_finds_among_all() {
        let (page, mut map) = (Html::parse_document(PAGE), SelectorMap::default());
        // More than have a bit of their own.
        let selectors: Vec<_> = std::iter::repeat_n(SELECTORS, 4)
            .flatten()
            .map(|css| {
                let selector = Selector::parse(css).unwrap();
                (css, map.add(&selector), selector)
            })
            .collect();
        let (elements, root) = (Elements::new(&page, &map), page.root_element());
        for (css, bit, selector) in &selectors {
            let found: Vec<_> = selector.filter(elements.candidates(*bit), root).collect();
            let theirs = scraper::Selector::parse(css).unwrap();
            assert_eq!(found, page.select(&theirs).collect::<Vec<_>>(), "{css}");
        }
    }
}

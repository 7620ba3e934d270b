//! Fields by CSS selector, in Scrapy's notation.

use scraper::error::SelectorErrorKind;
use scraper::{ElementRef, Html, Selector};
use serde_json::Value;

use super::text;

/// A selector, and what to take of the first element that it matches.
#[derive(Debug)]
pub(super) struct Query {
    selector: Selector,
    take: Take,
}

#[derive(Debug)]
enum Take {
    Text,
    Attribute(String),
}

impl Query {
    /// Reads `css::text`, `css::attr(name)`, or plain `css`, which means its text. The error says what is
    /// wrong.
    pub(super) fn parse(notation: &str) -> Result<Self, String> {
        let (css, take) = split(notation);
        let selector = Selector::parse(css).map_err(reason)?;
        Ok(Self { selector, take })
    }

    /// The value of the first match: its text with that of all elements in it, or its attribute. Null
    /// without a match, and for one without content; cut to `max` bytes.
    pub(super) fn first(&self, document: &Html, max: usize) -> Value {
        let Some(element) = document.select(&self.selector).next() else { return Value::Null };
        match &self.take {
            Take::Text => text::value(&text_of(element), max),
            Take::Attribute(name) => element.attr(name).map_or(Value::Null, |value| text::value(value, max)),
        }
    }
}

fn split(notation: &str) -> (&str, Take) {
    let notation = notation.trim();
    let attribute = |(css, pseudo): (_, &str)| {
        let name = pseudo.strip_prefix("attr(")?.strip_suffix(')')?;
        Some((css, Take::Attribute(name.trim().to_ascii_lowercase())))
    };
    match notation.strip_suffix("::text") {
        Some(css) => (css, Take::Text),
        None => notation.rsplit_once("::").and_then(attribute).unwrap_or((notation, Take::Text)),
    }
}

/// Text that a reader sees: not that of scripts and style sheets.
fn text_of(element: ElementRef<'_>) -> String {
    let is_code = |name: &str| matches!(name, "script" | "style");
    let visible = element.descendants().filter_map(|node| {
        let parent = node.parent()?.value().as_element()?.name();
        node.value().as_text().filter(|_| !is_code(parent))
    });
    visible.map(|text| &**text).collect()
}

/// The parser's names for errors are made of words, and say more than its messages.
fn reason(error: SelectorErrorKind) -> String {
    let name = match error {
        SelectorErrorKind::UnexpectedSelectorParseError(kind) => format!("{kind:?}"),
        other => format!("{other:?}"),
    };
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<div class=p>1 <b>2</b><script>x()</script> 3</div><div class=p>4</div><a HREF='/x?a&amp;b'>y</a><i> </i>";

    fn first(notation: &str) -> Value {
        Query::parse(notation).unwrap().first(&Html::parse_document(PAGE), 99)
    }

    #[test]
    fn text_is_all_text_of_the_first_match() {
        for notation in ["div.p::text", "div.p", " .p ::text "] {
            assert_eq!(first(notation), "1 2 3", "{notation}");
        }
    }

    #[test]
    fn an_attribute_is_taken_decoded() {
        assert_eq!(first("a::attr(href)"), "/x?a&b");
        assert_eq!(first("a[href^='/x']::attr( HREF )"), "/x?a&b");
    }

    #[test]
    fn what_is_not_there_is_null() {
        for notation in ["h1", "a::attr(title)", "i::text"] {
            assert_eq!(first(notation), Value::Null, "{notation}");
        }
    }

    #[test]
    fn a_bad_selector_says_why() {
        let error = |notation| Query::parse(notation).unwrap_err();
        assert_eq!(error("p::before"), "unsupported pseudo class or element");
        assert_eq!(error(""), "empty selector");
        assert_eq!(error("::text"), "empty selector");
        assert_eq!(error("p >"), "dangling combinator");
        assert_eq!(error("p["), "end of line");
    }
}

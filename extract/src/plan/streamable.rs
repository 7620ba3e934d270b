//! The CSS fields that the streaming pass answers exactly as a tree would.
//!
//! A selector that depends on where an element ends, or on the elements around it, needs the tree: pages leave tags out
//! and nest them wrongly. The rest are elements matched by their own tag: their attributes, and the text of elements
//! that hold no tags. Elements that tree construction may repeat (`<a>` over paragraphs), drop (`<tr>` outside a table)
//! or merge (`<html>`) need the tree too, and so do values in selectors that pages often write with character
//! references. The two can differ only in content of a table outside its cells, a `<select>` or a `<frameset>`, which a
//! tree moves or drops, in links that it repeats because a paragraph ends before them, and in NULs and carriage returns,
//! which it replaces. A tree is read as browsers read it.

use std::sync::LazyLock;

use regex::Regex;

use crate::document::page::Streamed;
use crate::plan::selector_syntax::{Part, Take};

/// An element by its name, classes, ID, the presence of attributes, and attribute values that are plain words.
static SIMPLE: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"[A-Za-z_][A-Za-z0-9_-]*";
    let word = r"[A-Za-z0-9_.:/-]+";
    let worded = "name|rel|type|property|itemprop|http-equiv";
    let value = format!(r#"(?:"{word}"|'{word}'|{name})"#);
    let attribute = format!(r"\[{name}\]|\[(?:{worded})[~|^$*]?={value}\]");
    Regex::new(&format!(r"^([a-z][a-z0-9]*)(?:[.#]{name}|{attribute})*$")).expect("a constant pattern")
});

/// Elements for which each start tag becomes exactly one element of the tree.
const STEADY: &[&str] = &[
    "meta",
    "link",
    "script",
    "style",
    "article",
    "aside",
    "audio",
    "blockquote",
    "div",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "iframe",
    "img",
    "main",
    "nav",
    "picture",
    "section",
    "source",
    "span",
    "time",
    "video",
];

/// Elements that a tree may hold several times in a row for one tag.
const REPEATED: &[&str] = &["a"];

/// Elements whose content is always text.
const TEXT_ONLY: &[&str] = &["script", "style", "title"];

/// Returns the query of the streaming pass for a list of selectors, or `None` if it needs a tree. `is_first` means that
/// only the first value counts, or that duplicates are dropped.
pub(crate) fn streamed(parts: &[Part], is_first: bool) -> Option<Streamed> {
    // A tree returns the matches of several selectors in document order, each element once.
    let [Part { css, take }] = parts else { return None };
    let name = SIMPLE.captures(css)?.get(1)?.as_str();
    let attribute = match take {
        Take::Attribute(attribute) if STEADY.contains(&name) || is_first && REPEATED.contains(&name) => {
            Some(attribute.clone())
        }
        // An SVG image further down may have a `<title>` too.
        Take::Text if TEXT_ONLY.contains(&name) && (is_first || name != "title") => None,
        _ => return None,
    };
    Some(Streamed { selector: css.parse().ok()?, attribute })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::selector_syntax;

    fn is_streamed(notation: &str, is_first: bool) -> bool {
        streamed(&selector_syntax::parts(notation).unwrap(), is_first).is_some()
    }

    #[test]
    fn elements_by_their_own_tag_are_streamed() {
        for notation in [
            "meta[name=description]::attr(content)",
            "meta[property='og:title']::attr(content)",
            "link[rel~=\"next\"]::attr(href)",
            "img.cover#first::attr(src)",
            "script[type='application/json']::text",
            "style::text",
        ] {
            assert!(is_streamed(notation, false) && is_streamed(notation, true), "{notation}");
        }
        for first_only in ["a.next[href]::attr(href)", "title::text"] {
            assert!(is_streamed(first_only, true) && !is_streamed(first_only, false), "{first_only}");
        }
    }

    #[test]
    fn everything_else_needs_the_tree() {
        for notation in [
            "h1::text",
            "h1",
            "div a::attr(href)",
            "div > img::attr(src)",
            "li::attr(class)",
            "td::attr(class)",
            ".price::attr(content)",
            "*::attr(class)",
            "::attr(class)",
            "title ::text",
            "img:first-child::attr(src)",
            "img:not([alt])::attr(src)",
            "a[href^='mailto:']::attr(href)",
            "img::attr(src), source::attr(src)",
            "html::attr(lang)",
            "svg::attr(width)",
            "div\\:x::attr(id)",
        ] {
            assert!(!is_streamed(notation, true), "{notation}");
        }
    }
}

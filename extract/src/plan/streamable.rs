//! Which CSS fields the streaming pass answers exactly as a tree would.
//!
//! Whatever depends on where an element ends or what is around it needs the tree: pages leave tags out, and nest them
//! wrongly. What remains is one element by its own tag: its attributes, and the text of those that hold no tags. An element
//! that tree construction may repeat (`<a>` over paragraphs), drop (`<tr>` outside a table) or merge (`<html>`) is left to
//! the tree as well; and so are values in selectors that pages often write with character references. Only of what stands in
//! a table outside of its cells, or in a `<select>` or a `<frameset>`, may the two think otherwise: a tree moves or drops it.

use std::sync::LazyLock;

use regex::Regex;

use crate::document::stream::Streamed;
use crate::plan::selector_syntax::{Part, Take};

/// An element by its name, classes, id, the presence of attributes, and the value of those that are plain words.
static SIMPLE: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"[A-Za-z_][A-Za-z0-9_-]*";
    let word = r"[A-Za-z0-9_.:/-]+";
    let worded = "name|rel|type|property|itemprop|http-equiv";
    let value = format!(r#"(?:"{word}"|'{word}'|{name})"#);
    let attribute = format!(r"\[{name}\]|\[(?:{worded})[~|^$*]?={value}\]");
    Regex::new(&format!(r"^([a-z][a-z0-9]*)(?:[.#]{name}|{attribute})*$")).expect("a constant pattern")
});

/// Elements each of whose start tags is one element of the tree.
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

/// Elements that a tree may hold several times, one after the other, for one tag.
const REPEATED: &[&str] = &["a"];

/// Elements whose content is text, whatever it looks like.
const TEXT_ONLY: &[&str] = &["script", "style", "title"];

/// The parts as the streaming pass takes them, if it can take them all. `is_first` says that only the first value counts, or
/// each only once.
pub(crate) fn streamed(parts: &[Part], is_first: bool) -> Option<Streamed> {
    // The tree gives what several selectors find in the order of the page, each element once.
    let [Part { css, take }] = parts else { return None };
    let name = SIMPLE.captures(css)?.get(1)?.as_str();
    let attribute = match take {
        Take::Attribute(attribute) if STEADY.contains(&name) || is_first && REPEATED.contains(&name) => {
            Some(attribute.clone())
        }
        // A drawing may have a `<title>` too, further down.
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

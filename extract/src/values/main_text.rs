//! The main text of a page, found by the density of its text.

use std::collections::HashMap;

use ego_tree::NodeId;
use scraper::ElementRef;

use crate::document::found::{is_hidden, is_inline};
use crate::limits::MAX_TEXT;

/// The fraction of an element's text that one child must hold to be the main part: navigation and notes around an
/// article are less than the rest, and no single part of an article is that large.
const MAIN_SHARE: f64 = 0.6;

/// Returns the main text of a page, without navigation, headers, footers and notes beside it.
pub(crate) fn text(root: ElementRef<'_>) -> String {
    let mut text = String::new();
    collect(main(root), &mut text);
    text
}

/// Returns the element that holds the main text of a page. Starting from the body, this descends into the child that
/// holds most of the text outside links, as long as there is one.
pub(crate) fn main(root: ElementRef<'_>) -> ElementRef<'_> {
    let mut weights = HashMap::new();
    weigh(root, false, &mut weights);
    let weight = |element: ElementRef<'_>| weights.get(&element.id()).copied().unwrap_or_default();
    let mut main = root;
    while let Some(heaviest) = containers(main).into_iter().max_by_key(|child| weight(*child)) {
        if weight(heaviest) == 0 || (weight(heaviest) as f64) < MAIN_SHARE * weight(main) as f64 {
            break;
        }
        main = heaviest;
    }
    main
}

/// Returns the bytes of text in an element outside links, computed for all descendants at once. The recursion is as
/// deep as the tree, which is bounded.
fn weigh(element: ElementRef<'_>, in_link: bool, weights: &mut HashMap<NodeId, usize>) -> usize {
    if is_aside(element) {
        return 0;
    }
    let in_link = in_link || element.value().name() == "a";
    let mut weight = 0;
    for child in element.children() {
        if let Some(text) = child.value().as_text() {
            weight += if in_link { 0 } else { text.trim().len() };
        } else if let Some(child) = ElementRef::wrap(child) {
            weight += weigh(child, in_link, weights);
        }
    }
    weights.insert(element.id(), weight);
    weight
}

fn collect(element: ElementRef<'_>, text: &mut String) {
    if is_aside(element) {
        return;
    }
    // The content of a block is separated from the text before it.
    let is_block = !is_inline(element.value().name());
    if is_block {
        text.push(' ');
    }
    for child in element.children() {
        if text.len() > 4 * MAX_TEXT {
            return;
        }
        if let Some(piece) = child.value().as_text() {
            text.push_str(piece);
        } else if let Some(child) = ElementRef::wrap(child) {
            collect(child, text);
        }
    }
    if is_block {
        text.push(' ');
    }
}

/// Returns the child elements that may hold the main text and are not pieces of it; for a table these are its cells.
fn containers(element: ElementRef<'_>) -> Vec<ElementRef<'_>> {
    let parts = element.child_elements().flat_map(|child| match child.value().name() {
        "tbody" | "tr" => containers(child),
        "body" | "div" | "main" | "article" | "section" | "table" | "td" | "center" => vec![child],
        _ => Vec::new(),
    });
    parts.collect()
}

/// Whether an element is outside the main text.
pub(crate) fn is_aside(element: ElementRef<'_>) -> bool {
    let name = element.value().name();
    let role = element.attr("role").unwrap_or_default();
    is_hidden(name)
        || matches!(
            name,
            "head"
                | "nav"
                | "aside"
                | "footer"
                | "form"
                | "button"
                | "select"
                | "textarea"
                | "svg"
                | "math"
                | "iframe"
                | "object"
                | "dialog"
                | "menu"
        )
        || matches!(
            role,
            "navigation"
                | "banner"
                | "contentinfo"
                | "complementary"
                | "search"
                | "menu"
                | "dialog"
                | "alert"
        )
        || element.attr("hidden").is_some()
        || element.attr("aria-hidden") == Some("true")
}

#[cfg(test)]
mod tests {
    use scraper::Html;

    use super::*;

    fn of(page: &str) -> String {
        text(Html::parse_document(page).root_element()).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_main_text_is_what_most_of_the_text_stands_in() {
        let page = "<title>t</title><header><a href=/>Home</a> Site</header><nav>many words that lead elsewhere</nav>\
            <div><div class=side><a href=1>a link of many words</a> and a note</div><div class=text><h1>On <b>tea</b>s</h1>\
            <p>Tea is drunk all over the world, and has been for long.</p><p>It is <a href=x>made</a> from \
            leaves.</p><script>x()</script></div></div><footer>All rights reserved, and so on</footer>";
        assert_eq!(
            of(page),
            "On teas Tea is drunk all over the world, and has been for long. It is made from leaves."
        );
    }

    #[test]
    fn a_page_of_little_text_gives_what_it_has() {
        assert_eq!(of("<p>a<p>b"), "a b");
        assert_eq!(of("<ul><li><a href=x>one</a><li><a href=y>two</a></ul>"), "one two");
        assert_eq!(of(""), "");
    }
}

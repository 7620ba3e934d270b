//! Builds the tree of a page, and stops if the page would keep the builder busy.
//!
//! `html5gum` cuts the page into tokens, in a third of the time that the tokenizer of `html5ever` takes; the tree
//! builder of `html5ever` makes the tree that browsers make (WHATWG HTML 13.2). It takes time quadratic in the number
//! of open elements, in the attributes of one tag, and in the distinct names on the page. The parser is therefore
//! stopped once it holds more than a page for people would need. Below these limits time is linear.

mod tokens;

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use ego_tree::Tree;
use html5ever::LocalName;
use html5ever::interface::{Tracer, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Token, TokenSink, TokenSinkResult};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5gum::{State, Tokenizer};
use scraper::node::Element;
use scraper::{Html, HtmlTreeSink, Node};
use trawl_common::frontier::outcome::{Class, Failure};

use crate::document::tree::tokens::{Tokens, text};

/// Maximum number of elements that the builder may hold: open elements, and formatting elements (`<b>`, `<font>`) that
/// it would reopen. An element that is both counts twice; the document and its head count as well. Browsers limit
/// nesting to the same depth.
const MAX_OPEN: usize = 512;
/// Maximum number of attributes of a tag.
pub(super) const MAX_ATTRIBUTES: usize = 256;
/// Maximum number of nodes of a tree (elements, texts and comments), which take some 100 MB.
pub(super) const MAX_NODES: usize = 500_000;
/// Maximum number of distinct long names of elements and attributes. The builder interns names in a table of fixed
/// size, and an attacker who knows its hash function can make them all collide.
pub(super) const MAX_NAMES: usize = 4096;
/// Maximum size of values of attributes in bytes, beyond the size of the page: the builder repeats those of a
/// formatting element wherever it reopens it.
const MAX_REPEATED: usize = 16 << 20;
/// Names of up to this many bytes are not put into that table, nor are the names of HTML.
const SHORT_NAME: usize = 7;

type Handle = <HtmlTreeSink as TreeSink>::Handle;

/// Builds the tree of a page. Fails with class `parse` if the page exceeds a limit or `given_up` is set meanwhile.
pub(crate) fn build(html: &str, given_up: &AtomicBool) -> Result<Html, Failure> {
    // A page has a node for each twenty bytes or so.
    let nodes = MAX_NODES.min(html.len() / 20);
    let tree = Tree::with_capacity(Node::Document, nodes);
    let sink = HtmlTreeSink::new(Html { tree, ..Html::new_document() });
    let builder = TreeBuilder::new(sink, TreeBuilderOpts::default());
    let page = StrTendril::from_slice(html.strip_prefix('\u{feff}').unwrap_or(html));
    let guard = Guard::new(&builder, page.len() + MAX_REPEATED, given_up);
    let mut tokens = Tokenizer::new_with_emitter(&page[..], Tokens::new(&page, guard));
    // It yields nothing but a refusal.
    match tokens.next() {
        Some(Ok(refusal)) => Err(refusal),
        None => Ok(builder.sink.finish()),
    }
}

/// Sits between tokenizer and tree builder, and drops all tokens once a limit is exceeded.
struct Guard<'a> {
    builder: &'a TreeBuilder<Handle, HtmlTreeSink>,
    given_up: &'a AtomicBool,
    /// Number of nodes up to which the builder cannot hold more than [`MAX_OPEN`] elements.
    safe_nodes: usize,
    /// Number of nodes whose attributes are counted.
    seen_nodes: usize,
    /// Bytes that the values of further attributes may have.
    values_left: usize,
    names: HashSet<LocalName>,
    is_refused: bool,
    /// The reason of the refusal, until the tokenizer yields it.
    refusal: Option<Failure>,
}

impl<'a> Guard<'a> {
    fn new(
        builder: &'a TreeBuilder<Handle, HtmlTreeSink>,
        values_left: usize,
        given_up: &'a AtomicBool,
    ) -> Self {
        let (safe_nodes, seen_nodes, names, is_refused, refusal) = Default::default();
        Self { builder, given_up, safe_nodes, seen_nodes, values_left, names, is_refused, refusal }
    }

    /// Builds a token. Returns the state in which the tokenizer goes on after a start tag, if that is another.
    fn build(&mut self, token: Token) -> Option<State> {
        if self.given_up.load(Ordering::Relaxed) {
            self.check(Err(Failure::new(Class::Parse, "given up")));
        }
        if self.is_refused {
            return None;
        }
        // Nothing reads the lines of errors.
        let state = match self.builder.process_token(token, 0) {
            TokenSinkResult::RawData(RawKind::Rcdata) => Some(State::RcData),
            TokenSinkResult::RawData(RawKind::Rawtext) => Some(State::RawText),
            TokenSinkResult::RawData(_) => Some(State::ScriptData),
            TokenSinkResult::Plaintext => Some(State::PlainText),
            // Scripts are not run, and the encoding is known.
            TokenSinkResult::Continue
            | TokenSinkResult::Script(_)
            | TokenSinkResult::EncodingIndicator(_) => None,
        };
        let checked = self.check_tree();
        self.check(checked);
        state
    }

    /// Returns a name of an element or an attribute; `None` once a limit is exceeded.
    fn name(&mut self, name: &[u8]) -> Option<LocalName> {
        if self.is_refused {
            return None;
        }
        let name = LocalName::from(&*text(name));
        if name.len() > SHORT_NAME && !self.names.contains(&name) {
            self.names.insert(name.clone());
            self.check_limit(self.names.len(), MAX_NAMES, "long names of elements and attributes");
        }
        Some(name)
    }

    fn check_limit(&mut self, number: usize, limit: usize, what: &str) {
        if number > limit {
            self.check(Err(refusal(limit, what)));
        }
    }

    fn check(&mut self, checked: Result<(), Failure>) {
        if let Err(failure) = checked
            && !self.is_refused
        {
            (self.is_refused, self.refusal) = (true, Some(failure));
        }
    }

    fn check_tree(&mut self) -> Result<(), Failure> {
        let page = self.builder.sink.0.borrow();
        let nodes = page.tree.values().len();
        if nodes > MAX_NODES {
            return Err(refusal(MAX_NODES, "nodes"));
        }
        let new = page.tree.values().rev().take(nodes - self.seen_nodes).filter_map(Node::as_element);
        let values: usize = new.flat_map(Element::attrs).map(|(_, value)| value.len()).sum();
        self.seen_nodes = nodes;
        self.values_left = match self.values_left.checked_sub(values) {
            Some(left) => left,
            None => return Err(refusal(MAX_REPEATED, "bytes of attributes in reopened elements")),
        };
        if nodes <= self.safe_nodes {
            return Ok(());
        }
        drop(page);
        let held = Count::default();
        self.builder.trace_handles(&held);
        let held = held.0.get();
        if held > MAX_OPEN {
            return Err(refusal(MAX_OPEN, "open elements"));
        }
        // A new element can be counted twice.
        self.safe_nodes = nodes + MAX_OPEN.saturating_sub(held) / 2;
        Ok(())
    }

    /// Ends the tree of a page that was not refused.
    fn end(&self) {
        if !self.is_refused {
            let _ = self.builder.process_token(Token::EOFToken, 0);
            self.builder.end();
        }
    }
}

fn refusal(limit: usize, what: &str) -> Failure {
    Failure::new(Class::Parse, format_args!("more than {limit} {what}"))
}

/// Counts the elements that a builder holds.
#[derive(Default)]
struct Count(Cell<usize>);

impl Tracer for Count {
    type Handle = Handle;

    fn trace_handle(&self, _: &Handle) {
        self.0.set(self.0.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(html: &str) -> String {
        build(html, &AtomicBool::new(false)).map_or_else(|failure| failure.to_string(), |_| "fine".to_owned())
    }

    #[test]
    fn nesting_is_counted_exactly() {
        // The document, its head, `<html>` and `<body>` count as well.
        let most = MAX_OPEN - 4;
        for filler in [0, 1, 7] {
            let nested = |depth| format!("{}{}", " ".repeat(filler), "<div>".repeat(depth));
            assert_eq!(verdict(&nested(most)), "fine");
            assert_eq!(verdict(&nested(most + 1)), "parse: more than 512 open elements");
            assert_eq!(verdict(&(nested(most) + "</div>".repeat(most).as_str()).repeat(20)), "fine");
            assert_eq!(
                verdict(&nested(most + 1).replace("div", "svg><g/")),
                "parse: more than 512 open elements"
            );
        }
    }

    #[test]
    fn attributes_are_counted_exactly() {
        let tag = |attributes: usize| {
            format!("<p{}>", (0..attributes).map(|n| format!(" a{n}=b")).collect::<String>())
        };
        assert_eq!(verdict(&tag(MAX_ATTRIBUTES)), "fine");
        assert_eq!(verdict(&tag(MAX_ATTRIBUTES + 1)), "parse: more than 256 attributes in one tag");
    }

    #[test]
    fn long_pages_that_leave_out_end_tags_are_fine() {
        for part in [
            "<p>text",
            "<a name=x>",
            "<p><b>a</p></b>",
            "<br>",
            "<p>a<ul><li>b<li>c</ul>",
            "<dl><dt>a<dd>b</dl>",
            "<select><option>a<option>b</select>",
            "<table><tr><td>a<td>b<tr><td><p>c</table>",
            "<svg><path d='x'/></svg>",
            "<DIV></div>",
            "</b>",
            "<script>'<div>' a <b c d e</script>",
            "<!-- <div> a <b c d e -->",
            "<img src='data:,a b c' alt=\"<a b c d\">",
        ] {
            assert_eq!(verdict(&part.repeat(2000)), "fine", "{part}");
        }
    }

    #[test]
    fn long_values_scripts_and_comments_are_no_attributes() {
        let words = " word".repeat(20_000);
        for page in [
            format!("<p title='{words}'>"),
            format!("<script>if (a <b {words}</script>"),
            format!("<!-- {words} -->"),
            format!("<title>a <b {words}</title>"),
        ] {
            assert_eq!(verdict(&page), "fine", "{}", &page[..20]);
        }
    }

    /// Markup at which tokenizers differ: states that only some end tags leave, references, and whatever is cut off.
    const PARTS: &[&str] = &[
        "<!doctype html>",
        "<!DOCTYPE html PUBLIC '-//W3C//DTD HTML 4.01//EN' \"x\">",
        "<!doctype>",
        "<p>",
        "<P CLASS=a class=b ID='c d' hidden data-x=\"&amp;&lt\">",
        "</p a=b/>",
        "<br/>",
        "<b><i>",
        "</b>",
        "<a href=?a&copy=1&amp=2&notit;>",
        "<table><tr><td>",
        "</table>",
        "<select><option>",
        "<svg viewbox=1 xlink:href=x><![CDATA[ a<b ]]>",
        "<math><mi definitionurl=x>",
        "</svg>",
        "<script>if (a<b) '</b>'</script>",
        "<script><!--<script></script>--></script>",
        "<script><!-- a </script>",
        "<style>a > b</style>",
        "<title>a<b>&amp;</title>",
        "<textarea>\n<p></textarea>",
        "<xmp><p></xmp>",
        "<noscript><p></noscript>",
        "<iframe><p></iframe>",
        "<plaintext>",
        "<template><td></template>",
        "<!-- a -- b -->",
        "<!-->",
        "<!--->",
        "<!--!>",
        "<!---!>",
        "<?xml version=1?>",
        "</ >",
        "</>",
        "<3",
        "<a<b>",
        "<p\u{0}x>",
        "<p =a>",
        "<p a='",
        "<p a=\"",
        "<!--",
        "&",
        "&amp",
        "&ampx;",
        "&#65;&#x41;&#0;&#x80;&#xD800;&#1114112;",
        "&NotEqualTilde;&notin;&not;&nopf;&fjlig;",
        "\u{0}",
        "\r\n\r",
        "\u{c}\t",
        "ä\u{1f600}\u{85}",
        "text ",
        "'\">",
        "<pre>\n\n",
        "<form><input type=hidden>",
        "<frameset><frame>",
        "<body class=x>",
        "<html lang=de>",
        "<head><meta charset=latin1>",
        "</body></html> ",
    ];

    fn assert_same(page: &str) {
        let built = build(page, &AtomicBool::new(false)).unwrap();
        assert_eq!(built.html(), Html::parse_document(page).html(), "{page:?}");
    }

    #[test]
    fn the_tree_is_the_one_that_the_parser_builds_alone() {
        for one in PARTS {
            assert_same(one);
            assert_same(&format!("\u{feff}{one}"));
            PARTS.iter().for_each(|other| assert_same(&format!("{one}{other}")));
            PARTS.iter().for_each(|other| assert_same(&format!("<div>{one}x{other}y</div>{one}")));
        }
    }

    proptest! {
        #[test]
        fn any_mixture_of_markup_has_the_tree_that_the_parser_builds_alone(
            parts in prop::collection::vec(prop::sample::select(PARTS), 0..12),
            cut in 0..64_usize,
        ) {
            let page = parts.concat();
            let end = page.len().saturating_sub(cut);
            assert_same(&page[..page.floor_char_boundary(end)]);
        }
    }

    #[test]
    fn it_stops_when_it_is_given_up() {
        assert!(build("<p>", &AtomicBool::new(true)).is_err());
    }
}

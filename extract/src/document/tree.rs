//! Builds the tree of a page, and stops if the page would keep the builder busy.
//!
//! Tree construction takes time quadratic in the number of open elements, in the attributes of one tag, and in the
//! distinct names on the page. The parser is therefore fed in pieces, checked after every token, and stopped once it
//! holds more than a page for people would need. Below these limits time is linear.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use html5ever::interface::{Tracer, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{LocalName, TokenizerResult};
use scraper::{Html, HtmlTreeSink};
use trawl_common::frontier::outcome::{Class, Failure};

use crate::document::unfinished_tag::UnfinishedTag;

/// Maximum number of elements that the builder may hold: open elements, and formatting elements (`<b>`, `<font>`) that
/// it would reopen. An element that is both counts twice; the document and its head count as well. Browsers limit
/// nesting to the same depth.
const MAX_OPEN: usize = 512;
/// Maximum number of attributes of a tag.
pub(super) const MAX_ATTRIBUTES: usize = 256;
/// Maximum number of attributes of an unfinished tag. It is higher because the count is an upper bound; it is about
/// what one piece can hold.
const MAX_UNFINISHED_ATTRIBUTES: usize = 1024;
/// Maximum number of nodes of a tree (elements, texts and comments), which take some 100 MB.
pub(super) const MAX_NODES: usize = 500_000;
/// Maximum number of distinct long names of elements and attributes. The builder interns names in a table of fixed
/// size, and an attacker who knows its hash function can make them all collide.
pub(super) const MAX_NAMES: usize = 4096;
/// Names of up to this many bytes are not put into that table, nor are the names of HTML.
const SHORT_NAME: usize = 7;

/// Number of bytes that the tokenizer is fed at once.
const PIECE: usize = 4096;

type Handle = <HtmlTreeSink as TreeSink>::Handle;

/// Builds the tree of a page. Fails with class `parse` if the page exceeds a limit or `given_up` is set meanwhile.
pub(crate) fn build(html: &str, given_up: &AtomicBool) -> Result<Html, Failure> {
    let tokenizer = Tokenizer::new(Guard::new(), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut start = 0;
    // Start of a tag that the tokenizer may not have emitted yet, and the state of its text so far.
    let mut begun = 0;
    let mut unfinished = UnfinishedTag::default();
    while start < html.len() {
        if given_up.load(Ordering::Relaxed) {
            return Err(Failure::new(Class::Parse, "given up"));
        }
        let end = end_of_piece(html, start);
        input.push_back(StrTendril::from_slice(&html[start..end]));
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        if tokenizer.sink.has_heard.take() {
            begun = start;
            unfinished = UnfinishedTag::default();
        } else {
            unfinished.read(&html.as_bytes()[begun..end]);
            begun = end;
            if unfinished.attributes() > MAX_UNFINISHED_ATTRIBUTES {
                tokenizer.sink.refuse(MAX_UNFINISHED_ATTRIBUTES, "attributes in one tag");
            }
        }
        tokenizer.sink.verdict()?;
        start = end;
    }
    tokenizer.end();
    tokenizer.sink.verdict()?;
    Ok(tokenizer.sink.builder.sink.finish())
}

/// Returns the first character boundary at or after the end of a piece.
fn end_of_piece(html: &str, start: usize) -> usize {
    (start + PIECE..html.len()).find(|&end| html.is_char_boundary(end)).unwrap_or(html.len())
}

/// Sits between tokenizer and tree builder, and drops all tokens once a limit is exceeded.
struct Guard {
    builder: TreeBuilder<Handle, HtmlTreeSink>,
    /// Number of nodes up to which the builder cannot hold more than [`MAX_OPEN`] elements.
    safe_nodes: Cell<usize>,
    names: RefCell<HashSet<LocalName>>,
    /// Whether a token arrived since this was last read.
    has_heard: Cell<bool>,
    refusal: OnceCell<Failure>,
}

impl Guard {
    fn new() -> Self {
        let sink = HtmlTreeSink::new(Html::new_document());
        Self {
            builder: TreeBuilder::new(sink, TreeBuilderOpts::default()),
            safe_nodes: Cell::new(0),
            names: RefCell::default(),
            has_heard: Cell::new(false),
            refusal: OnceCell::new(),
        }
    }

    fn refuse(&self, limit: usize, what: &str) {
        // Keep the first reason.
        let _ = self.refusal.set(Failure::new(Class::Parse, format_args!("more than {limit} {what}")));
    }

    fn verdict(&self) -> Result<(), Failure> {
        self.refusal.get().cloned().map_or(Ok(()), Err)
    }

    fn check_tag(&self, tag: &Tag) {
        if tag.attrs.len() > MAX_ATTRIBUTES {
            self.refuse(MAX_ATTRIBUTES, "attributes in one tag");
        }
        let mut names = self.names.borrow_mut();
        for name in tag.attrs.iter().map(|attribute| &attribute.name.local).chain([&tag.name]) {
            if name.len() > SHORT_NAME && !names.contains(name) {
                names.insert(name.clone());
            }
        }
        if names.len() > MAX_NAMES {
            self.refuse(MAX_NAMES, "long names of elements and attributes");
        }
    }

    fn check_tree(&self) {
        let nodes = self.builder.sink.0.borrow().tree.values().len();
        if nodes > MAX_NODES {
            self.refuse(MAX_NODES, "nodes");
        }
        if nodes <= self.safe_nodes.get() {
            return;
        }
        let held = Count::default();
        self.builder.trace_handles(&held);
        let held = held.0.get();
        if held > MAX_OPEN {
            self.refuse(MAX_OPEN, "open elements");
        }
        // A new element can be counted twice.
        self.safe_nodes.set(nodes + MAX_OPEN.saturating_sub(held) / 2);
    }
}

impl TokenSink for Guard {
    type Handle = Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Handle> {
        if self.refusal.get().is_some() {
            return TokenSinkResult::Continue;
        }
        match &token {
            // The only token that can arrive in the middle of a tag.
            Token::ParseError(_) => return TokenSinkResult::Continue,
            Token::TagToken(tag) => self.check_tag(tag),
            _ => {}
        }
        self.has_heard.set(true);
        let result = self.builder.process_token(token, line);
        self.check_tree();
        result
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
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
    use super::*;

    fn verdict(html: &str) -> String {
        build(html, &AtomicBool::new(false)).map_or_else(|failure| failure.to_string(), |_| "fine".to_owned())
    }

    #[test]
    fn nesting_is_counted_exactly_and_wherever_pieces_end() {
        // The document, its head, `<html>` and `<body>` count as well.
        let most = MAX_OPEN - 4;
        for filler in [0, 1, 7, PIECE - 9, PIECE] {
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

    #[test]
    fn the_tree_is_the_one_that_the_parser_builds_alone() {
        let page = "<!doctype html><title>ä</title><p>ö<table>x<b>y</table><svg><a/></svg>&amp;\r\n<script>1<2</script>";
        let page = page.repeat(300);
        assert_eq!(build(&page, &AtomicBool::new(false)).unwrap().html(), Html::parse_document(&page).html());
    }

    #[test]
    fn it_stops_when_it_is_given_up() {
        assert!(build("<p>", &AtomicBool::new(true)).is_err());
    }
}

//! Builds the tree of a page, and stops if the page would keep the builder busy.
//!
//! `html5gum` cuts the page into tokens, in a third of the time that the tokenizer of `html5ever` takes; the tree
//! builder of `html5ever` makes the tree that browsers make (WHATWG HTML 13.2). It takes time quadratic in the number
//! of open elements, in the attributes of one tag, and in the distinct names on the page. The parser is therefore
//! stopped once it holds more than a page for people would need. Below these limits time is linear.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use html5ever::interface::{Tracer, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Doctype, Tag, TagKind, Token, TokenSink, TokenSinkResult};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{Attribute, LocalName, QualName, ns};
use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, ForwardingEmitter, Span, State, Tokenizer};
use scraper::{Html, HtmlTreeSink};
use trawl_common::frontier::outcome::{Class, Failure};

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
/// Names of up to this many bytes are not put into that table, nor are the names of HTML.
const SHORT_NAME: usize = 7;

type Handle = <HtmlTreeSink as TreeSink>::Handle;

/// Builds the tree of a page. Fails with class `parse` if the page exceeds a limit or `given_up` is set meanwhile.
pub(crate) fn build(html: &str, given_up: &AtomicBool) -> Result<Html, Failure> {
    let sink = HtmlTreeSink::new(Html::new_document());
    let builder = TreeBuilder::new(sink, TreeBuilderOpts::default());
    let html = html.strip_prefix('\u{feff}').unwrap_or(html);
    let mut tokens =
        Tokenizer::new_with_emitter(html, Tokens(CallbackEmitter::new(Guard::new(&builder, given_up))));
    // It yields nothing but a refusal.
    match tokens.next() {
        Some(Ok(refusal)) => Err(refusal),
        None => Ok(builder.sink.finish()),
    }
}

/// Tells the tokenizer what the tree builder knows: how text goes on after a start tag, and whether it is in a drawing
/// or a formula, where there is CDATA.
struct Tokens<'a>(CallbackEmitter<Guard<'a>, Failure>);

impl ForwardingEmitter for Tokens<'_> {
    type Token = Failure;

    fn inner(&mut self) -> &mut impl Emitter<Token = Failure> {
        &mut self.0
    }

    fn emit_eof(&mut self) {
        self.0.emit_eof();
        self.0.callback_mut().end();
    }

    /// Nobody reads the errors of a page. To find them, the tokenizer would examine each byte once more.
    #[inline]
    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        // The state is the tree builder's to say.
        let _ = self.0.emit_current_tag();
        self.0.callback_mut().next_state.take()
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.0.callback_mut().builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Sits between tokenizer and tree builder, and drops all tokens once a limit is exceeded.
struct Guard<'a> {
    builder: &'a TreeBuilder<Handle, HtmlTreeSink>,
    given_up: &'a AtomicBool,
    /// The start tag whose attributes are being read.
    tag: Option<Tag>,
    /// Whether its latest attribute has the name of an earlier one, which counts.
    is_repeated: bool,
    /// The state of the tokenizer after the start tag that was built last.
    next_state: Option<State>,
    /// Number of nodes up to which the builder cannot hold more than [`MAX_OPEN`] elements.
    safe_nodes: usize,
    names: HashSet<LocalName>,
    is_refused: bool,
}

impl<'a> Guard<'a> {
    fn new(builder: &'a TreeBuilder<Handle, HtmlTreeSink>, given_up: &'a AtomicBool) -> Self {
        let (tag, next_state, names) = Default::default();
        Self {
            builder,
            given_up,
            tag,
            is_repeated: false,
            next_state,
            safe_nodes: 0,
            names,
            is_refused: false,
        }
    }

    /// Builds a token. Fails once a limit is exceeded.
    fn build(&mut self, token: Token) -> Result<(), Failure> {
        // Nothing reads the lines of errors.
        match self.builder.process_token(token, 0) {
            TokenSinkResult::RawData(kind) => {
                self.next_state = Some(match kind {
                    RawKind::Rcdata => State::RcData,
                    RawKind::Rawtext => State::RawText,
                    RawKind::ScriptData | RawKind::ScriptDataEscaped(_) => State::ScriptData,
                });
            }
            TokenSinkResult::Plaintext => self.next_state = Some(State::PlainText),
            // Scripts are not run, and the encoding is known.
            TokenSinkResult::Continue
            | TokenSinkResult::Script(_)
            | TokenSinkResult::EncodingIndicator(_) => {}
        }
        self.check_tree()
    }

    fn take(&mut self, event: CallbackEvent<'_>) -> Result<(), Failure> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(tag(TagKind::StartTag, self.name(name)?));
                Ok(())
            }
            CallbackEvent::AttributeName { name } => self.attribute(name),
            CallbackEvent::AttributeValue { value } => {
                let latest = self.tag.as_mut().and_then(|tag| tag.attrs.last_mut());
                if let Some(attribute) = latest.filter(|_| !self.is_repeated) {
                    attribute.value = tendril(value);
                }
                Ok(())
            }
            CallbackEvent::CloseStartTag { self_closing } => match self.tag.take() {
                Some(tag) => self.build(Token::TagToken(Tag { self_closing, ..tag })),
                None => Ok(()),
            },
            CallbackEvent::EndTag { name } => {
                let name = self.name(name)?;
                self.build(Token::TagToken(tag(TagKind::EndTag, name)))
            }
            CallbackEvent::String { value } => self.text(value),
            CallbackEvent::Comment { value } => self.build(Token::CommentToken(tendril(value))),
            CallbackEvent::Doctype { name, public_identifier, system_identifier, force_quirks } => self
                .build(Token::DoctypeToken(Doctype {
                    name: Some(name).filter(|name| !name.is_empty()).map(tendril),
                    public_id: public_identifier.map(tendril),
                    system_id: system_identifier.map(tendril),
                    force_quirks,
                })),
            CallbackEvent::Error(_) => Ok(()),
        }
    }

    /// Adds an attribute to the start tag. Those of end tags do not count.
    fn attribute(&mut self, name: &[u8]) -> Result<(), Failure> {
        let name = self.name(name)?;
        let Some(Tag { attrs, .. }) = &mut self.tag else { return Ok(()) };
        self.is_repeated = attrs.iter().any(|other| other.name.local == name);
        if self.is_repeated {
            return Ok(());
        }
        if attrs.len() >= MAX_ATTRIBUTES {
            return Err(refusal(MAX_ATTRIBUTES, "attributes in one tag"));
        }
        attrs.push(Attribute { name: QualName::new(None, ns!(), name), value: StrTendril::new() });
        Ok(())
    }

    /// Builds text. The tree builder decides about each NUL.
    fn text(&mut self, value: &[u8]) -> Result<(), Failure> {
        for (number, part) in value.split(|byte| *byte == 0).enumerate() {
            if number > 0 {
                self.build(Token::NullCharacterToken)?;
            }
            if !part.is_empty() {
                self.build(Token::CharacterTokens(tendril(part)))?;
            }
        }
        Ok(())
    }

    /// Returns a name of an element or an attribute.
    fn name(&mut self, name: &[u8]) -> Result<LocalName, Failure> {
        let name = LocalName::from(&*text(name));
        if name.len() > SHORT_NAME && !self.names.contains(&name) {
            self.names.insert(name.clone());
        }
        match self.names.len() {
            0..=MAX_NAMES => Ok(name),
            _ => Err(refusal(MAX_NAMES, "long names of elements and attributes")),
        }
    }

    fn check_tree(&mut self) -> Result<(), Failure> {
        let nodes = self.builder.sink.0.borrow().tree.values().len();
        if nodes > MAX_NODES {
            return Err(refusal(MAX_NODES, "nodes"));
        }
        if nodes <= self.safe_nodes {
            return Ok(());
        }
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

impl Callback<Failure, ()> for Guard<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Failure> {
        if self.is_refused {
            return None;
        }
        let taken = match self.given_up.load(Ordering::Relaxed) {
            true => Err(Failure::new(Class::Parse, "given up")),
            false => self.take(event),
        };
        self.is_refused = taken.is_err();
        taken.err()
    }
}

fn refusal(limit: usize, what: &str) -> Failure {
    Failure::new(Class::Parse, format_args!("more than {limit} {what}"))
}

fn tag(kind: TagKind, name: LocalName) -> Tag {
    Tag { kind, name, self_closing: false, attrs: Vec::new(), had_duplicate_attributes: false }
}

/// Returns the text of a token, which is valid unless the tokenizer cut a character. Checking that first is faster than
/// looking for invalid bytes.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn tendril(bytes: &[u8]) -> StrTendril {
    StrTendril::from_slice(&text(bytes))
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

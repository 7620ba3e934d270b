//! The tokens of a page, in the page's own memory where they stand there as they are.

use std::borrow::Cow;
use std::ops::Range;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{Doctype, Tag, TagKind, Token, TokenSink};
use html5ever::{Attribute, QualName, ns};
use html5gum::{Emitter, Error, State};
use trawl_common::frontier::outcome::Failure;

use crate::document::tree::{Guard, MAX_ATTRIBUTES};

/// Gathers tokens from the tokenizer for the tree builder, and tells the tokenizer what the builder knows: how text
/// goes on after a start tag, and whether it is in a drawing or a formula, where there is CDATA.
pub(super) struct Tokens<'a> {
    guard: Guard<'a>,
    page: &'a StrTendril,
    /// The text since the last token.
    text: Piece,
    comment: Piece,
    doctype: [Option<Vec<u8>>; 3],
    forces_quirks: bool,
    name: Vec<u8>,
    is_end: bool,
    is_self_closing: bool,
    attributes: Vec<Attribute>,
    /// The name and the value of the attribute that is being read.
    attribute: Vec<u8>,
    value: Piece,
    last_start_tag: Vec<u8>,
}

/// The places in [`Tokens::doctype`].
const NAME: usize = 0;
const PUBLIC: usize = 1;
const SYSTEM: usize = 2;

impl<'a> Tokens<'a> {
    pub(super) fn new(page: &'a StrTendril, guard: Guard<'a>) -> Self {
        let (text, comment, doctype, name, attributes, attribute, value, last_start_tag) = Default::default();
        Self {
            guard,
            page,
            text,
            comment,
            doctype,
            forces_quirks: false,
            name,
            is_end: false,
            is_self_closing: false,
            attributes,
            attribute,
            value,
            last_start_tag,
        }
    }

    /// Builds the text before a token. The tree builder decides about each NUL.
    fn end_text(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = self.text.take(self.page);
        if memchr::memchr(0, text.as_bytes()).is_none() {
            self.guard.build(Token::CharacterTokens(text));
            return;
        }
        for (number, part) in text.split('\0').enumerate() {
            if number > 0 {
                self.guard.build(Token::NullCharacterToken);
            }
            if !part.is_empty() {
                self.guard.build(Token::CharacterTokens(StrTendril::from_slice(part)));
            }
        }
    }

    fn start_tag(&mut self, is_end: bool) {
        self.name.clear();
        self.attributes.clear();
        self.attribute.clear();
        (self.is_end, self.is_self_closing) = (is_end, false);
    }

    /// Adds the attribute to the start tag, unless that has one of this name. Those of end tags do not count.
    fn end_attribute(&mut self) {
        let value = self.value.take(self.page);
        if !self.attribute.is_empty()
            && !self.is_end
            && let Some(name) = self.guard.name(&self.attribute)
            && self.attributes.iter().all(|other| other.name.local != name)
        {
            self.attributes.push(Attribute { name: QualName::new(None, ns!(), name), value });
            self.guard.check_limit(self.attributes.len(), MAX_ATTRIBUTES, "attributes in one tag");
        }
        self.attribute.clear();
    }
}

impl Emitter for Tokens<'_> {
    /// Why the page is refused.
    type Token = Failure;

    fn pop_token(&mut self) -> Option<Failure> {
        self.guard.refusal.take()
    }

    /// Nobody reads the errors of a page. To find them, the tokenizer would examine each byte once more.
    #[inline]
    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn emit_error(&mut self, _: Error) {}

    fn emit_string(&mut self, text: &[u8]) {
        self.text.push(text, self.page);
    }

    fn emit_eof(&mut self) {
        self.end_text();
        self.guard.end();
    }

    fn init_start_tag(&mut self) {
        self.start_tag(false);
    }

    fn init_end_tag(&mut self) {
        self.start_tag(true);
    }

    fn push_tag_name(&mut self, name: &[u8]) {
        self.name.extend(name);
    }

    fn set_self_closing(&mut self) {
        self.is_self_closing = true;
    }

    fn init_attribute(&mut self) {
        self.end_attribute();
    }

    fn push_attribute_name(&mut self, name: &[u8]) {
        self.attribute.extend(name);
    }

    fn push_attribute_value(&mut self, value: &[u8]) {
        self.value.push(value, self.page);
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        self.end_text();
        self.end_attribute();
        self.last_start_tag.clear();
        let kind = if self.is_end { TagKind::EndTag } else { TagKind::StartTag };
        let tag = Tag {
            kind,
            name: self.guard.name(&self.name)?,
            self_closing: self.is_self_closing && !self.is_end,
            attrs: std::mem::take(&mut self.attributes),
            had_duplicate_attributes: false,
        };
        if !self.is_end {
            std::mem::swap(&mut self.last_start_tag, &mut self.name);
        }
        self.guard.build(Token::TagToken(tag))
    }

    fn set_last_start_tag(&mut self, name: Option<&[u8]>) {
        self.last_start_tag = name.unwrap_or_default().to_vec();
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.is_end && !self.name.is_empty() && self.name == self.last_start_tag
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.guard.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }

    fn init_comment(&mut self) {
        self.comment = Piece::default();
    }

    fn push_comment(&mut self, comment: &[u8]) {
        self.comment.push(comment, self.page);
    }

    fn emit_current_comment(&mut self) {
        self.end_text();
        let comment = self.comment.take(self.page);
        self.guard.build(Token::CommentToken(comment));
    }

    fn init_doctype(&mut self) {
        (self.doctype, self.forces_quirks) = Default::default();
    }

    fn push_doctype_name(&mut self, name: &[u8]) {
        self.doctype[NAME].get_or_insert_default().extend(name);
    }

    fn set_doctype_public_identifier(&mut self, value: &[u8]) {
        self.doctype[PUBLIC] = Some(value.to_vec());
    }

    fn push_doctype_public_identifier(&mut self, value: &[u8]) {
        self.doctype[PUBLIC].get_or_insert_default().extend(value);
    }

    fn set_doctype_system_identifier(&mut self, value: &[u8]) {
        self.doctype[SYSTEM] = Some(value.to_vec());
    }

    fn push_doctype_system_identifier(&mut self, value: &[u8]) {
        self.doctype[SYSTEM].get_or_insert_default().extend(value);
    }

    fn set_force_quirks(&mut self) {
        self.forces_quirks = true;
    }

    fn emit_current_doctype(&mut self) {
        self.end_text();
        let doctype = std::mem::take(&mut self.doctype);
        let [name, public_id, system_id] =
            doctype.map(|part| part.map(|part| StrTendril::from_slice(&text(&part))));
        let force_quirks = self.forces_quirks;
        self.guard.build(Token::DoctypeToken(Doctype { name, public_id, system_id, force_quirks }));
    }
}

/// A text that is being read: a part of the page, or bytes of its own once it differs from what stands there.
#[derive(Default)]
struct Piece {
    in_page: Range<usize>,
    apart: Vec<u8>,
}

impl Piece {
    fn is_empty(&self) -> bool {
        self.in_page.is_empty() && self.apart.is_empty()
    }

    fn push(&mut self, bytes: &[u8], page: &StrTendril) {
        let page = page.as_bytes();
        // Bytes in the memory of the page are those that stand there.
        let start = bytes.as_ptr().addr().wrapping_sub(page.as_ptr().addr());
        let is_in_page = start < page.len() && bytes.len() <= page.len() - start;
        let end = start.wrapping_add(bytes.len());
        if is_in_page && self.is_empty() {
            self.in_page = start..end;
        } else if is_in_page && self.apart.is_empty() && self.in_page.end == start {
            self.in_page.end = end;
        } else {
            self.apart.extend(&page[std::mem::take(&mut self.in_page)]);
            self.apart.extend(bytes);
        }
    }

    /// Returns the text, and begins another.
    fn take(&mut self, page: &StrTendril) -> StrTendril {
        let Range { start, end } = std::mem::take(&mut self.in_page);
        if self.apart.is_empty()
            && let (Ok(start), Ok(len)) = (start.try_into(), (end - start).try_into())
            && let Ok(part) = page.try_subtendril(start, len)
        {
            return part;
        }
        self.apart.extend(&page.as_bytes()[start..end]);
        let part = StrTendril::from_slice(&text(&self.apart));
        self.apart.clear();
        part
    }
}

/// Returns bytes as text, which they are unless the tokenizer cut a character. Checking that first is faster than
/// looking for invalid bytes.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

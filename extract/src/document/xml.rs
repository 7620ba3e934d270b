//! Builds the tree of an XML document, in the form of a page's, so that selectors read both.
//!
//! A name is written with its prefix: `g:price`. Where the spider gives the namespace a prefix of its own, that one
//! counts, whatever the document calls it. Entities of a document type are not expanded.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use ego_tree::NodeId;
use html5ever::{Attribute, LocalName, QualName, ns};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use scraper::node::{Comment, Element, Text};
use scraper::{Html, Node};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::text::printable;

use crate::document::tree::{MAX_ATTRIBUTES, MAX_NAMES, MAX_NODES};

/// Maximum number of open elements.
const MAX_DEPTH: usize = 256;
/// Maximum number of namespaces that are declared by open elements.
const MAX_NAMESPACES: usize = 256;
/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 256;

/// Builds the tree of a document. `namespaces` are the spider's prefixes and what they stand for.
pub(crate) fn build(
    text: &str,
    namespaces: &[(String, String)],
    given_up: &AtomicBool,
) -> Result<Html, Failure> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    let tree = Html::new_document();
    let open = vec![tree.tree.root().id()];
    let (names, text, declared) = Default::default();
    let mut builder = Builder { tree, open, namespaces, names, text, declared, nodes: 0 };
    loop {
        if given_up.load(Ordering::Relaxed) {
            return Err(Failure::new(Class::Parse, "given up"));
        }
        let event = reader.read_event().map_err(|error| {
            let at = reader.error_position();
            Failure::new(Class::Parse, format_args!("not XML at byte {at}: {error}"))
        })?;
        match event {
            Event::Start(tag) => builder.start(&tag)?,
            Event::Empty(tag) => {
                builder.start(&tag)?;
                builder.end()?;
            }
            Event::End(_) => builder.end()?,
            Event::Text(piece) => builder.text.push_str(&piece),
            Event::CData(piece) => builder.text.push_str(&piece),
            Event::GeneralRef(reference) => {
                let reference = format!("&{};", &*reference);
                builder.text.push_str(&htmlize::unescape(reference));
            }
            Event::Comment(comment) => {
                builder.add_text()?;
                builder.add(Node::Comment(Comment { comment: (&*comment).into() }))?;
            }
            Event::Eof => break,
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    let has_root = builder.tree.tree.root().children().any(|node| node.value().is_element());
    match (has_root, builder.open.len()) {
        (false, _) => Err(Failure::new(Class::Parse, "not XML: it has no element")),
        (true, 1) => Ok(builder.tree),
        (true, _) => Err(Failure::new(Class::Parse, "not XML: it ends within an element")),
    }
}

struct Builder<'a> {
    tree: Html,
    open: Vec<NodeId>,
    namespaces: &'a [(String, String)],
    names: HashSet<LocalName>,
    /// The text since the last tag.
    text: String,
    /// The prefixes that open elements declare, with their namespaces and the number of elements around each.
    declared: Vec<(usize, String, String)>,
    nodes: usize,
}

impl Builder<'_> {
    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), Failure> {
        self.add_text()?;
        if self.open.len() > MAX_DEPTH {
            return Err(beyond(MAX_DEPTH, "open elements"));
        }
        let mut attributes = Vec::new();
        for attribute in tag.attributes().with_checks(false) {
            let attribute =
                attribute.map_err(|error| Failure::new(Class::Parse, format_args!("not XML: {error}")))?;
            if attributes.len() >= MAX_ATTRIBUTES {
                return Err(beyond(MAX_ATTRIBUTES, "attributes in one tag"));
            }
            let value = htmlize::unescape_attribute(&*attribute.value).into_owned();
            let name = attribute.key.as_ref();
            if let Some(prefix) = name.strip_prefix("xmlns")
                && !self.namespaces.is_empty()
            {
                self.declare(prefix.strip_prefix(':').unwrap_or(prefix), &value)?;
            }
            attributes.push((name.to_owned(), value));
        }
        let mut named = Vec::with_capacity(attributes.len());
        for (name, value) in attributes {
            named.push(Attribute { name: self.name(&name, false)?, value: value.as_str().into() });
        }
        let name = self.name(tag.name().as_ref(), true)?;
        let id = self.add(Node::Element(Element::new(name, named)))?;
        self.open.push(id);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.add_text()?;
        if self.open.len() > 1 {
            self.open.pop();
        }
        let depth = self.open.len();
        self.declared.retain(|(own, ..)| *own < depth);
        Ok(())
    }

    fn declare(&mut self, prefix: &str, namespace: &str) -> Result<(), Failure> {
        if self.declared.len() >= MAX_NAMESPACES {
            return Err(beyond(MAX_NAMESPACES, "declared namespaces"));
        }
        self.declared.push((self.open.len(), prefix.to_owned(), namespace.to_owned()));
        Ok(())
    }

    /// Returns a name with the prefix that the spider gives its namespace, or else its own.
    fn name(&mut self, name: &str, is_element: bool) -> Result<QualName, Failure> {
        if name.len() > MAX_NAME {
            return Err(Failure::new(
                Class::Parse,
                format_args!("a name of more than {MAX_NAME} bytes: {}", printable(name, 60)),
            ));
        }
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        // An attribute without a prefix has no namespace.
        let is_in_one = is_element || !prefix.is_empty();
        let declared = self.declared.iter().rev().find(|(_, other, _)| is_in_one && other == prefix);
        let own = declared
            .and_then(|(_, _, namespace)| self.namespaces.iter().find(|(_, other)| other == namespace));
        let whole = own.map(|(prefix, _)| format!("{prefix}:{local}"));
        let whole = LocalName::from(whole.as_deref().unwrap_or(name));
        if !self.names.contains(&whole) {
            if self.names.len() >= MAX_NAMES {
                return Err(beyond(MAX_NAMES, "different names"));
            }
            self.names.insert(whole.clone());
        }
        Ok(QualName::new(None, ns!(), whole))
    }

    fn add_text(&mut self) -> Result<(), Failure> {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() && self.open.len() > 1 {
            self.add(Node::Text(Text { text: text.as_str().into() }))?;
        }
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<NodeId, Failure> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(beyond(MAX_NODES, "nodes"));
        }
        let parent = self.open.last().and_then(|id| self.tree.tree.get_mut(*id));
        let Some(mut parent) = parent else {
            return Err(Failure::new(Class::Parse, "no element around a node"));
        };
        Ok(parent.append(node).id())
    }
}

fn beyond(limit: usize, what: &str) -> Failure {
    Failure::new(Class::Parse, format_args!("more than {limit} {what}"))
}

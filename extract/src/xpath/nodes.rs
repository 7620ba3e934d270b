//! The nodes of a page in document order.

use std::cell::OnceCell;
use std::collections::HashMap;

use ego_tree::NodeRef;
use ego_tree::iter::Edge;
use scraper::node::Element;
use scraper::{ElementRef, Html, Node};

use crate::document::found::Found;

/// A node: the number of a node of the tree, or of one with an attribute of it. They are ordered as in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId {
    pub(super) tree: u32,
    /// The number of the attribute, from 1 on; 0 for the node itself.
    pub(super) attribute: u32,
}

/// The nodes of a page.
#[derive(Debug)]
pub(crate) struct Nodes<'a> {
    all: Vec<Placed<'a>>,
    /// The numbers of the elements, computed on first use.
    numbers: OnceCell<HashMap<ego_tree::NodeId, u32>>,
}

#[derive(Debug)]
struct Placed<'a> {
    node: NodeRef<'a, Node>,
    parent: u32,
    /// The sibling before it; its own number if there is none.
    before: u32,
    /// The number after its last descendant.
    end: u32,
}

impl NodeId {
    pub(super) const ROOT: Self = Self::new(0);

    pub(super) const fn new(tree: u32) -> Self {
        Self { tree, attribute: 0 }
    }

    pub(super) fn is_attribute(self) -> bool {
        self.attribute > 0
    }
}

impl<'a> Nodes<'a> {
    /// Lists the nodes of a page. A tree has less than 2^32 of them.
    pub(crate) fn new(tree: &'a Html) -> Self {
        let mut all: Vec<Placed<'a>> = Vec::new();
        let mut open: Vec<u32> = Vec::new();
        // The last child so far of each open node.
        let mut last: Vec<Option<u32>> = vec![None];
        for edge in tree.tree.root().traverse() {
            match edge {
                // XPath knows none.
                Edge::Open(node) | Edge::Close(node) if node.value().is_doctype() => {}
                Edge::Open(node) => {
                    let number = u32::try_from(all.len()).unwrap_or(u32::MAX);
                    let before = last.last_mut().and_then(|last| last.replace(number)).unwrap_or(number);
                    let parent = open.last().copied().unwrap_or_default();
                    all.push(Placed { node, parent, before, end: number + 1 });
                    open.push(number);
                    last.push(None);
                }
                Edge::Close(_) => {
                    let end = u32::try_from(all.len()).unwrap_or(u32::MAX);
                    if let Some(closed) = open.pop() {
                        all[closed as usize].end = end;
                    }
                    last.pop();
                }
            }
        }
        Self { all, numbers: OnceCell::new() }
    }

    /// Returns the number of an element of the page.
    pub(crate) fn id(&self, element: ElementRef<'_>) -> Option<NodeId> {
        let numbers = self.numbers.get_or_init(|| {
            let numbers = self.all.iter().zip(0..).filter(|(placed, _)| placed.node.value().is_element());
            numbers.map(|(placed, number)| (placed.node.id(), number)).collect()
        });
        numbers.get(&element.id()).copied().map(NodeId::new)
    }

    /// Returns the node of the tree; for an attribute that of its element.
    pub(super) fn node(&self, id: NodeId) -> NodeRef<'a, Node> {
        self.all[id.tree as usize].node
    }

    pub(super) fn element(&self, id: NodeId) -> Option<&'a Element> {
        if id.is_attribute() { None } else { self.node(id).value().as_element() }
    }

    /// Returns the name and the value of an attribute.
    pub(super) fn attribute(&self, id: NodeId) -> Option<(&'a str, &'a str)> {
        let place = id.attribute.checked_sub(1)?;
        self.node(id).value().as_element()?.attrs().nth(place as usize)
    }

    pub(super) fn attributes(&self, id: NodeId) -> impl Iterator<Item = (NodeId, &'a str)> + use<'a> {
        let attributes = self.element(id).into_iter().flat_map(Element::attrs).zip(1..);
        attributes.map(move |((name, _), attribute)| (NodeId { attribute, ..id }, name))
    }

    pub(super) fn parent(&self, id: NodeId) -> Option<NodeId> {
        match id {
            NodeId { attribute: 0, tree: 0 } => None,
            NodeId { attribute: 0, tree } => Some(NodeId::new(self.all[tree as usize].parent)),
            NodeId { tree, .. } => Some(NodeId::new(tree)),
        }
    }

    /// Returns the number after the last descendant.
    pub(super) fn end(&self, id: NodeId) -> u32 {
        self.all[id.tree as usize].end
    }

    /// Returns the number of all nodes.
    pub(super) fn len(&self) -> u32 {
        self.end(NodeId::ROOT)
    }

    pub(super) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let (first, end) = if id.is_attribute() { (0, 0) } else { (id.tree + 1, self.end(id)) };
        let next = move |at: u32| Some(at).filter(|at| *at < end);
        std::iter::successors(next(first), move |at| next(self.all[*at as usize].end)).map(NodeId::new)
    }

    pub(super) fn siblings_after(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let end = self.parent(id).filter(|_| !id.is_attribute()).map_or(0, |parent| self.end(parent));
        let next = move |at: u32| Some(self.all[at as usize].end).filter(|at| *at < end);
        std::iter::successors(next(id.tree), move |at| next(*at)).map(NodeId::new)
    }

    pub(super) fn siblings_before(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let before = |at: u32| Some(self.all[at as usize].before).filter(|before| *before != at);
        let first = if id.is_attribute() { None } else { before(id.tree) };
        std::iter::successors(first, move |at| before(*at)).map(NodeId::new)
    }

    /// Returns a node as a value of a field.
    pub(crate) fn found(&self, id: NodeId) -> Found<'a> {
        if let Some((_, value)) = self.attribute(id) {
            return Found::text(value);
        }
        let node = self.node(id);
        match (ElementRef::wrap(node), node.value()) {
            (Some(element), _) => Found::Element(element),
            (None, Node::Text(text)) => Found::text(text),
            (None, Node::Comment(comment)) => Found::text(comment),
            (None, _) => Found::text(""),
        }
    }

    /// Adds the string value of a node to a text.
    pub(super) fn write_text(&self, id: NodeId, out: &mut String) {
        if let Some((_, value)) = self.attribute(id) {
            out.push_str(value);
            return;
        }
        match self.node(id).value() {
            Node::Text(text) => out.push_str(text),
            Node::Comment(comment) => out.push_str(comment),
            Node::ProcessingInstruction(instruction) => out.push_str(&instruction.data),
            _ => {
                let below = &self.all[id.tree as usize..self.end(id) as usize];
                below
                    .iter()
                    .filter_map(|placed| placed.node.value().as_text())
                    .for_each(|text| out.push_str(text));
            }
        }
    }

    /// Returns the name of an element or attribute, in lower case as HTML has it.
    pub(super) fn name(&self, id: NodeId) -> &'a str {
        match (self.attribute(id), self.element(id)) {
            (Some((name, _)), _) => name,
            (None, Some(element)) => element.name(),
            (None, None) => "",
        }
    }
}

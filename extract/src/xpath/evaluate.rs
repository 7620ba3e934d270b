//! Evaluates expressions within bounds.

use std::cell::Cell;

use super::expression::{Axis, Expression, Path, PathStart, Step, Test};
use super::nodes::{NodeId, Nodes};
use super::value::{Value, text};

/// Maximum number of steps on a page: nodes that are looked at, and texts by [`TEXT`] bytes.
pub(crate) const MAX_STEPS: u64 = 50_000_000;
/// Number of bytes of text that count as a step.
const TEXT: usize = 32;
/// Number of steps between two questions whether to stop.
const STEPS_PER_CHECK: u64 = 4096;
/// Maximum length of a text, in bytes.
const MAX_TEXT: usize = 32 << 20;

/// The reason why an evaluation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It takes too many steps, or makes too long a text.
    TooLong,
    /// The page was given up.
    GivenUp,
}

/// An evaluation on the nodes of a page.
pub(super) struct Evaluation<'e, 'a> {
    pub(super) nodes: &'e Nodes<'a>,
    pub(super) is_given_up: &'e dyn Fn() -> bool,
    pub(super) steps: &'e Cell<u64>,
}

/// The place of an evaluation.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) node: NodeId,
    pub(super) position: usize,
    pub(super) size: usize,
}

type Found = Result<Vec<NodeId>, Stopped>;

impl Evaluation<'_, '_> {
    pub(super) fn value(&self, expression: &Expression, node: NodeId) -> Result<Value, Stopped> {
        self.at(expression, At { node, position: 1, size: 1 })
    }

    /// Counts steps.
    pub(super) fn count(&self, steps: usize) -> Result<(), Stopped> {
        let (before, after) = (self.steps.get(), self.steps.get() + steps as u64);
        self.steps.set(after);
        if after > MAX_STEPS {
            return Err(Stopped::TooLong);
        }
        if before / STEPS_PER_CHECK != after / STEPS_PER_CHECK && (self.is_given_up)() {
            Err(Stopped::GivenUp)
        } else {
            Ok(())
        }
    }

    /// Counts a text.
    pub(super) fn count_text(&self, text: String) -> Result<String, Stopped> {
        self.count(1 + text.len() / TEXT)?;
        if text.len() > MAX_TEXT {
            self.steps.set(MAX_STEPS + 1);
            return Err(Stopped::TooLong);
        }
        Ok(text)
    }

    /// Returns the string value of a node.
    pub(super) fn text_of(&self, node: NodeId) -> Result<String, Stopped> {
        self.count((self.nodes.end(node) - node.tree) as usize)?;
        self.count_text(text(self.nodes, node))
    }

    pub(super) fn at(&self, expression: &Expression, at: At) -> Result<Value, Stopped> {
        self.count(1)?;
        Ok(match expression {
            Expression::Or(one, other) => Value::Truth(self.truth(one, at)? || self.truth(other, at)?),
            Expression::And(one, other) => Value::Truth(self.truth(one, at)? && self.truth(other, at)?),
            Expression::Compare(comparison, one, other) => {
                Value::Truth(self.compare(*comparison, &self.at(one, at)?, &self.at(other, at)?)?)
            }
            Expression::Calculate(arithmetic, one, other) => {
                Value::Number(arithmetic.of(self.number(one, at)?, self.number(other, at)?))
            }
            Expression::Negative(one) => Value::Number(-self.number(one, at)?),
            Expression::Union(one, other) => {
                let (mut found, more) = (self.found(one, at)?, self.found(other, at)?);
                found.extend(more);
                Value::Nodes(in_order(found))
            }
            Expression::Path(path) => Value::Nodes(self.path(path, at)?),
            Expression::Text(text) => Value::Text(text.clone()),
            Expression::Number(number) => Value::Number(*number),
            Expression::Call(function, arguments) => self.call(*function, arguments, at)?,
            Expression::Matches(text, pattern) => Value::Truth(pattern.is_match(&self.text(text, at)?)),
        })
    }

    pub(super) fn truth(&self, expression: &Expression, at: At) -> Result<bool, Stopped> {
        self.at(expression, at).map(|value| value.to_truth())
    }

    pub(super) fn number(&self, expression: &Expression, at: At) -> Result<f64, Stopped> {
        match self.at(expression, at)? {
            Value::Nodes(found) => {
                let text = found.first().map(|node| self.text_of(*node)).transpose()?;
                Ok(Value::Text(text.unwrap_or_default()).to_number(self.nodes))
            }
            value => Ok(value.to_number(self.nodes)),
        }
    }

    pub(super) fn text(&self, expression: &Expression, at: At) -> Result<String, Stopped> {
        match self.at(expression, at)? {
            Value::Nodes(found) => match found.first() {
                Some(node) => self.text_of(*node),
                None => Ok(String::new()),
            },
            value => self.count_text(value.to_text(self.nodes)),
        }
    }

    /// Returns the nodes that an expression finds; none if it finds something else.
    pub(super) fn found(&self, expression: &Expression, at: At) -> Found {
        match self.at(expression, at)? {
            Value::Nodes(found) => Ok(found),
            _ => Ok(Vec::new()),
        }
    }

    fn path(&self, path: &Path, at: At) -> Found {
        let mut found = match &path.start {
            PathStart::Root => vec![NodeId::ROOT],
            PathStart::Here => vec![at.node],
            PathStart::Expression(inner) => self.found(inner, at)?,
        };
        for filter in &path.filters {
            found = self.filtered(found, filter)?;
        }
        for step in &path.steps {
            found = self.step(step, &found)?;
        }
        Ok(found)
    }

    fn step(&self, step: &Step, from: &[NodeId]) -> Found {
        let mut all = Vec::new();
        // Nodes below one that was searched already, whose own would be found again.
        let is_whole = matches!(step.axis, Axis::Descendant | Axis::DescendantOrSelf)
            && !step.filters.iter().any(Expression::is_positional);
        let mut searched = 0;
        for node in from {
            if is_whole && node.tree < searched && !node.is_attribute() {
                continue;
            }
            searched = searched.max(self.nodes.end(*node));
            let mut found = self.along(step.axis, &step.test, *node)?;
            for filter in &step.filters {
                found = self.filtered(found, filter)?;
            }
            all.extend(found);
        }
        let is_ordered = from.len() < 2 && !step.axis.is_reverse() || is_whole;
        Ok(if is_ordered { all } else { in_order(all) })
    }

    /// Keeps the nodes that meet a condition; a number is a position.
    fn filtered(&self, found: Vec<NodeId>, filter: &Expression) -> Found {
        // The most common ones.
        if let Expression::Number(number) = filter {
            let place = found.into_iter().enumerate().find(|(place, _)| (place + 1) as f64 == *number);
            return Ok(place.map(|(_, node)| node).into_iter().collect());
        }
        let size = found.len();
        let mut kept = Vec::new();
        for (place, node) in found.into_iter().enumerate() {
            let at = At { node, position: place + 1, size };
            let is_kept = match self.at(filter, at)? {
                Value::Number(number) => number == at.position as f64,
                value => value.to_truth(),
            };
            if is_kept {
                kept.push(node);
            }
        }
        Ok(kept)
    }

    /// Returns the nodes along an axis that meet a test, the nearest first.
    fn along(&self, axis: Axis, test: &Test, from: NodeId) -> Found {
        let nodes = self.nodes;
        let ancestors = |from| std::iter::successors(from, |node| nodes.parent(*node));
        let range = |from: u32, to: u32| (from..to).map(NodeId::new);
        let own_end = if from.is_attribute() { from.tree + 1 } else { nodes.end(from) };
        match axis {
            Axis::Child => self.tested(test, nodes.children(from)),
            Axis::Descendant if from.is_attribute() => Ok(Vec::new()),
            Axis::Descendant => self.tested(test, range(from.tree + 1, own_end)),
            Axis::DescendantOrSelf if from.is_attribute() => self.tested(test, std::iter::once(from)),
            Axis::DescendantOrSelf => self.tested(test, range(from.tree, own_end)),
            Axis::Parent => self.tested(test, nodes.parent(from).into_iter()),
            Axis::Ancestor => self.tested(test, ancestors(nodes.parent(from))),
            Axis::AncestorOrSelf => self.tested(test, ancestors(Some(from))),
            Axis::FollowingSibling => self.tested(test, nodes.siblings_after(from)),
            Axis::PrecedingSibling => self.tested(test, nodes.siblings_before(from)),
            Axis::Following => self.tested(test, range(own_end, nodes.len())),
            Axis::Preceding => {
                let is_before = |node: &NodeId| nodes.end(*node) <= from.tree;
                self.tested(test, range(0, from.tree).rev().filter(is_before))
            }
            Axis::Itself => self.tested(test, std::iter::once(from)),
            Axis::Attribute => {
                let named = nodes.attributes(from).filter(|(_, name)| match test {
                    Test::Node | Test::Any => true,
                    Test::Name(wanted) => wanted == name,
                    Test::Prefix(prefix) => name.starts_with(prefix.as_str()),
                    Test::Text | Test::Comment | Test::Instruction => false,
                });
                let found: Vec<NodeId> = named.map(|(node, _)| node).collect();
                self.count(found.len() + 1)?;
                Ok(found)
            }
            Axis::Namespace => Ok(Vec::new()),
        }
    }

    fn tested(&self, test: &Test, candidates: impl Iterator<Item = NodeId>) -> Found {
        let mut found = Vec::new();
        for node in candidates {
            self.count(1)?;
            if self.meets(test, node) {
                found.push(node);
            }
        }
        Ok(found)
    }

    fn meets(&self, test: &Test, node: NodeId) -> bool {
        if node.is_attribute() {
            return *test == Test::Node;
        }
        let value = self.nodes.node(node).value();
        match test {
            Test::Node => true,
            Test::Text => value.is_text(),
            Test::Comment => value.is_comment(),
            Test::Instruction => value.as_processing_instruction().is_some(),
            Test::Any => value.is_element(),
            Test::Name(name) => value.as_element().is_some_and(|element| element.name() == name),
            Test::Prefix(prefix) => {
                value.as_element().is_some_and(|element| element.name().starts_with(&**prefix))
            }
        }
    }
}

/// Returns nodes in document order, each once.
fn in_order(mut found: Vec<NodeId>) -> Vec<NodeId> {
    found.sort_unstable();
    found.dedup();
    found
}

//! Parsed expressions.

use regex::Regex;

use super::functions::Function;
use crate::language::Comparison;

#[derive(Debug)]
pub(super) enum Expression {
    Or(Box<Self>, Box<Self>),
    And(Box<Self>, Box<Self>),
    Compare(Comparison, Box<Self>, Box<Self>),
    Calculate(Arithmetic, Box<Self>, Box<Self>),
    Negative(Box<Self>),
    Union(Box<Self>, Box<Self>),
    Path(Path),
    Text(String),
    Number(f64),
    Call(Function, Vec<Self>),
    /// `re:test` with a constant pattern.
    Matches(Box<Self>, Regex),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug)]
pub(super) struct Path {
    pub(super) start: PathStart,
    /// The conditions on the nodes that it starts from.
    pub(super) filters: Vec<Expression>,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) enum PathStart {
    Root,
    Here,
    Expression(Box<Expression>),
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) axis: Axis,
    pub(super) test: Test,
    pub(super) filters: Vec<Expression>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    Namespace,
    Parent,
    Preceding,
    PrecedingSibling,
    Itself,
}

impl Axis {
    pub(super) const ALL: [(&'static str, Self); 13] = [
        ("ancestor", Self::Ancestor),
        ("ancestor-or-self", Self::AncestorOrSelf),
        ("attribute", Self::Attribute),
        ("child", Self::Child),
        ("descendant", Self::Descendant),
        ("descendant-or-self", Self::DescendantOrSelf),
        ("following", Self::Following),
        ("following-sibling", Self::FollowingSibling),
        ("namespace", Self::Namespace),
        ("parent", Self::Parent),
        ("preceding", Self::Preceding),
        ("preceding-sibling", Self::PrecedingSibling),
        ("self", Self::Itself),
    ];

    /// Whether nodes that are farther away come first in the document.
    pub(super) fn is_reverse(self) -> bool {
        matches!(self, Self::Ancestor | Self::AncestorOrSelf | Self::Preceding | Self::PrecedingSibling)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// `node()`
    Node,
    /// `text()`
    Text,
    /// `comment()`
    Comment,
    /// `processing-instruction()`
    Instruction,
    /// `*`
    Any,
    /// A name, with its prefix if it has one.
    Name(String),
    /// `prefix:*`, with the colon.
    Prefix(String),
}

impl Expression {
    pub(super) fn finds_nodes(&self) -> bool {
        matches!(self, Self::Union(..) | Self::Path(_) | Self::Call(Function::Id, _))
    }

    pub(super) fn finds_elements(&self) -> bool {
        let is_of_elements =
            |test: &Test| matches!(test, Test::Any | Test::Name(_) | Test::Prefix(_) | Test::Node);
        match self {
            Self::Union(one, other) => one.finds_elements() && other.finds_elements(),
            Self::Call(Function::Id, _) => true,
            Self::Path(Path { start, steps, .. }) => match (steps.last(), start) {
                (Some(step), _) => step.axis != Axis::Attribute && is_of_elements(&step.test),
                (None, PathStart::Expression(inner)) => inner.finds_elements(),
                (None, _) => true,
            },
            _ => false,
        }
    }

    /// Whether a node must be at a place to fulfil it as a condition, or may have to.
    pub(super) fn is_positional(&self) -> bool {
        self.is_number() || self.asks_position()
    }

    fn is_number(&self) -> bool {
        match self {
            Self::Number(_) | Self::Calculate(..) | Self::Negative(_) => true,
            Self::Call(function, _) => function.is_number(),
            _ => false,
        }
    }

    fn asks_position(&self) -> bool {
        match self {
            Self::Or(one, other)
            | Self::And(one, other)
            | Self::Compare(_, one, other)
            | Self::Calculate(_, one, other)
            | Self::Union(one, other) => one.asks_position() || other.asks_position(),
            Self::Negative(one) | Self::Matches(one, _) => one.asks_position(),
            Self::Call(function, arguments) => {
                matches!(function, Function::Position | Function::Last)
                    || arguments.iter().any(Self::asks_position)
            }
            // Conditions within a path have positions of their own.
            Self::Path(path) => match &path.start {
                PathStart::Expression(inner) => inner.asks_position(),
                _ => false,
            },
            Self::Text(_) | Self::Number(_) => false,
        }
    }
}

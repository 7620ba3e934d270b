//! Parsed expressions.

use serde_json::Value;

use super::functions::Function;
use crate::language::Comparison;

#[derive(Clone, Debug)]
pub(super) enum Expression {
    /// `@`
    Here,
    Field(String),
    Index(i64),
    Slice(Option<i64>, Option<i64>, i64),
    /// The second on what the first finds.
    Then(Box<Self>, Box<Self>),
    /// The second on each element of the list that the first finds.
    Each(Box<Self>, Box<Self>),
    /// The second on each value of the object that the first finds.
    EachValue(Box<Self>, Box<Self>),
    /// The last on each element of the list that the first finds and for which the second is true.
    Filter(Box<Self>, Box<Self>, Box<Self>),
    Flatten(Box<Self>),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
    Or(Box<Self>, Box<Self>),
    And(Box<Self>, Box<Self>),
    Not(Box<Self>),
    Compare(Comparison, Box<Self>, Box<Self>),
    Literal(Value),
    /// `&`: an expression that a function evaluates.
    Reference(Box<Self>),
    Call(Function, Vec<Self>),
}

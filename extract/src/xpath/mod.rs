//! XPath 1.0 on the tree of a page.
//!
//! The text of an expression becomes tokens (`lexer`), then an [`Expression`](expression::Expression) (`parser`), which
//! is evaluated on the nodes of a page in document order ([`Nodes`]). Evaluation is bounded: an expression that takes
//! too many steps on a page is a failure of that page.
//!
//! Names are those of HTML: a name without prefix matches elements of any namespace, `svg` and its children too.

mod evaluate;
mod expression;
mod functions;
mod lexer;
mod nodes;
mod operators;
mod parser;
mod value;

pub(crate) use self::evaluate::{MAX_STEPS, Stopped};
pub(crate) use self::nodes::{NodeId, Nodes};
pub(crate) use self::value::Value;

use std::cell::Cell;

use self::evaluate::Evaluation;
use self::expression::Expression;

/// Maximum number of patterns in the expressions of a file: a stranger's could take gigabytes.
pub(crate) const MAX_PATTERNS: usize = 100;

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct XPath(Expression);

impl XPath {
    /// Parses an expression, which takes its patterns from `patterns_left`, of [`MAX_PATTERNS`] of a file. The error
    /// says what is wrong with it.
    pub(crate) fn parse(text: &str, patterns_left: &mut usize) -> Result<Self, String> {
        parser::parse(text, patterns_left).map(Self)
    }

    /// Whether the expression finds elements alone: its last step is no attribute, text or comment.
    pub(crate) fn finds_elements(&self) -> bool {
        self.0.finds_elements()
    }

    /// Evaluates the expression at a node. `steps` counts on over the expressions of a page; `is_given_up` is asked now
    /// and then whether to stop.
    pub(crate) fn evaluate(
        &self,
        nodes: &Nodes<'_>,
        at: NodeId,
        steps: &Cell<u64>,
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Value, Stopped> {
        Evaluation { nodes, steps, is_given_up }.value(&self.0, at)
    }
}

//! JMESPath (<https://jmespath.org/specification.html>) on values of JSON, within bounds: the values that an expression
//! makes are counted, as one of a few words can double a list a hundred times.

mod evaluate;
mod expression;
mod functions;
mod lexer;
mod parser;

use serde_json::Value;

use self::evaluate::Evaluation;
pub(crate) use self::evaluate::Unmet;
use self::expression::Expression;

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct JmesPath(Expression);

impl JmesPath {
    /// Parses an expression. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parser::parse(text).map(Self)
    }

    /// Returns the value that the expression finds or makes; null if there is none.
    pub(crate) fn find(&self, value: &Value) -> Result<Value, Unmet> {
        Evaluation::default().value(&self.0, value)
    }
}

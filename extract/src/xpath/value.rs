//! The values of expressions, and how they become one another (XPath 1.0, sections 3 and 4).

use super::nodes::{NodeId, Nodes};

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Nodes in document order.
    Nodes(Vec<NodeId>),
    Text(String),
    Number(f64),
    Truth(bool),
}

impl Value {
    pub(super) fn to_text(&self, nodes: &Nodes<'_>) -> String {
        match self {
            Self::Nodes(found) => found.first().map(|id| text(nodes, *id)).unwrap_or_default(),
            Self::Text(text) => text.clone(),
            Self::Number(number) => written(*number),
            Self::Truth(truth) => truth.to_string(),
        }
    }

    pub(super) fn to_number(&self, nodes: &Nodes<'_>) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Truth(truth) => f64::from(u8::from(*truth)),
            _ => number(&self.to_text(nodes)),
        }
    }

    pub(super) fn to_truth(&self) -> bool {
        match self {
            Self::Nodes(found) => !found.is_empty(),
            Self::Text(text) => !text.is_empty(),
            Self::Number(number) => *number != 0.0 && !number.is_nan(),
            Self::Truth(truth) => *truth,
        }
    }
}

/// Returns the string value of a node.
pub(super) fn text(nodes: &Nodes<'_>, id: NodeId) -> String {
    let mut text = String::new();
    nodes.write_text(id, &mut text);
    text
}

/// Returns the number that a text says: digits, perhaps a point and a minus sign, and nothing else; else NaN.
pub(super) fn number(text: &str) -> f64 {
    let text = text.trim_matches(is_blank);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.bytes().filter(|byte| *byte == b'.').count() < 2;
    if is_number { text.parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

/// Writes a number without an exponent.
fn written(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    // Not `-0`.
    if number == 0.0 { "0".to_owned() } else { number.to_string() }
}

/// Whether a character is white space in XML.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

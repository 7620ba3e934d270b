//! Comparisons and arithmetic (XPath 1.0, sections 3.4 and 3.5).

use std::collections::HashSet;

use super::evaluate::{Evaluation, Stopped};
use super::expression::Arithmetic;
use super::nodes::NodeId;
use super::value::{Value, number};
use crate::language::Comparison;

impl Arithmetic {
    pub(super) fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Add => one + other,
            Self::Subtract => one - other,
            Self::Multiply => one * other,
            Self::Divide => one / other,
            Self::Remainder => one % other,
        }
    }
}

impl Comparison {
    fn is_of_order(self) -> bool {
        !matches!(self, Self::Equal | Self::Unequal)
    }

    fn of_texts(self, one: &str, other: &str) -> bool {
        match self {
            Self::Equal => one == other,
            Self::Unequal => one != other,
            order => order.of_numbers(number(one), number(other)),
        }
    }

    /// Returns the comparison with its sides exchanged.
    fn reversed(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }
}

impl Evaluation<'_, '_> {
    pub(super) fn compare(
        &self,
        comparison: Comparison,
        one: &Value,
        other: &Value,
    ) -> Result<bool, Stopped> {
        match (one, other) {
            (Value::Nodes(one), Value::Nodes(other)) => self.compare_nodes(comparison, one, other),
            (Value::Nodes(found), other) => self.compare_found(comparison, found, other),
            (one, Value::Nodes(found)) => self.compare_found(comparison.reversed(), found, one),
            (one, other) => {
                let has = |is: fn(&Value) -> bool| is(one) || is(other);
                let nodes = self.nodes;
                Ok(
                    if comparison.is_of_order()
                        || has(|value| matches!(value, Value::Number(_)))
                            && !has(|value| matches!(value, Value::Truth(_)))
                    {
                        comparison.of_numbers(one.to_number(nodes), other.to_number(nodes))
                    } else if has(|value| matches!(value, Value::Truth(_))) {
                        (one.to_truth() == other.to_truth()) == (comparison == Comparison::Equal)
                    } else {
                        comparison.of_texts(&one.to_text(nodes), &other.to_text(nodes))
                    },
                )
            }
        }
    }

    /// Whether a node of each side fulfils the comparison.
    fn compare_nodes(
        &self,
        comparison: Comparison,
        one: &[NodeId],
        other: &[NodeId],
    ) -> Result<bool, Stopped> {
        let texts =
            |all: &[NodeId]| all.iter().map(|node| self.text_of(*node)).collect::<Result<HashSet<_>, _>>();
        let (one, other) = (texts(one)?, texts(other)?);
        if comparison.is_of_order() {
            // The extremes decide.
            let numbers = |all: HashSet<String>| {
                all.iter().map(|text| number(text)).filter(|n| !n.is_nan()).collect::<Vec<f64>>()
            };
            let (one, other) = (numbers(one), numbers(other));
            let least = |all: &[f64]| all.iter().copied().reduce(f64::min);
            let most = |all: &[f64]| all.iter().copied().reduce(f64::max);
            let is_less = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
            let sides = if is_less { (least(&one), most(&other)) } else { (most(&one), least(&other)) };
            return Ok(matches!(sides, (Some(one), Some(other)) if comparison.of_numbers(one, other)));
        }
        Ok(match comparison {
            Comparison::Equal => one.iter().any(|text| other.contains(text)),
            _ => !one.is_empty() && !other.is_empty() && (one.len() > 1 || other.len() > 1 || one != other),
        })
    }

    /// Whether a node fulfils the comparison with a value.
    fn compare_found(
        &self,
        comparison: Comparison,
        found: &[NodeId],
        value: &Value,
    ) -> Result<bool, Stopped> {
        if let Value::Truth(truth) = value {
            let (one, other) = (f64::from(u8::from(!found.is_empty())), f64::from(u8::from(*truth)));
            return Ok(comparison.of_numbers(one, other));
        }
        let other = value.to_text(self.nodes);
        for node in found {
            let text = self.text_of(*node)?;
            let holds = match value {
                Value::Number(other) => comparison.of_numbers(number(&text), *other),
                _ => comparison.of_texts(&text, &other),
            };
            if holds {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

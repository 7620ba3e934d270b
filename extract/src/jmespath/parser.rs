//! Parses expressions by the binding powers of the reference implementations.

use super::expression::Expression;
use super::functions::Function;
use super::lexer::{Token, tokens};
use crate::language::{Comparison, Tokens, no_function};

/// Maximum number of tokens of an expression.
const MAX_TOKENS: usize = 500;
/// Maximum nesting of an expression.
const MAX_DEPTH: usize = 64;

/// The binding power below which a projection ends.
const PROJECTION_STOP: u8 = 10;

type Parsed = Result<Expression, String>;

/// Parses an expression.
pub(super) fn parse(text: &str) -> Parsed {
    let tokens = Tokens::new(text, tokens, MAX_TOKENS)?;
    let mut parser = Parser { tokens, depth: 0 };
    let expression = parser.expression(0)?;
    parser.tokens.end()?;
    Ok(expression)
}

struct Parser<'a> {
    tokens: Tokens<'a, Token>,
    depth: usize,
}

impl Parser<'_> {
    fn sign(&self) -> Option<&'static str> {
        match self.tokens.peek() {
            Some(Token::Sign(sign)) => Some(sign),
            _ => None,
        }
    }

    /// Returns the sign after the next token.
    fn second_sign(&self) -> Option<&'static str> {
        match self.tokens.second() {
            Some(Token::Sign(sign)) => Some(sign),
            _ => None,
        }
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_next = self.sign() == Some(sign);
        if is_next {
            self.tokens.next();
        }
        is_next
    }

    fn needs(&mut self, sign: &str) -> Result<(), String> {
        if self.takes(sign) { Ok(()) } else { Err(self.tokens.unexpected(&format!("`{sign}`"))) }
    }

    fn power(&self) -> u8 {
        match self.sign() {
            Some("|") => 1,
            Some("||") => 2,
            Some("&&") => 3,
            Some("==" | "!=" | "<" | "<=" | ">" | ">=") => 5,
            Some("[]") => 9,
            Some("*") => 20,
            Some("[?") => 21,
            Some(".") => 40,
            Some("!") => 45,
            Some("{") => 50,
            Some("[") => 55,
            Some("(") => 60,
            _ => 0,
        }
    }

    fn expression(&mut self, power: u8) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} times"));
        }
        let mut left = self.first()?;
        while power < self.power() {
            left = self.next(left)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Parses the beginning of an expression.
    fn first(&mut self) -> Parsed {
        let here = || Box::new(Expression::Here);
        match self.tokens.peek().cloned() {
            Some(Token::Literal(value)) => {
                self.tokens.next();
                Ok(Expression::Literal(value))
            }
            Some(Token::Name(name)) => {
                self.tokens.next();
                if self.sign() == Some("(") { self.call(&name) } else { Ok(Expression::Field(name)) }
            }
            Some(Token::Quoted(name)) => {
                self.tokens.next();
                if self.sign() == Some("(") {
                    return Err("a function's name is without quotes".to_owned());
                }
                Ok(Expression::Field(name))
            }
            Some(Token::Sign(sign)) => match sign {
                "@" => {
                    self.tokens.next();
                    Ok(Expression::Here)
                }
                "*" => {
                    self.tokens.next();
                    let right = if self.sign() == Some("]") { Expression::Here } else { self.projected(20)? };
                    Ok(Expression::EachValue(here(), right.into()))
                }
                "[?" => self.filter(Expression::Here),
                "[]" => self.flatten(Expression::Here),
                "{" => {
                    self.tokens.next();
                    self.object()
                }
                "(" => {
                    self.tokens.next();
                    let inner = self.expression(0)?;
                    self.needs(")")?;
                    // So that what comes after is no part of a projection within.
                    Ok(Expression::Then(inner.into(), here()))
                }
                "!" => {
                    self.tokens.next();
                    Ok(Expression::Not(self.expression(45)?.into()))
                }
                "&" => {
                    self.tokens.next();
                    Ok(Expression::Reference(self.expression(0)?.into()))
                }
                "[" => self.bracket(Expression::Here, true),
                _ => Err(self.tokens.unexpected("an expression")),
            },
            _ => Err(self.tokens.unexpected("an expression")),
        }
    }

    /// Parses what comes after an expression.
    fn next(&mut self, left: Expression) -> Parsed {
        let comparison = match self.sign() {
            Some(".") => {
                self.tokens.next();
                if self.takes("*") {
                    let right = self.projected(40)?;
                    return Ok(Expression::EachValue(left.into(), right.into()));
                }
                let right = self.after_dot(40)?;
                return Ok(Expression::Then(left.into(), right.into()));
            }
            Some("|") => {
                self.tokens.next();
                return Ok(Expression::Then(left.into(), self.expression(1)?.into()));
            }
            Some("||") => {
                self.tokens.next();
                return Ok(Expression::Or(left.into(), self.expression(2)?.into()));
            }
            Some("&&") => {
                self.tokens.next();
                return Ok(Expression::And(left.into(), self.expression(3)?.into()));
            }
            Some("[?") => return self.filter(left),
            Some("[]") => return self.flatten(left),
            Some("[") => return self.bracket(left, false),
            Some("==") => Comparison::Equal,
            Some("!=") => Comparison::Unequal,
            Some("<") => Comparison::Less,
            Some("<=") => Comparison::LessOrEqual,
            Some(">") => Comparison::Greater,
            Some(">=") => Comparison::GreaterOrEqual,
            _ => return Err(self.tokens.unexpected("an operator")),
        };
        self.tokens.next();
        Ok(Expression::Compare(comparison, left.into(), self.expression(5)?.into()))
    }

    fn filter(&mut self, left: Expression) -> Parsed {
        self.tokens.next();
        let condition = self.expression(0)?;
        self.needs("]")?;
        let right = if self.sign() == Some("[]") { Expression::Here } else { self.projected(21)? };
        Ok(Expression::Filter(left.into(), condition.into(), right.into()))
    }

    fn flatten(&mut self, left: Expression) -> Parsed {
        self.tokens.next();
        let right = self.projected(9)?;
        Ok(Expression::Each(Expression::Flatten(left.into()).into(), right.into()))
    }

    /// Parses `[0]`, `[1:2]` and `[*]`, and at the beginning of an expression `[a, b]`.
    fn bracket(&mut self, left: Expression, is_first: bool) -> Parsed {
        self.tokens.next();
        match self.tokens.peek() {
            Some(Token::Number(_) | Token::Sign(":")) => {
                let (index, is_slice) = self.index()?;
                let found = Expression::Then(left.into(), index.into());
                if !is_slice {
                    return Ok(found);
                }
                let right = self.projected(20)?;
                Ok(Expression::Each(found.into(), right.into()))
            }
            Some(Token::Sign("*")) if self.second_sign() == Some("]") => {
                self.tokens.next();
                self.tokens.next();
                let right = self.projected(20)?;
                Ok(Expression::Each(left.into(), right.into()))
            }
            _ if is_first => self.list(),
            _ => Err(self.tokens.unexpected("a number, `*` or `?`")),
        }
    }

    fn index(&mut self) -> Result<(Expression, bool), String> {
        let mut parts = [None; 3];
        let mut place = 0;
        loop {
            match self.tokens.peek() {
                Some(Token::Number(number)) if parts[place].is_none() => {
                    parts[place] = Some(*number);
                    self.tokens.next();
                }
                Some(Token::Sign(":")) if place < 2 => {
                    place += 1;
                    self.tokens.next();
                }
                Some(Token::Sign("]")) => {
                    self.tokens.next();
                    break;
                }
                _ => return Err(self.tokens.unexpected("`]`")),
            }
        }
        match (place, parts) {
            (0, [Some(index), ..]) => Ok((Expression::Index(index), false)),
            (_, [_, _, Some(0)]) => Err("a step of 0 leads nowhere".to_owned()),
            (_, [from, to, step]) => Ok((Expression::Slice(from, to, step.unwrap_or(1)), true)),
        }
    }

    /// Parses what is done with each part of a projection.
    fn projected(&mut self, power: u8) -> Parsed {
        if self.power() < PROJECTION_STOP {
            return Ok(Expression::Here);
        }
        match self.sign() {
            Some("[" | "[?") => self.expression_on_here(power),
            Some(".") => {
                self.tokens.next();
                self.after_dot(power)
            }
            _ => Err(self.tokens.unexpected("`.` or `[`")),
        }
    }

    /// Parses an expression that begins with a bracket.
    fn expression_on_here(&mut self, power: u8) -> Parsed {
        let mut left = match self.sign() {
            Some("[?") => self.filter(Expression::Here)?,
            _ => self.bracket(Expression::Here, true)?,
        };
        while power < self.power() {
            left = self.next(left)?;
        }
        Ok(left)
    }

    fn after_dot(&mut self, power: u8) -> Parsed {
        match self.tokens.peek() {
            Some(Token::Name(_) | Token::Quoted(_) | Token::Sign("*")) => self.expression(power),
            Some(Token::Sign("[")) => {
                self.tokens.next();
                self.list()
            }
            Some(Token::Sign("{")) => {
                self.tokens.next();
                self.object()
            }
            _ => Err(self.tokens.unexpected("a name, `*`, `[` or `{`")),
        }
    }

    fn list(&mut self) -> Parsed {
        let mut parts = Vec::new();
        loop {
            parts.push(self.expression(0)?);
            if !self.takes(",") {
                self.needs("]")?;
                return Ok(Expression::List(parts));
            }
        }
    }

    fn object(&mut self) -> Parsed {
        let mut parts = Vec::new();
        loop {
            let Some(Token::Name(name) | Token::Quoted(name)) = self.tokens.peek().cloned() else {
                return Err(self.tokens.unexpected("a name"));
            };
            self.tokens.next();
            self.needs(":")?;
            parts.push((name, self.expression(0)?));
            if !self.takes(",") {
                self.needs("}")?;
                return Ok(Expression::Object(parts));
            }
        }
    }

    fn call(&mut self, name: &str) -> Parsed {
        self.tokens.next();
        let mut arguments = Vec::new();
        if !self.takes(")") {
            loop {
                arguments.push(self.expression(0)?);
                if !self.takes(",") {
                    break;
                }
            }
            self.needs(")")?;
        }
        let Some(function) = Function::from_name(name) else {
            let names = Function::ALL.iter().map(|(name, ..)| *name);
            return Err(no_function(name, names));
        };
        function.check(&arguments)?;
        Ok(Expression::Call(function, arguments))
    }
}

//! Literals of JavaScript: JSON as programs write it, with unquoted names, single quotes, comments and surplus commas.
//! Code is not run; what needs it is null.

mod scalar;

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::{Map, Value};

use self::scalar::percent_decoded;
use crate::document::json;

/// Maximum nesting of a value.
const MAX_DEPTH: usize = 100;
/// Maximum number of values of one literal.
const MAX_VALUES: usize = 500_000;
/// Maximum size of what names of arguments stand for, in bytes of JSON.
const MAX_FILLED: usize = 16 << 20;

/// The value of a text.
enum Literal {
    Value(Value),
    /// The result of code.
    Unknown,
}

/// Parses the literal at the beginning of a text: an object, a list, a text, a number, `JSON.parse("...")`, or a
/// function that is called at once and returns a literal. `None` if there is none. `steps_left` bounds the work, in
/// bytes.
pub(crate) fn parse(text: &str, steps_left: &Cell<usize>) -> Option<Value> {
    let none = HashMap::new();
    let mut parser =
        Parser { text, at: 0, values_left: MAX_VALUES, bytes_left: MAX_FILLED, steps_left, names: &none };
    match parser.value(0)? {
        Literal::Value(value) => Some(value),
        Literal::Unknown => None,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    values_left: usize,
    bytes_left: usize,
    steps_left: &'a Cell<usize>,
    /// The arguments of the function around it.
    names: &'a HashMap<&'a str, Value>,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Counts bytes that are read. Once there are too many, the text ends.
    fn count(&mut self, bytes: usize) {
        let left = self.steps_left.get().checked_sub(bytes);
        self.steps_left.set(left.unwrap_or_default());
        if left.is_none() {
            self.at = self.text.len();
        }
    }

    /// Ends the text: there is too much in it.
    fn stop(&mut self) {
        self.steps_left.set(0);
        self.at = self.text.len();
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            self.count(1 + rest.len() - trimmed.len());
            let trimmed = self.rest();
            let length = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map_or(trimmed.len(), |end| end + 2)
            } else {
                return;
            };
            self.at += length;
            self.count(length);
        }
    }

    fn takes(&mut self, sign: &str) -> bool {
        self.skip_blank();
        let is_next = self.rest().starts_with(sign);
        self.at += if is_next { sign.len() } else { 0 };
        is_next
    }

    /// Parses a value, `a || {...}` too. What is no literal is skipped up to the end of the value around it.
    fn value(&mut self, depth: usize) -> Option<Literal> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.values_left == 0 {
            self.stop();
            return None;
        }
        self.values_left -= 1;
        self.skip_blank();
        let start = self.at;
        let literal = match self.peek()? {
            b'{' => self.object(depth).map(Literal::Value),
            b'[' => self.list(depth).map(Literal::Value),
            b'"' | b'\'' | b'`' => self.string().map(|text| Literal::Value(text.into())),
            b'0'..=b'9' | b'-' | b'+' | b'.' => self.number().map(Literal::Value),
            b'!' => self.word_after_not().map(Literal::Value),
            b'(' if depth == 0 => self.called(depth),
            _ => self.word(depth),
        };
        self.skip_blank();
        let is_end = match self.peek() {
            Some(byte) if depth == 0 => !b"+-*/%?.[(&=|".contains(&byte),
            next => matches!(next, None | Some(b',' | b'}' | b']' | b')' | b';' | b'<')),
        };
        match literal {
            Some(Literal::Value(value)) if is_end => Some(Literal::Value(value)),
            _ if self.takes("||") => self.value(depth + 1),
            _ if depth == 0 => None,
            _ => {
                self.at = start;
                self.skip_code();
                Some(Literal::Unknown)
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut fields = Map::new();
        loop {
            self.skip_blank();
            let start = self.at;
            match self.peek()? {
                b'}' => {
                    self.at += 1;
                    return Some(Value::Object(fields));
                }
                b',' => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let name = match self.peek()? {
                b'"' | b'\'' | b'`' => self.string()?,
                _ => self.name().to_owned(),
            };
            if !name.is_empty() && self.takes(":") {
                let value = self.value(depth + 1)?;
                fields.insert(name, value.or_null());
            } else if !name.is_empty() && self.names.contains_key(name.as_str()) {
                fields.insert(name.clone(), self.filled(&name)?);
            } else {
                // A method, `...rest`, or a name that stands for its value.
                self.skip_code();
                (self.at > start).then_some(())?;
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.skip_blank();
            match self.peek()? {
                b']' => {
                    self.at += 1;
                    return Some(Value::Array(values));
                }
                b',' => self.at += 1,
                b'}' | b')' => return None,
                _ => values.push(self.value(depth + 1)?.or_null()),
            }
        }
    }

    /// Reads `!0` and `!1`, as shortened code writes true and false.
    fn word_after_not(&mut self) -> Option<Value> {
        self.at += 1;
        let truth = match self.peek()? {
            b'0' => true,
            b'1' => false,
            _ => return None,
        };
        self.at += 1;
        Some(truth.into())
    }

    /// Reads a name; empty if there is none.
    fn name(&mut self) -> &'a str {
        let rest = self.rest();
        let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'));
        let end = rest.find(is_end).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Reads a value that begins with a name.
    fn word(&mut self, depth: usize) -> Option<Literal> {
        let start = self.at;
        let value = match self.name() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" | "undefined" | "NaN" | "Infinity" => Value::Null,
            "void" => {
                self.skip_blank();
                self.number()?;
                Value::Null
            }
            "new" if self.takes("Date") && self.takes("(") => {
                let value = self.value(depth + 1)?.or_null();
                self.takes(")").then_some(value)?
            }
            "JSON" if self.takes(".parse") && self.takes("(") => {
                let decoded = self.takes("decodeURIComponent");
                let is_decoded = decoded && self.takes("(");
                self.skip_blank();
                let text = self.string()?;
                let text = if is_decoded { percent_decoded(&text) } else { text };
                let value = json::parse(&text).ok()?;
                (!is_decoded || self.takes(")")).then_some(())?;
                self.takes(")").then_some(value)?
            }
            "Object" if self.takes(".freeze") && self.takes("(") => {
                let value = self.value(depth + 1)?.or_null();
                self.takes(")").then_some(value)?
            }
            "function" if depth == 0 => {
                self.at = start;
                return self.function(depth);
            }
            name if self.names.contains_key(name) => self.filled(name)?,
            // `a.b || {...}`
            name if !name.is_empty() => {
                while self.rest().starts_with('.') {
                    self.at += 1;
                    self.name();
                }
                return Some(Literal::Unknown);
            }
            _ => return None,
        };
        Some(Literal::Value(value))
    }

    /// Returns the argument that a name stands for.
    fn filled(&mut self, name: &str) -> Option<Value> {
        let value = self.names.get(name)?;
        let left = self.bytes_left.checked_sub(value.to_string().len());
        self.bytes_left = left.unwrap_or_default();
        if left.is_none() {
            self.stop();
        }
        left.map(|_| value.clone())
    }

    /// Reads a value in brackets, or a function that is called at once.
    fn called(&mut self, depth: usize) -> Option<Literal> {
        self.at += 1;
        self.skip_blank();
        if self.rest().starts_with("function") {
            return self.function(depth);
        }
        let literal = self.value(depth + 1)?;
        self.takes(")").then_some(literal)
    }

    /// Reads `function(a,b){return {...}}("x",1)`, in which Nuxt 2 writes each value that occurs several times once.
    fn function(&mut self, depth: usize) -> Option<Literal> {
        self.at += "function".len();
        self.takes("(").then_some(())?;
        let (parameters, _) = self.rest().split_once(')')?;
        self.at += parameters.len() + 1;
        self.takes("{").then_some(())?;
        let body = self.at;
        self.skip_block();
        let end = self.at;
        self.takes("}").then_some(())?;
        self.takes(")");
        self.takes("(").then_some(())?;
        let mut arguments = Vec::new();
        while !self.takes(")") {
            self.skip_blank();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' | b']' => return None,
                _ => arguments.push(self.value(depth + 1)?.or_null()),
            }
        }
        let names = parameters.split(',').map(str::trim).zip(arguments).collect();
        let body = self.text.get(body..end)?;
        let (_, returned) = body.split_once("return")?;
        let (values_left, bytes_left, steps_left) = (self.values_left, self.bytes_left, self.steps_left);
        let mut inner = Parser { text: returned, at: 0, values_left, bytes_left, steps_left, names: &names };
        inner.value(depth + 1)
    }

    /// Skips code up to the comma or bracket that ends the value.
    fn skip_code(&mut self) {
        self.skip_to(true);
    }

    /// Skips code up to the bracket that closes the block.
    fn skip_block(&mut self) {
        self.skip_to(false);
    }

    fn skip_to(&mut self, ends_at_comma: bool) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' | b'\'' | b'`' => {
                    if self.string().is_none() {
                        self.at = self.text.len();
                    }
                    continue;
                }
                b'/' if self.rest().starts_with("//") || self.rest().starts_with("/*") => {
                    self.skip_blank();
                    continue;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth == 0 => break,
                b')' | b']' | b'}' => depth -= 1,
                b',' if depth == 0 && ends_at_comma => break,
                _ => {}
            }
            let length = self.rest().chars().next().map_or(1, char::len_utf8);
            self.at += length;
            self.count(length);
        }
    }
}

impl Literal {
    fn or_null(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Unknown => Value::Null,
        }
    }
}

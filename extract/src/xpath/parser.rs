//! Parses expressions (XPath 1.0, section 3).

use regex::RegexBuilder;
use trawl_common::nearest::nearest;
use trawl_common::spider::pattern::reason;
use trawl_common::text::printable;

use super::MAX_PATTERNS;
use super::expression::{Arithmetic, Axis, Expression, Path, PathStart, Step, Test};
use super::functions::Function;
use super::lexer::{Token, tokens};
use crate::language::{Comparison, Tokens, no_function};

/// Maximum number of tokens of an expression.
const MAX_TOKENS: usize = 1000;
/// Maximum nesting of an expression.
const MAX_DEPTH: usize = 32;
/// Maximum memory of a compiled pattern of `re:test`, in bytes.
const MAX_PATTERN: usize = 256 << 10;

/// A binary operator, and what makes an expression of its two sides.
type Operator = (&'static str, fn(Box<Expression>, Box<Expression>) -> Expression);

/// The binary operators by how strongly they bind, the weakest first. Those of one level are applied from left to right.
const OPERATORS: [&[Operator]; 6] = [
    &[("or", Expression::Or)],
    &[("and", Expression::And)],
    &[
        ("=", |left, right| Expression::Compare(Comparison::Equal, left, right)),
        ("!=", |left, right| Expression::Compare(Comparison::Unequal, left, right)),
    ],
    &[
        ("<", |left, right| Expression::Compare(Comparison::Less, left, right)),
        ("<=", |left, right| Expression::Compare(Comparison::LessOrEqual, left, right)),
        (">", |left, right| Expression::Compare(Comparison::Greater, left, right)),
        (">=", |left, right| Expression::Compare(Comparison::GreaterOrEqual, left, right)),
    ],
    &[
        ("+", |left, right| Expression::Calculate(Arithmetic::Add, left, right)),
        ("-", |left, right| Expression::Calculate(Arithmetic::Subtract, left, right)),
    ],
    &[
        ("*", |left, right| Expression::Calculate(Arithmetic::Multiply, left, right)),
        ("div", |left, right| Expression::Calculate(Arithmetic::Divide, left, right)),
        ("mod", |left, right| Expression::Calculate(Arithmetic::Remainder, left, right)),
    ],
];

/// Parses an expression, which may have `patterns_left` patterns, and takes its own from them.
pub(super) fn parse(text: &str, patterns_left: &mut usize) -> Result<Expression, String> {
    let tokens = Tokens::new(text, tokens, MAX_TOKENS)?;
    let mut parser = Parser { tokens, depth: 0, patterns_left };
    let expression = parser.expression()?;
    parser.tokens.end()?;
    Ok(expression)
}

struct Parser<'a> {
    tokens: Tokens<'a, Token>,
    depth: usize,
    patterns_left: &'a mut usize,
}

type Parsed = Result<Expression, String>;

impl Parser<'_> {
    fn takes(&mut self, sign: &str) -> bool {
        let is_next =
            matches!(self.tokens.peek(), Some(Token::Sign(next) | Token::Word(next)) if *next == sign);
        if is_next {
            self.tokens.next();
        }
        is_next
    }

    fn needs(&mut self, sign: &str) -> Result<(), String> {
        if self.takes(sign) { Ok(()) } else { Err(self.tokens.unexpected(&format!("`{sign}`"))) }
    }

    fn expression(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it is nested more than {MAX_DEPTH} times"));
        }
        let expression = self.binary(0)?;
        self.depth -= 1;
        Ok(expression)
    }

    /// Parses operators of this level of [`OPERATORS`] and of those above it.
    fn binary(&mut self, level: usize) -> Parsed {
        let Some(operators) = OPERATORS.get(level) else { return self.negative() };
        let mut left = self.binary(level + 1)?;
        while let Some((_, join)) = operators.iter().find(|(sign, _)| self.takes(sign)) {
            left = join(left.into(), self.binary(level + 1)?.into());
        }
        Ok(left)
    }

    fn negative(&mut self) -> Parsed {
        let mut signs = 0_usize;
        while self.takes("-") {
            signs += 1;
        }
        let operand = self.union()?;
        Ok(match signs {
            0 => operand,
            signs if signs % 2 == 1 => Expression::Negative(operand.into()),
            _ => Expression::Negative(Expression::Negative(operand.into()).into()),
        })
    }

    fn union(&mut self) -> Parsed {
        let mut left = self.path()?;
        while self.takes("|") {
            let right = self.path()?;
            if !left.finds_nodes() || !right.finds_nodes() {
                return Err("`|` is for nodes on both sides".to_owned());
            }
            left = Expression::Union(left.into(), right.into());
        }
        Ok(left)
    }

    fn path(&mut self) -> Parsed {
        if let Some(primary) = self.primary()? {
            let filters = self.filters()?;
            let mut steps = Vec::new();
            if matches!(self.tokens.peek(), Some(Token::Sign("/" | "//"))) {
                self.steps_after(&mut steps)?;
            }
            if filters.is_empty() && steps.is_empty() {
                return Ok(primary);
            }
            if !primary.finds_nodes() {
                return Err("`[` and `/` come after nodes".to_owned());
            }
            return Ok(path(PathStart::Expression(primary.into()), filters, steps));
        }
        let mut steps = Vec::new();
        if self.takes("/") {
            if self.begins_step() {
                steps.push(self.step()?);
                self.steps_after(&mut steps)?;
            }
            return Ok(path(PathStart::Root, Vec::new(), steps));
        }
        if matches!(self.tokens.peek(), Some(Token::Sign("//"))) {
            self.steps_after(&mut steps)?;
            return Ok(path(PathStart::Root, Vec::new(), steps));
        }
        steps.push(self.step()?);
        self.steps_after(&mut steps)?;
        Ok(path(PathStart::Here, Vec::new(), steps))
    }

    /// Reads the steps that come after a slash each.
    fn steps_after(&mut self, steps: &mut Vec<Step>) -> Result<(), String> {
        loop {
            if self.takes("//") {
                steps.push(Step { axis: Axis::DescendantOrSelf, test: Test::Node, filters: Vec::new() });
            } else if !self.takes("/") {
                return Ok(());
            }
            steps.push(self.step()?);
        }
    }

    fn begins_step(&self) -> bool {
        matches!(self.tokens.peek(), Some(Token::Name(_) | Token::Sign("." | ".." | "@")))
    }

    fn step(&mut self) -> Result<Step, String> {
        for (sign, axis) in [(".", Axis::Itself), ("..", Axis::Parent)] {
            if self.takes(sign) {
                return Ok(Step { axis, test: Test::Node, filters: Vec::new() });
            }
        }
        let axis = self.axis()?;
        let Some(Token::Name(name)) = self.tokens.peek().cloned() else {
            return Err(self.tokens.unexpected("a step"));
        };
        self.tokens.next();
        let test = if self.takes("(") { self.node_test(&name)? } else { name_test(name) };
        Ok(Step { axis, test, filters: self.filters()? })
    }

    fn axis(&mut self) -> Result<Axis, String> {
        if self.takes("@") {
            return Ok(Axis::Attribute);
        }
        let (Some(Token::Name(name)), Some(Token::Sign("::"))) =
            (self.tokens.peek().cloned(), self.tokens.second())
        else {
            return Ok(Axis::Child);
        };
        let axis = Axis::ALL.into_iter().find(|(other, _)| *other == name).map(|(_, axis)| axis);
        let names = || Axis::ALL.iter().map(|(name, _)| *name);
        let axis = axis.ok_or_else(|| {
            format!("there is no axis `{}`{}", printable(&name, 40), nearest(&name, names()))
        })?;
        self.tokens.next();
        self.tokens.next();
        Ok(axis)
    }

    fn node_test(&mut self, name: &str) -> Result<Test, String> {
        let test = match name {
            "node" => Test::Node,
            "text" => Test::Text,
            "comment" => Test::Comment,
            "processing-instruction" => {
                if let Some(Token::Text(_)) = self.tokens.peek() {
                    self.tokens.next();
                }
                Test::Instruction
            }
            name => return Err(format!("`{}()` cannot be a step", printable(name, 40))),
        };
        self.needs(")")?;
        Ok(test)
    }

    fn filters(&mut self) -> Result<Vec<Expression>, String> {
        let mut filters = Vec::new();
        while self.takes("[") {
            filters.push(self.expression()?);
            self.needs("]")?;
        }
        Ok(filters)
    }

    /// Parses what is no path, if it comes next.
    fn primary(&mut self) -> Result<Option<Expression>, String> {
        let is_called = matches!(self.tokens.second(), Some(Token::Sign("(")));
        match self.tokens.peek().cloned() {
            Some(Token::Text(text)) => {
                self.tokens.next();
                Ok(Some(Expression::Text(text)))
            }
            Some(Token::Number(number)) => {
                self.tokens.next();
                Ok(Some(Expression::Number(number)))
            }
            Some(Token::Sign("(")) => {
                self.tokens.next();
                let inner = self.expression()?;
                self.needs(")")?;
                Ok(Some(inner))
            }
            Some(Token::Sign("$")) => Err("there are no variables".to_owned()),
            Some(Token::Name(name)) if is_called && !is_node_type(&name) => self.call(&name).map(Some),
            _ => Ok(None),
        }
    }

    fn call(&mut self, name: &str) -> Parsed {
        self.tokens.next();
        self.tokens.next();
        let mut arguments = Vec::new();
        if !self.takes(")") {
            loop {
                arguments.push(self.expression()?);
                if !self.takes(",") {
                    break;
                }
            }
            self.needs(")")?;
        }
        if name == "re:test" {
            return self.pattern(arguments);
        }
        let Some(function) = Function::from_name(name) else {
            let names = Function::ALL.iter().map(|(name, ..)| *name).chain(["re:test"]);
            return Err(no_function(name, names));
        };
        function.check(&arguments)?;
        Ok(Expression::Call(function, arguments))
    }

    /// Compiles the pattern of `re:test`, the second argument.
    fn pattern(&mut self, arguments: Vec<Expression>) -> Parsed {
        let left = self.patterns_left.checked_sub(1);
        *self.patterns_left =
            left.ok_or_else(|| format!("a file may have `re:test` {MAX_PATTERNS} times"))?;
        let mut arguments = arguments.into_iter();
        let all = (arguments.next(), arguments.next(), arguments.next(), arguments.next());
        let (text, pattern, flags) = match all {
            (Some(text), Some(Expression::Text(pattern)), None, _) => (text, pattern, String::new()),
            (Some(text), Some(Expression::Text(pattern)), Some(Expression::Text(flags)), None) => {
                (text, pattern, flags)
            }
            _ => return Err("`re:test` has a text, a pattern in quotes, and perhaps flags as 'i'".to_owned()),
        };
        let mut builder = RegexBuilder::new(&pattern);
        let compiled = builder.size_limit(MAX_PATTERN).case_insensitive(flags.contains('i')).build();
        let compiled = compiled.map_err(|error| {
            format!("`{}` is not a regular expression: {}", printable(&pattern, 40), reason(&error))
        })?;
        Ok(Expression::Matches(text.into(), compiled))
    }
}

fn is_node_type(name: &str) -> bool {
    matches!(name, "node" | "text" | "comment" | "processing-instruction")
}

fn name_test(name: String) -> Test {
    match name.strip_suffix('*') {
        Some("") => Test::Any,
        Some(prefix) => Test::Prefix(prefix.to_owned()),
        None => Test::Name(name),
    }
}

/// Makes a path. `//x`, short for `/descendant-or-self::node()/child::x`, becomes `/descendant::x` where that is the
/// same.
fn path(start: PathStart, filters: Vec<Expression>, steps: Vec<Step>) -> Expression {
    let mut made: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        let is_any = made.last().is_some_and(|last| {
            last.axis == Axis::DescendantOrSelf && last.test == Test::Node && last.filters.is_empty()
        });
        if is_any && step.axis == Axis::Child && !step.filters.iter().any(Expression::is_positional) {
            made.pop();
            made.push(Step { axis: Axis::Descendant, ..step });
        } else {
            made.push(step);
        }
    }
    Expression::Path(Path { start, filters, steps: made })
}

//! The tokens of an expression (XPath 1.0, section 3.7).

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// `(`, `)`, `[`, `]`, `.`, `..`, `@`, `,`, `::`, and the operators that are no names, `*` for multiplication among
    /// them.
    Sign(&'static str),
    /// `and`, `or`, `div` or `mod` as an operator.
    Word(&'static str),
    /// A name, with its prefix if it has one, or `*` and `prefix:*` as tests of names.
    Name(String),
    Text(String),
    Number(f64),
}

const SIGNS: [&str; 21] = [
    "::", "..", "//", "!=", "<=", ">=", "(", ")", "[", "]", ".", "@", ",", "/", "|", "+", "-", "=", "<", ">",
    "$",
];

const WORDS: [&str; 4] = ["and", "or", "div", "mod"];

/// Returns the tokens of a text, each with its place in it.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let mut tokens: Vec<(usize, Token)> = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if matches!(c, ' ' | '\t' | '\r' | '\n') {
            at += 1;
            continue;
        }
        let (token, length) = token(&text[at..], c, is_operand(tokens.last()))?;
        tokens.push((at, token));
        at += length;
    }
    Ok(tokens)
}

/// Whether an operator comes next, so that `*` and names are operators, after this token.
fn is_operand(last: Option<&(usize, Token)>) -> bool {
    match last {
        None | Some((_, Token::Word(_))) => false,
        Some((_, Token::Sign(sign))) => matches!(*sign, ")" | "]" | "." | ".."),
        Some(_) => true,
    }
}

fn token(rest: &str, c: char, is_after_operand: bool) -> Result<(Token, usize), String> {
    if matches!(c, '"' | '\'') {
        let end = rest[1..].find(c).ok_or_else(|| format!("a text in {c} has no end"))?;
        return Ok((Token::Text(rest[1..=end].to_owned()), end + 2));
    }
    let is_digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    if c.is_ascii_digit() || c == '.' && is_digit(&rest[1..]) {
        let whole = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let length = match rest[whole..].strip_prefix('.') {
            Some(after) => whole + 1 + after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()),
            None => whole,
        };
        let number = rest[..length].trim_end_matches('.').parse();
        return number.map(|number| (Token::Number(number), length)).map_err(|_| "not a number".to_owned());
    }
    if c == '*' {
        return Ok((if is_after_operand { Token::Sign("*") } else { Token::Name("*".to_owned()) }, 1));
    }
    if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        return Ok((Token::Sign(sign), sign.len()));
    }
    let length = name(rest);
    if length == 0 {
        return Err(format!("`{c}` does not belong here"));
    }
    if is_after_operand {
        let word = WORDS.into_iter().find(|word| *word == &rest[..length]);
        let word = word.ok_or_else(|| format!("an operator is wanted, not `{}`", &rest[..length]))?;
        return Ok((Token::Word(word), length));
    }
    // A prefix, unless it is an axis.
    let after = rest[length..].strip_prefix(':').filter(|after| !after.starts_with(':'));
    let local = after.map_or(0, |after| if after.starts_with('*') { 1 } else { name(after) });
    let length = if local > 0 { length + 1 + local } else { length };
    Ok((Token::Name(rest[..length].to_owned()), length))
}

/// Returns the length of the name without prefix at the beginning of a text.
fn name(text: &str) -> usize {
    if !text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return 0;
    }
    let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\u{b7}'));
    text.find(is_end).unwrap_or(text.len())
}

//! The tokens of an expression.

use serde_json::Value;
use trawl_common::text::printable;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Sign(&'static str),
    Name(String),
    Quoted(String),
    Number(i64),
    Literal(Value),
}

/// Longer signs come before those that they begin with.
const SIGNS: [&str; 25] = [
    "[?", "[]", "||", "&&", "==", "!=", "<=", ">=", "[", "]", "{", "}", "(", ")", ".", "*", ",", ":", "@",
    "&", "|", "!", "<", ">", "-",
];

/// Returns the tokens of a text, each with its place.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let (token, length) = token(&text[at..], c)?;
        tokens.push((at, token));
        at += length;
    }
    Ok(tokens)
}

fn token(rest: &str, c: char) -> Result<(Token, usize), String> {
    let is_digit = |c: char| c.is_ascii_digit();
    match c {
        '"' => {
            let (_, length) = until(rest, '"')?;
            let name = serde_json::from_str(&rest[..length]);
            return name.map(|name| (Token::Quoted(name), length)).map_err(|_| no_end(c));
        }
        '\'' => {
            let (inner, length) = until(rest, '\'')?;
            return Ok((Token::Literal(inner.replace("\\'", "'").into()), length));
        }
        '`' => {
            let (inner, length) = until(rest, '`')?;
            let inner = inner.replace("\\`", "`");
            let value = serde_json::from_str(inner.trim());
            let value =
                value.map_err(|_| format!("`{}` between backticks is no JSON", printable(&inner, 40)))?;
            return Ok((Token::Literal(value), length));
        }
        _ => {}
    }
    if is_digit(c) || c == '-' && rest[1..].starts_with(is_digit) {
        let length = 1 + rest[1..].find(|c| !is_digit(c)).unwrap_or(rest.len() - 1);
        let number = rest[..length].parse();
        return number
            .map(|number| (Token::Number(number), length))
            .map_err(|_| "a number is too large".to_owned());
    }
    if c.is_ascii_alphabetic() || c == '_' {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let length = rest.find(is_end).unwrap_or(rest.len());
        return Ok((Token::Name(rest[..length].to_owned()), length));
    }
    let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign) && *sign != "-");
    sign.map(|sign| (Token::Sign(sign), sign.len())).ok_or_else(|| format!("`{c}` does not belong here"))
}

/// Returns the text up to the next mark that no backslash is before, and the length with both marks.
fn until(rest: &str, mark: char) -> Result<(&str, usize), String> {
    let mut is_escaped = false;
    let end = rest[1..].find(|c| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        is_escaped = c == '\\';
        c == mark
    });
    end.map(|end| (&rest[1..=end], end + 2)).ok_or_else(|| no_end(mark))
}

fn no_end(mark: char) -> String {
    format!("a text in {mark} has no end, or is none")
}

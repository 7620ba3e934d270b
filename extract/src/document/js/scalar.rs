//! Texts and numbers of JavaScript.

use serde_json::{Number, Value};

use super::Parser;

impl Parser<'_> {
    /// Reads a text in quotes.
    pub(super) fn string(&mut self) -> Option<String> {
        let quote = char::from(self.peek()?);
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find([quote, '\\'])?;
            text.push_str(&rest[..end]);
            self.at += end + 1;
            self.count(end + 1);
            if rest[end..].starts_with(quote) {
                return Some(text);
            }
            self.escape(&mut text)?;
        }
    }

    /// Reads what comes after a backslash.
    fn escape(&mut self, text: &mut String) -> Option<()> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        match c {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'v' => text.push('\u{b}'),
            '0' => text.push('\0'),
            '\n' => {}
            'x' => text.push(char::from_u32(self.hexadecimal(2)?).unwrap_or('\u{fffd}')),
            'u' if self.rest().starts_with('{') => {
                let (digits, _) = self.rest()[1..].split_once('}')?;
                self.at += digits.len() + 2;
                let code = u32::from_str_radix(digits, 16).ok();
                text.push(code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
            }
            'u' => {
                let high = self.hexadecimal(4)?;
                let is_pair = (0xd800..0xdc00).contains(&high) && self.rest().starts_with("\\u");
                let code = if is_pair {
                    self.at += 2;
                    let low = self.hexadecimal(4)?;
                    let is_low = (0xdc00..0xe000).contains(&low);
                    if is_low { 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00) } else { high }
                } else {
                    high
                };
                text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            other => text.push(other),
        }
        Some(())
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<u32> {
        let code = self.rest().get(..digits).and_then(|digits| u32::from_str_radix(digits, 16).ok())?;
        self.at += digits;
        Some(code)
    }

    pub(super) fn number(&mut self) -> Option<Value> {
        let is_negative = self.peek() == Some(b'-');
        self.at += usize::from(matches!(self.peek(), Some(b'-' | b'+')));
        let rest = self.rest();
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '.');
        let mut end = rest.find(is_end).unwrap_or(rest.len());
        let is_hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
        // The sign of an exponent.
        if !is_hexadecimal && rest[..end].ends_with(['e', 'E']) && rest[end..].starts_with(['+', '-']) {
            end += 1 + rest[end + 1..].find(is_end).unwrap_or(rest.len() - end - 1);
        }
        self.at += end;
        let digits = rest[..end].trim_end_matches('n');
        if is_hexadecimal {
            let number = i64::from_str_radix(&digits[2..], 16).ok()?;
            return Some(if is_negative { -number } else { number }.into());
        }
        let sign = if is_negative { "-" } else { "" };
        let signed = format!("{sign}{digits}");
        if let Ok(whole) = signed.parse::<i64>() {
            return Some(whole.into());
        }
        if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() {
            return Some(signed.into());
        }
        signed.parse().ok().and_then(Number::from_f64).map(Value::Number)
    }
}

/// Decodes `%41` as `decodeURIComponent` does.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code =
            after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

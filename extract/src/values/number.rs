//! Numbers as people write them.

use serde_json::{Number, Value};

/// The most characters of a number; what is longer is none.
const MAX_LENGTH: usize = 64;

/// The first number in `text`. Where both `.` and `,` stand in it, the later one is the decimal mark. One that stands
/// alone is it unless exactly three digits follow and no zero leads: `1.234` is 1234, `0.125` and `1.25` are not whole. A
/// mark that repeats, spaces and apostrophes group digits.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let written = &text[start..];
    let written = &written[..end(written)];
    if written.len() > MAX_LENGTH {
        return None;
    }
    let before = &text[..start];
    let leads = before.strip_suffix(['.', ',']).filter(|rest| !rest.ends_with(char::is_alphanumeric));
    let is_negative = is_minus(leads.unwrap_or(before));
    let (whole, fraction) = match (leads, decimal_mark(written)) {
        (Some(_), _) => ("", written),
        (None, Some(mark)) => (&written[..mark], &written[mark + 1..]),
        (None, None) => (written, ""),
    };
    let digits = |part: &str| part.chars().filter(char::is_ascii_digit).collect::<String>();
    let sign = if is_negative { "-" } else { "" };
    plain(&match digits(fraction) {
        none if none.is_empty() => format!("{sign}{}", digits(whole)),
        fraction => format!("{sign}{}.{fraction}", digits(whole)),
    })
}

/// A number as programs write it.
pub(crate) fn plain(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    let number = text.parse::<f64>().ok().filter(|_| is_number)?;
    Number::from_f64(number).map(Value::Number)
}

/// The whole number that `number` is.
pub(crate) fn whole(number: &Value) -> Option<Value> {
    /// 2^53: beyond it a float stands for several whole numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)?;
    Some((float as i64).into())
}

/// Where the digits end, with single marks between them.
fn end(text: &str) -> usize {
    let mut end = 0;
    let mut after_mark = false;
    for (at, c) in text.char_indices() {
        match c {
            '0'..='9' => {
                end = at + 1;
                after_mark = false;
            }
            '.' | ',' | '\'' | '\u{2019}' if !after_mark => after_mark = true,
            ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}'
                if !after_mark && is_group(&text[at + c.len_utf8()..]) =>
            {
                after_mark = true;
            }
            _ => break,
        }
    }
    end
}

/// Whether exactly three digits come first: `12 345`, but not `3 of 10`.
fn is_group(text: &str) -> bool {
    text.bytes().take_while(u8::is_ascii_digit).count() == 3
}

fn decimal_mark(written: &str) -> Option<usize> {
    let last = written.rfind(['.', ','])?;
    let mark = &written[last..=last];
    if written.matches(mark).count() > 1 {
        return None;
    }
    let has_both =
        written[..last].contains(['.', ',', '\'', '\u{2019}', ' ', '\u{a0}', '\u{2009}', '\u{202f}']);
    let before = written[..last].bytes().filter(u8::is_ascii_digit).count();
    let is_group = written.len() - last - 1 == 3 && before <= 3 && !written.starts_with('0');
    (has_both || !is_group).then_some(last)
}

fn is_minus(before: &str) -> bool {
    let rest = before.strip_suffix(['-', '\u{2212}']);
    rest.is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_meant() {
        for (text, number) in [
            ("1,234.50 €", json!(1234.5)),
            ("1.234,50", json!(1234.5)),
            ("1 234,5", json!(1234.5)),
            ("1\u{202f}234\u{a0}567", json!(1_234_567)),
            ("1'234.500", json!(1234.5)),
            ("1,234,567", json!(1_234_567)),
            ("1,234", json!(1234)),
            ("1.234", json!(1234)),
            ("1,234.500", json!(1234.5)),
            ("12345.678", json!(12345.678)),
            ("0.125", json!(0.125)),
            ("1.25", json!(1.25)),
            ("$ 3", json!(3)),
            ("-5 °C", json!(-5)),
            ("\u{2212}0,5", json!(-0.5)),
            (".5", json!(0.5)),
            ("-.5", json!(-0.5)),
            ("10-20", json!(10)),
            ("A-20", json!(20)),
            ("3 of 10", json!(3)),
            ("No. 7.", json!(7)),
            ("1..2", json!(1)),
            ("99.9%", json!(99.9)),
        ] {
            assert_eq!(parse(text), Some(number), "{text}");
        }
        for text in ["", "none", "-", ".", &"1".repeat(70)] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_exact() {
        assert_eq!(whole(&json!(3.0)), Some(json!(3)));
        assert_eq!(whole(&json!(u64::MAX)), Some(json!(u64::MAX)));
        assert_eq!(whole(&json!(3.5)), None);
        assert_eq!(whole(&json!(1e300)), None);
        assert_eq!(plain("1e3"), Some(json!(1000.0)));
        assert_eq!(plain("inf"), None);
        assert_eq!(plain("1e999"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-.,' 0-9a\u{a0}\u{2212}]{0,20}") {
            let _ = parse(&text);
        }
    }
}

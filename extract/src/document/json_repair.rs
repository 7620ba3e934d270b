//! Repairs small mistakes in JSON: one value is lost or read as a text, instead of the whole page.

use std::iter::Peekable;
use std::str::CharIndices;

/// Returns `text` without the mistakes that programs and people make:
///
/// - escapes that stand for no character, such as half of a surrogate pair, are U+FFFD, a raw line break or tab in a
///   text is a space, and several line breaks are an empty line;
/// - a number that no 64 bits hold is a text of its digits, and NaN, Infinity, undefined and a missing value are null;
/// - comments, the marks of CDATA, a comma too many, and what is before and after the value in scripts are left out,
///   and white space is that of JSON.
///
/// Other mistakes are kept. Takes time proportional to the text.
pub(crate) fn repair(text: &str) -> String {
    let text = without_prefix(text);
    let mut repair = Repair {
        text,
        rest: text.char_indices().peekable(),
        out: String::with_capacity(text.len()),
        depth: 0,
        comma: false,
        last: '\0',
    };
    repair.run();
    repair.out
}

/// Markup and comments within scripts that hide their content from old parsers.
const MARKS: &[&str] = &["<![CDATA[", "]]>", "<!--", "-->"];

/// Maximum length in bytes of a comment of HTML that is left out whole: each mark is searched for its end.
const MAX_COMMENT: usize = 256;

/// Statements before JSON that keep other sites from running it as a script.
const PREFIXES: &[&str] = &[")]}'", "while(1);", "for(;;);", "{}&&"];

fn without_prefix(text: &str) -> &str {
    let text = text.trim_start();
    let rest = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix));
    rest.map_or(text, |rest| rest.trim_start_matches([',', '\r', '\n']))
}

struct Repair<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    out: String,
    /// The number of open lists and objects.
    depth: usize,
    /// Whether a comma was read and is not written yet.
    comma: bool,
    /// The end of the last token that was written.
    last: char,
}

impl Repair<'_> {
    fn run(&mut self) {
        while let Some((at, c)) = self.rest.next() {
            match c {
                ' ' | '\t' | '\n' | '\r' => self.out.push(c),
                _ if is_blank(c) => self.out.push(' '),
                '"' => self.string(),
                ',' => {
                    self.fill();
                    self.comma = true;
                }
                '[' | '{' => {
                    self.write(c);
                    self.depth += 1;
                }
                ']' | '}' => {
                    let is_stray = self.depth == 0;
                    self.fill();
                    self.comma = false;
                    self.write(c);
                    self.depth = self.depth.saturating_sub(1);
                    // One that closes nothing is no end of a value, and nothing after it is read.
                    if is_stray || self.depth == 0 && self.ends() {
                        return;
                    }
                }
                _ if self.skip_comment(at) => {}
                '-' | '+' | '.' | '0'..='9' | 'a'..='z' | 'A'..='Z' => self.word(at),
                _ => self.write(c),
            }
        }
    }

    /// Writes a character, preceded by the pending comma.
    fn write(&mut self, c: char) {
        self.separate();
        self.out.push(c);
        self.last = c;
    }

    /// Writes the comma before a value, unless that is the first.
    fn separate(&mut self) {
        if std::mem::take(&mut self.comma) && !matches!(self.last, '[' | '{') {
            self.out.push(',');
        }
    }

    /// Writes the value that is missing after a name.
    fn fill(&mut self) {
        if self.last == ':' {
            self.out.push_str("null");
            self.last = 'l';
        }
    }

    /// Whether only the end of a statement, brackets or comments follow.
    fn ends(&self) -> bool {
        let mut rest = self.rest.clone();
        let Some((at, _)) = rest.next() else { return true };
        let mut rest = self.text[at..].trim_start_matches(is_blank);
        while !rest.is_empty() {
            let shorter = after_comment(rest).or_else(|| rest.strip_prefix([';', '}', ']', ')', '\0']));
            let Some(shorter) = shorter else { return false };
            rest = shorter.trim_start_matches(is_blank);
        }
        true
    }

    /// Skips a comment or a mark that begins at `at`. Returns whether there was one.
    fn skip_comment(&mut self, at: usize) -> bool {
        let Some(rest) = after_comment(&self.text[at..]) else { return false };
        let end = self.text.len() - rest.len();
        while self.rest.next_if(|(at, _)| *at < end).is_some() {}
        self.out.push(' ');
        true
    }

    fn string(&mut self) {
        self.write('"');
        while let Some((_, c)) = self.rest.next() {
            match c {
                '"' => {
                    self.out.push('"');
                    return;
                }
                '\\' => self.escape(),
                '\r' | '\n' => self.line_breaks(c),
                _ => self.literal(c),
            }
        }
    }

    /// Writes the raw line breaks of a text, of which `first` is the first character.
    fn line_breaks(&mut self, first: char) {
        let mut count = 0;
        let mut next = Some(first);
        while let Some(c) = next {
            count += 1;
            if c == '\r' {
                self.rest.next_if(|(_, next)| *next == '\n');
            }
            next = self.rest.next_if(|(_, next)| matches!(next, '\r' | '\n')).map(|(_, next)| next);
        }
        self.out.push_str(if count > 1 { "\\n\\n" } else { " " });
    }

    /// Writes a character of a text that stands for itself.
    fn literal(&mut self, c: char) {
        match c {
            '\t' => self.out.push(' '),
            _ if c.is_ascii_control() => self.out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => self.out.push(c),
        }
    }

    fn escape(&mut self) {
        match self.rest.next() {
            Some((at, 'u')) => match self.unit(at + 1) {
                Some(high @ 0xD800..0xDC00) => self.low_surrogate(at, high),
                Some(0xDC00..0xE000) | None => self.out.push('\u{fffd}'),
                Some(unit) => self.out.push_str(&format!("\\u{unit:04x}")),
            },
            Some((_, c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't'))) => {
                self.out.push('\\');
                self.out.push(c);
            }
            // As in scripts: a backslash before a line break continues the line, and any other escaped character stands
            // for itself.
            Some((_, '\n' | '\r')) | None => {}
            Some((_, c)) => self.literal(c),
        }
    }

    fn skip(&mut self, count: usize) {
        self.rest.by_ref().take(count).for_each(|_| ());
    }

    /// Parses four hexadecimal digits at `at`.
    fn unit(&mut self, at: usize) -> Option<u32> {
        let digits =
            self.text.get(at..at + 4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.skip(4);
        u32::from_str_radix(digits, 16).ok()
    }

    /// Parses the second half of a pair after the `u` of the first at `at`.
    fn low_surrogate(&mut self, at: usize, high: u32) {
        let next = at + 5;
        let low = self.text.get(next..next + 6).and_then(|next| next.strip_prefix("\\u"));
        match low.and_then(|low| u32::from_str_radix(low, 16).ok()) {
            Some(low @ 0xDC00..0xE000) => {
                self.skip(6);
                self.out.push_str(&format!("\\u{high:04x}\\u{low:04x}"));
            }
            _ => self.out.push('\u{fffd}'),
        }
    }

    /// Parses a number or a name.
    fn word(&mut self, start: usize) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_');
        while self.rest.next_if(|(_, c)| is_part(*c)).is_some() {}
        let end = self.rest.peek().map_or(self.text.len(), |(at, _)| *at);
        let word = &self.text[start..end];
        self.separate();
        self.last = 'w';
        match word.trim_start_matches(['+', '-']) {
            "NaN" | "nan" | "Infinity" | "inf" | "undefined" | "None" => self.out.push_str("null"),
            "True" => self.out.push_str("true"),
            "False" => self.out.push_str("false"),
            _ => self.number(word),
        }
    }

    fn number(&mut self, word: &str) {
        let plain = word.strip_prefix('+').unwrap_or(word);
        let is_number = plain.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.'));
        let float = plain.parse::<f64>().ok().filter(|_| is_number);
        let is_whole = !plain.contains(['.', 'e', 'E']);
        let digits = plain.strip_prefix('-').unwrap_or(plain);
        let has_leading_zero =
            digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit());
        let fits = plain.parse::<i64>().is_ok() || plain.parse::<u64>().is_ok();
        match float {
            Some(float) if !float.is_finite() || has_leading_zero || is_whole && !fits => {
                self.out.push_str(&format!("\"{plain}\""));
            }
            Some(_) if is_whole || serde_json::from_str::<f64>(plain).is_ok() => self.out.push_str(plain),
            Some(float) => self.out.push_str(&format!("{float:?}")),
            None => self.out.push_str(word),
        }
    }
}

/// Whether a character is white space, of JSON or of another kind, or has no width.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}')
}

/// Returns what follows a comment or a mark that `text` begins with. A mark behind `//` does not end with the line. A
/// comment of HTML is left out whole where something else follows it, as in `<!-- a product --> {`; one that hides a
/// value from old parsers is a mark.
fn after_comment(text: &str) -> Option<&str> {
    let comment = text.strip_prefix("<!--").unwrap_or_default();
    let end = comment.as_bytes().windows(3).take(MAX_COMMENT).position(|end| end == b"-->");
    if let Some((comment, rest)) = end.map(|end| comment.split_at(end))
        && !comment.contains(['{', '['])
    {
        let rest = &rest[3..];
        if !rest.trim_start_matches(is_blank).is_empty() {
            return Some(rest);
        }
    }
    let after_mark = |text: &'_ str| MARKS.iter().find_map(|mark| text.strip_prefix(mark)).map(str::len);
    if let Some(comment) = text.strip_prefix("/*") {
        return Some(comment.split_once("*/").map_or("", |(_, rest)| rest));
    }
    if let Some(line) = text.strip_prefix("//") {
        let mark = line.trim_start_matches([' ', '\t']);
        return Some(match after_mark(mark) {
            Some(left) => &mark[mark.len() - left..],
            None => line.find('\n').map_or("", |end| &line[end..]),
        });
    }
    after_mark(text).map(|left| &text[text.len() - left..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn one_wrong_value_costs_no_other() {
        for (text, value) in [
            (r#"{"id": 1, "a": "cut \ud83d"}"#, json!({"id": 1, "a": "cut \u{fffd}"})),
            (
                r#"["\udc00x", "\ud83d\ude00", "\ud83dx", "\ud83d\u0041"]"#,
                json!(["\u{fffd}x", "😀", "\u{fffd}x", "\u{fffd}A"]),
            ),
            (r#"["\u12", "\x41", "it\'s", "\n"]"#, json!(["\u{fffd}12", "x41", "it's", "\n"])),
            (
                "[\"two\nlines\", \"two\r\nlines\", \"a\tb\", \"a\u{1}b\"]",
                json!(["two lines", "two lines", "a b", "a\u{1}b"]),
            ),
            (
                "[NaN, Infinity, -Infinity, undefined, None, True, False, nan, inf, -nan]",
                json!([null, null, null, null, null, true, false, null, null, null]),
            ),
            ("{\"price\": , \"a\": [,1], \"b\": }", json!({"price": null, "a": [1], "b": null})),
            ("[\"one\n\ntwo\", \"one\r\n\r\ntwo\", \"a\\\tb\"]", json!(["one\n\ntwo", "one\n\ntwo", "a b"])),
            ("\u{feff}[1,\u{a0}2,\u{200b}{\u{feff}\"a\":\u{a0}1}]", json!([1, 2, {"a": 1}])),
            (
                "[1e400, -1e400, 99999999999999999999, 007, +1, .5, 1., -.5, 1e2, 0E0]",
                json!(["1e400", "-1e400", "99999999999999999999", "007", 1, 0.5, 1.0, -0.5, 1e2, 0.0]),
            ),
        ] {
            assert_eq!(serde_json::from_str::<Value>(&repair(text)).ok(), Some(value), "{text}");
        }
    }

    #[test]
    fn what_scripts_have_around_and_in_it_is_left_out() {
        for text in [
            r#"{"a": [1, "//x"]};"#,
            r#"{"a": [1, "//x"],}"#,
            r#"{"a": [1, , "//x",],}"#,
            "// <![CDATA[\n{\"a\": [1, \"//x\"]}\n// ]]>",
            r#"//<![CDATA[{"a": [1, "//x"]}//]]>"#,
            r#"/* <![CDATA[ */ {"a": [1, "//x"]} /* ]]> */"#,
            r#"<!-- {"a": [1, "//x"]} -->"#,
            "<!-- what it's about -->\n{\"a\": [1, \"//x\"]}",
            "{\"a\": <!-- \"the\" --> [1, \"//x\"]}",
            "{\"a\": [1, // one\n /* two, */ \"//x\"]} // end",
            r#"{"a": [1, "//x"]}}"#,
            "{\"a\": [1, \"//x\"]}\0",
            "{\"a\": [1, \"//x\"]}\u{200b};\u{feff}",
            ")]}',\n{\"a\": [1, \"//x\"]}",
            r#"for(;;);{"a": [1, "//x"]}"#,
        ] {
            assert_eq!(
                serde_json::from_str::<Value>(&repair(text)).ok(),
                Some(json!({"a": [1, "//x"]})),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_small_mistake_stays_wrong() {
        for text in [
            "]]]]x",
            "[1]]x",
            "{",
            "{\"a\": 1",
            "{\"a\": \"b}",
            "{\"a\": 1} {\"b\": 2}",
            "{a: 1}",
            "{\"a\": x}",
            "",
            "[1 2]",
        ] {
            assert!(serde_json::from_str::<Value>(&repair(text)).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn sound_json_stays_as_it_is(text in r#"[-.\[\]{}:,"\\ua0-9eE+ \n/*<!]{0,40}"#) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                // Numbers that do not fit in 64 bits are meant to change.
                if !text.as_bytes().windows(19).any(|digits| digits.iter().all(u8::is_ascii_digit)) {
                    prop_assert_eq!(serde_json::from_str::<Value>(&repair(&text)).unwrap(), value);
                }
            } else {
                let _ = repair(&text);
            }
        }
    }
}

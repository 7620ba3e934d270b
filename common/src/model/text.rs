//! Making foreign text safe to log, to store and to show.
//!
//! Text from a server or a page may have escape sequences for a terminal, characters that turn the reading
//! direction or are invisible, or megabytes. Text for people ([`printable`]) loses all of that. Data ([`legible`])
//! keeps every character that text can have a use for, such as the joiners of Persian and of emoji, and loses only
//! control characters; when data is shown as JSON, [`escape_json`] escapes the characters that [`printable`]
//! drops.

use std::fmt::Write;

/// Returns the start of `text`, of at most `max` bytes, cut at a character boundary.
pub fn start_of(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

/// Returns `text` on one line, with control characters and invisible ones replaced by spaces, cut to at most `max`
/// bytes at a character boundary.
pub fn printable(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    for c in text.chars() {
        let c = if is_harmful(c) { ' ' } else { c };
        if out.len() + c.len_utf8() > max {
            break;
        }
        out.push(c);
    }
    out
}

/// Returns `text` without control characters, with every run of white space folded to one space and trimmed, cut
/// to at most `max` bytes at a character boundary.
pub fn legible(text: &str, max: usize) -> String {
    if text.len() <= max && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(max));
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() {
            gap = !out.is_empty();
        } else if !c.is_control() {
            if out.len() + usize::from(gap) + c.len_utf8() > max {
                break;
            }
            if std::mem::take(&mut gap) {
                out.push(' ');
            }
            out.push(c);
        }
    }
    out
}

/// Returns `text` with stars in place of user and password in each URL in it, valid or not.
pub fn without_credentials(text: &str) -> String {
    let is_end = |c: char| matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>') || c.is_whitespace();
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(is_end) {
        match part.rsplit_once('@') {
            Some((secret, rest)) => {
                out.extend(secret.chars().map(|_| '*'));
                out.push('@');
                out.push_str(rest);
            }
            None => out.push_str(part),
        }
    }
    out
}

/// Returns a line of JSON with everything that could harm a reader as an escape sequence; for a program it is the
/// same JSON.
pub fn escape_json(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if is_harmful(c) {
            // On a line of JSON these can only be in strings.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns whether `c` affects a terminal or a reader instead of being visible: control characters, line
/// separators, direction marks and overrides, zero-width characters, and tags.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Formats a number with separators: `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with its noun, which is given in the singular: `1 task`, `1,234 tasks`.
pub fn counted(number: u64, what: &str) -> String {
    let plural = match what.strip_suffix('y') {
        _ if number == 1 => what.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ => format!("{what}s"),
    };
    format!("{} {plural}", count(number))
}

/// Returns an error with its causes, outermost first. A cause that the text so far already has is left out.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut all = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !all.contains(&text) {
            all = format!("{all}: {text}");
        }
        cause = error.source();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each kind.
    const HARMFUL: &str = "\0\u{7}\u{1b}\n\u{7f}\u{85}\u{9b}\u{ad}\u{61c}\u{200b}\u{200d}\u{200f}\u{2028}\u{2029}\
        \u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{feff}\u{fff9}\u{e0041}";

    #[test]
    fn numbers_have_separators_and_their_nouns_the_right_form() {
        let shown = [0, 999, 1_000, 1_234_567].map(count);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        let shown = [0, 1, 2_000].map(|number| counted(number, "URL"));
        assert_eq!(shown, ["0 URLs", "1 URL", "2,000 URLs"]);
        assert_eq!(
            (counted(1, "entry"), counted(2, "entry")),
            ("1 entry".to_owned(), "2 entries".to_owned())
        );
    }

    #[test]
    fn the_start_of_a_text_has_no_half_character() {
        let starts = [0, 1, 2, 5, 6, usize::MAX].map(|max| start_of("äöü", max));
        assert_eq!(starts, ["", "", "ä", "äö", "äöü", "äöü"]);
    }

    #[test]
    fn printable_text_has_no_escape_sequences_and_no_half_character() {
        assert_eq!(printable("a\u{1b}[31mb\nc", 99), "a [31mb c");
        assert_eq!(printable("äöü", 3), "ä");
        assert_eq!(printable("x\u{202e}y", 99), "x y");
        assert_eq!(printable(HARMFUL, 99).trim(), "");
    }

    #[test]
    fn legible_text_has_single_spaces_and_no_control_characters() {
        for (text, legible_text) in [
            ("  a \n\t b  ", "a b"),
            (" a\u{0}b \u{7f} \u{1b}[1m\r\n c\u{85}d\u{2028}e ", "ab [1m c d e"),
            ("\u{7}\u{0}", ""),
            ("می\u{200c}خواهم 👩\u{200d}🚀", "می\u{200c}خواهم 👩\u{200d}🚀"),
        ] {
            assert_eq!(legible(text, 99), legible_text);
        }
    }

    #[test]
    fn legible_text_is_cut_between_characters_and_ends_in_none_that_is_white() {
        for (max, cut) in [(0, ""), (1, "a"), (2, "a"), (3, "a"), (4, "a ö"), (5, "a öb")] {
            assert_eq!(legible("a öb", max), cut, "{max}");
        }
    }

    #[test]
    fn user_and_password_of_a_url_are_stars_and_all_else_stays() {
        for (text, shown) in [
            ("http://user:s3cret@example.com/a?b#c", "http://***********@example.com/a?b#c"),
            ("http://token@example.com", "http://*****@example.com"),
            ("user:p@ss@host", "*********@host"),
            ("https://example.com/@user/x@y", "https://example.com/@user/*@y"),
            ("url = \"amqp://ü:x@host/\" # a@b", "url = \"amqp://***@host/\" # *@b"),
            ("no URL", "no URL"),
            ("", ""),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
    }

    #[test]
    fn json_is_the_same_to_a_program_and_harmless_to_a_reader() {
        let value = serde_json::json!({ HARMFUL: [HARMFUL, "größe \"x\" \\ 👩"] });
        let text = escape_json(&value.to_string());
        assert!(!text.contains(is_harmful), "{text:?}");
        assert!(
            text.contains(r#""größe \"x\" \\ 👩""#)
                && text.contains(r"\u202e")
                && text.contains(r"\udb40\udc41")
        );
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}

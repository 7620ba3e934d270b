//! A recipe as shown on pages: it may contain anything, and have any length.

use trawl_common::text::{is_harmful, printable, start_of};

use crate::shown::Bytes;

/// Maximum length shown, in bytes.
const MAX_SHOWN_BYTES: usize = 64 * 1024;
/// The indentation of JSON on several lines.
const STEP: &str = "  ";

/// A recipe, cut if it is too long.
pub(crate) struct Shown {
    pub(crate) text: String,
    /// Whether it is JSON, which is shown on several lines.
    pub(crate) is_json: bool,
    /// The number of bytes not shown.
    pub(crate) left_out: Bytes,
    /// Whether it has invisible characters, which are replaced by spaces.
    pub(crate) has_unseen: bool,
}

impl Shown {
    pub(crate) fn from_recipe(recipe: &str) -> Self {
        let is_json = recipe.trim_start().starts_with(['{', '['])
            && serde_json::from_str::<serde::de::IgnoredAny>(recipe).is_ok();
        let start = start_of(recipe, MAX_SHOWN_BYTES);
        let (text, end) = if is_json { set_in(start) } else { (start.to_owned(), start.len()) };
        let lines: Vec<String> = text.split('\n').map(|line| printable(line, usize::MAX)).collect();
        let is_unseen = |c: char| is_harmful(c) && !matches!(c, '\n' | '\r' | '\t');
        Self {
            text: lines.join("\n"),
            is_json,
            left_out: Bytes((recipe.len() - end) as u64),
            has_unseen: recipe[..end].contains(is_unseen),
        }
    }
}

/// Returns JSON on several lines, and the number of bytes of the original in it. Only white space changes:
/// neither long numbers nor the order of keys do.
fn set_in(json: &str) -> (String, usize) {
    let (mut out, mut depth, mut in_text, mut is_escaped) = (String::new(), 0_usize, false, false);
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        (0..depth.min(32)).for_each(|_| out.push_str(STEP));
    };
    let mut chars = json.chars().peekable();
    let mut read = 0;
    while let Some(c) = chars.next() {
        // Indented lines may be many times as long as their text.
        if out.len() > 2 * MAX_SHOWN_BYTES {
            break;
        }
        read += c.len_utf8();
        if in_text {
            out.push(c);
            in_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {
                    read += 1;
                }
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    read += 1;
                    out.push(end);
                    continue;
                }
                depth += 1;
                new_line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            white if white.is_ascii_whitespace() => {}
            other => {
                out.push(other);
                in_text = other == '"';
            }
        }
    }
    (out, read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stands_on_several_lines_and_says_what_it_said() {
        let recipe = r#" {"id":12345678901234567890123,"a\"{":[],"b":[1, {"c": "x, y: z"}],"b":{ } }"#;
        let shown = Shown::from_recipe(recipe);
        assert!(shown.is_json);
        let expected = "{\n  \"id\": 12345678901234567890123,\n  \"a\\\"{\": [],\n  \"b\": [\n    1,\n    {\n      \"c\": \"x, y: z\"\n    }\n  ],\n  \"b\": {}\n}";
        assert_eq!(shown.text, expected);
    }

    #[test]
    fn what_is_no_json_stands_as_it_is_without_what_is_not_seen() {
        let shown = Shown::from_recipe("line one\r\n<b>\u{202e}two\u{1b}[31m\n\0");
        assert_eq!(
            (&*shown.text, shown.is_json, shown.has_unseen),
            ("line one \n<b> two [31m\n ", false, true)
        );
        assert!(!Shown::from_recipe(&"[".repeat(500_000)).is_json);
        let deep = Shown::from_recipe(&("[".repeat(10_000) + &"]".repeat(10_000)));
        assert!(deep.is_json && deep.text.len() < 3 * MAX_SHOWN_BYTES, "{}", deep.text.len());
    }

    #[test]
    fn of_a_megabyte_the_start_is_shown_and_said_how_much_is_not() {
        let shown = Shown::from_recipe(&"ä".repeat(512 * 1024));
        assert_eq!(
            (shown.text.len(), shown.left_out),
            (MAX_SHOWN_BYTES, Bytes(1024 * 1024 - MAX_SHOWN_BYTES as u64))
        );
        assert!(!shown.has_unseen);
        for depth in [1, 100] {
            let list = format!("{}{}1{}", "[".repeat(depth), "1,".repeat(500_000), "]".repeat(depth));
            let shown = Shown::from_recipe(&list);
            assert!(shown.is_json && shown.text.len() < 3 * MAX_SHOWN_BYTES, "{}", shown.text.len());
            assert!(shown.left_out.0 > 900_000);
        }
    }
}

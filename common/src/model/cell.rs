//! Values as cells of comma-separated files that a spreadsheet may open.

use std::borrow::Cow;

use serde_json::Value;

/// Returns a value as a cell: lists and objects as JSON. A spreadsheet must not run any of it, so an apostrophe is
/// put before each text that it would take for a formula.
pub fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => text_cell(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Returns a text as a cell, like [`cell`]: the name of a column may be a stranger's, too.
pub fn text_cell(text: &str) -> Cow<'_, str> {
    let begins = |at: &usize| is_formula(&text[*at..]) || *at == 0 && text.starts_with(['\t', '\r']);
    let starts: Vec<usize> = starts(text).filter(begins).collect();
    if starts.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + starts.len());
    let mut done = 0;
    for at in starts {
        out.push_str(&text[done..at]);
        out.push('\'');
        done = at;
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Returns the positions where a cell may begin: the start of the text, and the positions after separators of
/// cells or lines other than commas, as used in countries with decimal commas, and after quotes there.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    let behind = text.match_indices([';', '\t', '\r', '\n']).map(|(at, _)| at + 1);
    let behind = behind.map(|at| at + text[at..].len() - text[at..].trim_start_matches('"').len());
    std::iter::once(0).chain(behind)
}

/// Returns whether a spreadsheet may take a text for a formula; a plain number is none. Full-width signs count
/// like others.
fn is_formula(text: &str) -> bool {
    if !text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        return false;
    }
    let until = text.find([';', '\t', '\r', '\n', '"']).unwrap_or(text.len());
    let plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let number = &text[..until];
    !(number.bytes().all(plain) && number.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_text_and_numbers_stay_numbers() {
        for formula in [
            "=1+1",
            "+cmd|' /C calc'!A0",
            "-2+3",
            "@SUM(A1)",
            "\t1",
            "\r1",
            "-inf",
            "-",
            "+1-1",
            "＝1+1",
            "＋x",
            "－x",
            "＠x",
        ] {
            assert_eq!(cell(&formula.into()), format!("'{formula}"));
        }
        for plain in ["-1", "+49", "-1.5", "-1e-7", "a=b", "", " =1", "5-3", "'=1", "a;b", "-1;-2"] {
            assert_eq!(cell(&plain.into()), plain);
        }
        assert_eq!(cell(&serde_json::json!(-1.5)), "-1.5");
        assert_eq!(cell(&Value::Null), "");
        assert_eq!(cell(&serde_json::json!(["=1"])), "[\"=1\"]");
    }

    #[test]
    fn nor_does_it_run_what_follows_a_separator_of_another_language() {
        for (text, safe) in [
            ("a;=1", "a;'=1"),
            ("a;\"=1\"", "a;\"'=1\""),
            ("a\t+x\n@b\r\n=c", "a\t'+x\n'@b\r\n'=c"),
            ("a;\tb\r\nc", "a;\tb\r\nc"),
            ("=a;=b", "'=a;'=b"),
            ("ä;＝1;-5;x", "ä;'＝1;-5;x"),
        ] {
            assert_eq!(cell(&text.into()), safe);
        }
    }
}

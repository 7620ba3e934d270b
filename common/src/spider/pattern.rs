//! What is wrong with a regular expression.

/// In one line: the error draws the expression with a caret, and its last line says why.
pub fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

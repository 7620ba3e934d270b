//! Making foreign text safe to log, to store and to show.

/// `text` on one line without control characters, cut to at most `max` bytes at a character's border.
///
/// What a server or a page sends may hold escape sequences for a terminal, or megabytes.
pub fn printable(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    for c in text.chars() {
        let c = if c.is_control() || is_bidi_control(c) { ' ' } else { c };
        if out.len() + c.len_utf8() > max {
            break;
        }
        out.push(c);
    }
    out
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` with every run of white space folded to one space, and none at its ends.
pub fn squeeze(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_text_has_no_escape_sequences_and_no_half_character() {
        assert_eq!(printable("a\u{1b}[31mb\nc", 99), "a [31mb c");
        assert_eq!(printable("äöü", 3), "ä");
        assert_eq!(printable("x\u{202e}y", 99), "x y");
    }

    #[test]
    fn squeezed_text_has_single_spaces() {
        assert_eq!(squeeze("  a \n\t b  "), "a b");
    }
}

//! Pages that have next to no text before their scripts have run.

/// Maximum number of bytes of text, without white space, of a page that is a shell.
const MAX_TEXT: usize = 200;

/// Elements whose content is not shown.
const NOT_SHOWN: [&[u8]; 5] = [b"script", b"style", b"noscript", b"template", b"title"];

/// Whether a document has scripts, and hardly any text: they make the page.
pub(crate) fn is_shell(document: &[u8]) -> bool {
    let (mut rest, mut text, mut has_script) = (document, 0, false);
    while text <= MAX_TEXT {
        let tag = position(rest, b"<").unwrap_or(rest.len());
        text += rest[..tag].iter().filter(|byte| !byte.is_ascii_whitespace()).count();
        let Some(after) = rest.get(tag + 1..) else { return has_script && text <= MAX_TEXT };
        let name = after.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(after.len());
        let hidden = NOT_SHOWN.iter().find(|hidden| hidden.eq_ignore_ascii_case(&after[..name]));
        has_script |= hidden.is_some_and(|hidden| *hidden == b"script");
        let end = match hidden {
            Some(hidden) => position(after, &[b"</", *hidden].concat()).map(|end| end + 2),
            None => position(after, b">").map(|end| end + 1),
        };
        rest = end.and_then(|end| after.get(end..)).unwrap_or_default();
    }
    false
}

/// Returns the position of the first `wanted`, whatever its case.
fn position(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_scripts_make_is_a_shell_and_one_with_text_is_none() {
        let long = "word ".repeat(MAX_TEXT);
        for (document, is) in [
            ("<title>Shop</title><div id=app></div><script src=/app.js></script>".to_owned(), true),
            (format!("<SCRIPT>{long}</SCRIPT><noscript>{long}</noscript><p>Loading"), true),
            (format!("<script></script><p>{long}"), false),
            (format!("<p>{long}</p><script></script>"), false),
            ("<p>Nothing to see".to_owned(), false),
            ("<script".to_owned(), true),
            (String::new(), false),
        ] {
            assert_eq!(is_shell(document.as_bytes()), is, "{document}");
        }
    }
}

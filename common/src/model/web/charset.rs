//! The charset of a body: shared rules for pages, JSON and sources, which apply them in different order.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Returns the encoding that the first bytes prove, with the length of the byte order mark: by that mark, or by `<`,
/// `{` or `[` in UTF-16.
pub fn proven(body: &[u8]) -> Option<(&'static Encoding, usize)> {
    let by_first = match body {
        [b'<' | b'{' | b'[', 0, ..] => Some(UTF_16LE),
        [0, b'<' | b'{' | b'[', ..] => Some(UTF_16BE),
        _ => None,
    };
    Encoding::for_bom(body).or_else(|| Some((by_first?, 0)))
}

/// Returns the encoding that `text/html; charset=...` names, however it is quoted and separated.
pub fn from_content_type(content_type: &str) -> Option<&'static Encoding> {
    from_assignment(content_type.as_bytes(), b"charset", true)
}

/// Returns the encoding in the `content` of a `<meta>`, which need not be a content type (HTML standard, 2.4.4).
pub fn from_meta_content(content: &[u8]) -> Option<&'static Encoding> {
    from_assignment(content, b"charset", false).map(of_ascii_text)
}

/// Returns the encoding of a label within the text itself, as in `<meta charset>`.
pub fn from_label(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(label).map(of_ascii_text)
}

/// Returns the encoding of an XML declaration at the beginning of `start`.
pub fn from_xml_declaration(start: &[u8]) -> Option<&'static Encoding> {
    let declaration = start.trim_ascii_start().strip_prefix(b"<?xml")?;
    declaration.first().filter(|byte| byte.is_ascii_whitespace())?;
    let end = declaration.iter().position(|byte| *byte == b'>')?;
    from_assignment(&declaration[..end], b"encoding", false).map(of_ascii_text)
}

/// Returns the most likely encoding of a body that does not declare one. UTF-8 with few invalid bytes counts as UTF-8.
pub fn guess(body: &[u8]) -> &'static Encoding {
    if is_nearly_utf_8(body) {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(body, true);
    detector.guess(None, Utf8Detection::Allow)
}

/// Whether `start` shows that a text is UTF-8: it has whole characters beyond ASCII, and is valid up to its end, which
/// may be cut.
pub fn shows_utf_8(start: &[u8]) -> bool {
    let valid = match std::str::from_utf8(start) {
        Ok(text) => text.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return false,
    };
    !start[..valid].is_ascii()
}

/// Corrects the declared encoding of a text whose tags can be read as ASCII: it is not UTF-16, whatever it declares.
fn of_ascii_text(named: &'static Encoding) -> &'static Encoding {
    match named {
        _ if named == UTF_16LE || named == UTF_16BE => UTF_8,
        _ if named == X_USER_DEFINED => WINDOWS_1252,
        _ => named,
    }
}

/// Returns the encoding in the first `name = label` of `text` that has a label. If `is_lenient`, a quote that is not
/// closed extends to the end.
fn from_assignment(text: &[u8], name: &[u8], is_lenient: bool) -> Option<&'static Encoding> {
    let is_name = |window: &[u8]| window.eq_ignore_ascii_case(name);
    let starts = text.windows(name.len()).enumerate().filter(|(_, window)| is_name(window));
    let label = starts
        .filter_map(|(at, _)| text[at + name.len()..].trim_ascii_start().strip_prefix(b"="))
        .next()?
        .trim_ascii_start();
    let until = |label: &[u8], is_end: &dyn Fn(u8) -> bool| label.iter().position(|&byte| is_end(byte));
    let label = match label {
        [quote @ (b'"' | b'\''), label @ ..] => match until(label, &|byte| byte == *quote) {
            Some(end) => &label[..end],
            None if is_lenient => label,
            None => return None,
        },
        _ => {
            let is_end = |byte: u8| matches!(byte, b';' | b',' | b'"' | b'\'') || byte.is_ascii_whitespace();
            &label[..until(label, &is_end).unwrap_or(label.len())]
        }
    };
    Encoding::for_label(label)
}

/// Whether there are at least nine multi-byte UTF-8 characters for each invalid place.
fn is_nearly_utf_8(body: &[u8]) -> bool {
    const RIGHT_FOR_A_WRONG: usize = 9;
    let (mut right, mut wrong) = (0, 0);
    for chunk in body.utf8_chunks() {
        right += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        wrong += usize::from(!chunk.invalid().is_empty());
    }
    right >= RIGHT_FOR_A_WRONG * wrong
}

#[cfg(test)]
mod tests {
    use encoding_rs::{SHIFT_JIS, WINDOWS_1251};

    use super::*;

    #[test]
    fn a_content_type_names_its_charset_in_many_ways() {
        for content_type in [
            "text/html; charset=windows-1251",
            "text/html;CHARSET = \"cp1251\"",
            "text/html; charset='windows-1251'",
            "text/html; charset=\"windows-1251",
            "text/html charset=windows-1251",
            "text/html, charset=windows-1251, x",
            "text/html; x=y; charset=windows-1251;q",
            "charset=windows-1251",
        ] {
            assert_eq!(from_content_type(content_type), Some(WINDOWS_1251), "{content_type}");
        }
        for content_type in
            ["", "text/html", "text/html; charset", "text/html; charset=", "x; charset=nonsense"]
        {
            assert_eq!(from_content_type(content_type), None, "{content_type}");
        }
    }

    #[test]
    fn an_xml_declaration_names_its_encoding() {
        for start in ["<?xml version='1.0' encoding='Shift_JIS'?>", "\n<?xml encoding = \"sjis\" ?><x>"] {
            assert_eq!(from_xml_declaration(start.as_bytes()), Some(SHIFT_JIS), "{start}");
        }
        for start in [
            "<?xml-x encoding='sjis'?>",
            "<?xml version='1.0'?>encoding='sjis'",
            "<?xml encoding='sjis",
            "<x>",
        ] {
            assert_eq!(from_xml_declaration(start.as_bytes()), None, "{start}");
        }
        assert_eq!(from_xml_declaration(b"<?xml encoding='utf-16'?>"), Some(UTF_8));
    }

    #[test]
    fn the_first_bytes_may_prove_it() {
        for (body, proof) in [
            (&b"\xef\xbb\xbfx"[..], Some((UTF_8, 3))),
            (b"\xff\xfe<\0", Some((UTF_16LE, 2))),
            (b"<\0h\0", Some((UTF_16LE, 0))),
            (b"\0{\0\"", Some((UTF_16BE, 0))),
            (b"<html>", None),
            (b"", None),
        ] {
            assert_eq!(proven(body), proof, "{body:?}");
        }
    }

    #[test]
    fn utf_8_with_a_wrong_byte_is_utf_8_and_a_start_may_be_cut() {
        let text = "Съешь же ещё этих мягких французских булок".as_bytes();
        assert_eq!(guess(&[text, b"\xff"].concat()), UTF_8);
        assert_eq!(guess(&WINDOWS_1251.encode("Съешь же ещё этих мягких французских булок").0), WINDOWS_1251);
        assert_eq!(guess(b"caf\xe9"), WINDOWS_1252);
        assert!(shows_utf_8(&text[..text.len() - 1]) && shows_utf_8(text));
        assert!(!shows_utf_8(b"ascii") && !shows_utf_8(b"caf\xe9 ") && !shows_utf_8(b"\xe9"));
        assert!(!shows_utf_8(b"caf\xe9"), "a byte that may begin a character is none");
    }
}

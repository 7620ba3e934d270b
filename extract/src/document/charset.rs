//! Decodes bytes to text, with the precedence that browsers use.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use trawl_common::web::charset;

use crate::document::markup::{RAW_TEXT, Tag, Tags, is_one_of};

/// Number of bytes of a page that are always searched for a `<meta>`, as in the HTML standard. Beyond them only the
/// head is searched, as in browsers.
const PRESCAN: usize = 1024;

/// Returns the text of a page and its encoding: that of its byte order mark, else the charset of `content_type`, else
/// that of a `<meta>` in its head or of an XML declaration, else UTF-8 if it is valid, else that of a later `<meta>`,
/// else a guess. Invalid bytes become U+FFFD; valid UTF-8 is not copied.
pub(crate) fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> (Cow<'a, str>, &'static Encoding) {
    if let Some((encoding, mark)) = charset::proven(body) {
        return read(encoding, &body[mark..]);
    }
    let in_head = || named_by_meta(body, true).or_else(|| charset::from_xml_declaration(body));
    let declared = content_type.and_then(charset::from_content_type).or_else(in_head);
    match (declared, std::str::from_utf8(body)) {
        (Some(encoding), _) => read(encoding, body),
        (None, Ok(text)) => (Cow::Borrowed(text), UTF_8),
        (None, Err(_)) => read(named_by_meta(body, false).unwrap_or_else(|| charset::guess(body)), body),
    }
}

/// Decodes JSON as UTF-8 (RFC 8259 8.1), or, if that is invalid, in the charset of `content_type`.
pub(crate) fn decode_json<'a>(body: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    if let Some((encoding, mark)) = charset::proven(body) {
        return read(encoding, &body[mark..]).0;
    }
    let declared = || content_type.and_then(charset::from_content_type);
    match std::str::from_utf8(body) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => read(declared().unwrap_or_else(|| charset::guess(body)), body).0,
    }
}

fn read<'a>(encoding: &'static Encoding, body: &'a [u8]) -> (Cow<'a, str>, &'static Encoding) {
    (encoding.decode_without_bom_handling(body).0, encoding)
}

/// Returns the encoding of a `<meta>`, either in the head or anywhere.
fn named_by_meta(page: &[u8], in_head: bool) -> Option<&'static Encoding> {
    let mut tags = Tags::new(page);
    let mut is_after_head = false;
    while let Some(tag) = tags.next() {
        let is_late = page.len() - tags.rest().len() > PRESCAN;
        let is_of_head =
            is_one_of(tag.name, &["script", "noscript", "style", "link", "meta", "object", "title", "base"])
                || is_one_of(tag.name, &["html", "head"]) && !tag.is_end;
        is_after_head |= !is_of_head;
        if in_head && is_late && is_after_head || !tag.is_whole {
            return None;
        }
        if tag.is_end {
            continue;
        }
        if is_one_of(tag.name, RAW_TEXT) {
            tags.skip_text(tag.name);
        } else if is_one_of(tag.name, &["meta"])
            && let Some(encoding) = named_by(tag)
        {
            return Some(encoding);
        }
    }
    None
}

fn named_by(meta: Tag<'_>) -> Option<&'static Encoding> {
    let value = |wanted: &str| {
        let mut attributes = meta.attributes.clone();
        attributes.find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes())).map(|(_, value)| value)
    };
    if let Some(label) = value("charset") {
        return charset::from_label(label);
    }
    value("http-equiv").filter(|name| name.eq_ignore_ascii_case(b"content-type"))?;
    charset::from_meta_content(value("content")?)
}

#[cfg(test)]
mod tests {
    use encoding_rs::{SHIFT_JIS, WINDOWS_1251};

    use super::*;

    fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
        super::decode(body, content_type).0
    }

    #[test]
    fn valid_utf_8_is_not_copied() {
        for content_type in [None, Some("text/html"), Some("text/html; charset=utf-8")] {
            assert!(matches!(decode("<p>größe".as_bytes(), content_type), Cow::Borrowed("<p>größe")));
        }
        assert!(matches!(decode(b"\xef\xbb\xbfx", None), Cow::Borrowed("x")));
    }

    #[test]
    fn a_byte_order_mark_beats_everything() {
        let utf_16: Vec<u8> = "\u{feff}<p>ж".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&utf_16, Some("text/html; charset=iso-8859-1")), "<p>ж");
    }

    #[test]
    fn the_header_beats_the_page() {
        let page = b"<meta charset=shift_jis><p>caf\xe9";
        assert!(decode(page, Some("text/html; Charset=\"windows-1252\"")).ends_with("café"));
        assert!(decode(page, Some("text/html; charset=nonsense")).ends_with("caf\u{fffd}"));
    }

    #[test]
    fn the_page_may_name_its_encoding_in_two_ways() {
        let (japanese, ..) = SHIFT_JIS.encode("日本語");
        for meta in [
            "<meta charset=Shift_JIS>",
            "<META CharSet=' shift_jis ' />",
            "<meta name=x><meta content='text/html; charset=Shift_JIS' http-equiv=Content-Type>",
            "<meta http-equiv=content-type content='text/html charset = shift_jis; x'>",
            "<meta http-equiv=content-type content='charset charset=\"shift_jis\"'>",
            "<meta charset=nonsense><meta charset=sjis>",
            "<script>'</script><meta charset=sjis>",
        ] {
            assert!(decode(&[meta.as_bytes(), &japanese].concat(), None).ends_with("日本語"), "{meta}");
        }
    }

    #[test]
    fn encodings_that_do_not_mean_what_they_say_are_read_as_browsers_read_them() {
        for (page, content_type, text) in [
            ("<meta charset=utf-16be>\u{e9}".as_bytes(), None, "\u{e9}"),
            (b"<meta charset=x-user-defined>\xe9", None, "\u{e9}"),
            (b"<meta charset=iso-8859-1>\x93", None, "\u{201c}"),
            (b"<meta charset=utf-7>+AGE-\xc3\xa9", None, "+AGE-\u{e9}"),
            (b"+AGE-", Some("text/html; charset=utf-7"), "+AGE-"),
            (b"\x0e<b>", Some("text/html; charset=iso-2022-kr"), "\u{fffd}"),
            (b"\x1b$B$\"", Some("text/html; charset=iso-2022-jp"), "あ"),
            (b"\x1b$B$\"", None, "\x1b$B$\""),
            (b"\xff\xfea\0\x00\xd8b\0", None, "a\u{fffd}b"),
            (
                b"\xe9 <meta charset=utf-8>",
                Some("text/html; charset=nonsense"),
                "\u{fffd} <meta charset=utf-8>",
            ),
            (b"\xef\xbb\xbf\xe9", Some("text/html; charset=latin1"), "\u{fffd}"),
            (b"\xef\xbb\xbf\xef\xbb\xbfx", None, "\u{feff}x"),
        ] {
            let read = decode(page, content_type);
            assert!(read.ends_with(text), "{read:?} is not {text:?}");
        }
    }

    #[test]
    fn only_a_real_meta_counts() {
        for page in [
            "<!-- <meta charset=iso-8859-1> -->é",
            "<meta name=description content='x; charset=iso-8859-1'>é",
            "</meta charset=iso-8859-1>é",
            "<meta charset=utf-16le>é",
            "<meta http-equiv=refresh content='charset=iso-8859-1'>é",
            "<meta content='charset=iso-8859-1'>é",
            "<script>document.write('<meta charset=iso-8859-1>')</script>é",
            "<title><meta charset=iso-8859-1></title>é",
            "é<meta charset=iso-8859-1",
        ] {
            assert_eq!(decode(page.as_bytes(), None), page);
        }
    }

    #[test]
    fn a_meta_counts_as_far_as_the_head_goes() {
        let script = format!("<script>/* {:PRESCAN$} <p> */</script>", "");
        for head in [
            format!("<!doctype html><html><head>{script}<style>a > b {{}}</style><link rel=x>"),
            format!("<head><!-- {:PRESCAN$} -->", ""),
            format!("{:PRESCAN$}", ""),
            "<p>soon enough</p>".to_owned(),
        ] {
            let page = [head.as_bytes(), b"<meta charset=windows-1252><p>\x9cuf \x80"].concat();
            assert!(decode(&page, None).ends_with("œuf €"), "{head}");
        }
    }

    #[test]
    fn a_meta_in_the_body_counts_where_the_page_is_no_utf_8() {
        let late = format!("<body><p>{:PRESCAN$}</p><p></p><meta charset=windows-1251>", "");
        let page = [late.as_bytes(), b"\xd6\xe5\xed\xe0"].concat();
        assert!(decode(&page, None).ends_with("Цена"));
        let valid = late + "Цена";
        assert_eq!(decode(valid.as_bytes(), None), valid);
        let early = format!("<body><p>Цена{:PRESCAN$}<meta charset=windows-1251>", "");
        assert_eq!(decode(early.as_bytes(), None), early, "the head ended before");
    }

    #[test]
    fn an_xml_declaration_counts_after_the_header_and_a_meta() {
        let page = b"<?xml version=\"1.0\" encoding=\"windows-1251\"?><html><p>\xd6\xe5\xed\xe0";
        assert!(decode(page, None).ends_with("Цена"));
        assert!(decode(page, Some("text/html; charset=latin1")).ends_with("Öåíà"));
        let page = [&page[..], b"<meta charset=latin1>"].concat();
        assert!(decode(&page, None).contains("Öåíà"));
        let utf_16: Vec<u8> =
            "<?xml encoding='utf-16'?><p>ж".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert!(decode(&utf_16, None).ends_with("<p>ж"));
    }

    #[test]
    fn json_is_utf_8_if_it_can_be_and_else_as_its_header_says() {
        for (body, content_type, text) in [
            (&b"\"\xd6\xe5\xed\xe0\""[..], Some("application/json; charset=windows-1251"), "\"Цена\""),
            ("\"Цена\"".as_bytes(), Some("application/json; charset=windows-1251"), "\"Цена\""),
            ("\u{feff}\"Цена\"".as_bytes(), None, "\"Цена\""),
            (b"\"caf\xe9\"", None, "\"café\""),
            (b"{\0}\0", Some("application/json"), "{}"),
        ] {
            assert_eq!(decode_json(body, content_type), text);
        }
    }

    #[test]
    fn an_unnamed_encoding_is_recognised() {
        let text = "<p>Съешь же ещё этих мягких французских булок, да выпей чаю";
        let (russian, ..) = WINDOWS_1251.encode(text);
        assert_eq!(decode(&russian, Some("text/html")), text);
    }
}

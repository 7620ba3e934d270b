//! From bytes to text, by the order of precedence that browsers follow.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use crate::document::markup::{Tag, Tags, is_one_of};

/// How much of a page is searched for a `<meta>` that names its encoding, as in the HTML standard.
const PRESCAN: usize = 1024;

/// The text of `body`: by its byte order mark, else by the charset of `content_type`, else by a `<meta>`,
/// else as UTF-8 if it is valid, else by its look; and the encoding that this is. What is broken becomes U+FFFD; valid
/// UTF-8 isn't copied.
pub(crate) fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> (Cow<'a, str>, &'static Encoding) {
    let read = |encoding: &'static Encoding, body: &'a [u8]| {
        (encoding.decode_without_bom_handling(body).0, encoding)
    };
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return read(encoding, &body[mark..]);
    }
    let declared =
        content_type.and_then(of_content_type).or_else(|| of_meta(&body[..body.len().min(PRESCAN)]));
    match (declared, std::str::from_utf8(body)) {
        (Some(encoding), _) => read(encoding, body),
        (None, Ok(text)) => (Cow::Borrowed(text), UTF_8),
        (None, Err(_)) => read(detect(body), body),
    }
}

/// The encoding that `text/html; charset=...` names.
fn of_content_type(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, label) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes())
}

/// The encoding that a `<meta>` in `start` names; one that is cut off may have named another.
fn of_meta(start: &[u8]) -> Option<&'static Encoding> {
    let is_meta = |tag: &Tag<'_>| !tag.is_end && tag.is_whole && is_one_of(tag.name, &["meta"]);
    let encoding = Tags::new(start).filter(is_meta).find_map(named_by)?;
    Some(match encoding {
        // A page whose tags can be read as ASCII is not UTF-16.
        _ if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        _ if encoding == X_USER_DEFINED => WINDOWS_1252,
        _ => encoding,
    })
}

fn named_by(meta: Tag<'_>) -> Option<&'static Encoding> {
    let value = |wanted: &str| {
        let mut attributes = meta.attributes.clone();
        attributes.find(|(name, _)| name.eq_ignore_ascii_case(wanted.as_bytes())).map(|(_, value)| value)
    };
    if let Some(label) = value("charset") {
        return Encoding::for_label(label);
    }
    value("http-equiv").filter(|name| name.eq_ignore_ascii_case(b"content-type"))?;
    of_content(value("content")?)
}

/// The encoding that the `content` of a `<meta>` names, which need not be a content type (HTML standard, 2.4.4).
fn of_content(content: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"charset";
    let is_name = |window: &[u8]| window.eq_ignore_ascii_case(NAME);
    let ends = content.windows(NAME.len()).enumerate().filter(|(_, window)| is_name(window));
    let label = ends
        .filter_map(|(at, _)| content[at + NAME.len()..].trim_ascii_start().strip_prefix(b"="))
        .next()?
        .trim_ascii_start();
    let end = match label {
        [quote @ (b'"' | b'\''), label @ ..] => return Encoding::for_label(before(label, |c| c == *quote)?),
        _ => |c: u8| c == b';' || c.is_ascii_whitespace(),
    };
    Encoding::for_label(before(label, end).unwrap_or(label))
}

fn before(text: &[u8], end: impl Fn(u8) -> bool) -> Option<&[u8]> {
    Some(&text[..text.iter().position(|&c| end(c))?])
}

fn detect(body: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(body, true);
    detector.guess(None, Utf8Detection::Allow)
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
    fn only_a_real_meta_near_the_start_counts() {
        let late = format!("{:PRESCAN$}<meta charset=iso-8859-1>é", "");
        let cut = format!("{:1$}<meta charset=iso-8859-15>é", "", PRESCAN - "<meta charset=iso-8859-1".len());
        for page in [
            "<!-- <meta charset=iso-8859-1> -->é",
            "<meta name=description content='x; charset=iso-8859-1'>é",
            "</meta charset=iso-8859-1>é",
            "<meta charset=utf-16le>é",
            "<meta http-equiv=refresh content='charset=iso-8859-1'>é",
            "<meta content='charset=iso-8859-1'>é",
            &late,
            &cut,
        ] {
            assert_eq!(decode(page.as_bytes(), None), page);
        }
    }

    #[test]
    fn an_unnamed_encoding_is_recognised() {
        let text = "<p>Съешь же ещё этих мягких французских булок, да выпей чаю";
        let (russian, ..) = WINDOWS_1251.encode(text);
        assert_eq!(decode(&russian, Some("text/html")), text);
    }
}

//! From bytes to text, by the order of precedence that browsers follow.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::markup::{Tag, Tags, is_one_of};

/// How much of a page is searched for a `<meta>` that names its encoding, as in the HTML standard.
const PRESCAN: usize = 1024;

/// The text of `body`: by its byte order mark, else by the charset of `content_type`, else by a `<meta>`,
/// else as UTF-8 if it is valid, else by its look. What is broken becomes U+FFFD; valid UTF-8 isn't copied.
pub(super) fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return encoding.decode_without_bom_handling(&body[mark..]).0;
    }
    let declared =
        content_type.and_then(of_content_type).or_else(|| of_meta(&body[..body.len().min(PRESCAN)]));
    match (declared, std::str::from_utf8(body)) {
        (Some(encoding), _) => encoding.decode_without_bom_handling(body).0,
        (None, Ok(text)) => Cow::Borrowed(text),
        (None, Err(_)) => detect(body).decode_without_bom_handling(body).0,
    }
}

/// The encoding that `text/html; charset=...` names.
fn of_content_type(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, label) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes())
}

fn of_meta(start: &[u8]) -> Option<&'static Encoding> {
    let encoding =
        Tags::new(start).filter(|tag| !tag.is_end && is_one_of(tag.name, &["meta"])).find_map(named_by)?;
    // A page whose tags can be read as ASCII is not UTF-16.
    if encoding == UTF_16LE || encoding == UTF_16BE { Some(UTF_8) } else { Some(encoding) }
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
    of_content_type(std::str::from_utf8(value("content")?).ok()?)
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
            "<META CharSet='shift_jis' />",
            "<meta name=x><meta content='text/html; charset=Shift_JIS' http-equiv=Content-Type>",
        ] {
            assert!(decode(&[meta.as_bytes(), &japanese].concat(), None).ends_with("日本語"), "{meta}");
        }
    }

    #[test]
    fn only_a_real_meta_near_the_start_counts() {
        let late = format!("{:PRESCAN$}<meta charset=utf-16>é", "");
        for page in [
            "<!-- <meta charset=utf-16> -->é",
            "<meta name=description content='x; charset=utf-16'>é",
            "</meta charset=utf-16>é",
            "<meta charset=utf-16le>é",
            &late,
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

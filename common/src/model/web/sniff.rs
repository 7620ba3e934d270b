//! The kind of a body: by its `Content-Type`, and where that is none, by how the body begins (WHATWG MIME sniffing).

use super::field::is_token;

/// The kind of document that a body is sent as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// HTML, or XHTML.
    Html,
    /// JSON of any vocabulary.
    Json,
    /// XML of any vocabulary that is no image.
    Xml,
    /// Any other text.
    Text,
    /// No kind that is known: the body shows it.
    Unknown,
    /// An image, an archive, or anything else that is not read as text.
    Other,
}

impl MediaKind {
    /// The kind that a `Content-Type` says.
    pub fn new(content_type: Option<&str>) -> Self {
        let Some(essence) = content_type.and_then(essence) else { return Self::Unknown };
        let essence = essence.to_ascii_lowercase();
        let (kind, subtype) = essence.split_once('/').unwrap_or((&essence, ""));
        let format = subtype.rsplit('+').next().unwrap_or(subtype);
        match (kind, subtype) {
            ("text", "html" | "x-server-parsed-html")
            | ("text" | "application", "xhtml+xml" | "xhtml")
            | ("application", "vnd.wap.xhtml+xml") => Self::Html,
            // As servers say that know no type.
            ("unknown" | "*" | "content", _) | ("application", "unknown") => Self::Unknown,
            ("text" | "application", _) if matches!(format, "json" | "x-json") => Self::Json,
            ("text" | "application", _) if format == "xml" => Self::Xml,
            ("text", _) | ("application", "csv" | "x-csv") => Self::Text,
            _ => Self::Other,
        }
    }
}

/// Whether a response is HTML: by its content type, or without one that says so, by how its body begins. XHTML is also
/// sent as XML.
pub fn is_html(content_type: Option<&str>, body: &[u8]) -> bool {
    match MediaKind::new(content_type) {
        MediaKind::Html => true,
        MediaKind::Unknown => looks_like_html(body),
        MediaKind::Xml => looks_like_xhtml(body),
        MediaKind::Json | MediaKind::Text | MediaKind::Other => false,
    }
}

/// Whether a response is JSON: by its content type, or, where that says no more than that it is text, by how its body
/// begins.
pub fn is_json(content_type: Option<&str>, body: &[u8]) -> bool {
    match MediaKind::new(content_type) {
        MediaKind::Json => true,
        MediaKind::Unknown | MediaKind::Text | MediaKind::Html => {
            matches!(after_mark(body), [b'{' | b'[', ..])
        }
        MediaKind::Xml | MediaKind::Other => false,
    }
}

/// Whether a response is XML: by its content type, or, where that says no more than that it is text, by how its body
/// begins.
pub fn is_xml(content_type: Option<&str>, body: &[u8]) -> bool {
    match MediaKind::new(content_type) {
        MediaKind::Xml => true,
        MediaKind::Unknown | MediaKind::Text => after_mark(body).starts_with(b"<?xml"),
        MediaKind::Html | MediaKind::Json | MediaKind::Other => false,
    }
}

/// Whether a content type names CSV, with commas or tabs.
pub fn is_csv(content_type: Option<&str>) -> bool {
    let essence = content_type.and_then(essence).unwrap_or_default().to_ascii_lowercase();
    ["csv", "comma-separated-values", "tab-separated-values"].iter().any(|name| essence.contains(name))
}

/// The type and subtype that a `Content-Type` names last, as sent and without parameters; none if it names none.
pub fn essence(content_type: &str) -> Option<&str> {
    let mut types = content_type.split(',').filter_map(|text| {
        let text = text.split(';').next()?.split_ascii_whitespace().next()?;
        let (kind, subtype) = text.split_once('/')?;
        (is_token(kind) && is_token(subtype) && text != "*/*").then_some(text)
    });
    types.next_back()
}

/// Whether the type and subtype `essence` are those that are wanted: `image/png`, or all of a kind as `image/*`.
pub fn is_of(essence: &str, wanted: &str) -> bool {
    match wanted.strip_suffix("/*") {
        Some(kind) => essence.split_once('/').is_some_and(|(is, _)| is.eq_ignore_ascii_case(kind)),
        None => essence.eq_ignore_ascii_case(wanted),
    }
}

/// The one of several `Content-Type` fields that counts: the last that names a type. Of two that name the same, it is
/// the one with a charset, or else with parameters.
pub fn content_type<'a>(values: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    values.reduce(|before, value| match (essence(before), essence(value)) {
        (Some(_), None) => before,
        (Some(one), Some(other)) if one.eq_ignore_ascii_case(other) && says_more(before, value) => before,
        _ => value,
    })
}

/// Whether a content type names a charset that another does not, or the other has no parameters.
fn says_more(one: &str, other: &str) -> bool {
    let is_charset = |parameter: &str| {
        let name = parameter.split('=').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case("charset")
    };
    let has_charset = |content_type: &str| content_type.split(';').skip(1).any(is_charset);
    !other.contains(';') || has_charset(one) && !has_charset(other)
}

/// A start of HTML, after white space, by the MIME sniffing standard.
const BEGINNINGS: &[&str] = &[
    "<!doctype html",
    "<html",
    "<head",
    "<script",
    "<iframe",
    "<h1",
    "<div",
    "<font",
    "<table",
    "<a",
    "<style",
    "<title",
    "<b",
    "<body",
    "<br",
    "<p",
    "<!--",
];

fn looks_like_html(body: &[u8]) -> bool {
    let text = after_mark(body);
    BEGINNINGS.iter().any(|beginning| has_beginning(text, beginning)) || looks_like_xhtml(text)
}

/// Whether the first element is `<html>`, after what XML lets stand before it.
fn looks_like_xhtml(body: &[u8]) -> bool {
    let mut text = after_mark(body);
    loop {
        let end: &[u8] = match text {
            [b'<', b'?', ..] => b"?>",
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            [b'<', b'!', ..] => b">",
            _ => return has_beginning(text, "<html"),
        };
        let Some(at) = text.windows(end.len()).position(|window| window == end) else { return false };
        text = text[at + end.len()..].trim_ascii_start();
    }
}

fn has_beginning(text: &[u8], beginning: &str) -> bool {
    let Some((start, rest)) = text.split_at_checked(beginning.len()) else { return false };
    let ends = rest.first().is_none_or(|c| matches!(c, b' ' | b'>' | b'\t' | b'\r' | b'\n'));
    start.eq_ignore_ascii_case(beginning.as_bytes()) && (ends || beginning == "<!--")
}

fn after_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_decides() {
        for html in [
            "text/html",
            "Text/HTML; charset=utf-8",
            " application/xhtml+xml ;x",
            "text/html charset=utf-8",
            "text/html, charset=utf-8",
            "text/html,*/*",
            "text/plain, text/html",
            "application/vnd.wap.xhtml+xml",
        ] {
            assert!(is_html(Some(html), b"anything"), "{html}");
        }
        for other in ["text/plain", "application/json", "text/htmlx", "application/xml", "image/svg+xml"] {
            assert!(!is_html(Some(other), b"<html5>"), "{other}");
        }
    }

    #[test]
    fn what_names_no_type_leaves_it_to_the_body() {
        for none in [
            "",
            "html",
            "text",
            "text/",
            "/html",
            "text\\html",
            "text /html",
            "\"text/html\"",
            "text/html: charset=utf-8",
            "Content-Type: text/html",
            "charset=utf-8",
            ";charset=utf-8",
            "(null)",
            "*/*",
            "unknown/unknown",
            "application/unknown",
        ] {
            assert_eq!(MediaKind::new(Some(none)), MediaKind::Unknown, "{none}");
            assert!(is_html(Some(none), b"<!doctype html>") && !is_html(Some(none), b"GIF89a"), "{none}");
            assert!(is_json(Some(none), b" {\"a\": 1}") && !is_json(Some(none), b"<p>"), "{none}");
        }
        for html in [
            "<!DOCTYPE html><p>",
            "\n <HTML lang=en>",
            "\u{feff}<!--x--><p>",
            "<p>",
            "<a href=x>",
            "<b",
            "<?xml version='1.0'?>\n<!DOCTYPE html PUBLIC '-//W3C//DTD'>\n<html xmlns='x'>",
        ] {
            assert!(is_html(None, html.as_bytes()), "{html}");
        }
        for other in
            ["", "text", "{\"a\": 1}", "<?xml version='1.0'?>", "<urlset>", "<article>", "<", "\u{1}<p"]
        {
            assert!(!is_html(None, other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn xml_whose_root_is_html_is_a_page() {
        let page = b"<?xml version='1.0'?><!-- x --><html xmlns='http://www.w3.org/1999/xhtml'>";
        assert!(is_html(Some("application/xml"), page) && is_html(Some("text/xml; charset=utf-8"), page));
        assert!(!is_html(Some("text/xml"), b"<?xml version='1.0'?><rss><html>"));
        assert!(!is_html(Some("image/svg+xml"), page) && !is_html(Some("text/plain"), page));
    }

    #[test]
    fn json_is_recognised_by_its_type_and_in_what_is_text_by_its_beginning() {
        for json in ["application/json", "Application/LD+json", "text/json", "application/json;charset=utf-8"]
        {
            assert!(is_json(Some(json), b""), "{json}");
        }
        for text in ["text/plain", "text/html", "text/javascript"] {
            assert!(is_json(Some(text), b"\xef\xbb\xbf\n[1]") && !is_json(Some(text), b"x"), "{text}");
        }
        for other in ["application/jsonp", "model/gltf+json", "application/xml"] {
            assert!(!is_json(Some(other), b"{}"), "{other}");
        }
    }

    #[test]
    fn of_several_fields_the_last_that_names_a_type_counts() {
        for (fields, counts) in [
            (&["text/plain", "text/html"][..], Some("text/html")),
            (&["text/html; charset=utf-8", "text/html"], Some("text/html; charset=utf-8")),
            (&["text/html", "TEXT/HTML; charset=utf-8"], Some("TEXT/HTML; charset=utf-8")),
            (&["text/html;charset=windows-1251", "text/html;x=y"], Some("text/html;charset=windows-1251")),
            (&["text/html;charset=a", "text/html; Charset = b"], Some("text/html; Charset = b")),
            (&["text/html", "text/html;x=y"], Some("text/html;x=y")),
            (&["text/html", "utf-8"], Some("text/html")),
            (&["html"], Some("html")),
            (&[], None),
        ] {
            assert_eq!(content_type(fields.iter().copied()), counts, "{fields:?}");
        }
    }
}

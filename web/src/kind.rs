//! Header fields of responses, and which bodies are worth downloading.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use trawl_common::web::headers::Headers;
use trawl_common::web::sniff::{self, MediaKind};

/// Returns the `Content-Type` of a response, as sent.
pub(super) fn content_type(headers: &HeaderMap) -> Option<String> {
    let values: Vec<_> = headers.get_all(CONTENT_TYPE).iter().map(text).collect();
    sniff::content_type(values.iter().map(String::as_str)).map(str::to_owned)
}

/// Returns the header fields of a response.
pub(super) fn headers(headers: &HeaderMap) -> Headers {
    headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect()
}

/// Decodes a header value: UTF-8, or else Latin-1, the traditional charset.
pub(super) fn text(value: &HeaderValue) -> String {
    let latin_1 = |_| value.as_bytes().iter().copied().map(char::from).collect();
    str::from_utf8(value.as_bytes()).map_or_else(latin_1, str::to_owned)
}

/// Whether a body of this type can be text with links: text, HTML, XML, JSON, or an unknown type.
/// Images, video, fonts, archives, PDF and bare bytes are not.
pub(super) fn is_read(content_type: &str) -> bool {
    MediaKind::new(Some(content_type)) != MediaKind::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_hold_links_is_read() {
        for read in [
            "",
            "html",
            "text/html; charset=utf-8",
            "Text/Plain",
            "application/xhtml+xml",
            " application/xml ;x",
            "application/rss+xml",
            "application/json",
            "application/ld+json",
            "unknown/unknown",
            "*/*",
            "text/html charset=utf-8",
            "text\\html",
        ] {
            assert!(is_read(read), "{read}");
        }
        for unread in [
            "image/png",
            "image/svg+xml",
            "video/mp4",
            "audio/mpeg",
            "font/woff2",
            "model/gltf+json",
            "multipart/x-mixed-replace",
            "application/pdf",
            "application/zip",
            "application/gzip",
            "application/octet-stream",
            "application/javascript",
            "application/wasm",
        ] {
            assert!(!is_read(unread), "{unread}");
        }
    }
    #[test]
    fn a_value_that_is_no_utf_8_is_latin_1() {
        let fields = [("a", &b"caf\xe9"[..]), ("b", "é".as_bytes())];
        let fields =
            fields.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_bytes(value).unwrap()));
        let fields =
            headers(&HeaderMap::from_iter::<[(reqwest::header::HeaderName, HeaderValue); 2]>(fields));
        assert_eq!((fields.get("a"), fields.get("b")), (Some("café"), Some("é")));
    }
}

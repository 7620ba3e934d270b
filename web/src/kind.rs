//! Which bodies are worth their download.

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use trawl_common::web::headers::Headers;

/// The `Content-Type` of an answer, as sent.
pub(super) fn content_type(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The header fields of an answer. Bytes that are no UTF-8 are replaced.
pub(super) fn headers(headers: &HeaderMap) -> Headers {
    headers.iter().map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()))).collect()
}

/// Whether a body of this type can be text with links: text, HTML, XML, JSON, or of a type that says nothing.
/// Images, video, fonts, archives, PDF and bare bytes are not.
pub(super) fn is_read(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some((kind, subtype)) = essence.split_once('/') else { return true };
    match kind {
        "text" => true,
        "application" => {
            let format = subtype.rsplit('+').next().unwrap_or(subtype);
            matches!(format, "xml" | "json" | "unknown")
        }
        // What servers write that know no type.
        "unknown" | "*" | "content" => true,
        _ => false,
    }
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
}

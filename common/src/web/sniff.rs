//! Recognising HTML.

/// What HTML begins with, after white space, by the MIME sniffing standard.
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

/// Whether a response is HTML: by its content type, or without one, by how its body begins.
pub fn is_html(content_type: Option<&str>, body: &[u8]) -> bool {
    match content_type.map(essence) {
        None | Some("") => looks_like_html(body),
        Some(essence) => {
            ["text/html", "application/xhtml+xml"].iter().any(|html| essence.eq_ignore_ascii_case(html))
        }
    }
}

/// The type and subtype, without parameters.
pub fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

fn looks_like_html(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii_start();
    BEGINNINGS.iter().any(|beginning| {
        let Some((start, rest)) = body.split_at_checked(beginning.len()) else { return false };
        let ends = rest.first().is_none_or(|c| matches!(c, b' ' | b'>' | b'\t' | b'\r' | b'\n'));
        start.eq_ignore_ascii_case(beginning.as_bytes()) && (ends || *beginning == "<!--")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_decides() {
        for html in ["text/html", "Text/HTML; charset=utf-8", " application/xhtml+xml ;x"] {
            assert!(is_html(Some(html), b"anything"), "{html}");
        }
        for other in ["text/plain", "application/json", "text/htmlx", "application/xml"] {
            assert!(!is_html(Some(other), b"<html>"), "{other}");
        }
    }

    #[test]
    fn without_one_the_body_does() {
        for html in
            ["<!DOCTYPE html><p>", "\n <HTML lang=en>", "\u{feff}<!--x--><p>", "<p>", "<a href=x>", "<b"]
        {
            assert!(is_html(None, html.as_bytes()), "{html}");
            assert!(is_html(Some(""), html.as_bytes()), "{html}");
        }
        for other in
            ["", "text", "{\"a\": 1}", "<?xml version='1.0'?>", "<urlset>", "<article>", "<", "\u{1}<p"]
        {
            assert!(!is_html(None, other.as_bytes()), "{other}");
        }
    }
}

//! The body of a response as text.

use trawl_common::web::response::Response;

use crate::document::charset::decode;

/// Returns the body of a response, decoded as browsers do, or `None` if it contains a NUL and so is not text.
pub fn text(response: &Response) -> Option<String> {
    let (text, _) = decode(&response.body, response.content_type());
    (!text.contains('\0')).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use trawl_common::time::UnixMs;

    use super::*;

    fn of(content_type: &str, body: &'static [u8]) -> Option<String> {
        let headers = [("content-type", content_type)].into_iter().collect();
        let (redirected_to, address) = Default::default();
        let body = body.into();
        text(&Response { status: 200, headers, redirected_to, fetched_at: UnixMs(0), address, body })
    }

    #[test]
    fn a_body_is_text_in_its_own_charset_unless_it_has_a_nul() {
        assert_eq!(of("text/html; charset=iso-8859-1", b"\xe4").as_deref(), Some("ä"));
        assert_eq!(of("text/plain", "\u{feff}ä".as_bytes()).as_deref(), Some("ä"));
        assert_eq!(of("text/plain", b"\xff\xfea\0").as_deref(), Some("a"));
        assert_eq!(of("text/plain", b"a\0b"), None);
    }
}

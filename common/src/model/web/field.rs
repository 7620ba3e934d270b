//! Rules for header fields and cookies that users configure.

/// Header fields that only trawl may set, each with the reason.
const RESERVED: &[(&str, &str)] = &[
    ("user-agent", "use `request.user_agent`"),
    ("cookie", "use `request.cookies`"),
    ("host", "it is the URL's"),
    ("content-length", "it is the body's"),
    ("transfer-encoding", "it is the body's"),
    ("connection", "connections are trawl's business"),
    ("keep-alive", "connections are trawl's business"),
    ("proxy-connection", "connections are trawl's business"),
    ("te", "connections are trawl's business"),
    ("trailer", "connections are trawl's business"),
    ("upgrade", "connections are trawl's business"),
    ("http2-settings", "connections are trawl's business"),
    ("expect", "connections are trawl's business"),
    ("proxy-authorization", "write user and password into `request.proxy`"),
    ("accept-encoding", "trawl asks for what it can unpack"),
    ("range", "pages are fetched whole"),
    ("if-none-match", "use `recrawl = \"changed\"`"),
    ("if-modified-since", "use `recrawl = \"changed\"`"),
];

/// Returns the reason why a header field of this name may not be set, if there is one. The reason names keys of a
/// spider's file.
pub fn reserved(name: &str) -> Option<&'static str> {
    RESERVED.iter().find(|(reserved, _)| name.eq_ignore_ascii_case(reserved)).map(|(_, why)| *why)
}

/// Returns whether a text can be the name of a header field or a cookie (RFC 9110 5.6.2).
pub fn is_token(name: &str) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Returns whether a text can be a field's value (RFC 9110 5.5), without obsolete forms.
pub(crate) fn is_value(value: &str) -> bool {
    value.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~')) && value.trim() == value
}

/// Returns whether a text can be a cookie's value (RFC 6265 4.1.1).
pub(crate) fn is_cookie_value(value: &str) -> bool {
    is_value(value) && !value.contains([';', ',', ' ', '\t'])
}

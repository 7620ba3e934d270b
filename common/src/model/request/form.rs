//! Parameters as forms and queries have them (`application/x-www-form-urlencoded`, WHATWG URL).

use url::form_urlencoded::byte_serialize;

/// The content type of a form.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// Returns a name and its value, encoded: `q=red+hat`.
pub fn encode_pair(name: &str, value: &str) -> String {
    let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    format!("{}={}", encode(name), encode(value))
}

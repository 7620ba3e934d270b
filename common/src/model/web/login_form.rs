//! Pages that look like a log-in page.

use memchr::memmem;

/// Returns whether a page has a field for a password, judged by its bytes alone.
pub fn has_password_field(body: &[u8]) -> bool {
    [&b"password"[..], b"PASSWORD"]
        .into_iter()
        .any(|kind| memmem::find_iter(body, kind).any(|at| is_type(&body[..at])))
}

/// Returns whether a text ends where the value of an attribute `type` begins.
fn is_type(before: &[u8]) -> bool {
    let quote = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'"));
    let name = quote.unwrap_or(before).trim_ascii_end().strip_suffix(b"=");
    let name = name.unwrap_or_default().trim_ascii_end();
    name.last_chunk::<4>().is_some_and(|name| name.eq_ignore_ascii_case(b"type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_for_a_password_is_known_by_its_type() {
        for page in [
            "<input type=password>",
            "<input name='p' TYPE = \"password\">",
            "<p>Forgot your password?<input type='PASSWORD'>",
        ] {
            assert!(has_password_field(page.as_bytes()), "{page}");
        }
        for page in
            ["", "password", "<input type=text name=password>", "<a href='/type/password'>", "=password"]
        {
            assert!(!has_password_field(page.as_bytes()), "{page}");
        }
    }
}

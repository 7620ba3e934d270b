//! Percent-encoding in normal form (RFC 3986, 6.2.2).

use std::borrow::Cow;

/// Returns the octet that `text` starts with as `%` and two hexadecimal digits.
pub(crate) fn escaped(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = *text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Returns whether an octet means the same encoded and as it is (RFC 3986, 2.3).
pub(crate) fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~".contains(&octet)
}

/// Appends an octet as `%` and two digits.
pub(crate) fn push_escaped(octet: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', DIGITS[usize::from(octet >> 4)], DIGITS[usize::from(octet & 15)]]);
}

/// Returns `text` with its escapes in capitals, and without those of unreserved characters. Invalid escapes and
/// everything else stay.
pub(crate) fn normalised(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        match escaped(rest) {
            Some(octet) => {
                if is_unreserved(octet) && !completes_an_escape(&out, octet) {
                    out.push(octet);
                } else {
                    push_escaped(octet, &mut out);
                }
                rest = &rest[3..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    // Only ASCII was replaced, by ASCII.
    String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Returns whether `octet` would complete an escape after a `%` that is none: `%%34` and `1` are not `%41`.
fn completes_an_escape(before: &[u8], octet: u8) -> bool {
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit();
    is_hex(&octet) && matches!(before, [.., b'%'] | [.., b'%', b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes a text as a server does: each octet, and whether it was written unencoded.
    fn meaning(text: &str) -> Vec<(u8, bool)> {
        let mut octets = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, after @ ..] = rest {
            let escaped = escaped(rest);
            let octet = escaped.unwrap_or(*first);
            octets.push((octet, escaped.is_some() && !is_unreserved(octet)));
            rest = if escaped.is_some() { &rest[3..] } else { after };
        }
        octets
    }

    #[test]
    fn an_escape_has_one_spelling() {
        for (text, expected) in [
            ("/%7ea/%7Ea/~a", "/~a/~a/~a"),
            ("/a%2db%2e%5F%41%7a%30", "/a-b._Az0"),
            ("/%2f%3f%c3%a4%25", "/%2F%3F%C3%A4%25"),
            ("/%zz%4%", "/%zz%4%"),
            ("/%%34%31/%4%31", "/%%341/%4%31"),
            ("/%2541", "/%2541"),
        ] {
            assert_eq!(normalised(text), expected);
        }
    }

    proptest! {
        #[test]
        fn the_meaning_stays_and_the_spelling_is_a_fixed_point(text in "[%0-4a-fA-F7~zä/]{0,16}") {
            let once = normalised(&text).into_owned();
            prop_assert_eq!(meaning(&once), meaning(&text));
            prop_assert_eq!(normalised(&once).into_owned(), once);
        }
    }
}

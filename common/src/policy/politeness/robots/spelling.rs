//! The normal form in which patterns and paths are compared (RFC 9309, 2.2.2).

use crate::escape::{escaped, is_unreserved, push_escaped};

/// Appends `text` in normal form: unreserved characters (RFC 3986, 2.3) as they are, reserved ones as they were
/// written, and all others percent-encoded in capitals.
///
/// `*` and `$` have a meaning in a pattern, so as text they are encoded. So is `'`, because a canonical URL has it
/// encoded in its query.
pub(super) fn normalise(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let escaped = escaped(rest);
        let octet = escaped.unwrap_or(*first);
        if is_unreserved(octet) || escaped.is_none() && b":/?#[]@!&()+,;=".contains(&octet) {
            out.push(octet);
        } else {
            push_escaped(octet, out);
        }
        rest = if escaped.is_some() { &rest[3..] } else { after };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normalised(text: &str) -> String {
        let mut octets = Vec::new();
        normalise(text.as_bytes(), &mut octets);
        String::from_utf8(octets).unwrap()
    }

    #[test]
    fn every_octet_has_one_spelling() {
        for (text, expected) in [
            ("/a-._~9Z", "/a-._~9Z"),
            ("/%61%2d%2E%5f%7E%39%5A", "/a-._~9Z"),
            ("/\u{30c4}", "/%E3%83%84"),
            ("/%e3%83%84", "/%E3%83%84"),
            ("/a b\"<>\\^`{|}", "/a%20b%22%3C%3E%5C%5E%60%7B%7C%7D"),
            ("/?a=b&c=d;e,f:g@h!(i)+[j]", "/?a=b&c=d;e,f:g@h!(i)+[j]"),
            ("/%2f%3F%26", "/%2F%3F%26"),
            ("/'%27", "/%27%27"),
            ("/*$%2a%24", "/%2A%24%2A%24"),
            ("/%", "/%25"),
            ("/%4", "/%254"),
            ("/%zz%%41", "/%25zz%25A"),
        ] {
            assert_eq!(normalised(text), expected);
            assert_eq!(normalised(expected), expected);
        }
    }

    proptest! {
        #[test]
        fn normalised_text_is_a_fixed_point(text in "[%a-f0-9A-F*$ '\u{30c4}]{0,20}") {
            let once = normalised(&text);
            prop_assert_eq!(normalised(&once), once);
        }
    }
}

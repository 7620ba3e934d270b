//! The form of comma-separated files.

/// The marks that may separate columns; of several that are as frequent, the first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Returns the mark that is most frequent in the first line of a file, outside of quotes.
pub fn likely_delimiter(first_line: &[u8]) -> u8 {
    let mut is_quoted = false;
    let plain = first_line.iter().filter(|byte| {
        is_quoted ^= **byte == b'"';
        !is_quoted
    });
    let plain: Vec<u8> = plain.copied().collect();
    let count = |mark: u8| plain.iter().filter(|byte| **byte == mark).count();
    DELIMITERS.into_iter().rev().max_by_key(|mark| count(*mark)).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_mark_outside_of_quotes_separates_columns() {
        for (line, mark) in [
            ("a,b", b','),
            ("a;b;c,d", b';'),
            ("a\tb", b'\t'),
            ("a|b", b'|'),
            ("\"a;b;c\",d", b','),
            ("a;b,c", b','),
            ("a", b','),
        ] {
            assert_eq!(likely_delimiter(line.as_bytes()), mark, "{line}");
        }
    }
}

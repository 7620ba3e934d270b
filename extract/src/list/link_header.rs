//! The header field `Link` (RFC 8288).

/// Returns the first target with this relation.
pub(super) fn target<'a>(fields: impl Iterator<Item = &'a str>, relation: &str) -> Option<String> {
    fields.flat_map(links).find(|(_, parameters)| has(parameters, relation)).map(|(url, _)| url.to_owned())
}

/// Returns the targets of a field, each with its parameters.
fn links(field: &str) -> Vec<(&str, &str)> {
    let mut links = Vec::new();
    let mut rest = field;
    while let Some((url, after)) = rest.split_once('<').and_then(|(_, rest)| rest.split_once('>')) {
        let end = end_before(b',', after);
        links.push((url.trim(), &after[..end]));
        rest = &after[end..];
    }
    links
}

/// Returns the length of `text` before the first `separator` that is in no quotes.
fn end_before(separator: u8, text: &str) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if std::mem::take(&mut is_escaped) => {}
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            _ if byte == separator && !is_quoted => return at,
            _ => {}
        }
    }
    text.len()
}

/// Whether the first `rel` among these parameters has a relation.
fn has(parameters: &str, relation: &str) -> bool {
    let mut rest = parameters;
    while !rest.is_empty() {
        let (pair, after) = rest.split_at(end_before(b';', rest));
        rest = after.strip_prefix(';').unwrap_or_default();
        if let Some((name, value)) = pair.split_once('=')
            && name.trim().eq_ignore_ascii_case("rel")
        {
            let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
            return relations.any(|one| one.eq_ignore_ascii_case(relation));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_of_a_relation_is_found_in_any_form() {
        for (field, found) in [
            (r#"<https://a.example/?page=2>; rel="next""#, Some("https://a.example/?page=2")),
            (r#"</1>; rel=prev, </3>; rel="last next"; title="a, b""#, Some("/3")),
            (r#"</1>; title="x, <y>; rel=next"; rel=prev, </2>;REL=NEXT"#, Some("/2")),
            ("<?a=1,2>; rel=next", Some("?a=1,2")),
            ("</1>; rel=nextpage", None),
            ("</1", None),
            ("next", None),
            ("", None),
        ] {
            assert_eq!(target([field].into_iter(), "next").as_deref(), found, "{field}");
        }
    }
}

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
        let end = end_of_parameters(after);
        links.push((url.trim(), &after[..end]));
        rest = &after[end..];
    }
    links
}

/// Returns where the parameters of a link end: at a comma that is in no quotes.
fn end_of_parameters(text: &str) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if std::mem::take(&mut is_escaped) => {}
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return at,
            _ => {}
        }
    }
    text.len()
}

/// Whether the first `rel` among these parameters has a relation.
fn has(parameters: &str, relation: &str) -> bool {
    let mut pairs = parameters.split(';').filter_map(|pair| pair.split_once('='));
    let rel = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("rel"));
    rel.is_some_and(|(_, value)| {
        let value = value.trim().trim_matches('"');
        value.split_ascii_whitespace().any(|one| one.eq_ignore_ascii_case(relation))
    })
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

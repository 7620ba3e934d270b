//! Summarizes a spider's kinds of pages.

use trawl_common::mistake::Sited;
use trawl_common::spider::{Field, PageFollow, PageKind, PageMatch};

/// `product: with `/product/` in its URL, from list; follows links in `.related`; carries brand`
pub(crate) fn page(kind: &PageKind) -> String {
    let mut parts = vec![format!("{}: {}", kind.name.value, when(&kind.when))];
    match kind.follow.as_deref() {
        None => {}
        Some([]) => parts.push("follows nothing".to_owned()),
        Some(rules) => parts.extend(rules.iter().map(|rule| format!("follows {}", follow(rule)))),
    }
    parts.extend(carries(&kind.carry));
    parts.join("; ")
}

fn when(PageMatch { url, content_type, selector, from }: &PageMatch) -> String {
    let mut parts = Vec::new();
    if !url.is_empty() {
        parts.push(format!("with {} in its URL", either(url)));
    }
    if !content_type.is_empty() {
        parts.push(content_type.join(" or "));
    }
    if !from.is_empty() {
        let from: Vec<&str> = from.iter().map(|from| from.value.as_str()).collect();
        parts.push(format!("from {}", from.join(" or ")));
    }
    parts.extend(selector.as_ref().map(|selector| format!("with `{}`", selector.value)));
    if parts.is_empty() { "any other page".to_owned() } else { parts.join(", ") }
}

fn follow(rule: &PageFollow) -> String {
    let mut parts = vec![match (&rule.each, &rule.area, rule.link.is_empty()) {
        (_, _, false) => either(&rule.link),
        (_, Some(area), _) => format!("links in `{}`", area.value),
        _ => "links".to_owned(),
    }];
    parts.extend(rule.each.as_ref().map(|each| format!("in each `{}`", each.value)));
    for (patterns, word) in [(&rule.include, "with"), (&rule.exclude, "without")] {
        if !patterns.is_empty() {
            parts.push(format!("{word} {}", either(patterns)));
        }
    }
    parts.extend(rule.name.as_ref().map(|name| format!("as {}", name.value)));
    parts.extend(carries(&rule.carry));
    parts.join(", ")
}

fn carries(fields: &[(String, Field)]) -> Option<String> {
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| format!("carries {}", names.join(", ")))
}

fn either(texts: &[Sited<String>]) -> String {
    texts.iter().map(|text| format!("`{}`", text.value)).collect::<Vec<_>>().join(" or ")
}

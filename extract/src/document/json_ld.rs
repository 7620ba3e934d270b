//! JSON-LD: structured data for search engines in `<script>` elements.

use serde_json::Value;

use crate::document::json;

/// Returns the objects of each type of `names` in the scripts of a page, in their order, except those nested in an
/// object of the same type. A script that is not JSON, even after small repairs, is ignored.
pub(crate) fn objects(scripts: &[String], names: &[String]) -> Vec<Vec<Value>> {
    let mut found = vec![Vec::new(); names.len()];
    for script in scripts {
        if let Ok(value) = json::parse(script) {
            names.iter().zip(&mut found).for_each(|(name, found)| collect(&value, name, found));
        }
    }
    found
}

/// The recursion is as deep as [`json::parse`] allows.
fn collect(value: &Value, name: &str, found: &mut Vec<Value>) {
    match value {
        Value::Object(object) if object.get("@type").is_some_and(|kind| is(kind, name)) => {
            found.push(value.clone());
        }
        Value::Object(object) => object.values().for_each(|value| collect(value, name, found)),
        Value::Array(values) => values.iter().for_each(|value| collect(value, name, found)),
        _ => {}
    }
}

fn is(kind: &Value, name: &str) -> bool {
    match kind {
        Value::String(kind) => is_type(kind, name),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(|kind| is_type(kind, name)),
        _ => false,
    }
}

/// Whether a type has this name: `Product`, `https://schema.org/Product`, `schema:Product`.
pub(crate) fn is_type(kind: &str, name: &str) -> bool {
    kind == name || kind.rsplit(['/', '#', ':']).next() == Some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(scripts: &[String]) -> Vec<Value> {
        objects(scripts, &["Product".to_owned()]).remove(0)
    }

    #[test]
    fn objects_are_found_wherever_they_are() {
        for script in [
            json!({"@type": "Product", "name": "a"}),
            json!([{"@type": "WebSite"}, {"@type": ["Thing", "Product"], "name": "a"}]),
            json!({"@context": "https://schema.org", "@graph": [{"@type": "schema:Product", "name": "a"}]}),
            json!({"@type": "ItemList", "itemListElement": [{"item": {"@type": "http://schema.org/Product", "name": "a"}}]}),
            json!({"@type": "Product", "name": "a", "isSimilarTo": {"@type": "Product", "name": "b"}}),
        ] {
            let found = of(&["{ broken".to_owned(), script.to_string()]);
            assert!(found.len() == 1 && found[0]["name"] == "a", "{found:?}");
        }
        assert!(of(&[json!({"@type": "ProductGroup"}).to_string()]).is_empty());
    }
}

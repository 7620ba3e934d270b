//! The OpenAPI document.

use reqwest::Method;
use serde_json::Value;

use crate::fixture::Fixture;

/// Collects every `$ref` below a value.
fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn every_reference_of_the_document_leads_somewhere() {
    let fixture = Fixture::embedded().await;
    let document = fixture.document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut found = Vec::new();
    references(document, &mut found);
    assert!(found.len() > 10);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn every_operation_of_the_document_is_served_and_says_what_it_does_and_how_it_fails() {
    let fixture = Fixture::embedded().await;
    let paths = fixture.document()["paths"].as_object().unwrap();
    assert!(paths.len() > 10);
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}");
            let method: Method = method.to_uppercase().parse().unwrap();
            let filled = path.replace("{host}", "none.example").replace(['{', '}'], "");
            let answer = fixture.send(fixture.operator(method.clone(), &filled)).await;
            assert_ne!(answer.status, 405, "{method} {path}");
            if !path.contains('{') {
                assert_ne!(answer.status, 404, "{method} {path}");
            }
            for status in ["400", "401", "403", "429", "503"] {
                assert!(operation["responses"][status].is_object(), "{method} {path} {status}");
            }
        }
    }
}

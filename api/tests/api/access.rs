//! Access: tokens and their roles.

use reqwest::Method;
use trawl_common::settings;

use crate::fixture::{Fixture, VIEWER};

/// Returns every operation of the document, with values in place of the parameters.
fn operations(fixture: &Fixture) -> Vec<(Method, String)> {
    let paths = fixture.document()["paths"].as_object().unwrap();
    let each = paths.iter().flat_map(|(path, item)| {
        let path = path.replace("{id}", "one").replace("{host}", "a.example");
        let methods = item.as_object().unwrap().keys();
        methods.map(move |method| (method.to_uppercase().parse().unwrap(), path.clone()))
    });
    each.collect()
}

#[tokio::test]
async fn without_a_token_only_health_and_the_document_are_told() {
    let fixture = Fixture::embedded().await;
    fixture.crawl("one", "a", 1).await;
    for (method, path) in operations(&fixture) {
        let is_public = ["/healthz", "/api/v1/openapi.json"].contains(&path.as_str());
        let expected = if is_public { 200 } else { 401 };
        for token in [None, Some(""), Some("x"), Some("viewer-0123456789abcdef0123456789abcdee")] {
            let request = fixture.request(method.clone(), &path);
            let request = token.iter().fold(request, |request, token| request.bearer_auth(token));
            let answer = fixture.send(request).await;
            assert_eq!(answer.status, expected, "{method} {path} {token:?}");
            assert_eq!(answer.headers.contains_key("www-authenticate"), !is_public);
        }
    }
    assert_eq!(fixture.get("/api/v1/crawls/one").await.body["status"], "running");
}

#[tokio::test]
async fn a_viewer_looks_and_changes_nothing() {
    let fixture = Fixture::embedded().await;
    fixture.crawl("one", "a", 0).await;
    for (method, path) in operations(&fixture) {
        let answer = fixture.send(fixture.request(method.clone(), &path).bearer_auth(VIEWER)).await;
        match method {
            Method::GET => assert!(!matches!(answer.status, 401 | 403), "{path} {}", answer.status),
            _ => assert_eq!(answer.status, 403, "{method} {path}"),
        }
    }
    assert_eq!(fixture.get("/api/v1/hosts").await.body["hosts"], serde_json::json!([]));
}

#[tokio::test]
async fn no_page_of_another_site_can_have_a_browser_ask() {
    let fixture = Fixture::guarded_by(settings::Api::default()).await;
    let own = format!("http://{}", fixture.address);
    for (header, value, status) in [
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("sec-fetch-site", "same-origin", 200),
        ("origin", "http://evil.example", 403),
        ("origin", "null", 403),
        ("origin", own.as_str(), 200),
        ("host", "evil.example", 421),
        ("host", "localhost", 200),
    ] {
        let request = fixture.request(Method::GET, "/api/v1/crawls").header(header, value);
        assert_eq!(fixture.send(request).await.status, status, "{header}: {value}");
    }
}

#[tokio::test]
async fn no_answer_is_kept_framed_or_taken_for_something_else() {
    let fixture = Fixture::embedded().await;
    for path in ["/", "/jobs", "/healthz", "/api/v1/crawls", "/api/v1/none", "/listprojects.json"] {
        let response = fixture.operator(Method::GET, path).send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert!(header("content-security-policy").contains("frame-ancestors 'none'"), "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("cache-control"), "no-store", "{path}");
    }
}

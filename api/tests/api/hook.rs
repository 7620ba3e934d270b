//! Calls of Git servers, and of those who pose as one.

use reqwest::Method;
use serde_json::json;
use trawl_common::project::{HookSecret, Source};
use trawl_common::settings::{Secrets, Settings};
use trawl_testkit::attacks::Section;

use crate::fixture::{Answer, Fixture};
use crate::support::{COMMIT, KEY};

promises! {
    a_signed_push_has_workers_run_what_the_branch_ends_with
    a_call_without_the_signature_of_its_project_changes_nothing
    a_signed_call_about_something_else_changes_nothing
    a_repository_that_is_away_is_said
}

const PUSH: &str = r#"{"ref": "refs/heads/main", "after": "3434343434343434343434343434343434343434"}"#;

/// Returns an API with a key and the project `shop`, whose code comes from this branch.
async fn with_project(fixture: &Fixture, branch: &str) -> (Fixture, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), KEY).unwrap();
    let secrets = Secrets { key_file: Some(file.path().to_owned()) };
    let keyed = fixture.also_with(Settings { secrets, ..Settings::default() }).await;
    let (projects, name) = (&fixture.backend.projects, "shop".parse().unwrap());
    projects.create(&name).await.unwrap();
    let clone_url = "https://git.example/shop.git".parse().unwrap();
    projects.set_source(&name, Some(&Source { clone_url, branch: branch.parse().unwrap() })).await.unwrap();
    (keyed, file)
}

async fn secret(fixture: &Fixture) -> HookSecret {
    let made = fixture.backend.projects.project(&"shop".parse().unwrap()).await.unwrap().unwrap();
    HookSecret::new(&KEY.parse().unwrap(), &made.name, made.created)
}

async fn wanted(fixture: &Fixture) -> Option<String> {
    let made = fixture.backend.projects.project(&"shop".parse().unwrap()).await.unwrap().unwrap();
    made.wanted.map(|wanted| wanted.commit.to_string())
}

/// Calls as the server of that name does, about this event.
async fn call(
    fixture: &Fixture,
    project: &str,
    server: &str,
    event: &str,
    signature: &str,
    body: &str,
) -> Answer {
    let at = format!("/api/v1/projects/{project}/hook");
    let header =
        if server == "github" { "x-hub-signature-256".to_owned() } else { format!("x-{server}-signature") };
    let request = fixture.request(Method::POST, &at).header("content-type", "application/json");
    let request = request.header(header, signature).header(format!("x-{server}-event"), event);
    fixture.heard(request.body(body.to_owned())).await
}

async fn a_signed_push_has_workers_run_what_the_branch_ends_with(fixture: &Fixture) {
    let (keyed, _file) = with_project(fixture, "main").await;
    let signature = secret(&keyed).await.sign(PUSH.as_bytes());
    for (server, signature) in
        [("github", format!("sha256={signature}")), ("gitea", signature.clone()), ("gogs", signature)]
    {
        let heard = call(&keyed, "shop", server, "push", &signature, PUSH).await;
        assert_eq!((heard.status, &heard.body), (200, &json!({ "commit": COMMIT })), "{server}");
    }
    assert_eq!(
        wanted(&keyed).await.as_deref(),
        Some(COMMIT),
        "not what the call says, which may be an old one"
    );
}

async fn a_call_without_the_signature_of_its_project_changes_nothing(fixture: &Fixture) {
    let (keyed, _file) = with_project(fixture, "main").await;
    keyed.backend.projects.create(&"news".parse().unwrap()).await.unwrap();
    let own = secret(&keyed).await.sign(PUSH.as_bytes());
    let other = secret(&keyed).await.sign(b"{}");
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "Calls that pose as a Git server's");
    let changed = PUSH.replace("main", "next");
    for (attack, api, project, signature, body) in [
        ("no signature", &keyed, "shop", "", PUSH),
        ("an empty signature", &keyed, "shop", "sha256=", PUSH),
        ("the signature of another body", &keyed, "shop", &other, PUSH),
        ("a part of the signature", &keyed, "shop", &own[..62], PUSH),
        ("a changed body", &keyed, "shop", &own, &changed),
        ("the signature of another project", &keyed, "news", &own, PUSH),
        ("a project that nobody has made", &keyed, "none", &own, PUSH),
        ("an API without the key", fixture, "shop", &own, PUSH),
    ] {
        let heard = call(api, project, "gitea", "push", signature, body).await;
        let got = format!("{}: {}", heard.status, heard.body["detail"]);
        section.tried(attack, "401: no signature of this project's secret", &got);
    }
    let mut last = String::new();
    for _ in 0..9 {
        let heard = call(&keyed, "shop", "gitea", "push", &other, PUSH).await;
        last = format!("{}: {}", heard.status, heard.body["detail"]);
    }
    section.tried("guesses, the eleventh in a minute", "429: a minute", &last);
    assert_eq!(wanted(&keyed).await, None);
    section.check();
}

async fn a_signed_call_about_something_else_changes_nothing(fixture: &Fixture) {
    let (keyed, _file) = with_project(fixture, "main").await;
    let secret = secret(&keyed).await;
    for (event, body, status) in [
        ("ping", r#"{"zen": "x"}"#, 200),
        ("issues", PUSH, 200),
        ("push", r#"{"ref": "refs/heads/other"}"#, 200),
        ("push", r#"{"ref": "refs/tags/main"}"#, 200),
        ("push", "payload=%7B%7D", 400),
    ] {
        let heard = call(&keyed, "shop", "github", event, &secret.sign(body.as_bytes()), body).await;
        assert_eq!(heard.status, status, "{event} {body}");
    }
    assert_eq!(wanted(&keyed).await, None);
}

async fn a_repository_that_is_away_is_said(fixture: &Fixture) {
    let (keyed, _file) = with_project(fixture, "away").await;
    let body = r#"{"ref": "refs/heads/away"}"#;
    let signature = secret(&keyed).await.sign(body.as_bytes());
    let heard = call(&keyed, "shop", "gogs", "push", &signature, body).await;
    assert_eq!(heard.status, 503);
    assert_eq!(wanted(&keyed).await, None);
    let pulled = keyed.post("/api/v1/projects/shop/pull").await;
    assert!(pulled.status == 503 && pulled.body["detail"].as_str().unwrap().contains("it is away"));
}

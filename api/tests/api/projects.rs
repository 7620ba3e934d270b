//! Projects, their spiders and their secrets.

use reqwest::Method;
use serde_json::{Value, json};
use trawl_common::project::{MAX_SECRET_BYTES, VersionReport, VersionResult, Wanted};
use trawl_common::settings::{Secrets, Settings};
use trawl_common::time::UnixMs;

use crate::fixture::{Fixture, VIEWER};

promises! {
    a_project_is_made_changed_and_forgotten
    a_spider_that_is_another_projects_is_refused_by_name
    a_project_says_which_machines_run_its_commit_and_why_others_do_not
    a_secret_is_set_and_removed_and_no_answer_has_it
    no_error_shows_a_secret
}

const PROJECTS: &str = "/api/v1/projects";

async fn make(fixture: &Fixture, project: &str, spiders: &[&str]) {
    let made = fixture.post_json(PROJECTS, &json!({ "project": project, "spiders": spiders })).await;
    assert_eq!((made.status, &made.body["project"]), (201, &project.into()), "{}", made.body);
}

async fn a_project_is_made_changed_and_forgotten(fixture: &Fixture) {
    assert_eq!(fixture.get(PROJECTS).await.body, json!({ "projects": [] }));
    make(fixture, "shop", &["books", "music"]).await;
    let again = fixture.post_json(PROJECTS, &json!({ "project": "shop" })).await;
    assert_eq!(again.status, 409, "{}", again.body);
    let change = json!({ "add_spiders": ["films"], "remove_spiders": ["music"] });
    let changed = fixture.post_json(&format!("{PROJECTS}/shop"), &change).await;
    assert_eq!(changed.body["spiders"], json!(["books", "films"]));
    assert_eq!(fixture.get(&format!("{PROJECTS}/shop")).await.body, changed.body);
    let mut listed = changed.body.clone();
    assert_eq!(listed.as_object_mut().unwrap().remove("machines"), Some(json!([])));
    assert_eq!(fixture.get(PROJECTS).await.body["projects"], json!([listed]));
    let nobody = fixture.post_json(&format!("{PROJECTS}/none"), &change).await;
    assert_eq!(nobody.status, 404);
    let forgotten = fixture.post(&format!("{PROJECTS}/shop/forget")).await;
    assert_eq!(forgotten.status, 200);
    assert_eq!(fixture.get(&format!("{PROJECTS}/shop")).await.status, 404);
}

async fn a_spider_that_is_another_projects_is_refused_by_name(fixture: &Fixture) {
    make(fixture, "shop", &["books"]).await;
    make(fixture, "news", &[]).await;
    let change = json!({ "add_spiders": ["books"] });
    let refused = fixture.post_json(&format!("{PROJECTS}/news"), &change).await;
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(refused.status == 409 && detail.contains("books") && detail.contains("shop"), "{detail}");
    let many: Vec<String> = (0..1001).map(|number| format!("s{number}")).collect();
    let refused = fixture.post_json(&format!("{PROJECTS}/news"), &json!({ "add_spiders": many })).await;
    assert_eq!(refused.status, 400);
}

async fn a_project_says_which_machines_run_its_commit_and_why_others_do_not(fixture: &Fixture) {
    make(fixture, "shop", &[]).await;
    let (projects, project) = (&fixture.backend.projects, "shop".parse().unwrap());
    let commit = "1".repeat(40).parse().unwrap();
    let wanted = Wanted { clone_url: "https://git.example/shop.git".parse().unwrap(), commit };
    projects.want(&project, &wanted).await.unwrap();
    let failed = VersionResult::Failed("its setup ended with status 3:\nno such package".to_owned().into());
    for (machine, result) in [("desk-7 (runner)", failed), ("host-1", VersionResult::Taken)] {
        let (project, wanted, machine) = (project.clone(), wanted.clone(), machine.to_owned().into());
        let report = VersionReport { project, wanted, machine, at: UnixMs(1_700_000_000_000), result };
        projects.note_version(&report).await.unwrap();
    }
    let at = "2023-11-14T22:13:20.000Z";
    let error = "its setup ended with status 3:\nno such package";
    assert_eq!(
        fixture.get(&format!("{PROJECTS}/shop")).await.body["machines"],
        json!([
            { "machine": "desk-7 (runner)", "at": at, "taken": false, "error": error },
            { "machine": "host-1", "at": at, "taken": true, "error": null },
        ])
    );
}

/// Returns an API over the same backend with a key, and the file that it is in.
async fn with_key(fixture: &Fixture) -> (Fixture, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), crate::support::KEY).unwrap();
    let secrets = Secrets { key_file: Some(file.path().to_owned()) };
    (fixture.also_with(Settings { secrets, ..Settings::default() }).await, file)
}

async fn a_secret_is_set_and_removed_and_no_answer_has_it(fixture: &Fixture) {
    make(fixture, "shop", &["books"]).await;
    let (sealing, _file) = with_key(fixture).await;
    let at = format!("{PROJECTS}/shop/secret");
    let set = sealing.post_json(&at, &json!({ "TOKEN": "s3cret" })).await;
    assert_eq!((set.status, &set.body["secret"]), (200, &true.into()), "{}", set.body);
    let stored = fixture.backend.projects.code(&["shop".parse().unwrap()]).await.unwrap().remove(0);
    let stored = stored.unwrap().secret.unwrap().unwrap();
    assert!(!stored.to_string().contains("s3cret"));
    for path in [PROJECTS.to_owned(), format!("{PROJECTS}/shop"), "/api/v1/logs".to_owned()] {
        let answer = fixture.get(&path).await;
        assert!(!answer.body.to_string().contains("s3cret"), "{path}");
    }
    let viewer = fixture.request(Method::POST, &at).bearer_auth(VIEWER).body("{}");
    assert_eq!(fixture.send(viewer).await.status, 403);
    let read = fixture.send(fixture.operator(Method::GET, &at)).await;
    assert_eq!(read.status, 405, "nobody reads it");
    let removed = fixture.send(fixture.operator(Method::DELETE, &at)).await;
    assert_eq!(removed.body["secret"], false);
    let nobody = sealing.post_json(&format!("{PROJECTS}/none/secret"), &json!({})).await;
    assert_eq!(nobody.status, 404);
}

async fn no_error_shows_a_secret(fixture: &Fixture) {
    make(fixture, "shop", &[]).await;
    let (sealing, _file) = with_key(fixture).await;
    let at = format!("{PROJECTS}/shop/secret");
    let long = json!({ "s3cret": "x".repeat(MAX_SECRET_BYTES) });
    for (body, status) in
        [(json!("s3cret"), 400), (json!(["s3cret"]), 400), (Value::from(7), 400), (long, 413)]
    {
        let answer = sealing.post_json(&at, &body).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(!answer.body.to_string().contains("s3cret"), "{}", answer.body);
    }
    let plain = sealing.send(sealing.operator(Method::POST, &at).body("{\"s3cret\": 1}")).await;
    assert_eq!(plain.status, 415);
    let keyless = fixture.post_json(&at, &json!({ "TOKEN": "s3cret" })).await;
    let detail = keyless.body["detail"].as_str().unwrap();
    assert!(
        keyless.status == 409 && detail.contains("secrets.key_file") && !detail.contains("s3cret"),
        "{detail}"
    );
}

//! Both engines keep every promise of projects, and no secret stands in what they store: the fleet's on a real Redis.

use std::sync::Arc;

use trawl_backends::embedded::Embedded;
use trawl_backends::redis::RedisProjects;
use trawl_common::ports::{ErrorKind, Grants, MAX_PROJECTS, Projects};
use trawl_common::project::{GrantedSecret, ProjectSecret};
use trawl_common::projects::{Keeper, set_secret};
use trawl_common::settings::Secrets;

use crate::support::own_link;

mod fleet {
    use super::*;

    pub(super) async fn projects() -> ((), Arc<dyn Projects>) {
        ((), Arc::new(RedisProjects::new(own_link().await)))
    }

    trawl_testkit::projects_conformance!(projects);
}

mod embedded {
    use super::*;

    pub(super) async fn projects() -> ((), Arc<dyn Projects>) {
        ((), Embedded::in_memory().unwrap().projects())
    }

    trawl_testkit::projects_conformance!(projects);
}

#[tokio::test]
async fn a_flood_of_projects_is_refused_and_those_that_are_made_stay() {
    for projects in [fleet::projects().await.1, embedded::projects().await.1] {
        for number in 0..MAX_PROJECTS {
            projects.create(&format!("p{number}").parse().unwrap()).await.unwrap();
        }
        let refused = projects.create(&"one-more".parse().unwrap()).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Refused);
        assert!(!projects.create(&"p7".parse().unwrap()).await.unwrap());
    }
}

/// Returns settings with a key, and the file that it is in.
fn key(digits: &str) -> (tempfile::NamedTempFile, Secrets) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), digits.repeat(32)).unwrap();
    let secrets = Secrets { key_file: Some(file.path().to_owned()) };
    (file, secrets)
}

#[tokio::test]
async fn a_worker_is_given_the_secret_of_its_spiders_project_under_the_right_key_alone() {
    for projects in [fleet::projects().await.1, embedded::projects().await.1] {
        let (shop, news) = ("shop".parse().unwrap(), "news".parse().unwrap());
        for (project, spider) in [(&shop, "books"), (&news, "papers")] {
            projects.create(project).await.unwrap();
            projects.add_spider(project, &spider.parse().unwrap()).await.unwrap();
        }
        let ((_file, right), (_other_file, wrong)) = (key("12"), key("34"));
        let secret = ProjectSecret::from_json(br#"{"TOKEN": "s3cret"}"#).unwrap();
        let unset = set_secret(&*projects, &Secrets::default(), &shop, &secret).await.unwrap_err();
        assert!(unset.to_string().contains("secrets.key_file"), "{unset}");
        assert!(set_secret(&*projects, &right, &shop, &secret).await.unwrap());
        let spiders = ["books", "papers", "other"].map(|name| name.parse().unwrap());
        let grants = async |secrets: &Secrets| {
            let keeper = Keeper::new(Arc::clone(&projects), secrets.key().unwrap());
            let grants = keeper.grants(&spiders).await.unwrap();
            grants.into_iter().map(|grant| grant.map(|grant| grant.secret)).collect::<Vec<_>>()
        };
        let given = GrantedSecret::Given(secret.clone());
        assert_eq!(grants(&right).await, [Some(given), Some(GrantedSecret::None), None]);
        for (secrets, why) in [(&Secrets::default(), "names no key"), (&wrong, "secrets.key_file holds")] {
            let denied = grants(secrets).await;
            let is_said = matches!(&denied[0], Some(GrantedSecret::Denied(text)) if text.contains(why));
            assert!(is_said && !format!("{denied:?}").contains("s3cret"), "{denied:?}");
        }
        // Somebody who may write to the store copies it to a project of their own.
        let sealed = projects
            .code(std::slice::from_ref(&shop))
            .await
            .unwrap()
            .remove(0)
            .unwrap()
            .secret
            .unwrap()
            .unwrap();
        projects.set_secret(&news, Some(&sealed)).await.unwrap();
        let copied = grants(&right).await;
        let is_said =
            matches!(&copied[1], Some(GrantedSecret::Denied(text)) if text.contains("another project"));
        assert!(is_said, "{copied:?}");
    }
}

#[tokio::test]
async fn a_state_file_holds_no_secret_in_the_clear() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crawl.db");
    let engine = Embedded::open(&path).unwrap();
    let (projects, name) = (engine.projects(), "shop".parse().unwrap());
    projects.create(&name).await.unwrap();
    let (_file, secrets) = key("12");
    let secret = ProjectSecret::from_json(br#"{"TOKEN": "s3cret"}"#).unwrap();
    set_secret(&*projects, &secrets, &name, &secret).await.unwrap();
    engine.close().await;
    let bytes = std::fs::read(&path).unwrap();
    let holds = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!holds("s3cret") && !holds("TOKEN") && holds("shop"));
}

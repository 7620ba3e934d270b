//! The secrets of projects, and runners that want them.

use std::sync::Arc;

use trawl_api::Backend;
use trawl_common::frontier::Task;
use trawl_common::names::SpiderName;
use trawl_common::ports::{Access, Claimed, Completion, NewWork, Terms};
use trawl_common::project::{Grant, GrantedSecret, ProjectSecret, SealedSecret, SealingKey};
use trawl_common::relay::{Claim, ReadGrants};
use trawl_common::task::NewTask;
use trawl_runner::CallError;
use trawl_testkit::attacks::Section;

use crate::fixture::{Serving, eventually};
use crate::lies::{Liar, done, tasks};
use crate::support;

const SECRET: &str = r#"{"TOKEN":"s3cret"}"#;

fn spider(name: &str) -> SpiderName {
    name.parse().unwrap()
}

/// Serves an API that has a key, and two projects: `shop` with the spider `books` and a secret, and `news` with `papers`.
async fn serving() -> Serving {
    let serving = Serving::start().await;
    for (project, owned) in [("shop", "books"), ("news", "papers")] {
        let project = project.parse().unwrap();
        serving.backend.projects.create(&project).await.unwrap();
        assert!(serving.backend.projects.add_spider(&project, &spider(owned)).await.unwrap());
    }
    set_secret(&serving.backend, "shop").await;
    serving
}

async fn set_secret(backend: &Backend, project: &str) {
    let (key, project): (SealingKey, _) = (support::KEY.parse().unwrap(), project.parse().unwrap());
    let secret = ProjectSecret::from_json(SECRET.as_bytes()).unwrap();
    let sealed = SealedSecret::seal(&secret, &project, &key);
    assert!(backend.projects.set_secret(&project, Some(&sealed)).await.unwrap());
}

/// Asks for the grant of the spider `books`.
async fn asked(liar: &Liar) -> Result<Option<Grant>, CallError> {
    let grants = liar.call(ReadGrants { spiders: vec![spider("books")] }).await;
    grants.map(|grants| grants.into_iter().next().flatten())
}

/// Describes what a runner got.
fn got(answer: &Result<Option<Grant>, CallError>) -> String {
    match answer {
        Ok(Some(Grant { secret: GrantedSecret::Denied(why), .. })) => format!("denied: {why}"),
        Ok(Some(Grant { secret: GrantedSecret::Given(secret), .. })) => format!("given: {secret:?}"),
        // Its session ends at the same time.
        Err(CallError::NoSession) => "refused: taken back".to_owned(),
        other => format!("refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_runner_that_may_do_a_projects_work_is_given_its_secret_and_that_of_no_other() {
    let serving = serving().await;
    let runner = serving.stranger("r1").await;
    serving.allow("r1", "shop", Access::Assign).await;
    let grants = trawl_runner::ports(Arc::clone(&runner.link)).grants;
    let asked = grants.grants(&["books", "papers", "other"].map(spider)).await.unwrap();
    let given = ProjectSecret::from_json(SECRET.as_bytes()).unwrap();
    let secrets: Vec<_> = asked.into_iter().map(|grant| grant.map(|grant| grant.secret)).collect();
    assert_eq!(secrets, [Some(GrantedSecret::Given(given)), Some(GrantedSecret::None), None]);
}

#[tokio::test]
async fn no_runner_reads_the_secret_of_a_project_whose_work_it_may_not_do() {
    let serving = serving().await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let (name, shop) = ("liar".parse().unwrap(), "shop".parse().unwrap());
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "Runners that want a project's secret");
    let denied = "denied: trawl runner approve liar --project shop";
    section.tried("without access", denied, &got(&asked(&liar).await));
    serving.allow("liar", "news", Access::Assign).await;
    section.tried("with access to another project", denied, &got(&asked(&liar).await));
    serving.allow("liar", "shop", Access::Submit).await;
    section.tried("with `submit` alone", denied, &got(&asked(&liar).await));
    serving.allow("liar", "shop", Access::Assign).await;
    section.tried("with `assign`: honest", "given: ***", &got(&asked(&liar).await));
    let Backend { runners, projects, .. } = &serving.backend;
    runners.revoke(&name, Some(&shop)).await.unwrap();
    section.tried(
        "with access that was taken back, at once, in the same session",
        denied,
        &got(&asked(&liar).await),
    );
    serving.allow("liar", "shop", Access::Assign).await;
    let copied =
        projects.code(std::slice::from_ref(&shop)).await.unwrap().remove(0).unwrap().secret.unwrap().unwrap();
    projects.set_secret(&"news".parse().unwrap(), Some(&copied)).await.unwrap();
    let read = liar.call(ReadGrants { spiders: vec![spider("papers")] }).await;
    let read = read.map(|mut grants| grants.remove(0));
    section.tried(
        "as a copy that was stored for the runner's own project",
        "denied: sealed for another project",
        &got(&read),
    );
    runners.forget(&name).await.unwrap();
    section.tried(
        "in the session of a runner that was forgotten",
        "refused: taken back",
        &got(&asked(&liar).await),
    );
    section.check();
}

#[tokio::test]
async fn what_a_spider_of_a_project_does_is_that_projects_work_whatever_the_task_names() {
    let serving = serving().await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let honest = serving.stranger("honest").await;
    serving.allow("honest", "shop", Access::Assign).await;
    let names_another = r#"{"recipe": "1", "project": "default"}"#;
    tasks(&serving.backend, "books", &[names_another]).await;
    tasks(&serving.backend, "free", &[r#""2""#]).await;
    let claimed = liar.call(Claim { tasks: true, most: 9 }).await.unwrap();
    let recipes: Vec<_> = claimed.iter().map(recipe).collect();
    assert_eq!(recipes, ["2"], "that of books is the shop's");
    let hand = honest.join();
    let mut got = Vec::new();
    eventually(async || {
        got.extend(hand.frontier.claim_tasks(9).await.unwrap());
        !got.is_empty()
    })
    .await;
    assert_eq!(got.iter().map(recipe).collect::<Vec<_>>(), ["1"]);
}

fn recipe(claimed: &Claimed) -> &str {
    claimed.message.work.task().unwrap().new.recipe.as_str()
}

#[tokio::test]
async fn work_handed_to_a_spider_of_a_project_needs_access_to_that_project_whatever_it_names() {
    let serving = serving().await;
    support::crawl(&serving.backend, "c1", "free", 1, Terms::default()).await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let Claimed { message, .. } = liar.claim().await;
    let to = spider("books");
    let task = NewTask::from_line(r#"{"recipe": "1", "project": "default"}"#).unwrap();
    let elsewhere = vec![(to.clone(), NewWork::task(Task::new(&to, task)))];
    liar.settle(&message, Completion { elsewhere, ..done(&message) }).await.unwrap();
    let failure = serving.backend.control.failure(&message.crawl, &message.key()).await.unwrap().unwrap();
    assert!(failure.cause.error.contains("--project shop --submit"), "{failure:?}");
}

#[tokio::test]
async fn a_project_that_is_forgotten_takes_the_access_of_runners_along() {
    let serving = serving().await;
    let runner = serving.stranger("r1").await;
    serving.allow("r1", "shop", Access::Assign).await;
    serving.allow("r1", "news", Access::Submit).await;
    let Backend { projects, runners, .. } = &serving.backend;
    let shop = "shop".parse().unwrap();
    trawl_common::projects::forget(&**projects, &**runners, &shop).await.unwrap();
    let left = runners.runner(&runner.name).await.unwrap().unwrap().access;
    assert_eq!(left, [("news".parse().unwrap(), Access::Submit)].into());
}

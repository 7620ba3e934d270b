//! People decide what a runner may do.

use trawl_common::ports::{Access, Claim, ErrorKind, RunnerKey};
use trawl_common::relay::{JoinFleet, Register};
use trawl_common::settings::Settings;
use trawl_runner::CallError;

use crate::fixture::{Serving, eventually};
use crate::support;

#[tokio::test]
async fn a_runner_waits_until_it_is_approved_and_begins_at_once() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 3, Default::default()).await;
    let runner = serving.stranger("r1").await;
    let registered = runner.link.register().await.unwrap();
    assert_eq!((registered.projects, registered.assigned.len(), registered.shared), (1, 0, None));
    let joining = JoinFleet { process: 1, prefetch: 9, tasks: 0 };
    let refused = runner.link.api().call(&joining, None, None).await.unwrap_err();
    assert!(matches!(refused, CallError::NotAllowed(why) if why.contains("waits to be approved")));
    serving.allow("r1", "default", Access::Assign).await;
    let registered = runner.link.register().await.unwrap();
    let shared = registered.shared.unwrap();
    assert_eq!(registered.assigned.iter().map(ToString::to_string).collect::<Vec<_>>(), ["default"]);
    assert_eq!(
        (shared.politeness, shared.fetch),
        (Settings::default().politeness, Settings::default().fetch)
    );
    assert_eq!(runner.join().claim(3).await.len(), 3);
}

#[tokio::test]
async fn what_is_taken_back_stops_at_once_and_is_handed_out_again() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 3, Default::default()).await;
    let (runner, other) = (serving.runner("r1").await, serving.runner("r2").await);
    let hand = runner.join();
    let claimed = hand.claim(3).await;
    serving.backend.runners.revoke(&runner.name, None).await.unwrap();
    assert_eq!(other.join().claim(3).await.len(), 3, "they are there for others");
    let messages: Vec<_> = claimed.iter().map(|claimed| &claimed.message).collect();
    assert_eq!(hand.frontier.extend(&messages).await.unwrap_err().0.kind, ErrorKind::Refused);
    assert!(runner.link.is_revoked());
}

#[tokio::test]
async fn what_is_taken_back_of_one_project_leaves_the_work_of_another() {
    let serving = Serving::start().await;
    let runner = serving.runner("r1").await;
    serving.allow("r1", "books", Access::Assign).await;
    let tasks = [r#"{"recipe": "1", "project": "books"}"#, r#""2""#];
    crate::lies::tasks(&serving.backend, "shop", &tasks).await;
    let hand = runner.join();
    let mut claimed = hand.frontier.claim_tasks(9).await.unwrap();
    while claimed.len() < 2 {
        claimed.extend(hand.frontier.claim_tasks(9).await.unwrap());
    }
    serving.backend.runners.revoke(&runner.name, Some(&"books".parse().unwrap())).await.unwrap();
    let messages: Vec<_> = claimed.iter().map(|claimed| &claimed.message).collect();
    let is_of_books = |at: usize| claimed[at].message.work.task().unwrap().new.project.is_some();
    eventually(async || {
        let held = hand.frontier.extend(&messages).await.unwrap();
        (0..2).all(|at| held[at] != is_of_books(at))
    })
    .await;
}

#[tokio::test]
async fn work_of_a_project_waits_for_none_of_another_that_nobody_does() {
    let serving = Serving::start().await;
    let runner = serving.stranger("r1").await;
    serving.allow("r1", "books", Access::Assign).await;
    let foreign: Vec<String> = (0..130).map(|number| format!("\"{number}\"")).collect();
    let own = r#"{"recipe": "own", "project": "books"}"#;
    let lines: Vec<&str> = foreign.iter().map(String::as_str).chain([own]).collect();
    crate::lies::tasks(&serving.backend, "shop", &lines).await;
    let hand = runner.join();
    let claimed =
        tokio::time::timeout(crate::fixture::LIMIT, hand.frontier.claim_tasks(5)).await.unwrap().unwrap();
    assert_eq!(claimed[0].message.work.task().unwrap().new.recipe.to_string(), "own");
}

#[tokio::test]
async fn a_runner_gets_no_work_of_projects_that_are_not_its_own() {
    let serving = Serving::start().await;
    serving.stranger("r1").await;
    let key = RunnerKey::generate();
    serving.backend.runners.ask(&"of-books".parse().unwrap(), &key.digest()).await.unwrap();
    serving.allow("of-books", "books", Access::Assign).await;
    let tasks = [r#""1""#, r#"{"recipe": "2", "project": "books"}"#];
    crate::lies::tasks(&serving.backend, "shop", &tasks).await;
    let hand = serving.known("of-books".parse().unwrap(), key).join();
    let claimed =
        tokio::time::timeout(crate::fixture::LIMIT, hand.frontier.claim_tasks(9)).await.unwrap().unwrap();
    let recipes: Vec<_> =
        claimed.iter().map(|claimed| claimed.message.work.task().unwrap().new.recipe.as_str()).collect();
    assert_eq!(recipes, ["2"]);
    let start = hand.frontier.start(&[Claim::new(&claimed[0].message)]).await.unwrap();
    assert_eq!(start, [trawl_common::frontier::StartReply::Go]);
}

#[tokio::test]
async fn a_name_belongs_to_the_key_that_took_it_first() {
    let serving = Serving::start().await;
    let runner = serving.runner("r1").await;
    let thief = serving.known(runner.name.clone(), RunnerKey::generate());
    let refused = thief.link.register().await.unwrap_err();
    assert!(matches!(refused, CallError::NotAllowed(why) if why.contains("another runner is called r1")));
    assert!(runner.link.register().await.is_ok());
    let nobody = serving.known("nobody".parse().unwrap(), RunnerKey::generate());
    let joining = nobody.link.api().call(&JoinFleet { process: 1, prefetch: 9, tasks: 0 }, None, None).await;
    assert!(matches!(joining.unwrap_err(), CallError::NotAllowed(_)));
}

#[tokio::test]
async fn of_two_processes_with_one_key_the_later_one_works_and_the_earlier_one_is_told() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 2, Default::default()).await;
    let first = serving.runner("r1").await;
    let one = first.join();
    let claimed = one.claim(2).await;
    let second = serving.known(first.name.clone(), first.key.clone());
    assert_eq!(second.join().claim(2).await.len(), 2, "the first holds them no more");
    let messages: Vec<_> = claimed.iter().map(|claimed| &claimed.message).collect();
    assert!(one.frontier.extend(&messages).await.is_err());
    assert!(first.link.is_revoked() && !second.link.is_revoked());
    let version = String::new();
    assert!(second.link.api().call(&Register { version }, None, None).await.is_ok());
}

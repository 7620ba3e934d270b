//! Tasks.

use tokio::time::timeout;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{StartReply, Task};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Completion, Disposition, NewWork};
use trawl_common::task::NewTask;

use super::servers::Servers;
use super::{B, LIMIT, Member, ends, links};

/// The message of an urgent task.
fn urgent(recipe: &str) -> Message {
    let new = NewTask { priority: 1.0.try_into().unwrap(), ..NewTask::from_recipe(recipe.parse().unwrap()) };
    let crawl = CrawlRef::adhoc();
    Message::new(Task::new(&crawl.spider, new).into(), crawl, Lane::Task)
}

#[tokio::test(start_paused = true)]
async fn a_more_urgent_task_comes_first_and_is_settled_though_its_message_is_still_to_come() {
    let servers = Servers::default();
    let task = servers.deliver_task("recipe");
    let member = Member::join(&servers, |_| {});
    let claim = async || timeout(LIMIT, member.frontier.claim_tasks(9)).await.unwrap().unwrap();
    let claimed = claim().await.remove(0);
    let first = urgent("first");
    servers.urge(first.clone());
    assert_eq!(member.frontier.start_task(&claimed).await.unwrap(), None);
    let both = claim().await;
    let keys: Vec<_> = both.iter().map(|claimed| claimed.message.key()).collect();
    assert_eq!(keys, [first.key(), task.clone()]);
    assert_eq!(member.frontier.start_task(&both[0]).await.unwrap(), Some(StartReply::Go));
    for claimed in both {
        let disposition = Disposition::Finish(Box::new(ends(&claimed.message, Terminal::Done)));
        member.settle(claimed.message, disposition).await.unwrap();
    }
    let first = first.key();
    let expected = [
        format!("claim {task}"),
        format!("start {task}"),
        format!("start {first}"),
        format!("finish {first}"),
        format!("finish {task}"),
        "ack 1".into(),
    ];
    assert_eq!(servers.calls(), expected);
}

/// Otherwise it would run twice at once.
#[tokio::test(start_paused = true)]
async fn an_urgent_task_that_the_worker_has_already_is_handed_out_once() {
    let servers = Servers::default();
    let task = servers.deliver_task("recipe");
    let member = Member::join(&servers, |_| {});
    let claimed = timeout(LIMIT, member.frontier.claim_tasks(9)).await.unwrap().unwrap().remove(0);
    servers.urge(claimed.message.clone());
    assert_eq!(member.frontier.start_task(&claimed).await.unwrap(), None);
    let again = timeout(LIMIT, member.frontier.claim_tasks(9)).await.unwrap().unwrap();
    assert_eq!(again.iter().map(|claimed| claimed.message.key()).collect::<Vec<_>>(), [task]);
}

#[tokio::test(start_paused = true)]
async fn an_urgent_task_that_is_sent_again_is_listed_before_it_is_confirmed() {
    let servers = Servers::default();
    let lost = urgent("lost");
    servers.lose(lost.clone());
    let _member = Member::join(&servers, |_| {});
    timeout(LIMIT, servers.until("confirm", 1)).await.unwrap();
    let key = lost.key();
    assert_eq!(servers.calls(), [format!("publish {key}"), format!("list {key}"), format!("confirm {key}")]);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_claimed_by_itself_and_settled_as_a_url_is() {
    let servers = Servers::default();
    let task = servers.deliver_task("recipe");
    let member = Member::join(&servers, |_| {});
    let claimed = timeout(LIMIT, member.frontier.claim_tasks(1)).await.unwrap().unwrap().remove(0);
    assert_eq!(claimed.message.key(), task);
    let disposition = links(&claimed.message);
    member.settle(claimed.message, disposition).await.unwrap();
    let expected = [
        format!("claim {task}"),
        format!("admit links of {task}"),
        format!("publish {B}"),
        format!("confirm {B}"),
        format!("finish {task}"),
        "ack 1".into(),
    ];
    assert_eq!(servers.calls(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_comes_back_to_a_worker_without_programs_is_sent_to_its_lane_unclaimed() {
    let servers = Servers::default();
    let task = servers.deliver_task("recipe");
    let _member = Member::join_for(&servers, 0, |_| {});
    servers.until("ack", 1).await;
    assert_eq!(servers.calls(), [format!("publish {task}"), "ack 1".into()]);
}

#[tokio::test(start_paused = true)]
async fn tasks_for_another_spider_are_published_before_their_parent_ends() {
    let servers = Servers::default();
    let task = servers.deliver_task("recipe");
    let member = Member::join(&servers, |_| {});
    let claimed = timeout(LIMIT, member.frontier.claim_tasks(1)).await.unwrap().unwrap().remove(0);
    let other = ("other".parse().unwrap(), NewWork::seed(B.parse().unwrap(), Lane::Bulk));
    let ending = Completion { elsewhere: vec![other], ..ends(&claimed.message, Terminal::Done) };
    member.settle(claimed.message, Disposition::Finish(Box::new(ending))).await.unwrap();
    let expected = [
        format!("claim {task}"),
        "take in for adhoc.other".into(),
        format!("publish {B}"),
        format!("confirm {B}"),
        format!("finish {task}"),
        "ack 1".into(),
    ];
    assert_eq!(servers.calls(), expected);
}

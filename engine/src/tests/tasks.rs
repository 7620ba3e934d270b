//! Tasks.

use tokio::time::timeout;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{Ending, NewUrl, Verdict};

use super::servers::Servers;
use super::{B, LIMIT, Member, ends, links};

#[tokio::test(start_paused = true)]
async fn a_task_is_claimed_by_itself_and_settled_as_a_url_is() {
    let servers = Servers::default();
    let task = servers.deliver_task("recipe");
    let member = Member::join(&servers, |_| {});
    let claimed = timeout(LIMIT, member.frontier.claim_tasks(1)).await.unwrap().remove(0);
    assert_eq!(claimed.message.key(), task);
    let verdict = links(&claimed.message);
    member.settle(claimed.message, verdict).await;
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
    let claimed = timeout(LIMIT, member.frontier.claim_tasks(1)).await.unwrap().remove(0);
    let other = ("other".parse().unwrap(), NewUrl::seed(B.parse().unwrap(), Lane::Bulk));
    let ending = Ending { elsewhere: vec![other], ..ends(&claimed.message, Terminal::Done) };
    member.settle(claimed.message, Verdict::Ends(Box::new(ending))).await;
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

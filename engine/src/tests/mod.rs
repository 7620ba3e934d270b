//! A member of a fleet on servers in memory: what is written in which order.

mod servers;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::dead_letter::Cause;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::frontier::{ClaimReply, Start};
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{
    Claim, Claimed, Ending, Engine, Error, ErrorKind, Finish, Frontier, Joined, Joining, NewUrl, Result,
    Settled, Settlement, Verdict,
};
use trawl_common::settings::{Acks, Settings};
use trawl_common::time::UnixMs;
use trawl_testkit::stand_ins::{AllRequests, NoPages};

use self::servers::{Fault, Servers};
use crate::coordinator::Coordinator;

/// So long no test waits, in its own time.
const LIMIT: Duration = Duration::from_secs(600);

/// A worker that has joined.
struct Member {
    frontier: Arc<dyn Frontier>,
    health: Arc<Health>,
    _maintenance: JoinSet<()>,
}

impl Member {
    fn join(servers: &Servers, set: impl FnOnce(&mut Settings)) -> Self {
        Self::join_for(servers, 10, set)
    }

    /// A worker that may hold so many tasks.
    fn join_for(servers: &Servers, tasks: u16, set: impl FnOnce(&mut Settings)) -> Self {
        let all = Arc::new(servers.clone());
        let engine = Coordinator::new(all.clone(), all, Arc::new(NoPages));
        let (mut settings, health) = (Settings::default(), Arc::<Health>::default());
        set(&mut settings);
        let Joined { frontier, maintenance } = engine.join(Joining {
            worker: "worker".parse().unwrap(),
            settings,
            health: Arc::clone(&health),
            requests: Arc::new(AllRequests),
            tasks,
            stop: CancellationToken::new(),
        });
        Self { frontier, health, _maintenance: JoinSet::from_iter([maintenance]) }
    }

    async fn claim(&self) -> Claimed {
        timeout(LIMIT, self.frontier.claim(1)).await.unwrap().remove(0)
    }

    /// The error that ends it.
    async fn fatal(&self) -> Error {
        timeout(LIMIT, self.health.fatal()).await.unwrap()
    }

    async fn settle(&self, message: Message, verdict: Verdict) -> Settled {
        timeout(LIMIT, self.frontier.settle(vec![Settlement { message, verdict }])).await.unwrap()
    }
}

fn ends(message: &Message, terminal: Terminal) -> Ending {
    Ending::of(Finish::new(Claim::of(message), terminal))
}

/// The end of a URL that becomes a dead letter.
fn fails(message: &Message) -> Verdict {
    let cause = Cause { attempts: 1, ..Cause::new(Reason::Final, "", UnixMs(0)) };
    Verdict::Ends(Box::new(Ending { dead_letter: Some(cause), ..ends(message, Terminal::Failed) }))
}

/// The end of a page that links to another.
fn links(message: &Message) -> Verdict {
    let links = vec![NewUrl::seed(B.parse().unwrap(), Lane::Bulk)];
    Verdict::Ends(Box::new(Ending { links, ..ends(message, Terminal::Done) }))
}

fn waits(_: &Message) -> Verdict {
    Verdict::PutAside { until: UnixMs::now().plus(Duration::from_secs(60)), failed: false }
}

/// What becomes of a URL.
type VerdictOf = fn(&Message) -> Verdict;

const A: &str = "http://site.example/a";
const B: &str = "http://site.example/b";

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_stored_before_its_record_ends_and_its_message_is_acknowledged_last() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    let verdict = fails(&claimed.message);
    member.settle(claimed.message, verdict).await;
    let expected = [
        format!("claim {A}"),
        format!("extend {A}"),
        format!("dead letter {A}"),
        format!("finish {A}"),
        "ack 1".into(),
    ];
    assert_eq!(servers.calls(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_a_page_links_to_is_on_its_way_before_the_page_ends() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    let verdict = links(&claimed.message);
    let settled = member.settle(claimed.message, verdict).await;
    assert_eq!(settled.ended[0].links.len(), 1);
    let expected = [
        format!("claim {A}"),
        format!("admit links of {A}"),
        format!("publish {B}"),
        format!("confirm {B}"),
        format!("finish {A}"),
        "ack 1".into(),
    ];
    assert_eq!(servers.calls(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_put_aside_goes_record_first_then_message_and_is_acknowledged_last() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    let verdict = waits(&claimed.message);
    member.settle(claimed.message, verdict).await;
    let calls = ["claim", "park record of", "park message of", "confirm"].map(|call| format!("{call} {A}"));
    assert_eq!(servers.calls(), [&calls[..], &["ack 1".to_owned()]].concat());
    assert_eq!(member.frontier.activity().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_held_goes_round_and_ends_nothing() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    servers.fault(Fault::NotHeld);
    let ending = ends(&claimed.message, Terminal::Done);
    let settled = member.settle(claimed.message, Verdict::Ends(Box::new(ending))).await;
    assert_eq!(settled, Settled::default());
    assert_eq!(
        servers.calls(),
        [format!("claim {A}"), format!("finish {A}"), format!("publish {A}"), "ack 1".into()]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_is_free_before_its_message_is() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    member.claim().await;
    timeout(LIMIT, member.frontier.release()).await.unwrap();
    assert_eq!(servers.calls(), [format!("claim {A}"), format!("release record of {A}"), "release 1".into()]);
    assert_eq!(member.frontier.activity(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_taken_any_more_once_a_worker_gives_back_what_it_has() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    member.claim().await;
    timeout(LIMIT, member.frontier.release()).await.unwrap();
    servers.deliver(B);
    sleep(Duration::from_secs(1)).await;
    assert!(!servers.calls().contains(&format!("claim {B}")), "{:#?}", servers.calls());
}

/// Most leases need no extension, and one may come to need it while others are extended.
#[tokio::test(start_paused = true)]
async fn what_is_held_is_not_taken_for_lost_because_leases_take_long_to_extend() {
    let servers = Servers::default();
    let member = Member::join(&servers, |_| {});
    servers.deliver(A);
    let first = member.claim().await.message;
    sleep(Duration::from_secs(1)).await;
    servers.deliver(B);
    let second = member.claim().await.message;
    // A lease is extended after five seconds.
    sleep(Duration::from_millis(4_500)).await;
    servers.fault(Fault::SlowLeases);
    assert_eq!(member.frontier.extend(&[&first, &second]).await, [true, true]);
}

/// Nobody acknowledges it any more: whoever gives it back publishes another.
#[tokio::test(start_paused = true)]
async fn a_message_that_was_acknowledged_when_its_url_began_gets_a_successor_when_it_is_given_back() {
    let servers = Servers::default();
    servers.deliver(A);
    let early = |settings: &mut Settings| settings.queues.bulk.acks = Acks::Early;
    let member = Member::join(&servers, early);
    let claimed = member.claim().await;
    assert_eq!(member.frontier.start(&[Claim::of(&claimed.message)]).await.unwrap(), [Start::Go]);
    timeout(LIMIT, member.frontier.release()).await.unwrap();
    let calls = servers.calls();
    assert_eq!(calls[..3], [format!("claim {A}"), format!("start {A}"), "ack 1".to_owned()]);
    assert_eq!(
        calls[3..],
        ["park record of", "park message of", "confirm"].map(|call| format!("{call} {A}"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_twice_is_claimed_once_and_both_are_acknowledged() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    servers.deliver(A);
    timeout(LIMIT, servers.until_taken()).await.unwrap();
    let ending = ends(&claimed.message, Terminal::Done);
    member.settle(claimed.message, Verdict::Ends(Box::new(ending))).await;
    assert_eq!(
        servers.calls(),
        [format!("claim {A}"), format!("finish {A}"), "ack 1".into(), "ack 2".into()]
    );
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_nothing_to_a_worker_never_reach_it() {
    let servers = Servers::default();
    servers.replies_to_claim(A, ClaimReply::Drop);
    servers.replies_to_claim(B, ClaimReply::Wait { until: UnixMs::now().plus(Duration::from_secs(60)) });
    servers.deliver(A);
    servers.deliver(B);
    let member = Member::join(&servers, |_| {});
    timeout(LIMIT, servers.until("ack", 2)).await.unwrap();
    assert!(timeout(Duration::from_secs(1), member.frontier.claim(1)).await.is_err());
    let calls = servers.calls();
    assert!(calls.contains(&format!("park message of {B}")), "{calls:#?}");
    assert!(!calls.iter().any(|call| call.contains("record")), "{calls:#?}");
    assert_eq!(member.frontier.activity().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_missing_answer_ends_the_worker_and_its_urls_are_given_back() {
    let servers = Servers::default();
    servers.fault(Fault::ShortAnswer);
    servers.deliver(A);
    servers.deliver(B);
    let member = Member::join(&servers, |_| {});
    let error = member.fatal().await;
    assert_eq!(error.to_string(), "claiming URLs: 1 answers for 2 messages");
    assert_eq!((error.kind, member.frontier.activity().in_flight), (ErrorKind::Corrupt, 2));
    servers.fault(Fault::None);
    timeout(LIMIT, member.frontier.release()).await.unwrap();
    let calls = servers.calls();
    assert_eq!(calls.iter().filter(|call| call.starts_with("release record of")).count(), 2, "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_step_of_settlement_ends_the_worker_and_an_outage_is_waited_for() {
    let finishes: VerdictOf = |message| Verdict::Ends(Box::new(ends(message, Terminal::Done)));
    let steps: [(&str, &str, VerdictOf); 10] = [
        ("claim", "claiming URLs", finishes),
        ("extend", "extending leases", fails),
        ("dead letter", "storing dead letters", fails),
        ("admit links of", "admitting links", links),
        ("publish", "publishing", links),
        ("confirm", "confirming", links),
        ("park record of", "putting aside", waits),
        ("park message of", "parking", waits),
        ("finish", "finishing", finishes),
        ("release record of", "giving back", |_| Verdict::Released),
    ];
    for (call, named, verdict) in steps {
        for fault in [Fault::Refused(call), Fault::Away(call)] {
            let servers = Servers::default();
            servers.fault(fault);
            servers.deliver(A);
            let member = Member::join(&servers, |_| {});
            let settled = async {
                let message = member.claim().await.message;
                let verdict = verdict(&message);
                member.settle(message, verdict).await
            };
            if fault == Fault::Refused(call) {
                let error = tokio::select! {
                    settled = settled => panic!("{call}: {settled:?}"),
                    error = member.fatal() => error,
                };
                assert_eq!(error.to_string(), format!("{named}: no permission"));
            } else {
                let back = async {
                    sleep(Duration::from_secs(30)).await;
                    servers.fault(Fault::None);
                };
                let (_, ()) = tokio::join!(settled, back);
                assert!(servers.calls().iter().any(|made| made.starts_with(call)), "{call}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_that_cannot_be_read_stands_still_and_the_worker_goes_on() {
    let servers = Servers::default();
    servers.fault(Fault::UnreadableCrawls);
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    timeout(LIMIT, servers.until("park message of", 1)).await.unwrap();
    let trouble = member.health.trouble().unwrap();
    assert_eq!(trouble, "looking up a crawl: max_pages is no number");
    servers.fault(Fault::None);
    servers.deliver(B);
    assert_eq!(member.claim().await.message.work.as_str(), B);
}

#[tokio::test(start_paused = true)]
async fn a_refused_start_is_an_error_and_an_outage_is_waited_for() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    let claims = [Claim::of(&claimed.message)];
    servers.fault(Fault::Refused("start"));
    assert!(member.frontier.start(&claims).await.is_err());
    servers.fault(Fault::Away("start"));
    let back = async {
        sleep(Duration::from_secs(30)).await;
        servers.fault(Fault::None);
    };
    let (started, ()) = tokio::join!(member.frontier.start(&claims), back);
    assert_eq!(started.unwrap(), [Start::Go]);
}

#[tokio::test(start_paused = true)]
async fn what_a_full_store_has_no_room_for_is_handed_back_and_keeps_no_other_from_its_end() {
    let servers = Servers::default();
    servers.deliver(A);
    servers.deliver(B);
    let member = Member::join(&servers, |_| {});
    let (a, b) = (member.claim().await.message, member.claim().await.message);
    servers.fault(Fault::NoRoomForLinks);
    let links = vec![NewUrl::seed("http://site.example/c".parse().unwrap(), Lane::Bulk)];
    let linking = Ending { links, ..ends(&a, Terminal::Done) };
    let held_back = Settlement { message: a, verdict: Verdict::Ends(Box::new(linking)) };
    let plain = Verdict::Ends(Box::new(ends(&b, Terminal::Done)));
    let settled =
        member.frontier.settle(vec![held_back.clone(), Settlement { message: b, verdict: plain }]).await;
    assert_eq!((settled.ended.len(), settled.no_room), (1, vec![held_back.clone()]));
    servers.fault(Fault::None);
    assert_eq!(member.frontier.settle(vec![held_back]).await.ended.len(), 1);
}

/// From the sweep.
#[tokio::test(start_paused = true)]
async fn what_others_lost_is_published_and_confirmed() -> Result<()> {
    let servers = Servers::default();
    let lost = Message::seed(A.parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk);
    servers.lose(lost);
    let _member = Member::join(&servers, |_| {});
    timeout(LIMIT, servers.until("confirm", 1)).await.unwrap();
    assert_eq!(servers.calls(), [format!("publish {A}"), format!("confirm {A}")]);
    Ok(())
}

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
async fn what_a_task_asks_for_of_another_spider_is_on_its_way_before_the_task_ends() {
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

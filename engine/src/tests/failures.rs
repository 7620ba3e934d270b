//! Tests of how a worker reacts to a failing server.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use trawl_common::frontier::StartReply;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{Claim, Completion, Disposition, ErrorKind, Fatal, NewWork, Settlement};

use super::servers::{Fault, Servers};
use super::{A, B, LIMIT, Member, VerdictOf, ends, fails, links, waits};

#[tokio::test(start_paused = true)]
async fn a_missing_answer_ends_the_worker_and_its_urls_are_released() {
    let servers = Servers::default();
    servers.fault(Fault::ShortAnswer);
    servers.deliver(A);
    servers.deliver(B);
    let member = Member::join(&servers, |_| {});
    let Fatal(error) = member.fatal().await;
    assert_eq!(error.to_string(), "claiming URLs: 1 answers for 2 messages");
    assert_eq!((error.kind, member.frontier.activity().in_flight), (ErrorKind::Corrupt, 2));
    servers.fault(Fault::None);
    timeout(LIMIT, member.frontier.release()).await.unwrap().unwrap();
    let calls = servers.calls();
    assert_eq!(calls.iter().filter(|call| call.starts_with("release record of")).count(), 2, "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_step_of_settlement_ends_the_worker_and_an_outage_is_waited_for() {
    let finishes: VerdictOf = |message| Disposition::Finish(Box::new(ends(message, Terminal::Done)));
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
        ("release record of", "giving back", |_| Disposition::Release),
    ];
    for (call, named, disposition) in steps {
        for fault in [Fault::Refused(call), Fault::Away(call)] {
            let servers = Servers::default();
            servers.fault(fault);
            servers.deliver(A);
            let member = Member::join(&servers, |_| {});
            let settled = async {
                let message = member.claim().await.message;
                let disposition = disposition(&message);
                member.settle(message, disposition).await
            };
            if fault == Fault::Refused(call) {
                let error = tokio::select! {
                    settled = settled => settled.unwrap_err(),
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
    let claims = [Claim::new(&claimed.message)];
    servers.fault(Fault::Refused("start"));
    assert!(member.frontier.start(&claims).await.is_err());
    servers.fault(Fault::Away("start"));
    let back = async {
        sleep(Duration::from_secs(30)).await;
        servers.fault(Fault::None);
    };
    let (started, ()) = tokio::join!(member.frontier.start(&claims), back);
    assert_eq!(started.unwrap(), [StartReply::Go]);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_a_full_store_is_returned_and_delays_no_other() {
    let servers = Servers::default();
    servers.deliver(A);
    servers.deliver(B);
    let member = Member::join(&servers, |_| {});
    let (a, b) = (member.claim().await.message, member.claim().await.message);
    servers.fault(Fault::StoreFullForLinks);
    let links = vec![NewWork::seed("http://site.example/c".parse().unwrap(), Lane::Bulk)];
    let linking = Completion { links, ..ends(&a, Terminal::Done) };
    let held_back = Settlement { message: a, disposition: Disposition::Finish(Box::new(linking)) };
    let plain = Disposition::Finish(Box::new(ends(&b, Terminal::Done)));
    let settled = member
        .frontier
        .settle(vec![held_back.clone(), Settlement { message: b, disposition: plain }])
        .await
        .unwrap();
    assert_eq!((settled.ended.len(), settled.not_stored), (1, vec![held_back.clone()]));
    servers.fault(Fault::None);
    assert_eq!(member.frontier.settle(vec![held_back]).await.unwrap().ended.len(), 1);
}

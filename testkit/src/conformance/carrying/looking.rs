//! The view of lanes and workers for operators.

use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{
    Browsers, Claim, Completion, Disposition, Error, Finish, Heartbeat, LaneName, Latency, NewWork, Places,
    Result, Terms,
};
use trawl_common::spider::FileHash;
use trawl_common::time::UnixMs;

use super::Carrier;
use crate::conformance::engine::LIMIT;
use crate::conformance::eventually;
use crate::conformance::fixture::{Case, much_later};

/// Waits until these lanes have this number of messages, and all others none.
async fn wait(carrier: &Carrier, expected: &[(LaneName, u64)]) -> Result<()> {
    let is_so = async || {
        let lanes = carrier.stats.lanes().await?;
        let waiting: Vec<_> = lanes
            .iter()
            .filter(|state| state.messages > 0)
            .map(|state| (state.lane, state.messages))
            .collect();
        Ok(waiting == expected)
    };
    eventually(LIMIT, is_so).await
}

/// The lanes show their number of waiting messages, without those that workers hold. Every lane is listed, in a fixed
/// order.
pub async fn the_lanes_show_how_much_waits_where(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let session = carrier.open(&case, Terms::default()).await?;
    let urgent = NewWork::seed(case.url(2), Lane::Priority);
    session.admit(&[case.new_work(0), case.new_work(1), urgent]).await?;
    wait(carrier, &[(LaneName::Priority, 1), (LaneName::Bulk, 2)]).await?;
    let names: Vec<_> = carrier.stats.lanes().await?.iter().map(|state| state.lane).collect();
    let known: Vec<_> = LaneName::ALL.into_iter().filter(|lane| names.contains(lane)).collect();
    assert_eq!(names, known);
    let worker = carrier.join(&case);
    let claimed = worker.claim_pages(3).await;
    wait(carrier, &[]).await?;
    worker.settle(claimed[&1].clone(), Disposition::Snooze { until: much_later() }).await;
    let note = case.note(2, Terminal::Failed);
    let finish = Finish {
        note: Some(note.clone()),
        ..Finish::new(Claim::new(&claimed[&2].message), Terminal::Failed)
    };
    let ending = Completion { dead_letter: Some(note.cause), ..Completion::new(finish) };
    worker.settle(claimed[&2].clone(), Disposition::Finish(Box::new(ending))).await;
    wait(carrier, &[(LaneName::Wait, 1), (LaneName::Failed, 1)]).await
}

/// The places of a crawl's URLs are known: those of each worker by its name, and when the first parked one comes back.
pub async fn it_is_known_where_the_urls_of_a_crawl_are(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    carrier.begin(&case, 4, Terms::default()).await?;
    let places = carrier.stats.places(&case.crawl).await?;
    assert_eq!(places, Places { queued: 4, is_all: true, ..Places::default() });
    let worker = carrier.join(&case);
    let claimed = worker.claim_pages(4).await;
    worker.settle(claimed[&0].clone(), Disposition::Snooze { until: much_later() }).await;
    worker.finish(claimed[&1].clone()).await;
    worker.settle(claimed[&2].clone(), Disposition::Retry { until: much_later() }).await;
    let places = carrier.stats.places(&case.crawl).await?;
    assert_eq!((places.queued, places.parked, places.retried, places.is_all), (0, 2, 1, true));
    assert_eq!(places.held, [(case.worker.clone(), 1)].into());
    assert!(places.next.is_some_and(|next| next > UnixMs::now() && next <= much_later()));
    assert_eq!(carrier.stats.places(&case.next_crawl().crawl).await?.held, [].into());
    Ok(())
}

/// The last heartbeat of a worker is shown. A worker that has sent none is unknown, and one that has ended is not
/// missing.
pub async fn the_heartbeat_of_a_worker_is_shown(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let browsers =
        Browsers { running: 1, pages: 2, waiting: 3, memory: 4, cpu_seconds: 5, rendered: 6, died: 7 };
    let beat = |latency, trouble: Option<&str>| Heartbeat {
        worker: case.worker.clone(),
        version: "0".into(),
        in_flight: 7,
        pages_per_second: 2.5,
        latency,
        trouble: trouble.map(str::to_owned),
        lacks: trouble
            .map(|_| (case.crawl.spider.clone(), "its file is not there".to_owned()))
            .into_iter()
            .collect(),
        troubles: trouble
            .map(|_| (case.crawl.spider.clone(), "its sink is away".to_owned()))
            .into_iter()
            .collect(),
        running: [("task:1".to_owned(), UnixMs(7))].into(),
        programs: [(case.crawl.spider.clone(), FileHash::from_text("x"))].into(),
        outdated: [(case.crawl.spider.clone(), "its file is broken".to_owned())].into(),
        behind: [(case.crawl.spider.clone(), 7)].into(),
        browsers: Some(browsers),
    };
    let shown = async || {
        let all = carrier.stats.workers().await?;
        Ok::<_, Error>(all.into_iter().find(|state| state.worker == case.worker))
    };
    assert_eq!(shown().await?, None);
    let latency = Some(Latency { p50_ms: 120, p95_ms: 4_800 });
    worker.frontier.beat(&beat(latency, None)).await?;
    let state = shown().await?.expect("it lives");
    assert_eq!((state.in_flight, state.pages_per_second, state.latency), (7, 2.5, latency));
    assert!(state.is_well() && state.lacks.is_empty() && state.troubles.is_empty());
    assert_eq!(state.running, [("task:1".to_owned(), UnixMs(7))].into());
    assert_eq!(state.programs, [(case.crawl.spider.clone(), FileHash::from_text("x"))].into());
    assert_eq!(state.outdated, [(case.crawl.spider.clone(), "its file is broken".to_owned())].into());
    assert_eq!(state.behind, [(case.crawl.spider.clone(), 7)].into());
    assert_eq!(state.browsers, Some(browsers));
    worker.frontier.beat(&beat(None, Some("redis is away"))).await?;
    let state = shown().await?.expect("it lives");
    assert_eq!((state.latency, state.health.as_str()), (None, "redis is away"));
    assert_eq!(state.lacks, [(case.crawl.spider.clone(), "its file is not there".to_owned())].into());
    assert_eq!(state.troubles, [(case.crawl.spider.clone(), "its sink is away".to_owned())].into());
    worker.frontier.release().await?;
    assert_eq!(shown().await?, None);
    assert_eq!(carrier.stats.vanished().await?, []);
    Ok(())
}

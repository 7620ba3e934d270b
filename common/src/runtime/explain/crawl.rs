//! Explains why a crawl makes no progress.

use super::host::LEFT_ALONE;
use super::{Explainer, Workers, host, lack, now, shortened};
use crate::frontier::crawl::{CrawlState, CrawlStats, HostStats};
use crate::names::CrawlId;
use crate::nearest::listed;
use crate::ports::{HostState, Places, Result, Stats};
use crate::settings::Politeness;
use crate::text::counted;
use crate::time::UnixMs;

/// Maximum number of hosts of a crawl whose state is checked: those with the most URLs.
const MAX_HOSTS: usize = 1_000;

/// Maximum number of held hosts, or of crawls ahead, that are named.
const MAX_NAMED: usize = 5;

/// The next step where hosts are in a back-off.
const ASKED_AGAIN: &str = "hosts that are left alone are asked again by themselves; if they refuse again and again, lower their rate ([[politeness.host]]), \
     or ask their owners";

impl Explainer<'_> {
    /// Returns the known reasons why a crawl's URLs are waiting: a person, hosts, what workers report, or that there
    /// are none. Empty for a crawl that is over.
    pub async fn waits(&self, stats: &CrawlStats) -> Result<Vec<String>> {
        if stats.status.is_over() {
            return Ok(Vec::new());
        }
        let crawl = stats.crawl_ref();
        let facts = Facts {
            stats,
            hosts: self.stats.hosts(&crawl, MAX_HOSTS).await?,
            states: self.hosts.hosts().await?,
            places: self.stats.places(&crawl).await?,
            workers: Workers::ask(self).await?,
            politeness: &self.settings.politeness,
            ahead: self.ahead(stats).await?,
            now: now(),
        };
        let words = facts.words();
        // Only then the queues are looked at: they cost the broker as many requests.
        if !words.is_empty() || !facts.may_lack_messages() {
            return Ok(words);
        }
        let lanes = self.stats.lanes().await.unwrap_or_default();
        let is_empty = !lanes.is_empty()
            && lanes.iter().all(|lane| lane.lane.source_queue().is_none() || lane.messages == 0);
        let (queued, patience) = (counted(facts.places.queued, "URL"), self.settings.recovery.lost_after);
        Ok(Vec::from_iter(is_empty.then(|| {
            format!("{queued} have no message in a queue, as after a crash: each is sent again within {patience:?} or so")
        })))
    }
}

impl Explainer<'_> {
    /// Returns the crawls that a crawl in the queue of jobs waits for, as its spider runs no more at once.
    async fn ahead(&self, stats: &CrawlStats) -> Result<Vec<CrawlId>> {
        if stats.status != CrawlState::Pending {
            return Ok(Vec::new());
        }
        let open = self.stats.open_crawls(&stats.spider).await?.into_iter();
        let ahead = open.filter(|other| other.crawl != stats.crawl && !other.crawl_ref().is_adhoc());
        let ahead: Vec<CrawlId> = ahead.map(|other| other.crawl).collect();
        let most = self.settings.jobs.per_spider.get() as usize;
        Ok(if ahead.len() < most { Vec::new() } else { ahead })
    }
}

/// Returns what delays a crawl as far as its workers and records say: cheaper than [`Explainer::waits`], for a line of
/// progress.
pub async fn delays(from: &dyn Stats, stats: &CrawlStats) -> Result<Vec<String>> {
    let (workers, spider) = (Workers { living: from.workers().await?, ..Workers::default() }, &stats.spider);
    let (lack, behind) = (lack(&workers.living, spider), workers.behind(spider));
    let troubles = workers.troubles(spider, lack.is_some());
    let troubles: Vec<String> = lack.into_iter().chain(troubles).chain(behind).collect();
    Ok(match (stats.status, &*troubles) {
        (CrawlState::Paused, _) => vec![match &stats.held {
            Some(why) => format!("it is paused: {why}"),
            None => "it is paused".to_owned(),
        }],
        (_, []) if workers.living.is_empty() => vec!["no worker lives".to_owned()],
        (_, []) => put_aside(stats, &from.places(&stats.crawl_ref()).await?).into_iter().collect(),
        _ => troubles,
    })
}

/// The facts about a crawl that is not over.
struct Facts<'a> {
    stats: &'a CrawlStats,
    /// The hosts of the crawl.
    hosts: Vec<HostStats>,
    /// The states of all hosts.
    states: Vec<HostState>,
    places: Places,
    workers: Workers,
    politeness: &'a Politeness,
    /// The crawls that it waits for in the queue of jobs.
    ahead: Vec<CrawlId>,
    now: UnixMs,
}

impl Facts<'_> {
    fn words(&self) -> Vec<String> {
        let mut all = Vec::new();
        all.extend(self.status());
        all.extend(self.workers.nobody());
        if self.stats.pending > 0 {
            all.extend(self.places.held.keys().filter_map(|holder| self.workers.loss(holder)));
            let hosts = self.hosts();
            let is_backed_off = hosts.iter().any(|words| words.contains(LEFT_ALONE));
            all.extend(shortened(hosts, MAX_NAMED, "hosts are not asked now"));
            all.extend(is_backed_off.then(|| ASKED_AGAIN.to_owned()));
            let lack = lack(&self.workers.living, &self.stats.spider);
            let is_said = lack.is_some();
            all.extend(lack);
            if all.is_empty() {
                all.extend(put_aside(self.stats, &self.places));
            }
            all.extend(self.workers.behind(&self.stats.spider));
            all.extend(self.workers.troubles(&self.stats.spider, is_said));
        }
        all
    }

    /// Whether all its URLs should be in queues, and no worker is busy.
    fn may_lack_messages(&self) -> bool {
        let Places { queued, parked, held, .. } = &self.places;
        let is_idle = self.workers.living.iter().all(|worker| worker.in_flight == 0);
        *queued > 0 && *parked == 0 && held.is_empty() && self.workers.is_fleet && is_idle
    }

    fn status(&self) -> Option<String> {
        let CrawlStats { crawl, status, pending, discovered, .. } = self.stats;
        match (status, pending) {
            (CrawlState::Pending, _) if !self.ahead.is_empty() => {
                let ahead = listed(self.ahead.iter().take(MAX_NAMED).map(CrawlId::as_str));
                Some(format!("it waits for the end of {ahead}: its spider runs no more crawls at once (`jobs.per_spider`)"))
            }
            (CrawlState::Pending, _) => Some("it waits in the queue of jobs until a worker begins it".to_owned()),
            (CrawlState::Paused, _) => Some(format!("it is paused: `trawl resume {crawl}`")),
            (CrawlState::Running, 0) if self.stats.crawl_ref().is_adhoc() => None,
            (CrawlState::Running, 0) if *discovered => Some(
                "all its URLs have ended: it is finished as soon as it is certain that no message of another is under way".to_owned(),
            ),
            (CrawlState::Running, 0) => Some(
                "its sources are still being read; if nobody reads them any more, run the same command once more".to_owned(),
            ),
            _ => None,
        }
    }

    /// Reports the hosts of the crawl that are in a back-off or blocked.
    fn hosts(&self) -> Vec<String> {
        let waiting = self.hosts.iter().filter(|stats| stats.pending() > 0);
        host::not_asked(&self.states, waiting, self.politeness, self.now)
    }
}

/// Reports that no worker could take a URL now.
fn put_aside(CrawlStats { crawl, .. }: &CrawlStats, places: &Places) -> Option<String> {
    let Places { queued, parked, retried, next, held, is_all } = places;
    let next = next.filter(|_| *queued == 0 && held.is_empty() && *parked > 0)?;
    let all = match is_all {
        true => "all its URLs".to_owned(),
        false => format!("all of {} that were looked at", counted(*parked, "URL")),
    };
    let why = match retried {
        0 => String::new(),
        retried if retried == parked => {
            format!("; they have failed and are tried again: `trawl logs --crawl {crawl}` says why")
        }
        retried => {
            format!(
                "; {retried} of {parked} have failed and are tried again: `trawl logs --crawl {crawl}` says why"
            )
        }
    };
    Some(format!("{all} are put aside, the first until {next}{why}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::frontier::crawl::Counts;
    use crate::names::CrawlRef;
    use crate::ports::{HostBackoff, Vanished, WorkerState};
    use crate::web::host::HostKey;

    const NOW: UnixMs = UnixMs(1_700_000_000_000);

    fn stats(pending: u64) -> CrawlStats {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "default".parse().unwrap() };
        CrawlStats { pending, discovered: true, ..CrawlStats::empty(crawl, CrawlState::Running, NOW) }
    }

    fn worker(name: &str, health: &str) -> WorkerState {
        WorkerState { health: health.to_owned(), ..WorkerState::idle(name.parse().unwrap()) }
    }

    fn workers(living: Vec<WorkerState>) -> Workers {
        Workers { living, vanished: Vec::new(), is_fleet: true, lease: Duration::from_secs(15) }
    }

    fn words(stats: &CrawlStats, change: impl FnOnce(&mut Facts<'_>)) -> Vec<String> {
        let politeness = Politeness::default();
        let mut facts = Facts {
            stats,
            hosts: Vec::new(),
            states: Vec::new(),
            places: Places { queued: stats.pending, is_all: true, ..Places::default() },
            workers: workers(vec![worker("w1", WorkerState::WELL)]),
            politeness: &politeness,
            ahead: Vec::new(),
            now: NOW,
        };
        change(&mut facts);
        facts.words()
    }

    fn host(name: &str, until: UnixMs, blocked: Option<UnixMs>) -> HostState {
        HostState {
            key: HostKey::from_text(name),
            interval: None,
            next: NOW,
            line: NOW,
            under_way: 0,
            requests: 0,
            latency: None,
            backoff: Some(HostBackoff { since: NOW, until, strikes: 1, status: 503 }),
            blocked,
        }
    }

    #[test]
    fn a_crawl_that_makes_progress_needs_no_explanation() {
        assert_eq!(words(&stats(7), |_| {}), Vec::<String>::new());
    }

    #[test]
    fn it_names_the_hosts_of_the_crawl_that_are_left_alone_and_until_when() {
        let until = NOW.plus(Duration::from_secs(60));
        let found = words(&stats(3), |facts| {
            facts.states = vec![
                host("busy.example", until, None),
                host("calm.example", NOW, None),
                host("forbidden.example", NOW, Some(NOW)),
                host("of-another-crawl.example", until, None),
            ];
            let of = |host: &str| HostStats {
                host: host.to_owned(),
                counts: Counts { admitted: 2, done: 1, ..Counts::default() },
                bytes: 0,
            };
            facts.hosts = ["busy.example:8080", "calm.example", "forbidden.example"].map(of).to_vec();
        });
        assert_eq!(
            found,
            [
                format!("busy.example answered 503 and is left alone until {until}"),
                "forbidden.example is blocked: `trawl hosts unblock forbidden.example` lifts that".to_owned(),
                ASKED_AGAIN.to_owned(),
            ]
        );
    }

    #[test]
    fn of_many_hosts_it_names_a_few() {
        let found = words(&stats(30), |facts| {
            let until = NOW.plus(Duration::from_secs(60));
            facts.states =
                (0..30).map(|number| host(&format!("h{number:02}.example"), until, None)).collect();
            let counts = Counts { admitted: 1, ..Counts::default() };
            facts.hosts = (0..30)
                .map(|number| HostStats { host: format!("h{number:02}.example"), counts, bytes: 0 })
                .collect();
        });
        assert_eq!((found.len(), &*found[MAX_NAMED]), (MAX_NAMED + 2, "25 more hosts are not asked now"));
    }

    #[test]
    fn it_is_explained_that_no_worker_runs_and_that_one_vanished_with_urls_of_the_crawl() {
        let found = words(&stats(2), |facts| {
            let gone = Vanished { worker: "w2".parse().unwrap(), seen: NOW, in_flight: 2 };
            facts.workers = Workers { vanished: vec![gone], ..workers(Vec::new()) };
            facts.places.held = [("w2".parse().unwrap(), 2)].into();
        });
        assert_eq!(
            found,
            [
                "no worker lives: start one with `worker`".to_owned(),
                format!(
                    "the worker w2 has said nothing since {NOW}: others take over what it held within 15s"
                ),
            ]
        );
    }

    #[test]
    fn what_a_vanished_worker_held_is_taken_over_in_time_by_those_that_live() {
        let gone = Vanished { worker: "w2".parse().unwrap(), seen: NOW, in_flight: 2 };
        let said = |living, later: u64| workers(living).vanished(&gone, NOW.plus(Duration::from_secs(later)));
        let living = || vec![worker("w1", WorkerState::WELL)];
        for (living, later) in [(living(), 5), (Vec::new(), 960)] {
            assert!(said(living, later).ends_with("and held 2 URLs, which others take over"));
        }
        assert!(said(living(), 960).ends_with("and held 2 URLs then, which others have taken over"));
    }

    #[test]
    fn it_is_explained_until_when_all_urls_are_parked_and_what_workers_report() {
        let until = NOW.plus(Duration::from_secs(60));
        let found = words(&stats(2), |facts| {
            facts.places = Places { parked: 2, next: Some(until), is_all: true, ..Places::default() };
            facts.workers = workers(vec![worker("w1", "redis is full")]);
        });
        let put_aside = format!("all its URLs are put aside, the first until {until}");
        let trouble = "the worker w1 goes on by itself once this is mended: redis is full".to_owned();
        assert_eq!(found, [put_aside, trouble]);
        for (retried, said) in [(2, "they have failed"), (1, "1 of 2 have failed")] {
            let found = words(&stats(2), |facts| {
                let parked = Places { parked: 2, next: Some(until), is_all: true, ..Places::default() };
                facts.places = Places { retried, ..parked };
            });
            let crawl = &stats(2).crawl;
            let why = format!("; {said} and are tried again: `trawl logs --crawl {crawl}` says why");
            assert!(matches!(&*found, [words] if words.ends_with(&why)), "{found:?}");
        }
    }

    #[test]
    fn a_crawl_names_no_trouble_of_another_spider() {
        let of = |spider: &str| {
            words(&stats(2), |facts| {
                let health = format!("spider {spider}: postgres: connection refused");
                facts.workers = workers(vec![worker("w1", &health)]);
            })
        };
        assert_eq!(of("shop"), Vec::<String>::new());
        let trouble = "the worker w1 goes on by itself once this is mended: spider default: postgres: connection refused";
        assert_eq!(of("default"), [trouble]);
    }

    #[test]
    fn a_crawl_names_its_own_trouble_where_workers_have_others_too() {
        let found = words(&stats(2), |facts| {
            let troubled = |name| WorkerState {
                troubles: [("default".parse().unwrap(), "spider default: postgres: refused".to_owned())]
                    .into(),
                ..worker(name, "spider shop: postgres: refused")
            };
            facts.workers = workers(vec![troubled("w1"), troubled("w2"), worker("w3", "redis is full")]);
        });
        let expected = [
            "the worker w3 goes on by itself once this is mended: redis is full",
            "2 workers go on by themselves once this is mended: spider default: postgres: refused",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn it_is_explained_what_no_worker_has_and_nothing_where_one_has_it() {
        let why = "[handler] run: there is no program `python9` in PATH";
        let lacks = || [("default".parse().unwrap(), why.to_owned())].into();
        let explained = words(&stats(1), |facts| {
            let health = format!("spider default: {why}: it is left to other workers");
            facts.workers = workers(vec![WorkerState { lacks: lacks(), ..worker("w1", &health) }]);
        });
        assert_eq!(explained, [format!("no worker can work for the spider default: {why}")]);
        let explained = words(&stats(3), |facts| {
            facts.workers.living[0].lacks = lacks();
            facts.workers.living.push(worker("w2", WorkerState::WELL));
        });
        assert_eq!(explained, Vec::<String>::new());
    }

    #[test]
    fn a_program_that_is_the_limit_is_named_with_what_helps() {
        let found = words(&stats(500), |facts| {
            facts.workers = workers(vec![worker("w1", WorkerState::WELL), worker("w2", WorkerState::WELL)]);
            facts.workers.living[0].behind = [("default".parse().unwrap(), 200)].into();
            facts.workers.living[1].behind =
                [("default".parse().unwrap(), 39), ("shop".parse().unwrap(), 50)].into();
        });
        let expected = "239 pages or tasks wait for the spider's program, which is the limit: set `concurrency` under [handler], or start more workers";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn it_is_explained_that_it_is_paused_queued_or_still_fed() {
        let of = |status, discovered| {
            let stats = CrawlStats { status, discovered, ..stats(0) };
            words(&stats, |_| {}).remove(0)
        };
        assert_eq!(of(CrawlState::Paused, true), "it is paused: `trawl resume c1`");
        assert!(of(CrawlState::Pending, false).contains("in the queue of jobs"));
        let behind = CrawlStats { status: CrawlState::Pending, ..stats(0) };
        let found = words(&behind, |facts| facts.ahead = vec!["c0".parse().unwrap()]);
        let expected =
            "it waits for the end of `c0`: its spider runs no more crawls at once (`jobs.per_spider`)";
        assert_eq!(found, [expected]);
        assert!(of(CrawlState::Running, false).contains("sources are still being read"));
        assert!(of(CrawlState::Running, true).contains("as soon as it is certain"));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_the_workers_that_go_by_an_older_version() {
        let outdated = |name| WorkerState {
            outdated: [("shop".parse().unwrap(), "2 mistakes".to_owned())].into(),
            ..worker(name, WorkerState::WELL)
        };
        let rest = "by an older version of the spider shop: its file cannot be used: 2 mistakes";
        let one = super::super::outdated(&[outdated("w1"), worker("w2", WorkerState::WELL)]);
        assert_eq!(one, [format!("the worker w1 goes {rest}")]);
        assert_eq!(
            super::super::outdated(&[outdated("w1"), outdated("w2")]),
            [format!("2 workers go {rest}")]
        );
    }

    #[test]
    fn it_is_explained_that_every_worker_is_draining() {
        let found = words(&stats(1), |facts| facts.workers.living[0].draining = true);
        assert_eq!(found, ["every worker that lives was asked to end: start another with `worker`"]);
    }
}

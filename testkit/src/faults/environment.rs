//! A scenario on its private servers: sets it up, watches it, and judges it when all its crawls have ended.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::clock::Clock;
use super::dead_letters::DeadLetters;
use super::end::End;
use super::fleet::{Fleet, Programs};
use super::inject::{CONCURRENCY, Injector, PREFETCH};
use super::kind::Kind;
use super::ledger::{Facts, Injected, ItemLine, Judgement};
use super::options::Options;
use super::outcome::Outcome;
use super::private::{POLL_INTERVAL, PrivateServers};
use super::scenario::{BEFORE, CRAWL, Crawl, PROGRAMS, RARE, Sink, sections};
use super::stored::{self, Stored};
use super::timeline::Timeline;
use super::web::{Progress, Web};

/// Maximum time until confirmed dead letters and events arrive.
const DELIVERY: Duration = Duration::from_secs(10);
/// The folder with the files of all spiders, and the folder of the first worker.
const SPIDERS: [&str; 2] = ["spiders", "spiders-of-the-first"];

/// A fault that the fleet needs time to recover from.
#[derive(Clone, Debug)]
pub struct Past {
    /// The fault.
    pub fault: Injected,
    /// Number of pages of each site that were announced by then.
    pub announced: Vec<usize>,
}

/// A running crawl.
pub struct UnderWay {
    /// The crawl.
    pub crawl: Crawl,
    /// Its site.
    pub web: Web,
    end: End,
}

/// Servers, sites, workers and observers. All of them end when this is dropped.
pub struct Environment {
    /// The crawls, each with its site.
    pub crawls: Vec<UnderWay>,
    /// The workers and the producers.
    pub fleet: Fleet,
    /// The servers.
    pub injector: Injector,
    /// The log of the run.
    pub timeline: Timeline,
    options: Options,
    start: Instant,
    dead_letters: DeadLetters,
}

impl Environment {
    /// Starts servers, sites and workers, but no crawl yet.
    ///
    /// # Errors
    /// If one of them does not start.
    pub async fn set_up(options: &Options) -> io::Result<Self> {
        let start = Instant::now();
        let timeline = Timeline::new(start, options.aloud);
        let Options { scenario, seed, faults, pages, folder, .. } = options;
        timeline.note(format!("{scenario}, seed {seed}: {faults} faults over {pages} pages"));
        let servers = Arc::new(PrivateServers::prepare(&folder.join("servers")).await?);
        let crawls = scenario.crawls(*pages, *seed);
        let has_database = crawls.iter().any(|crawl| crawl.sinks.contains(&Sink::Table));
        let injector = Injector::set_up(&servers, options.lost_after, start, has_database).await?;
        std::fs::write(folder.join("trawl.toml"), sections(&[Sink::Files]))?;
        let needs_clock = options.kinds.contains(&Kind::WorkerClock);
        let lacks_file = crawls.iter().any(|crawl| crawl.spider == Some(RARE));
        let first = lacks_file.then(|| ("TRAWL__SPIDERS_DIR".to_owned(), SPIDERS[1].to_owned()));
        let programs = Programs {
            trawl: options.trawl.clone(),
            folder: folder.clone(),
            env: injector.env(),
            clock: needs_clock.then(|| Clock::new(folder)).transpose()?,
            old: options.old.clone(),
            first: first.into_iter().collect(),
        };
        for folder in SPIDERS {
            let folder = programs.folder.join(folder);
            std::fs::create_dir(&folder)?;
            for (program, text) in PROGRAMS {
                std::fs::write(folder.join(program), text)?;
            }
        }
        let mut under_way = Vec::new();
        for crawl in crawls {
            let web = Web::serve_units(crawl.units, crawl.spider, crawl.layout.clone(), start).await?;
            if let Some((spider, text)) = crawl.file(&web.source()) {
                let folders = if spider == RARE { &SPIDERS[..1] } else { &SPIDERS[..] };
                for folder in folders {
                    std::fs::write(programs.folder.join(format!("{folder}/{spider}.toml")), &text)?;
                }
            }
            let end = End::watch(crawl.id, programs.clone(), timeline.clone(), start);
            under_way.push(UnderWay { crawl, web, end });
        }
        let crawls = under_way;
        let fleet = Fleet::start(programs, options.workers, timeline.clone())?;
        let dead_letters = DeadLetters::read(servers.broker);
        timeline.note("the fleet is up");
        Ok(Self { crawls, fleet, injector, timeline, options: options.clone(), start, dead_letters })
    }

    /// Returns the site of the first crawl.
    pub fn web(&self) -> &Web {
        &self.crawls[0].web
    }

    /// Runs the earlier crawl of each site that is to have one.
    ///
    /// # Errors
    /// If it does not complete.
    pub async fn crawl_before(&self) -> io::Result<()> {
        for UnderWay { crawl, web, .. } in self.crawls.iter().filter(|crawl| crawl.crawl.is_again()) {
            web.pace(usize::MAX);
            let words = crawl.words_before(&web.sources());
            let words = words.iter().map(String::as_str).chain(["--wait"]);
            let programs = self.fleet.programs();
            let ended = programs.spawn(programs.command(words), "before")?.wait().await?;
            // The exit code for a crawl with dead letters.
            if ended.code() != Some(3) {
                return Err(io::Error::other(format!("the crawl before: {ended}")));
            }
            web.forget();
            self.timeline.note("the crawl before has ended");
        }
        Ok(())
    }

    /// Starts the producers.
    pub fn produce(&mut self) {
        for UnderWay { crawl, web, .. } in &self.crawls {
            self.fleet.produce(crawl.words(&web.sources()));
        }
    }

    /// Returns the number of pages that each site has announced so far.
    pub fn announced(&self) -> Vec<usize> {
        self.crawls.iter().map(|crawl| crawl.web.announced()).collect()
    }

    /// Lets the crawls request `pages` pages together, each its share. Returns `false` if they do not get there, or one
    /// of them has ended.
    ///
    /// A crawl whose URLs wait for the worker that can fetch them does not hold up the plan: the others make up for it
    /// meanwhile, slowly.
    pub async fn comes_to(&self, pages: usize) -> bool {
        let share = |crawl: &UnderWay| crawl.crawl.goal() * pages / self.options.pages;
        for crawl in &self.crawls {
            crawl.web.pace(share(crawl));
        }
        let wanted: usize = self.crawls.iter().map(share).sum();
        let mut progress = self.progress();
        while self.requested() < wanted {
            tokio::select! {
                () = self.one_ends() => return false,
                moved = timeout(self.stalled(), any_moves(&mut progress)) => if moved.is_err() {
                    self.timeline.note(format!("no progress any more, short of page {wanted}"));
                    return false;
                }
            }
        }
        // With the last page a crawl has all but ended: a server that forgets it then, forgets it for good.
        self.crawls
            .iter()
            .all(|crawl| crawl.web.progress().borrow().pages < crawl.crawl.goal() && !crawl.end.is_seen())
    }

    /// Returns the number of different pages that were requested, of all sites.
    fn requested(&self) -> usize {
        self.crawls.iter().map(|crawl| crawl.web.progress().borrow().pages).sum()
    }

    /// Returns the progress of each crawl.
    fn progress(&self) -> Vec<watch::Receiver<Progress>> {
        self.crawls.iter().map(|crawl| crawl.web.progress()).collect()
    }

    /// Waits until pages are answered again.
    pub async fn recovers(&self, fault: &Injected) {
        let is_later = |now: &Progress| now.last > fault.to;
        let answered = self.crawls.iter().map(|crawl| {
            Box::pin(async move {
                let mut progress = crawl.web.progress();
                // The sender lives as long as the site.
                let _ = progress.wait_for(is_later).await;
            })
        });
        tokio::select! {
            _ = self.all_end() => {}
            goes_on = timeout(self.stalled(), select_all(answered)) => {
                let waited = (self.start.elapsed().saturating_sub(fault.to)).as_secs_f64();
                let what = if goes_on.is_ok() { "goes on" } else { "has not gone on" };
                self.timeline.note(format!("{what} after {waited:.1} s"));
            }
        }
    }

    /// Gives the fleet time to recover from a fault before one of kind `next`. If the other server is to lose data too,
    /// all pages announced by then must have been requested: each server's losses are only known to the other.
    pub async fn mends(&self, past: &Past, next: Kind) {
        let both_lose = next.loses_data() && past.fault.kind.loses_data();
        if both_lose && next.subject() != past.fault.kind.subject() {
            for (crawl, announced) in self.crawls.iter().zip(&past.announced) {
                crawl.web.catch_up(announced + 1);
            }
            for (crawl, announced) in self.crawls.iter().zip(&past.announced) {
                tokio::select! {
                    _ = crawl.end.seen() => {}
                    arrived = timeout(self.stalled(), crawl.web.all_asked(*announced)) => {
                        let is_late = || format!("{:?} was on its way at the loss and has not", crawl.web.first_unasked());
                        let arrived = arrived.map(|()| "all that was on its way at the loss has".to_owned());
                        self.timeline.note(format!("{} arrived", arrived.unwrap_or_else(|_| is_late())));
                    }
                }
            }
            for crawl in &self.crawls {
                crawl.web.pace(crawl.web.progress().borrow().pages);
            }
            sleep(self.grace()).await;
        }
        sleep_until(self.start + past.fault.to + self.grace()).await;
    }

    /// Waits for the end of the crawls, and judges them.
    ///
    /// # Errors
    /// If the items cannot be read.
    pub async fn ends(self, faults: Vec<Injected>) -> io::Result<Outcome> {
        for crawl in &self.crawls {
            crawl.web.pace(usize::MAX);
        }
        self.end().await;
        // The end is announced after all URLs are settled: no item may come later, but dead letters may be on their
        // way.
        let operator = &self.injector.operator;
        let problems = operator.problems(self.fleet.programs()).await;
        let mut verdict = self.judge(faults).await?;
        verdict.problems.extend(problems);
        let asks = self.crawls.iter().map(|crawl| crawl.web.log().len()).sum();
        let Options { scenario, seed, .. } = self.options;
        let (timeline, took) = (self.timeline.lines(), self.start.elapsed());
        Ok(Outcome { scenario, seed, verdict, timeline, took, asks, missed: Vec::new() })
    }

    /// Waits for the end of the crawls while there is progress.
    async fn end(&self) {
        let mut progress = self.progress();
        loop {
            tokio::select! {
                () = self.all_end() => return,
                moved = timeout(self.stalled(), any_moves(&mut progress)) => if moved.is_err() {
                    self.timeline.note("the crawl does not end");
                    return;
                }
            }
        }
    }

    async fn one_ends(&self) {
        let _ = select_all(self.crawls.iter().map(|crawl| Box::pin(crawl.end.seen()))).await;
    }

    async fn all_end(&self) {
        for crawl in &self.crawls {
            crawl.end.seen().await;
        }
    }

    /// Waits until the expected dead letters, stream items and events have come, and judges. The counters are final by
    /// then.
    async fn judge(&self, faults: Vec<Injected>) -> io::Result<Judgement> {
        let deadline = Instant::now() + DELIVERY;
        let sinks = self.crawls.iter().flat_map(|crawl| {
            crawl.crawl.sinks.iter().map(|sink| (*sink, crawl.crawl.spider.unwrap_or_default()))
        });
        let sinks: Vec<_> = sinks.collect();
        let database = self.injector.database.as_ref();
        let folder = &self.options.folder;
        let kept = Stored::read(folder, database, &sinks).await?;
        loop {
            let mut items = kept.items.clone();
            if sinks.iter().any(|(sink, _)| *sink == Sink::Stream) {
                items.extend(stored::stream(self.fleet.programs()).await.unwrap_or_default());
            }
            let mut verdict = Judgement::default();
            for crawl in &self.crawls {
                verdict.add(self.facts(crawl, &items, &kept.archived, &faults).await.judge());
            }
            let is_ours = |url: &str| {
                self.injector.operator.is_beside(url) || self.crawls.iter().any(|crawl| crawl.web.has(url))
            };
            let strange = items.iter().map(|item| &item.url).chain(&kept.archived).find(|url| !is_ours(url));
            verdict.problems.extend(strange.map(|url| format!("{url}: an item of no site")));
            if verdict.problems.is_empty() || Instant::now() > deadline {
                return Ok(verdict);
            }
            sleep(POLL_INTERVAL * 4).await;
        }
    }

    /// Collects the facts about one crawl.
    async fn facts(
        &self,
        UnderWay { crawl, web, end }: &UnderWay,
        items: &[ItemLine],
        archived: &[String],
        faults: &[Injected],
    ) -> Facts {
        let (dead_letters, ends) =
            (self.dead_letters.dead_letters().into_iter(), self.dead_letters.ends().into_iter());
        // Orders only concern the first crawl.
        let operator = Some(&self.injector.operator).filter(|_| crawl.id == CRAWL);
        Facts {
            pages: web.pages().to_vec(),
            units: crawl.units,
            complaints: web.complaints(),
            limit: crawl.limit,
            sinks: crawl.sinks.to_vec(),
            field: crawl.spider,
            is_again: crawl.is_again(),
            asks: web.log(),
            items: items.iter().filter(|item| web.has(&item.url) && item.crawl != BEFORE).cloned().collect(),
            archived: archived.iter().filter(|url| web.has(url)).cloned().collect(),
            dead_letters: Some(dead_letters.filter(|dead_letter| web.has(&dead_letter.url)).collect()),
            ends: Some(ends.filter(|end| end.crawl == crawl.id).collect()),
            stats: self.fleet.programs().stats(crawl.id).await,
            faults: faults.to_vec(),
            quiet: operator.map(|operator| operator.quiet.clone()).unwrap_or_default(),
            replays: operator.map(|operator| operator.replays.clone()).unwrap_or_default(),
            ended: end.seen_at(),
            in_hand: CONCURRENCY + PREFETCH,
            workers: self.options.workers,
        }
    }

    /// Returns the time without progress after which a crawl is stuck.
    fn stalled(&self) -> Duration {
        self.options.lost_after * 10 + Duration::from_secs(60)
    }

    /// Returns the time that the fleet has to recover after a server lost data.
    fn grace(&self) -> Duration {
        self.options.lost_after * 2 + Duration::from_secs(1)
    }
}

/// Waits for a request at any of the sites.
async fn any_moves(progress: &mut [watch::Receiver<Progress>]) {
    // The senders live as long as the sites.
    let _ = select_all(progress.iter_mut().map(|progress| Box::pin(progress.changed()))).await;
}

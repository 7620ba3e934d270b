//! A crawl on its private servers: set up, watched while it lasts, and judged when it has ended.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::clock::Clock;
use super::end;
use super::fleet::{self, CRAWL, Fleet, Programs};
use super::inject::{CONCURRENCY, PREFETCH, Stage};
use super::kind::Kind;
use super::ledger::{Facts, Injected, ItemLine, Verdict};
use super::letters::Letters;
use super::private::{Grounds, LOOK};
use super::run::{Options, Outcome};
use super::story::Story;
use super::web::Web;

/// Letters and events that the broker has confirmed arrive by then.
const DELIVERY: Duration = Duration::from_secs(10);

/// A fault that the fleet needs time to mend.
#[derive(Clone, Copy, Debug)]
pub struct Past {
    /// The fault.
    pub fault: Injected,
    /// So many pages were on their way, or had arrived.
    pub told: usize,
}

/// Servers, site, workers, and those who watch. Dropped, all of it ends.
pub struct Scene {
    /// The site.
    pub web: Web,
    /// The workers, and the producer.
    pub fleet: Fleet,
    /// The servers.
    pub stage: Stage,
    /// What happens.
    pub story: Story,
    options: Options,
    start: Instant,
    letters: Letters,
    end: end::End,
}

impl Scene {
    /// Starts servers, site and workers. Nothing is crawled yet.
    ///
    /// # Errors
    /// When one of them does not start.
    pub async fn set_up(options: &Options) -> io::Result<Self> {
        let start = Instant::now();
        let story = Story::new(start, options.aloud);
        let Options { seed, faults, pages, .. } = options;
        story.tell(format!("seed {seed}: {faults} faults over {pages} pages"));
        let grounds = Arc::new(Grounds::prepare(&options.folder.join("servers")).await?);
        let stage = Stage::set_up(&grounds, options.patience, start).await?;
        let web = Web::serve(options.pages, options.seed, start).await?;
        // A broker that loses everything loses the stream of items too.
        let sinks = "[[sinks]]\nkind = \"jsonl\"\npath = \"items/{worker}.jsonl\"\n";
        std::fs::write(options.folder.join("trawl.toml"), sinks)?;
        let needs_clock = options.kinds.contains(&Kind::WorkerClock);
        let programs = Programs {
            trawl: options.trawl.clone(),
            folder: options.folder.clone(),
            env: stage.env(),
            clock: needs_clock.then(|| Clock::new(&options.folder)).transpose()?,
            old: options.old.clone(),
        };
        let end = end::End::watch(programs.clone(), story.clone(), start);
        let fleet = Fleet::start(programs, options.workers, story.clone())?;
        let letters = Letters::read(grounds.broker);
        story.tell("the fleet is up");
        Ok(Self { web, fleet, stage, story, options: options.clone(), start, letters, end })
    }

    /// Lets the crawl come to so many pages. `false` when it does not, or has come to its end.
    pub async fn comes_to(&self, pages: usize) -> bool {
        self.web.pace(pages);
        let mut progress = self.web.progress();
        loop {
            let now = *progress.borrow_and_update();
            if now.pages >= pages {
                // With the last page the crawl has all but ended: a server that forgets it then, forgets it for good.
                return now.pages < self.options.pages && !self.end.is_seen();
            }
            tokio::select! {
                _ = self.end.seen() => return false,
                moved = timeout(self.stalled(), progress.changed()) => if moved.is_err() {
                    self.story.tell(format!("no progress any more at page {} of {pages}", now.pages));
                    return false;
                }
            }
        }
    }

    /// Waits until pages are answered again.
    pub async fn recovers(&self, fault: &Injected) {
        let mut progress = self.web.progress();
        tokio::select! {
            _ = self.end.seen() => {}
            goes_on = timeout(self.stalled(), progress.wait_for(|now| now.last > fault.to)) => {
                let waited = (self.start.elapsed().saturating_sub(fault.to)).as_secs_f64();
                let what = if goes_on.is_ok() { "goes on" } else { "has not gone on" };
                self.story.tell(format!("{what} after {waited:.1} s"));
            }
        }
    }

    /// Gives the fleet time to mend a fault, before one of this kind. Where the other server is to lose
    /// data too, all that was on its way then must have arrived: what one forgot, only the other knows.
    pub async fn mends(&self, past: &Past, next: Kind) {
        let both_lose = next.loses_data() && past.fault.kind.loses_data();
        if both_lose && next.subject() != past.fault.kind.subject() {
            self.web.pace(past.told + 1);
            tokio::select! {
                _ = self.end.seen() => return,
                arrived = timeout(self.stalled(), self.web.all_asked(past.told)) => {
                    let what = if arrived.is_ok() { "have" } else { "have not" };
                    self.story.tell(format!("all that was on its way at the loss {what} arrived"));
                }
            }
            sleep(self.grace()).await;
        }
        sleep_until(self.start + past.fault.to + self.grace()).await;
    }

    /// Waits for the end of the crawl, and judges it.
    ///
    /// # Errors
    /// When the items cannot be read.
    pub async fn ends(self, faults: Vec<Injected>) -> io::Result<Outcome> {
        self.web.pace(usize::MAX);
        let ended = self.end().await;
        // The end is announced after all is settled: no item may come later, but letters may be on their way.
        let operator = &self.stage.operator;
        let problems = operator.problems(self.fleet.programs()).await;
        let mut items = items(&self.options.folder)?;
        items.retain(|item| !operator.is_beside(&item.url));
        let pages = self.web.pages().to_vec();
        let facts = Facts {
            pages,
            asks: self.web.log(),
            items,
            letters: None,
            ends: None,
            books: None,
            faults,
            quiet: operator.quiet.clone(),
            replays: operator.replays.clone(),
            ended,
            in_hand: CONCURRENCY + PREFETCH,
            workers: self.options.workers,
        };
        let asks = facts.asks.len();
        let mut verdict = self.judge(facts).await;
        verdict.problems.extend(problems);
        let (seed, took) = (self.options.seed, self.start.elapsed());
        Ok(Outcome { seed, verdict, story: self.story.lines(), took, asks })
    }

    /// Waits for the end of the crawl for as long as there is progress.
    async fn end(&self) -> Option<Duration> {
        let mut progress = self.web.progress();
        loop {
            tokio::select! {
                ended = self.end.seen() => return Some(ended),
                moved = timeout(self.stalled(), progress.changed()) => if moved.is_err() {
                    self.story.tell("the crawl does not end");
                    return None;
                }
            }
        }
    }

    /// Waits until the letters and the event that are due have come, and judges. What the books say then is for good.
    async fn judge(&self, mut facts: Facts) -> Verdict {
        let deadline = Instant::now() + DELIVERY;
        loop {
            let mut letters = self.letters.letters();
            letters.retain(|letter| !self.stage.operator.is_beside(&letter.url));
            facts.letters = Some(letters);
            facts.books = self.fleet.programs().books(CRAWL).await;
            facts.ends = Some(self.letters.ends().into_iter().filter(|end| end.crawl == CRAWL).collect());
            let verdict = facts.judge();
            if verdict.problems.is_empty() || Instant::now() > deadline {
                return verdict;
            }
            sleep(LOOK * 4).await;
        }
    }

    /// Without progress for so long, a crawl will not go on.
    fn stalled(&self) -> Duration {
        self.options.patience * 10 + Duration::from_secs(60)
    }

    /// After a server lost data, the fleet has this long to mend it.
    fn grace(&self) -> Duration {
        self.options.patience * 2 + Duration::from_secs(1)
    }
}

fn items(folder: &Path) -> io::Result<Vec<ItemLine>> {
    let folder = folder.join("items");
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut items = Vec::new();
    for file in std::fs::read_dir(folder)? {
        items.extend(fleet::items(&file?.path())?);
    }
    Ok(items)
}

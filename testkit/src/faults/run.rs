//! One run: a crawl, faults while it lasts, and the ledger at its end.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::end::End as Watch;
use super::fleet::{self, Fleet, Programs};
use super::inject::Stage;
use super::kind::Kind;
use super::ledger::{Facts, Injected, ItemLine, Verdict};
use super::letters::{End, Letters};
use super::plan::{self, Step};
use super::private::{Grounds, LOOK};
use super::story::Story;
use super::web::Web;

/// The crawl's id.
pub const CRAWL: &str = "faults";
/// Letters and events that the broker has confirmed arrive by then.
const DELIVERY: Duration = Duration::from_secs(10);

/// What a run is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `trawl`.
    pub trawl: PathBuf,
    /// Where the run keeps its files.
    pub folder: PathBuf,
    /// Pages of the site.
    pub pages: usize,
    /// How many faults.
    pub faults: usize,
    /// What decides which.
    pub seed: u64,
    /// How many workers.
    pub workers: usize,
    /// `recovery.patience` of the fleet.
    pub patience: Duration,
    /// The kinds of fault to draw from.
    pub kinds: Vec<Kind>,
    /// Whether the story is printed while it happens.
    pub aloud: bool,
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed that repeats it.
    pub seed: u64,
    /// What the ledger says.
    pub verdict: Verdict,
    /// What happened when.
    pub story: Vec<String>,
    /// How long the crawl took.
    pub took: Duration,
    /// How many pages the site was asked for in all.
    pub asks: usize,
}

impl Options {
    /// Without progress for so long, a crawl will not go on.
    fn stalled(&self) -> Duration {
        self.patience * 10 + Duration::from_secs(60)
    }

    /// After a server lost data, the fleet has this long to mend it before the next fault.
    fn grace(&self) -> Duration {
        self.patience * 2 + Duration::from_secs(1)
    }
}

/// Runs a crawl through its faults.
///
/// # Errors
/// When the suite itself fails: a server that does not start, a file that cannot be read.
pub async fn run(options: &Options) -> io::Result<Outcome> {
    let start = Instant::now();
    let story = Story::new(start, options.aloud);
    story.tell(format!("seed {}: {} faults over {} pages", options.seed, options.faults, options.pages));
    let grounds = Arc::new(Grounds::prepare(&options.folder.join("servers")).await?);
    let mut stage = Stage::set_up(&grounds, options.patience, start).await?;
    let web = Web::serve(options.pages, options.seed, start).await?;
    let letters = Letters::read(grounds.broker);
    let programs = Programs { trawl: options.trawl.clone(), folder: options.folder.clone(), env: stage.env() };
    let mut fleet = Fleet::start(programs.clone(), options.workers, story.clone())?;
    fleet.produce(&web.sitemap(), CRAWL);
    let end = Watch::start(programs, story.clone(), start);
    story.tell("the fleet is up");

    let mut course = Course { options, web: &web, end: &end, story: &story, start };
    let steps = plan::draw(options.seed, options.faults, options.pages, &options.kinds);
    let faults = course.run(&steps, &mut stage, &fleet).await?;
    let ended = course.ends().await;

    let mut problems = Vec::new();
    if faults.len() < steps.len() {
        problems.push(format!("only {} of {} faults were injected", faults.len(), steps.len()));
    }
    // The end is announced after all is settled: no item may come later, but letters may still be on their way.
    let items = items(&options.folder)?;
    let pages = web.pages().to_vec();
    let facts = Facts { pages, asks: web.log(), items, letters: Vec::new(), faults, ended };
    let mut verdict = judge(facts, &letters).await;
    verdict.problems.append(&mut problems);
    Ok(Outcome {
        seed: options.seed,
        verdict,
        story: story.lines(),
        took: start.elapsed(),
        asks: web.log().len(),
    })
}

/// Waits until the letters and the event that are due have come, and judges.
async fn judge(mut facts: Facts, letters: &Letters) -> Verdict {
    let deadline = Instant::now() + DELIVERY;
    loop {
        facts.letters = letters.letters();
        let mut verdict = facts.judge();
        verdict.problems.extend(announced(&letters.ends()));
        if verdict.problems.is_empty() || Instant::now() > deadline {
            return verdict;
        }
        sleep(LOOK * 4).await;
    }
}

/// The crawl's end was announced, and every copy is a copy of one event.
fn announced(ends: &BTreeSet<End>) -> Option<String> {
    if !crate::faults::ANNOUNCES {
        return None;
    }
    let ours: Vec<&End> = ends.iter().filter(|end| end.crawl == CRAWL).collect();
    match ours.len() {
        1 => None,
        0 => Some("no event told that the crawl had finished".to_owned()),
        count => Some(format!("the crawl finished {count} times: {ours:?}")),
    }
}

fn items(folder: &Path) -> io::Result<Vec<ItemLine>> {
    let read = |line: String| {
        let item: Value = serde_json::from_str(&line)
            .map_err(|error| io::Error::other(format!("an item that is no JSON: {error}: {line}")))?;
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        Ok(ItemLine { url: text("url"), id: text("id") })
    };
    fleet::items(folder)?.into_iter().map(read).collect()
}

/// A run on its way.
struct Course<'a> {
    options: &'a Options,
    web: &'a Web,
    end: &'a Watch,
    story: &'a Story,
    start: Instant,
}

impl Course<'_> {
    /// Injects each fault when its turn comes, and lets the fleet recover; the faults that were injected.
    async fn run(&mut self, steps: &[Step], stage: &mut Stage, fleet: &Fleet) -> io::Result<Vec<Injected>> {
        let mut faults = Vec::with_capacity(steps.len());
        for step in steps {
            if !self.comes_to(step.after).await {
                break;
            }
            sleep(step.pause).await;
            let fault = stage.inject(step, fleet, self.story).await?;
            faults.push(fault);
            self.recovers(&fault).await;
        }
        self.web.pace(usize::MAX);
        Ok(faults)
    }

    /// Lets the crawl come to so many pages. `false` when it does not, or has ended.
    async fn comes_to(&self, pages: usize) -> bool {
        self.web.pace(pages);
        let mut progress = self.web.progress();
        loop {
            let now = *progress.borrow_and_update();
            if now.pages >= pages {
                return true;
            }
            tokio::select! {
                _ = self.end.seen() => return false,
                moved = timeout(self.options.stalled(), progress.changed()) => if moved.is_err() {
                    self.story.tell(format!("no progress any more at page {} of {pages}", now.pages));
                    return false;
                }
            }
        }
    }

    /// Waits until pages are answered again; after a loss of data, also until the fleet has had time to mend it.
    async fn recovers(&self, fault: &Injected) {
        let mut progress = self.web.progress();
        tokio::select! {
            _ = self.end.seen() => return,
            goes_on = timeout(self.options.stalled(), progress.wait_for(|now| now.last > fault.to)) => {
                let waited = (self.start.elapsed().saturating_sub(fault.to)).as_secs_f64();
                let what = if goes_on.is_ok() { "goes on" } else { "has not gone on" };
                self.story.tell(format!("{what} after {waited:.1} s"));
            }
        }
        if fault.kind.loses_data() {
            sleep(self.options.grace()).await;
        }
    }

    /// Waits for the end of the crawl for as long as there is progress.
    async fn ends(&self) -> Option<Duration> {
        let mut progress = self.web.progress();
        loop {
            tokio::select! {
                ended = self.end.seen() => return Some(ended),
                moved = timeout(self.options.stalled(), progress.changed()) => if moved.is_err() {
                    self.story.tell("the crawl does not end");
                    return None;
                }
            }
        }
    }
}

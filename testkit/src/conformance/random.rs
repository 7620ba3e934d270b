//! One law for all orders: whatever two workers and a producer do to a few URLs, again and again and in
//! any order, a frontier answers as a model of a dozen lines does, and its books agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use trawl_common::crawl::{Counts, CrawlState};
use trawl_common::outcome::Terminal;
use trawl_common::ports::{Discovery, ErrorKind, Frontier, Heard, MAX_STARTS, NewUrl, Result, Start};

use super::scene::{Cast, LONG, Scene, long_ago, much_later};

/// How many URLs the steps are about.
pub const URLS: usize = 4;

/// One call, on one of [`URLS`] pages, by one of two workers.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The producer opens the crawl, or opens it again.
    Open,
    /// It admits pages from `.0` on, `.1` of them.
    Admit(usize, usize),
    /// It confirms a page.
    Confirm(usize),
    /// It has read all sources.
    Close,
    /// A worker receives a message.
    Hear(Who, usize),
    /// A worker is about to fetch.
    Start(Who, usize),
    /// A worker puts a page aside: for long or not, for a failure or not.
    Park {
        /// Which worker.
        who: Who,
        /// Which page.
        url: usize,
        /// Whether its instant is far away.
        long: bool,
        /// Whether it failed.
        failed: bool,
    },
    /// A worker gives a page back.
    Release(Who, usize),
    /// A page reaches a terminal state.
    Finish(usize, Terminal),
    /// Every process is killed, and new ones begin with the same store.
    Crash,
}

/// One of two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The one.
    One,
    /// The other.
    Two,
}

/// What must be true of one page.
#[derive(Default)]
struct Page {
    has_ended: bool,
    holder: Option<Who>,
    is_far: bool,
    attempts: u32,
    starts: u32,
}

/// What must be true of the crawl.
#[derive(Default)]
struct Model {
    pages: BTreeMap<usize, Page>,
    counts: Counts,
    is_closed: bool,
    is_over: bool,
}

impl Model {
    fn pending(&mut self, url: usize) -> Option<&mut Page> {
        self.pages.get_mut(&url).filter(|page| !page.has_ended)
    }

    fn admit(&mut self, url: usize) -> bool {
        let is_new = !self.pages.contains_key(&url);
        if is_new {
            self.pages.insert(url, Page::default());
            self.counts.admitted += 1;
        }
        is_new
    }

    fn hear(&mut self, who: Who, url: usize) -> Heard {
        if !self.is_over {
            self.admit(url);
        }
        let Some(page) = self.pending(url) else { return Heard::Drop };
        if page.is_far || page.holder.is_some_and(|holder| holder != who) {
            return Heard::Drop;
        }
        page.holder = Some(who);
        Heard::Take { attempts: page.attempts }
    }

    fn held(&mut self, who: Who, url: usize) -> Option<&mut Page> {
        self.pending(url).filter(|page| page.holder == Some(who))
    }

    fn start(&mut self, who: Who, url: usize) -> Start {
        let Some(page) = self.held(who, url) else { return Start::Lost };
        page.starts += 1;
        if page.starts > MAX_STARTS { Start::Poison } else { Start::Go }
    }

    fn finish(&mut self, url: usize, terminal: Terminal) -> bool {
        let Some(page) = self.pending(url) else { return false };
        page.has_ended = true;
        *self.counts.of(terminal) += 1;
        self.settle();
        true
    }

    fn left(&self) -> u64 {
        self.pages.values().filter(|page| !page.has_ended).count() as u64
    }

    fn settle(&mut self) {
        self.is_over |= self.is_closed && self.left() == 0;
    }
}

/// Takes `steps` on the frontier that `connect` gives, now and after each [`Step::Crash`], and then ends
/// what is left. Panics where the frontier departs from the model.
///
/// `Crash` is for engines that live in one process: elsewhere a holder lives until its heartbeat lapses.
pub async fn obeys_the_model(
    mut connect: impl AsyncFnMut() -> Result<Arc<dyn Frontier>>,
    steps: &[Step],
) -> Result<()> {
    let mut frontier = connect().await?;
    let cast = Cast::new();
    let mut lease = Some(Scene::with(&frontier, cast.clone()).begin(0).await?);
    let mut model = Model::default();
    for step in steps {
        if matches!(step, Step::Crash) {
            drop(frontier);
            frontier = connect().await?;
            lease = None;
            model.pages.values_mut().for_each(|page| page.holder = None);
        }
        let scene = Scene::with(&frontier, cast.clone());
        take(*step, &scene, &mut lease, &mut model).await?;
        agree(&scene, &model).await?;
    }
    let scene = Scene::with(&frontier, cast.clone());
    for url in 0..URLS {
        assert_eq!(scene.finish(url, Terminal::Done).await?, model.finish(url, Terminal::Done));
        agree(&scene, &model).await?;
    }
    if !model.is_over {
        take(Step::Open, &scene, &mut lease, &mut model).await?;
        take(Step::Close, &scene, &mut lease, &mut model).await?;
    }
    agree(&scene, &model).await?;
    assert_eq!(scene.status().await?, CrawlState::Finished);
    Ok(())
}

async fn agree(scene: &Scene<'_>, model: &Model) -> Result<()> {
    let books = scene.books().await?;
    assert_eq!((books.counts, books.pending), (model.counts, model.left()));
    assert_eq!(books.status == CrawlState::Finished, model.is_over);
    assert_eq!(books.discovered, model.is_closed);
    Ok(())
}

async fn take(step: Step, scene: &Scene<'_>, lease: &mut Option<Discovery>, model: &mut Model) -> Result<()> {
    let worker = |who| if who == Who::One { &scene.worker } else { &scene.other };
    match step {
        Step::Open => match scene.open().await {
            Ok(taken) => {
                assert!(!model.is_over);
                model.is_closed = false;
                *lease = Some(taken);
            }
            Err(error) => assert!(model.is_over && error.kind == ErrorKind::Stale, "{error}"),
        },
        Step::Close => {
            if let Some(lease) = lease.take() {
                scene.frontier.close(lease).await?;
                model.is_closed = true;
                model.settle();
            }
        }
        Step::Admit(first, count) => {
            if let Some(lease) = lease {
                let numbers = (first..first + count).map(|number| number % URLS);
                let urls: Vec<NewUrl> = numbers.clone().map(|number| scene.new_url(number)).collect();
                let expected: Vec<bool> = numbers.map(|number| model.admit(number)).collect();
                assert_eq!(scene.frontier.admit(lease, &urls).await?, expected);
            }
        }
        Step::Confirm(url) => scene.frontier.confirm(&scene.crawl, &[scene.url(url)]).await?,
        Step::Hear(who, url) => {
            assert_eq!(scene.hear(worker(who), url).await?, model.hear(who, url));
        }
        Step::Start(who, url) => {
            assert_eq!(scene.start(worker(who), url).await?, model.start(who, url));
        }
        Step::Park { who, url, long, failed } => {
            let until = if long { much_later() } else { long_ago() };
            let held = model.held(who, url).map(|page| {
                let attempts = page.attempts + u32::from(failed);
                *page = Page { is_far: long, attempts, ..Page::default() };
            });
            assert_eq!(scene.park(worker(who), url, until, failed).await?, held.is_some());
        }
        Step::Release(who, url) => {
            if let Some(page) = model.held(who, url) {
                (page.holder, page.starts) = (None, 0);
            }
            scene.release(worker(who), url).await?;
        }
        Step::Finish(url, terminal) => {
            assert_eq!(scene.finish(url, terminal).await?, model.finish(url, terminal));
        }
        Step::Crash => {
            scene.beat(&scene.worker, LONG).await?;
            scene.beat(&scene.other, LONG).await?;
        }
    }
    Ok(())
}

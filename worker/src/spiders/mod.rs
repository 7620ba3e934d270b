//! The spiders whose URLs this worker takes, each with its resources for fetching, extracting and storing.

mod elsewhere;
mod empty_fields;
mod program_versions;
mod sink_backlog;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use moka::sync::Cache;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info, warn};
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::route::Rule;
use trawl_common::logs::LogLevel;
use trawl_common::mistake::Mistake;
use trawl_common::names::SpiderName;
use trawl_common::politeness::robots::RobotsName;
use trawl_common::ports::{self, Sink, SinkFactory};
use trawl_common::settings::{Politeness, Retry, Settings};
use trawl_common::spider::folder::{Folder, Unusable};
use trawl_common::spider::{Bans, FileHash, Handler, Scope, Spider, SpiderText};
use trawl_common::text::printable;
use trawl_extract::{Extractor, Ready};
use trawl_handlers::{CannotRun, ProxyAccess};
use trawl_web::{Fetcher, MemoryBudget, Threads};

use self::elsewhere::{ELSEWHERE, Elsewhere};
use self::empty_fields::EmptyFields;
use self::program_versions::ProgramVersions;
use self::sink_backlog::SinkBacklog;
use crate::programs::Running;

/// A spider that is ready to work.
pub(crate) struct LoadedSpider {
    pub(crate) spider: Spider,
    pub(crate) scope: Scope,
    /// The rules for responses that are not pages.
    pub(crate) bans: Bans,
    /// The rules that route its links.
    pub(crate) route: Vec<Rule>,
    pub(crate) politeness: Politeness,
    /// The name by which a robots.txt addresses it.
    pub(crate) robots_name: RobotsName,
    pub(crate) fetcher: Fetcher,
    /// Like `fetcher`, but on separate threads.
    pub(crate) apart: Fetcher,
    pub(crate) extractor: Arc<Extractor>,
    pub(crate) empty_fields: EmptyFields,
    pub(crate) sinks: Vec<Arc<dyn Sink>>,
    /// The pages that wait for its sinks.
    pub(crate) backlog: SinkBacklog,
    /// The spider's running program, if it has one.
    pub(crate) program: Option<Running>,
    /// The version of that program.
    version: Option<ProgramVersion>,
}

/// The version of a spider's program.
#[derive(Clone, Copy)]
struct ProgramVersion {
    /// The hash of the program's files.
    files: FileHash,
    /// The hash of these and of the spider's file on this machine, for people to compare.
    shown: FileHash,
}

/// Maximum number of programs whose versions are reported, and of files that cannot be used.
const REPORTED: usize = 200;

/// Maximum length of the mistake in a file as it is reported.
const MAX_MISTAKE_BYTES: usize = 300;

impl LoadedSpider {
    /// Returns the retries of pages that its program fails at.
    pub(crate) fn retry(&self, settings: &Retry) -> Retry {
        let max = self.spider.handler.as_ref().and_then(|handler| handler.retries);
        Retry { max: max.unwrap_or(settings.max), ..settings.clone() }
    }

    /// Whether its sinks are those of `spider`, and take the same items.
    fn has_sinks_of(&self, spider: &Spider) -> bool {
        let takes_same = self.spider.items == spider.items
            && self.spider.pages == spider.pages
            && self.spider.handler.is_some() == spider.handler.is_some();
        self.spider.sinks == spider.sinks && takes_same
    }
}

/// Interval at which spiders' files are checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The number of looks at the files of spiders for one at the files of their programs.
const LOOKS_FOR_PROGRAMS: u64 = 5;

/// Maximum number of loaded spiders without a file, beside the default one: anybody may invent more names.
const FILELESS: usize = 256;

/// Maximum number of names that are remembered to have no file.
const MISSING: usize = 10_000;

/// Maximum number of spiders that are kept with the text of a crawl: each job may have arguments of its own.
const BROUGHT: u64 = 256;

/// The reason why a spider cannot work.
#[derive(Debug, thiserror::Error)]
pub enum Unready {
    /// Its file cannot be used.
    #[error(transparent)]
    File(#[from] Unusable),
    /// Its file existed and is gone.
    #[error("its file is gone")]
    Gone,
    /// The settings that replace a file are invalid.
    #[error("settings: {}", listed(.0))]
    Mistaken(Vec<Mistake>),
    /// The HTTP client refused its settings.
    #[error("[fetch]: {0}")]
    Fetch(#[from] trawl_web::Unusable),
    /// Its program cannot be run here.
    #[error("[handler] run: {0}")]
    Program(#[from] CannotRun),
    /// A crawl brings a program that the files of this machine do not have.
    #[error("its [handler] is not that of {}, and a worker runs only what its own files say: a crawl that was opened before that was changed has to be cancelled", .0.display())]
    ForeignProgram(PathBuf),
    /// A sink cannot be opened with its settings.
    #[error(transparent)]
    Sink(#[from] ports::Error),
}

/// The error of a task for a spider that is not here, beyond the limit on such names.
#[derive(Debug, thiserror::Error)]
#[error(
    "a task for {0}: that spider has no file here, as {ELSEWHERE} others that got tasks of this program before"
)]
pub(crate) struct TooManyNames(SpiderName);

fn listed(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("; ")
}

/// The state of a spider.
#[derive(Clone, Default)]
struct Known {
    /// The loaded spider, from the last valid version of its file; `None` if there was none so far.
    loaded: Option<Arc<LoadedSpider>>,
    /// The text of the file when that was loaded; `None` if there was no file.
    text: Option<String>,
    /// The mistake in the current text, which has been logged.
    wrong: Option<String>,
}

/// A spider whose text came with a crawl.
#[derive(Clone)]
struct Brought {
    text: SpiderText,
    /// The loaded spider, or the mistake, which has been logged.
    loaded: Result<Arc<LoadedSpider>, String>,
}

/// Returns the access to the proxy for the program of a spider, whose requests are sent by a client like the given
/// one; `None` if it has no program, or uses no proxy.
pub(crate) type ProxyForPrograms =
    Box<dyn Fn(&Spider, &Fetcher) -> Result<Option<Arc<dyn ProxyAccess>>, trawl_web::Unusable> + Send + Sync>;

/// All spiders by name, each loaded when its first URL arrives.
pub(crate) struct Spiders {
    settings: Settings,
    folder: Folder,
    sink_factory: Arc<dyn SinkFactory>,
    /// The memory budget of all page bodies.
    memory: MemoryBudget,
    threads: Threads,
    proxy: ProxyForPrograms,
    versions: ProgramVersions,
    known: RwLock<HashMap<SpiderName, Known>>,
    /// The spiders whose text came with a crawl.
    brought: Cache<(SpiderName, FileHash), Brought>,
    /// Names in messages that had no file at the last check.
    missing: Mutex<HashSet<SpiderName>>,
    /// Names without a file for which tasks were accepted.
    elsewhere: Elsewhere,
    /// Sinks of versions that are no longer used.
    retired: Mutex<Vec<Arc<dyn Sink>>>,
    /// Whether it was logged that there are too many spiders without a file.
    is_full: AtomicBool,
    /// The log for spiders that cannot work, beside this worker's own log.
    log: LogWriter,
}

impl Spiders {
    /// Creates an empty set. The default spider is loaded at once, so that invalid settings are reported early.
    pub(crate) fn new(
        settings: &Settings,
        folder: Folder,
        sink_factory: Arc<dyn SinkFactory>,
        threads: Threads,
        proxy: ProxyForPrograms,
        log: LogWriter,
    ) -> Result<Self, Unready> {
        let spiders = Self {
            settings: settings.clone(),
            folder,
            sink_factory,
            memory: MemoryBudget::new(settings.worker.page_memory.as_u64() / 2),
            threads,
            proxy,
            versions: ProgramVersions::default(),
            known: RwLock::default(),
            brought: Cache::new(BROUGHT),
            missing: Mutex::default(),
            elsewhere: Elsewhere::default(),
            retired: Mutex::default(),
            is_full: AtomicBool::default(),
            log,
        };
        let name = SpiderName::default();
        let text = spiders.folder.text(&name)?;
        spiders.ready(&name, text.as_deref())?;
        Ok(spiders)
    }

    /// Returns the spider of this name; `None` if it cannot work now, which is logged once.
    pub(crate) fn get(&self, name: &SpiderName) -> Option<Arc<LoadedSpider>> {
        let all = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(name) {
            return known.loaded.clone();
        }
        let fileless = all.values().filter(|known| known.loaded.is_some() && known.text.is_none()).count();
        drop(all);
        if fileless > FILELESS && !self.has_file(name) {
            if !self.is_full.swap(true, Ordering::Relaxed) {
                warn!(spider = %name, "more than {FILELESS} spiders without a file: the URLs of further ones wait");
            }
            return None;
        }
        self.look(name, Known::default()).loaded
    }

    /// Returns the spider of this name with the text of a crawl; `None` if it cannot work here, which is logged.
    pub(crate) fn of_text(&self, name: &SpiderName, text: &SpiderText) -> Option<Arc<LoadedSpider>> {
        let key = (name.clone(), text.hash());
        self.brought.get_with(key, || self.bring(name, text.clone(), None)).loaded.ok()
    }

    /// Returns the reason why the spider of this name cannot work here, by its file or the text of a crawl; `None` if
    /// no problem is known.
    pub(crate) fn wrong(&self, name: &SpiderName, text: Option<&SpiderText>) -> Option<String> {
        match text {
            Some(text) => self.brought.get(&(name.clone(), text.hash()))?.loaded.err(),
            None => {
                let all = self.known.read().unwrap_or_else(PoisonError::into_inner);
                all.get(name).filter(|known| known.loaded.is_none())?.wrong.clone()
            }
        }
    }

    /// Loads a spider with the text of a crawl. A mistake is logged, unless it is the same as `before`.
    fn bring(&self, name: &SpiderName, text: SpiderText, before: Option<&str>) -> Brought {
        let loaded = self.load_text(name, &text).map(Arc::new).map_err(|error| error.to_string());
        if let Err(error) = &loaded
            && before != Some(error)
        {
            self.cannot_work(
                name,
                error,
                "the spider of a crawl cannot work here: its URLs are left to other workers",
            );
        }
        Brought { text, loaded }
    }

    /// Reports in both logs why a spider cannot work, and the consequence.
    fn cannot_work(&self, name: &SpiderName, error: &str, what: &str) {
        error!(spider = %name, error, "{what}");
        self.log.write(self.log.entry(LogLevel::Error, format!("{what}: {error}")).of_spider(name));
    }

    /// Loads a spider from a text, reusing its open sinks if they are the same.
    fn load_text(&self, name: &SpiderName, text: &SpiderText) -> Result<LoadedSpider, Unready> {
        // First: other mistakes may only follow from another file here, and no mending of that mends them.
        self.check_program(&self.folder.reading(name, text.as_str()).spider, text)?;
        let mut loaded = self.ready(name, Some(text.as_str()))?;
        let others = self.all_brought().chain(self.of_file(name));
        let like = others
            .filter(|other| other.spider.name == *name)
            .find(|other| other.has_sinks_of(&loaded.spider));
        loaded.sinks = self.sinks(&loaded.spider, like.as_deref())?;
        Ok(loaded)
    }

    /// Checks that a spider whose text came with a crawl has the same program as its local file, or none: submitters of
    /// crawls do not choose which program runs, only the spider's arguments.
    fn check_program(&self, spider: &Spider, brought: &SpiderText) -> Result<(), Unready> {
        if spider.handler.is_none() {
            return Ok(());
        }
        match self.folder.handler(&spider.name, brought.as_str())? == spider.handler {
            true => Ok(()),
            false => Err(Unready::ForeignProgram(self.folder.file(&spider.name))),
        }
    }

    fn all_brought(&self) -> impl Iterator<Item = Arc<LoadedSpider>> {
        self.brought.iter().filter_map(|(_, brought)| brought.loaded.ok())
    }

    /// Returns the spider as loaded from its file.
    fn of_file(&self, name: &SpiderName) -> Option<Arc<LoadedSpider>> {
        let all = self.known.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).and_then(|known| known.loaded.clone())
    }

    /// Whether external publishers may request pages as this spider: a name that anybody can invent must leave nothing
    /// behind.
    pub(crate) fn is_for_strangers(&self, name: &SpiderName) -> bool {
        *name == SpiderName::default() || self.has_file(name)
    }

    /// Returns whether tasks of a spider are accepted from external publishers. Those of a spider that is not here wait for
    /// a worker that has it.
    pub(crate) fn accept_published(&self, name: &SpiderName) -> bool {
        self.is_for_strangers(name) || self.elsewhere.accept(name, None)
    }

    /// Returns whether tasks of a spider are accepted from the program of another one, likewise.
    pub(crate) fn accept_handed(&self, name: &SpiderName, by: &SpiderName) -> Result<(), TooManyNames> {
        match self.is_for_strangers(name) || self.elsewhere.accept(name, Some(by)) {
            true => Ok(()),
            false => Err(TooManyNames(name.clone())),
        }
    }

    /// Whether the spider has a file here, or had one when it was loaded. An unreadable file counts. A missing file is
    /// not looked for again before the next check of all files, because many messages may name it.
    fn has_file(&self, name: &SpiderName) -> bool {
        let all = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let is_loaded = all.get(name).is_some_and(|known| known.text.is_some());
        drop(all);
        if is_loaded || self.missing().contains(name) {
            return is_loaded;
        }
        let has_file = !matches!(self.folder.text(name), Ok(None));
        let mut missing = self.missing();
        if !has_file && missing.len() < MISSING {
            missing.insert(name.clone());
        }
        has_file
    }

    fn missing(&self) -> MutexGuard<'_, HashSet<SpiderName>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs fields that no page had, and lets every sink finish its pending writes, which loses nothing if it fails.
    pub(crate) async fn close(&self) {
        let all: Vec<_> =
            self.known.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        let mut sinks = std::mem::take(&mut *self.retired.lock().unwrap_or_else(PoisonError::into_inner));
        for loaded in all.into_iter().filter_map(|known| known.loaded).chain(self.all_brought()) {
            loaded.empty_fields.tell(&loaded.spider);
            sinks.extend(loaded.sinks.iter().cloned());
        }
        for sink in sinks {
            if let Err(error) = sink.close().await {
                warn!(sink = sink.name(), %error, "what this sink put off is left for the next worker");
                let text = format!("{}: what it put off is left for the next worker: {error}", sink.name());
                self.log.write(self.log.entry(LogLevel::Warn, text));
            }
        }
    }

    /// Reloads changed files, until the future is dropped.
    pub(crate) async fn reload(self: Arc<Self>) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for look in 0_u64.. {
            ticks.tick().await;
            let spiders = Arc::clone(&self);
            let look = move || {
                if look.is_multiple_of(LOOKS_FOR_PROGRAMS) {
                    spiders.look_at_programs();
                }
                spiders.look_again();
            };
            // It ends early only by a panic, which is logged where it happens: the next check may succeed.
            let _ = tokio::task::spawn_blocking(look).await;
        }
    }

    /// Reloads changed files of the spiders in use, and retries spiders of crawls that could not work, because a sink
    /// may be available by now. Reads files, so it blocks.
    fn look_again(&self) {
        self.missing().clear();
        let all = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, known) in all {
            self.look(&name, known);
        }
        for (key, Brought { text, loaded }) in &self.brought {
            let wrong = match loaded {
                Ok(loaded) if self.is_current(&loaded) => continue,
                Ok(loaded) => {
                    program_has_changed(&loaded.spider.name);
                    None
                }
                Err(wrong) => Some(wrong),
            };
            let brought = self.bring(&key.0, text, wrong.as_deref());
            self.brought.insert((*key).clone(), brought);
        }
    }

    /// Looks for changed files of programs. Reads files, so it blocks.
    fn look_at_programs(&self) {
        self.versions.look(&self.folder);
    }

    /// Whether a spider's program, if it has one, is of the version that its files have.
    fn is_current(&self, loaded: &LoadedSpider) -> bool {
        let Spider { name, handler, .. } = &loaded.spider;
        let current = handler.as_ref().map(|handler| self.versions.of(&self.folder, name, handler));
        current == loaded.version.map(|version| version.files)
    }

    /// Returns the versions of the programs of spiders that are in use here; only some of them if there are many.
    pub(crate) fn programs(&self) -> BTreeMap<SpiderName, FileHash> {
        let versions =
            self.all().filter_map(|loaded| Some((loaded.spider.name.clone(), loaded.version?.shown)));
        versions.take(REPORTED).collect()
    }

    /// Returns the spiders whose programs are the limit, with the number of pages and tasks that wait for them; only
    /// some of them if there are many.
    pub(crate) fn behind(&self) -> BTreeMap<SpiderName, u64> {
        let behind = self.all().filter_map(|loaded| {
            let waiting = loaded.program.as_ref()?.behind()?;
            Some((loaded.spider.name.clone(), waiting as u64))
        });
        behind.take(REPORTED).collect()
    }

    /// Returns all loaded spiders.
    fn all(&self) -> impl Iterator<Item = Arc<LoadedSpider>> {
        let all: Vec<_> =
            self.known.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        self.all_brought().chain(all.into_iter().filter_map(|known| known.loaded))
    }

    /// Returns the spiders whose current file cannot be used, so that an older version of it is; only some of them if there are
    /// many.
    pub(crate) fn outdated(&self) -> BTreeMap<SpiderName, String> {
        let all = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let outdated = all.iter().filter(|(_, known)| known.loaded.is_some());
        let wrong = outdated.filter_map(|(name, known)| {
            Some((name.clone(), printable(known.wrong.as_ref()?, MAX_MISTAKE_BYTES)))
        });
        wrong.take(REPORTED).collect()
    }

    fn look(&self, name: &SpiderName, before: Known) -> Known {
        let known = match self.load(name, &before) {
            Ok(None) => return before,
            Ok(Some(known)) => {
                if known.text.is_none() && *name != SpiderName::default() {
                    warn!(spider = %name, "the spider has no file here: [items] of the settings holds");
                }
                if before.loaded.is_some() && before.wrong.is_none() && before.text == known.text {
                    program_has_changed(name);
                } else if before.loaded.is_some() || before.wrong.is_some() {
                    info!(spider = %name, "the spider's file has changed and is used");
                }
                known
            }
            Err(error) => {
                let wrong = error.to_string();
                if before.wrong.as_ref() == Some(&wrong) {
                    return before;
                }
                let what = match &before.loaded {
                    Some(_) => "the spider works on by its last version",
                    None => "the spider cannot work: its URLs wait",
                };
                self.cannot_work(name, &wrong, what);
                Known { wrong: Some(wrong), ..before.clone() }
            }
        };
        if let (Some(old), Some(new)) = (&before.loaded, &known.loaded) {
            self.retire(old, new);
        }
        self.keep(name.clone(), known.clone());
        known
    }

    /// Keeps sinks that are no longer used, to close them at the end: running jobs still write to them.
    fn retire(&self, old: &LoadedSpider, new: &LoadedSpider) {
        let is_used = |sink: &&Arc<dyn Sink>| new.sinks.iter().any(|other| Arc::ptr_eq(other, sink));
        let gone = old.sinks.iter().filter(|sink| !is_used(sink)).cloned();
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).extend(gone);
    }

    fn keep(&self, name: SpiderName, known: Known) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(name, known);
    }

    /// Loads the spider from its file; `None` if the text is the same as `before`, and so are the files of its program.
    fn load(&self, name: &SpiderName, before: &Known) -> Result<Option<Known>, Unready> {
        let text = self.folder.text(name)?;
        if let Some(loaded) = &before.loaded {
            if text == before.text && before.wrong.is_none() && self.is_current(loaded) {
                return Ok(None);
            }
            if text.is_none() && before.text.is_some() {
                return Err(Unready::Gone);
            }
        }
        let mut loaded = self.ready(name, text.as_deref())?;
        loaded.sinks = self.sinks(&loaded.spider, before.loaded.as_deref())?;
        Ok(Some(Known { loaded: Some(Arc::new(loaded)), text, wrong: None }))
    }

    /// Prepares the spider with this text of its file, without its sinks.
    fn ready(&self, name: &SpiderName, text: Option<&str>) -> Result<LoadedSpider, Unready> {
        let spider = self.folder.spider(name, text, &self.settings.items)?;
        let mistaken = |mistakes| match text {
            Some(text) => self.folder.mistaken(name, text, mistakes).into(),
            None => Unready::Mistaken(mistakes),
        };
        let Ready { extractor, scope, bans } = Ready::new(&spider, &self.settings.fetch).map_err(mistaken)?;
        let fetch = spider.request.apply(&self.settings.fetch);
        let fetcher = Fetcher::from_spider(&spider, &self.settings.fetch)?.within(self.memory.clone());
        let apart = fetcher.on(&self.threads)?;
        let proxy = (self.proxy)(&spider, &apart)?;
        let program = Running::new(&spider, self.folder.program_folder(name), proxy, false)?;
        Ok(LoadedSpider {
            scope,
            bans,
            route: spider.routes(&self.settings.route),
            politeness: spider.politeness.apply(&self.settings.politeness),
            robots_name: fetch.robots_name().unwrap_or_default(),
            apart,
            fetcher,
            extractor: Arc::new(extractor),
            empty_fields: EmptyFields::new(&spider),
            sinks: Vec::new(),
            backlog: SinkBacklog::default(),
            program,
            version: spider.handler.as_ref().map(|handler| self.version(name, handler)),
            spider,
        })
    }

    fn version(&self, name: &SpiderName, handler: &Handler) -> ProgramVersion {
        let files = self.versions.of(&self.folder, name, handler);
        let text = self.folder.text(name).ok().flatten().unwrap_or_default();
        ProgramVersion { files, shown: FileHash::from_text(&format!("{files} {text}")) }
    }

    /// Returns its sinks: the same as before, if they have the same settings and take the same items.
    fn sinks(
        &self,
        spider: &Spider,
        before: Option<&LoadedSpider>,
    ) -> Result<Vec<Arc<dyn Sink>>, ports::Error> {
        match before {
            Some(before) if before.has_sinks_of(spider) => Ok(before.sinks.clone()),
            _ => self.sink_factory.open(spider),
        }
    }
}

/// Logs that a spider's program is started anew, with its next work; the old one ends when it has done what it has.
fn program_has_changed(name: &SpiderName) {
    info!(spider = %name, "the files of the spider's program have changed: it is started anew");
}

#[cfg(test)]
mod tests;

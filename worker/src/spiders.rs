//! The spiders whose URLs this worker takes, each with what it needs to fetch, extract and store.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use moka::sync::Cache;
use tracing::{error, info, warn};
use trawl_common::frontier::route::Rule;
use trawl_common::logs::{LogLevel, LogWriter};
use trawl_common::names::SpiderName;
use trawl_common::politeness::robots::RobotsName;
use trawl_common::ports::{self, Sink, SinkFactory};
use trawl_common::settings::{Politeness, Retry, Settings};
use trawl_common::spider::folder::{Folder, Unusable};
use trawl_common::spider::{Bans, FileHash, Mistake, Scope, Spider, SpiderText};
use trawl_extract::{Extractor, Ready};
use trawl_handlers::CannotRun;
use trawl_web::{Fetcher, MemoryBudget, Threads};

use crate::empty_fields::EmptyFields;
use crate::handlers::Running;
use crate::proxy::HandlerProxy;
use crate::sink_backlog::SinkBacklog;

/// A spider, ready to work.
pub(crate) struct Loaded {
    pub(crate) spider: Spider,
    pub(crate) scope: Scope,
    /// Which answers are no pages.
    pub(crate) bans: Bans,
    /// The rules that route what it finds.
    pub(crate) route: Vec<Rule>,
    pub(crate) politeness: Politeness,
    /// The name by which a robots.txt speaks to it.
    pub(crate) robots_name: RobotsName,
    pub(crate) fetcher: Fetcher,
    /// Asks as that one does, on threads apart.
    pub(crate) apart: Fetcher,
    pub(crate) extractor: Arc<Extractor>,
    pub(crate) empty_fields: EmptyFields,
    pub(crate) sinks: Vec<Arc<dyn Sink>>,
    /// What waits for these.
    pub(crate) backlog: SinkBacklog,
    /// The program that it has.
    pub(crate) program: Option<Running>,
}

impl Loaded {
    /// How often what its program fails at is tried again, and when.
    pub(crate) fn retry(&self, settings: &Retry) -> Retry {
        let max = self.spider.handler.as_ref().and_then(|handler| handler.retries);
        Retry { max: max.unwrap_or(settings.max), ..settings.clone() }
    }

    /// Whether its sinks are those of `spider`, and take the same items.
    fn has_sinks_of(&self, spider: &Spider) -> bool {
        let takes_same =
            self.spider.items == spider.items && self.spider.handler.is_some() == spider.handler.is_some();
        self.spider.sinks == spider.sinks && takes_same
    }
}

/// So many spiders without a file are loaded at most, beside the default one: anybody may think of more names.
const FILELESS: usize = 256;

/// Of so many names at most it is remembered that no file has them.
const MISSING: usize = 10_000;

/// So many spiders are kept as crawls bring them: each job may give arguments of its own.
const BROUGHT: u64 = 256;

/// Why a spider cannot work.
#[derive(Debug, thiserror::Error)]
pub enum Unready {
    /// Its file cannot be used.
    #[error(transparent)]
    File(#[from] Unusable),
    /// Its file was there and is there no more.
    #[error("its file is gone")]
    Gone,
    /// What the settings say in place of a file cannot be used.
    #[error("settings: {}", listed(.0))]
    Mistaken(Vec<Mistake>),
    /// The HTTP client refused its settings.
    #[error("[fetch]: {0}")]
    Fetch(#[from] trawl_web::Unusable),
    /// Its program cannot be run here.
    #[error("[handler] run: {0}")]
    Program(#[from] CannotRun),
    /// A crawl brings a program that the files of this machine do not have.
    #[error("its [handler] is not that of {}: a worker runs only what its own files say", .0.display())]
    ForeignProgram(PathBuf),
    /// A sink cannot be opened as it is written.
    #[error(transparent)]
    Sink(#[from] ports::Error),
}

fn listed(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("; ")
}

/// What is known of a spider.
#[derive(Clone, Default)]
struct Known {
    /// What it works by, as long as that is its file's last version that can be used; `None` if none could so far.
    loaded: Option<Arc<Loaded>>,
    /// What the file said when that was loaded; `None` if there was no file.
    text: Option<String>,
    /// What is wrong with what the file says now; it has been said.
    wrong: Option<String>,
}

/// A spider as a crawl brings it.
#[derive(Clone)]
struct Brought {
    text: SpiderText,
    /// What it works by, or what is wrong; that has been said.
    loaded: Result<Arc<Loaded>, String>,
}

/// All of them, by name, each loaded when its first URL comes.
pub(crate) struct Spiders {
    settings: Settings,
    folder: Folder,
    sink_factory: Arc<dyn SinkFactory>,
    /// What the bodies of their pages may take together.
    memory: MemoryBudget,
    threads: Threads,
    /// What their programs ask through.
    proxy: Arc<HandlerProxy>,
    known: RwLock<HashMap<SpiderName, Known>>,
    /// Those of crawls that bring the text themselves.
    brought: Cache<(SpiderName, FileHash), Brought>,
    /// Names in messages that had no file since the last look.
    missing: Mutex<HashSet<SpiderName>>,
    /// Sinks of versions that are no longer used.
    retired: Mutex<Vec<Arc<dyn Sink>>>,
    /// Whether it was said that there are too many without a file.
    is_full: AtomicBool,
    /// Where those that cannot work are named, beside this worker's own log.
    log: LogWriter,
}

impl Spiders {
    /// None so far. The default one is tried, so that what is wrong with the settings shows at once.
    pub(crate) fn new(
        settings: &Settings,
        folder: Folder,
        sink_factory: Arc<dyn SinkFactory>,
        threads: Threads,
        proxy: Arc<HandlerProxy>,
        log: LogWriter,
    ) -> Result<Self, Unready> {
        let spiders = Self {
            settings: settings.clone(),
            folder,
            sink_factory,
            memory: MemoryBudget::new(settings.worker.page_memory.as_u64() / 2),
            threads,
            proxy,
            known: RwLock::default(),
            brought: Cache::new(BROUGHT),
            missing: Mutex::default(),
            retired: Mutex::default(),
            is_full: AtomicBool::default(),
            log,
        };
        let name = SpiderName::default();
        let text = spiders.folder.text(&name)?;
        spiders.ready(&name, text.as_deref())?;
        Ok(spiders)
    }

    /// The spider of this name; `None` if it cannot work now, which the log says once.
    pub(crate) fn get(&self, name: &SpiderName) -> Option<Arc<Loaded>> {
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

    /// The spider of this name as a crawl brings it; `None` if it cannot work here, which the log says.
    pub(crate) fn of_text(&self, name: &SpiderName, text: &SpiderText) -> Option<Arc<Loaded>> {
        let key = (name.clone(), text.hash());
        self.brought.get_with(key, || self.bring(name, text.clone(), None)).loaded.ok()
    }

    /// Why the spider of this name cannot work here, by its file or as a crawl brings it; `None` if nothing is known to be wrong.
    pub(crate) fn wrong(&self, name: &SpiderName, text: Option<&SpiderText>) -> Option<String> {
        match text {
            Some(text) => self.brought.get(&(name.clone(), text.hash()))?.loaded.err(),
            None => {
                let all = self.known.read().unwrap_or_else(PoisonError::into_inner);
                all.get(name).filter(|known| known.loaded.is_none())?.wrong.clone()
            }
        }
    }

    /// What is wrong with it is said, unless it was wrong `before` in the same way.
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

    /// Says in both logs why a spider cannot work, and what comes of it.
    fn cannot_work(&self, name: &SpiderName, error: &str, what: &str) {
        error!(spider = %name, error, "{what}");
        self.log.write(self.log.entry(LogLevel::Error, format!("{what}: {error}")).of_spider(name));
    }

    /// With the sinks that are open for this spider already, if these are the same.
    fn load_text(&self, name: &SpiderName, text: &SpiderText) -> Result<Loaded, Unready> {
        let mut loaded = self.ready(name, Some(text.as_str()))?;
        self.check_program(&loaded.spider, text)?;
        let others = self.all_brought().chain(self.of_file(name));
        let like = others
            .filter(|other| other.spider.name == *name)
            .find(|other| other.has_sinks_of(&loaded.spider));
        loaded.sinks = self.sinks(&loaded.spider, like.as_deref())?;
        Ok(loaded)
    }

    /// Whether a spider that a crawl brings has the program that its file here says, or none: who starts crawls does not say what is
    /// run, only what the arguments of the spider are.
    fn check_program(&self, spider: &Spider, brought: &SpiderText) -> Result<(), Unready> {
        if spider.handler.is_none() {
            return Ok(());
        }
        match self.folder.handler(&spider.name, brought.as_str())? == spider.handler {
            true => Ok(()),
            false => Err(Unready::ForeignProgram(self.folder.file(&spider.name))),
        }
    }

    fn all_brought(&self) -> impl Iterator<Item = Arc<Loaded>> {
        self.brought.iter().filter_map(|(_, brought)| brought.loaded.ok())
    }

    /// What is loaded of the file of this spider.
    fn of_file(&self, name: &SpiderName) -> Option<Arc<Loaded>> {
        let all = self.known.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).and_then(|known| known.loaded.clone())
    }

    /// Whether a stranger may ask for pages as this spider: what anybody may write a name of is to leave nothing behind.
    pub(crate) fn is_for_strangers(&self, name: &SpiderName) -> bool {
        *name == SpiderName::default() || self.has_file(name)
    }

    /// Whether it has a file here, or had one when it was loaded. What cannot be read is there. A file that was missing is not
    /// looked for again before the next look at all files: each of many messages may name the same one.
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

    /// Says what no page had, and has every sink finish what it put off, which loses nothing where it fails.
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

    /// Takes up what has changed in the files of the spiders that are in use, and tries those of crawls again that could not work: a sink
    /// may be there by now. Files are read, so it blocks.
    pub(crate) fn look_again(&self) {
        self.missing().clear();
        let all = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, known) in all {
            self.look(&name, known);
        }
        for (key, Brought { text, loaded }) in &self.brought {
            if let Err(wrong) = loaded {
                let brought = self.bring(&key.0, text, Some(&wrong));
                self.brought.insert((*key).clone(), brought);
            }
        }
    }

    fn look(&self, name: &SpiderName, before: Known) -> Known {
        let known = match self.load(name, &before) {
            Ok(None) => return before,
            Ok(Some(known)) => {
                if known.text.is_none() && *name != SpiderName::default() {
                    warn!(spider = %name, "the spider has no file here: [items] of the settings holds");
                }
                if before.loaded.is_some() || before.wrong.is_some() {
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

    /// Remembers the sinks that are no longer used, to close them at the end: jobs under way still put into them.
    fn retire(&self, old: &Loaded, new: &Loaded) {
        let is_used = |sink: &&Arc<dyn Sink>| new.sinks.iter().any(|other| Arc::ptr_eq(other, sink));
        let gone = old.sinks.iter().filter(|sink| !is_used(sink)).cloned();
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).extend(gone);
    }

    fn keep(&self, name: SpiderName, known: Known) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(name, known);
    }

    /// The spider as its file says now; `None` if that is what it said `before`.
    fn load(&self, name: &SpiderName, before: &Known) -> Result<Option<Known>, Unready> {
        let text = self.folder.text(name)?;
        if before.loaded.is_some() {
            if text == before.text && before.wrong.is_none() {
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

    /// The spider as this text of its file says, without its sinks.
    fn ready(&self, name: &SpiderName, text: Option<&str>) -> Result<Loaded, Unready> {
        let spider = self.folder.spider(name, text, &self.settings.items)?;
        let mistaken = |mistakes| match text {
            Some(text) => self.folder.mistaken(name, text, mistakes).into(),
            None => Unready::Mistaken(mistakes),
        };
        let Ready { extractor, scope, bans } = Ready::of(&spider, &self.settings.fetch).map_err(mistaken)?;
        let fetch = spider.request.apply(&self.settings.fetch);
        let fetcher = Fetcher::of(&spider, &self.settings.fetch)?.within(self.memory.clone());
        let apart = fetcher.on(&self.threads)?;
        let proxy = self.proxy.access(&spider, &apart)?;
        Ok(Loaded {
            scope,
            bans,
            route: spider.routes(&self.settings.route),
            politeness: spider.politeness.apply(&self.settings.politeness),
            robots_name: fetch.robots_name().unwrap_or_default(),
            apart,
            fetcher,
            extractor: Arc::new(extractor),
            empty_fields: EmptyFields::of(&spider),
            sinks: Vec::new(),
            backlog: SinkBacklog::default(),
            program: Running::of(&spider, self.folder.program_folder(name), proxy)?,
            spider,
        })
    }

    /// Where its items go: the same sinks as before, if these are the same and are to take the same items.
    fn sinks(&self, spider: &Spider, before: Option<&Loaded>) -> Result<Vec<Arc<dyn Sink>>, ports::Error> {
        match before {
            Some(before) if before.has_sinks_of(spider) => Ok(before.sinks.clone()),
            _ => self.sink_factory.open(spider),
        }
    }
}

#[cfg(test)]
mod tests;

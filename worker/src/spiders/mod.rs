//! The spiders whose URLs this worker takes, each with its resources for fetching, extracting and storing.

mod code;
mod empty_fields;
mod gains;
mod grants;
mod loaded;
mod program_versions;
mod recent_items;
mod reload;
mod session;
mod sink_backlog;
mod unready;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use moka::sync::Cache;
use parking_lot::{Mutex, RwLock};
use tracing::{error, warn};
use trawl_common::elsewhere::Elsewhere;
use trawl_common::fleet_log::LogWriter;
use trawl_common::health::Health;
use trawl_common::logs::LogLevel;
use trawl_common::names::SpiderName;
use trawl_common::ports::{Fatal, Grants, Sink, SinkFactory};
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_common::spider::{FileHash, Spider, SpiderText};
use trawl_common::text::printable;
use trawl_handlers::ProxyAccess;
use trawl_web::{Fetcher, MemoryBudget, Threads};

use self::code::{ProjectCode, Taken};
use self::grants::{Granted, ProjectGrants};
pub(crate) use self::loaded::LoadedSpider;
use self::program_versions::ProgramVersions;
pub(crate) use self::session::SpiderSession;
pub(crate) use self::unready::TooManyNames;
pub use self::unready::Unready;

/// Maximum number of programs whose versions are reported, and of files that cannot be used.
const MAX_REPORTED: usize = 200;

/// Maximum length of the mistake in a file as it is reported.
const MAX_MISTAKE_BYTES: usize = 300;

/// Maximum number of loaded spiders without a file, beside the default one: anybody may invent more names.
const MAX_FILELESS: usize = 256;

/// Maximum number of names that are remembered to have no file.
const MAX_MISSING: usize = 10_000;

/// Maximum number of spiders that are kept with the text of a crawl: each job may have arguments of its own.
const MAX_BROUGHT: u64 = 256;

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
    grants: ProjectGrants,
    code: Arc<ProjectCode>,
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
        grants: Arc<dyn Grants>,
        threads: Threads,
        proxy: ProxyForPrograms,
        log: LogWriter,
    ) -> Result<Self, Unready> {
        let spiders = Self {
            settings: settings.clone(),
            folder,
            sink_factory,
            memory: MemoryBudget::new(settings.worker.half_page_memory()),
            threads,
            proxy,
            grants: ProjectGrants::new(grants),
            code: ProjectCode::new(&settings.projects, log.clone()),
            versions: ProgramVersions::default(),
            known: RwLock::default(),
            brought: Cache::new(MAX_BROUGHT),
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

    /// Asks for the project of a spider, unless that is known. It comes before the spider's work: its program is given
    /// the secret of that project.
    pub(crate) async fn learn_project(&self, name: &SpiderName, health: &Health) -> Result<(), Fatal> {
        if self.grants.learn(name, health).await? {
            self.code.tend(self.grants.all());
            // Another spider's work may have loaded it before.
            let loaded = self.known.read().get(name).filter(|known| known.loaded.is_some()).cloned();
            if let Some(known) = loaded {
                self.look(name, known);
            }
        }
        Ok(())
    }

    /// Returns the version of a spider's code, if its project's comes from Git.
    fn code_of(&self, granted: &Granted) -> Result<Option<Arc<Taken>>, Unready> {
        match granted {
            Granted::Project(grant) => self.code.of(grant),
            Granted::Nothing | Granted::Unknown(_) => Ok(None),
        }
    }

    /// Returns the folder with the file of a spider.
    fn folder_of(&self, name: &SpiderName) -> Result<Cow<'_, Folder>, Unready> {
        Ok(self.folder_with(self.code_of(&self.grants.of(name))?.as_deref()))
    }

    /// Returns the folder with the files of spiders whose code has this version.
    fn folder_with(&self, code: Option<&Taken>) -> Cow<'_, Folder> {
        match code {
            Some(taken) => Cow::Owned(self.folder.fetched(taken.folder.clone())),
            None => Cow::Borrowed(&self.folder),
        }
    }

    /// Returns the spider of this name; `None` if it cannot work now, which is logged once.
    pub(crate) fn get(&self, name: &SpiderName) -> Option<Arc<LoadedSpider>> {
        let all = self.known.read();
        if let Some(known) = all.get(name) {
            return known.loaded.clone();
        }
        let fileless = all.values().filter(|known| known.loaded.is_some() && known.text.is_none()).count();
        drop(all);
        if fileless > MAX_FILELESS && !self.has_file(name) {
            if !self.is_full.swap(true, Ordering::Relaxed) {
                warn!(spider = %name, "more than {MAX_FILELESS} spiders without a file: the URLs of further ones wait");
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
                let all = self.known.read();
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
        self.check_program(&self.folder_of(name)?.reading(name, text.as_str()).spider, text)?;
        let mut loaded = self.ready(name, Some(text.as_str()))?;
        let others = self.all_brought().chain(self.of_file(name));
        let like = others
            .filter(|other| other.spider.name == *name)
            .find(|other| other.has_sinks_of(&loaded.spider));
        loaded.sinks = self.sinks(&loaded.spider, like.as_deref())?;
        loaded.files = self.files(&loaded.spider)?;
        Ok(loaded)
    }

    /// Checks that a spider whose text came with a crawl has the same program as its local file, or none: submitters of
    /// crawls do not choose which program runs, only the spider's arguments.
    fn check_program(&self, spider: &Spider, brought: &SpiderText) -> Result<(), Unready> {
        if spider.handler.is_none() {
            return Ok(());
        }
        let folder = self.folder_of(&spider.name)?;
        match folder.handler(&spider.name, brought.as_str())? == spider.handler {
            true => Ok(()),
            false => Err(Unready::ForeignProgram(folder.file(&spider.name))),
        }
    }

    fn all_brought(&self) -> impl Iterator<Item = Arc<LoadedSpider>> {
        self.brought.iter().filter_map(|(_, brought)| brought.loaded.ok())
    }

    /// Returns the spider as loaded from its file.
    fn of_file(&self, name: &SpiderName) -> Option<Arc<LoadedSpider>> {
        let all = self.known.read();
        all.get(name).and_then(|known| known.loaded.clone())
    }

    /// Whether external publishers may request pages as this spider: a name that anybody can invent must leave nothing
    /// behind.
    pub(crate) fn is_for_strangers(&self, name: &SpiderName) -> bool {
        *name == SpiderName::default() || self.has_file(name)
    }

    /// Returns whether tasks of a spider that is not here are accepted from external publishers: they wait for a worker
    /// that has it.
    pub(crate) fn accept_published(&self, name: &SpiderName) -> bool {
        self.elsewhere.accept(name, None)
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
        let all = self.known.read();
        let is_loaded = all.get(name).is_some_and(|known| known.text.is_some());
        drop(all);
        if is_loaded || self.missing.lock().contains(name) {
            return is_loaded;
        }
        let has_file = !matches!(self.folder_of(name).map(|folder| folder.text(name)), Ok(Ok(None)));
        let mut missing = self.missing.lock();
        if !has_file && missing.len() < MAX_MISSING {
            missing.insert(name.clone());
        }
        has_file
    }

    /// Logs fields that no page had, and lets every sink finish its pending writes, which loses nothing if it fails.
    pub(crate) async fn close(&self) {
        let all: Vec<_> = self.known.read().values().cloned().collect();
        let mut sinks = std::mem::take(&mut *self.retired.lock());
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

    /// Returns the versions of the programs of spiders that are in use here; only some of them if there are many.
    pub(crate) fn programs(&self) -> BTreeMap<SpiderName, FileHash> {
        let versions =
            self.all().filter_map(|loaded| Some((loaded.spider.name.clone(), loaded.version?.shown)));
        versions.take(MAX_REPORTED).collect()
    }

    /// Returns the spiders whose programs are the limit, with the number of pages and tasks that wait for them; only
    /// some of them if there are many.
    pub(crate) fn behind(&self) -> BTreeMap<SpiderName, u64> {
        let behind = self.all().filter_map(|loaded| {
            let waiting = loaded.program.as_ref()?.behind()?;
            Some((loaded.spider.name.clone(), waiting as u64))
        });
        behind.take(MAX_REPORTED).collect()
    }

    /// Returns all loaded spiders.
    fn all(&self) -> impl Iterator<Item = Arc<LoadedSpider>> {
        let all: Vec<_> = self.known.read().values().cloned().collect();
        self.all_brought().chain(all.into_iter().filter_map(|known| known.loaded))
    }

    /// Returns the spiders whose current file cannot be used, so that an older version of it is; only some of them if
    /// there are many.
    pub(crate) fn outdated(&self) -> BTreeMap<SpiderName, String> {
        let all = self.known.read();
        let outdated = all.iter().filter(|(_, known)| known.loaded.is_some());
        let wrong = outdated.filter_map(|(name, known)| {
            Some((name.clone(), printable(known.wrong.as_ref()?, MAX_MISTAKE_BYTES)))
        });
        wrong.take(MAX_REPORTED).collect()
    }
}

#[cfg(test)]
mod tests;

//! Loading spiders from their files, when these change too.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};
use trawl_browser::Chromium;
use trawl_common::names::SpiderName;
use trawl_common::ports::{self, FileStore, Sink};
use trawl_common::spider::{FileHash, Handler, Spider};
use trawl_extract::Ready;
use trawl_web::Fetcher;

use super::code::Taken;
use super::empty_fields::EmptyFields;
use super::gains::Gains;
use super::loaded::ProgramVersion;
use super::recent_items::RecentItems;
use super::session::SpiderSession;
use super::sink_backlog::SinkBacklog;
use super::{Brought, Known, LoadedSpider, Spiders, Unready};
use crate::programs::Running;

/// Interval at which spiders' files are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The number of looks at the files of spiders for one at the files of their programs.
const CHECKS_PER_PROGRAM_CHECK: u64 = 5;

/// The number of looks at the files of spiders for one at their projects.
const CHECKS_PER_PROJECT_CHECK: u64 = 2;

impl Spiders {
    /// Reloads changed files, until the future is dropped.
    pub(crate) async fn reload(self: Arc<Self>) {
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for look in 0_u64.. {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.code.changed() => {}
            }
            if look.is_multiple_of(CHECKS_PER_PROJECT_CHECK) {
                self.grants.refresh().await;
                self.code.tend(self.grants.all());
                self.code.report(self.grants.port()).await;
            }
            let spiders = Arc::clone(&self);
            let look = move || {
                if look.is_multiple_of(CHECKS_PER_PROGRAM_CHECK) {
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
    pub(super) fn look_again(&self) {
        self.missing.lock().clear();
        let all = self.known.read().clone();
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
    pub(super) fn look_at_programs(&self) {
        self.versions.look(&self.folder);
    }

    /// Whether a spider's program, if it has one, is of the version that its files have, and has the secret that its
    /// project has.
    pub(super) fn is_current(&self, loaded: &LoadedSpider) -> bool {
        let Spider { name, handler, .. } = &loaded.spider;
        let granted = self.grants.of(name);
        if !self.code_of(&granted).is_ok_and(|code| code == loaded.code) {
            return false;
        }
        let Some(handler) = handler else { return true };
        let files = self.version_of_files(name, handler, loaded.code.as_deref());
        granted.gives_as(&loaded.granted) && loaded.version.is_some_and(|version| version.files == files)
    }

    pub(super) fn look(&self, name: &SpiderName, before: Known) -> Known {
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

    /// Keeps sinks that are no longer used, to close them at the end: pages in progress still write to them.
    fn retire(&self, old: &LoadedSpider, new: &LoadedSpider) {
        let is_used = |sink: &&Arc<dyn Sink>| new.sinks.iter().any(|other| Arc::ptr_eq(other, sink));
        let gone = old.sinks.iter().filter(|sink| !is_used(sink)).cloned();
        self.retired.lock().extend(gone);
    }

    fn keep(&self, name: SpiderName, known: Known) {
        self.known.write().insert(name, known);
    }

    /// Loads the spider from its file; `None` if the text is the same as `before`, and so are the files of its program.
    pub(super) fn load(&self, name: &SpiderName, before: &Known) -> Result<Option<Known>, Unready> {
        let text = self.folder_of(name)?.text(name)?;
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
        loaded.files = self.files(&loaded.spider)?;
        Ok(Some(Known { loaded: Some(Arc::new(loaded)), text, wrong: None }))
    }

    /// Prepares the spider with this text of its file, without its sinks and the stores of its files.
    pub(super) fn ready(&self, name: &SpiderName, text: Option<&str>) -> Result<LoadedSpider, Unready> {
        let granted = self.grants.of(name);
        let code = self.code_of(&granted)?;
        let folder = self.folder_with(code.as_deref());
        let mut spider = folder.spider(name, text, &self.settings.items)?;
        if let Some(handler) = &mut spider.handler {
            handler.secret = granted.secret(&handler.secret)?;
        }
        let mistaken = |mistakes| match text {
            Some(text) => folder.mistaken(name, text, mistakes).into(),
            None => Unready::Mistaken(mistakes),
        };
        let Ready { extractor, scope, bans, login } =
            Ready::new(&spider, &self.settings.fetch).map_err(mistaken)?;
        let fetch = spider.request.apply(&self.settings.fetch);
        let fetcher = Fetcher::from_spider(&spider, &self.settings.fetch)?.within(self.memory.clone());
        let apart = fetcher.on(&self.threads)?;
        let passage = match spider.needs_browser() {
            true => {
                Chromium::find(&self.settings.browser)?;
                Some(apart.passage()?)
            }
            false => None,
        };
        let proxy = (self.proxy)(&spider, &apart)?;
        let project = granted.project().cloned().unwrap_or_default();
        let program = Running::new(&spider, project, folder.program_folder(name), proxy, false)?;
        Ok(LoadedSpider {
            scope,
            bans,
            session: SpiderSession::new(&spider, login),
            route: spider.routes(&self.settings.route),
            politeness: spider.politeness.apply(&self.settings.politeness),
            robots_name: fetch.robots_name().unwrap_or_default(),
            apart,
            fetcher,
            passage,
            extractor: Arc::new(extractor),
            empty_fields: EmptyFields::new(&spider),
            gains: Gains::default(),
            recent_items: RecentItems::new(&spider),
            sinks: Vec::new(),
            files: Vec::new(),
            backlog: SinkBacklog::default(),
            program,
            version: spider.handler.as_ref().map(|handler| self.version(name, handler, code.as_deref())),
            granted,
            code,
            spider,
        })
    }

    fn version(&self, name: &SpiderName, handler: &Handler, code: Option<&Taken>) -> ProgramVersion {
        let files = self.version_of_files(name, handler, code);
        let text = self.folder_with(code).text(name).ok().flatten().unwrap_or_default();
        ProgramVersion { files, shown: FileHash::from_text(&format!("{files} {text}")) }
    }

    /// Returns the version of a program's files: those of a commit never change.
    fn version_of_files(&self, name: &SpiderName, handler: &Handler, code: Option<&Taken>) -> FileHash {
        match code {
            Some(taken) => FileHash::from_text(taken.commit.as_str()),
            None => self.versions.of(&self.folder, name, handler),
        }
    }

    /// Opens the stores of its files.
    pub(super) fn files(&self, spider: &Spider) -> Result<Vec<Arc<dyn FileStore>>, ports::Error> {
        spider.downloads.iter().map(|download| self.sink_factory.open_files(spider, download)).collect()
    }

    /// Returns its sinks: the same as before, if they have the same settings and take the same items.
    pub(super) fn sinks(
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
    info!(spider = %name, "the files of the spider's program, its project's code or secret, have changed: it is started anew");
}

//! The schedules of spiders, both deployed ones and those with files on this machine.

mod standing;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::spawn_blocking;
use tracing::warn;

pub use standing::{Standing, is_known, standings};

use crate::names::{ProjectName, SpiderName, SpiderRef};
use crate::ports::{ErrorKind, Result, SpiderStore};
use crate::schedule::Schedule;
use crate::settings::Settings;
use crate::spider::folder::Folder;
use crate::spider::{SpiderFiles, Version};

/// The schedules found so far. A spider is read again when its file changes, and a project when its latest version
/// does.
#[derive(Debug, Default)]
pub struct Timetable {
    deployed: BTreeMap<ProjectName, Project>,
    here: BTreeMap<SpiderName, File>,
}

/// The latest version of a project.
#[derive(Debug)]
struct Project {
    /// Its revision; or the reason why it cannot be read, which has been reported.
    revision: std::result::Result<u64, String>,
    spiders: BTreeMap<SpiderName, Option<Schedule>>,
}

/// A file of a spider.
#[derive(Debug)]
struct File {
    /// Its text; or the reason why it cannot be read, which has been reported.
    text: std::result::Result<String, String>,
    schedule: Option<Schedule>,
}

impl Timetable {
    /// Reads everything that has changed: in `store`, and in the folder that `settings` name. Files that cannot be
    /// used are logged once, and do not affect others. If `store` is unavailable, its known spiders stay.
    pub async fn read_again(&mut self, store: &dyn SpiderStore, settings: &Arc<Settings>) -> Result<()> {
        let asked = self.ask(store, settings).await;
        let (here, settings) = (std::mem::take(&mut self.here), Arc::clone(settings));
        // It does not panic; if it did, nothing on this machine would be due.
        self.here = spawn_blocking(move || read_folder(here, &settings)).await.unwrap_or_default();
        asked
    }

    /// Iterates over the schedules, each with its spider. A deployed spider of the default project replaces one
    /// with a file here.
    pub fn schedules(&self) -> impl Iterator<Item = (SpiderRef, &Schedule)> {
        let deployed = self.deployed.iter().flat_map(|(project, known)| {
            let spider_ref =
                |spider: &SpiderName| SpiderRef { project: project.clone(), spider: spider.clone() };
            known.spiders.iter().map(move |(spider, schedule)| (spider_ref(spider), schedule.as_ref()))
        });
        let default = self.deployed.get(&ProjectName::default());
        let is_deployed = move |spider| default.is_some_and(|known| known.spiders.contains_key(spider));
        let here = self.here.iter().filter(move |(spider, _)| !is_deployed(*spider));
        let here = here.map(|(spider, file)| (spider.clone().into(), file.schedule.as_ref()));
        deployed.chain(here).filter_map(|(spider, schedule)| Some((spider, schedule?)))
    }

    async fn ask(&mut self, store: &dyn SpiderStore, settings: &Arc<Settings>) -> Result<()> {
        let projects = store.projects().await?;
        self.deployed.retain(|project, _| projects.contains(project));
        for project in projects {
            let before = self.deployed.get(&project).map(|known| &known.revision);
            match changed(store, &project, before).await {
                Ok(None) => {}
                Ok(Some((revision, latest))) => {
                    let (name, settings) = (project.clone(), Arc::clone(settings));
                    // It does not panic; if it did, the project would have no schedules.
                    let read = spawn_blocking(move || read_version(&name, latest, &settings));
                    let spiders = read.await.unwrap_or_default();
                    self.deployed.insert(project, Project { revision: Ok(revision), spiders });
                }
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    let error = error.to_string();
                    if before != Some(&Err(error.clone())) {
                        warn!(%project, error, "a project cannot be read: no crawl of its spiders is scheduled");
                    }
                    let unreadable = Project { revision: Err(error), spiders: BTreeMap::new() };
                    self.deployed.insert(project, unreadable);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns the latest version of a project and its revision, if that is not `before`.
async fn changed(
    store: &dyn SpiderStore,
    project: &ProjectName,
    before: Option<&std::result::Result<u64, String>>,
) -> Result<Option<(u64, Option<(Version, SpiderFiles)>)>> {
    // The revision first: later changes are seen the next time.
    let revision = store.revision(project).await?;
    if before == Some(&Ok(revision)) {
        return Ok(None);
    }
    Ok(Some((revision, store.latest(project).await?)))
}

fn read_version(
    project: &ProjectName,
    latest: Option<(Version, SpiderFiles)>,
    settings: &Settings,
) -> BTreeMap<SpiderName, Option<Schedule>> {
    let Some((version, files)) = latest else { return BTreeMap::new() };
    let read = |(spider, text): (&SpiderName, &str)| {
        let folder = Folder::new(settings).calling(format!("{project}/{version}/{spider}.toml").into());
        (spider.clone(), schedule_of(&folder, spider, text, settings))
    };
    files.iter().map(read).collect()
}

fn read_folder(mut before: BTreeMap<SpiderName, File>, settings: &Settings) -> BTreeMap<SpiderName, File> {
    let folder = Folder::new(settings);
    // Loading the spiders reports the error.
    let Ok(names) = folder.names() else { return before };
    let mut files = BTreeMap::new();
    for name in names {
        let text = match folder.text(&name) {
            Ok(None) => continue,
            Ok(Some(text)) => Ok(text),
            Err(error) => Err(error.to_string()),
        };
        let file = match before.remove(&name) {
            Some(file) if file.text == text => file,
            _ => File::new(&folder, &name, text, settings),
        };
        files.insert(name, file);
    }
    files
}

impl File {
    fn new(
        folder: &Folder,
        name: &SpiderName,
        text: std::result::Result<String, String>,
        settings: &Settings,
    ) -> Self {
        let schedule = match &text {
            Ok(text) => schedule_of(folder, name, text, settings),
            Err(error) => {
                warn_of(name, error);
                None
            }
        };
        Self { text, schedule }
    }
}

/// Returns the schedule in the file of a spider, if it can be used.
fn schedule_of(folder: &Folder, name: &SpiderName, text: &str, settings: &Settings) -> Option<Schedule> {
    match folder.spider(name, Some(text), &settings.items) {
        Ok(spider) => spider.schedule,
        Err(error) => {
            warn_of(name, &error.to_string());
            None
        }
    }
}

fn warn_of(spider: &SpiderName, error: &str) {
    warn!(%spider, error, "a spider's file cannot be used: no crawl of it is scheduled");
}

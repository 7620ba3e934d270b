//! The schedules that the files of spiders say.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::spawn_blocking;
use tracing::warn;
use trawl_common::names::SpiderName;
use trawl_common::schedule::Schedule;
use trawl_common::settings;
use trawl_common::spider::folder::Folder;

use crate::Runner;

/// What was found in the folder of spiders. A file is taken in again when it says something else.
#[derive(Default)]
pub(super) struct Timetable {
    files: BTreeMap<SpiderName, File>,
}

struct File {
    /// What it says; or else why it cannot be read, which has been said.
    text: Result<String, String>,
    schedule: Option<Schedule>,
}

impl Timetable {
    /// What is in the folder now.
    pub(super) async fn read_again(self, runner: &Arc<Runner>) -> Self {
        let runner = Arc::clone(runner);
        let read = move || self.read(&runner.folder, &runner.settings.items);
        // It does not panic; without it nothing is due.
        spawn_blocking(read).await.unwrap_or_default()
    }

    fn read(mut self, folder: &Folder, items: &settings::Items) -> Self {
        let names = match folder.names() {
            Ok(names) => names,
            // Whoever loads spiders says so.
            Err(_) => return self,
        };
        let mut files = BTreeMap::new();
        for name in names {
            let text = match folder.text(&name) {
                Ok(None) => continue,
                Ok(Some(text)) => Ok(text),
                Err(error) => Err(error.to_string()),
            };
            let file = match self.files.remove(&name) {
                Some(file) if file.text == text => file,
                _ => File::new(&name, text, folder, items),
            };
            files.insert(name, file);
        }
        Self { files }
    }

    pub(super) fn schedules(&self) -> impl Iterator<Item = (&SpiderName, &Schedule)> {
        self.files.iter().filter_map(|(name, file)| Some((name, file.schedule.as_ref()?)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.schedules().next().is_none()
    }
}

impl File {
    fn new(
        name: &SpiderName,
        text: Result<String, String>,
        folder: &Folder,
        items: &settings::Items,
    ) -> Self {
        let spider = match &text {
            Ok(text) => folder.spider(name, Some(text.as_str()), items).map_err(|error| error.to_string()),
            Err(error) => Err(error.clone()),
        };
        let schedule = spider.map(|spider| spider.schedule).unwrap_or_else(|error| {
            warn!(spider = %name, error, "a spider's file cannot be used: no crawl of it is scheduled");
            None
        });
        Self { text, schedule }
    }
}

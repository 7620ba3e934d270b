//! Checks of requests that other programs publish, by the files of spiders on the API's machine.

use std::sync::Arc;

use trawl_common::elsewhere::Elsewhere;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::names::SpiderName;
use trawl_common::ports::Requests;
use trawl_common::published::{LocalSpiders, check};
use trawl_common::settings::{Items, Settings, Urls};
use trawl_common::spider::folder::Folder;

/// Checks requests of other programs: pages of spiders with a file here, and tasks.
pub(super) struct FileRequests {
    folder: Folder,
    items: Items,
    elsewhere: Elsewhere,
}

impl FileRequests {
    pub(super) fn new(settings: &Settings) -> Arc<Self> {
        let (folder, items) = (Folder::new(settings), settings.items.clone());
        Arc::new(Self { folder, items, elsewhere: Elsewhere::default() })
    }

    /// Returns whether a spider may get tasks from the program of the spider `by`: it has a file here, or it is one of the
    /// first others that this program names.
    pub(super) fn accepts(&self, name: &SpiderName, by: &SpiderName) -> bool {
        self.is_here(name) || self.elsewhere.accept(name, Some(by))
    }
}

impl Requests for FileRequests {
    fn check(&self, request: Message) -> Result<Message, Malformed> {
        check(self, request)
    }
}

impl LocalSpiders for FileRequests {
    fn is_here(&self, name: &SpiderName) -> bool {
        *name == SpiderName::default() || !matches!(self.folder.text(name), Ok(None))
    }

    fn accept_elsewhere(&self, name: &SpiderName) -> bool {
        self.elsewhere.accept(name, None)
    }

    fn urls(&self, name: &SpiderName) -> Option<Urls> {
        let text = self.folder.text(name).ok()?;
        Some(self.folder.spider(name, text.as_deref(), &self.items).ok()?.urls)
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::lane::Lane;
    use trawl_common::frontier::{Task, Work};
    use trawl_common::names::CrawlRef;
    use trawl_common::task::NewTask;
    use trawl_common::web::url::CanonicalUrl;

    use super::*;

    #[test]
    fn a_task_of_a_spider_without_a_file_here_waits_as_by_a_worker() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("shop.toml"), "max_pages = 7\n").unwrap();
        let requests =
            FileRequests::new(&Settings { spiders_dir: folder.path().to_owned(), ..Settings::default() });
        let check = |spider: &str, work: Work| {
            let crawl = CrawlRef::adhoc_of(spider.parse().unwrap());
            requests.check(Message { is_ours: false, ..Message::new(work, crawl, Lane::Bulk) })
        };
        for spider in ["shop", "elsewhere"] {
            let new = NewTask::from_recipe("do it".parse().unwrap());
            assert!(check(spider, Task::new(&spider.parse().unwrap(), new).into()).is_ok(), "{spider}");
            let page = Work::Url(CanonicalUrl::parse("http://a.example/").unwrap());
            assert_eq!(check(spider, page).is_ok(), spider == "shop", "{spider}");
        }
    }
}

//! The results of a page or a task.

use std::sync::Arc;

use trawl_common::frontier::limit::LeftOut;
use trawl_common::names::SpiderName;
use trawl_common::ports::{NewWork, Page};
use trawl_common::spider::ItemCounts;
use trawl_common::web::url::CanonicalUrl;

use super::items_file::FileItems;
use crate::spiders::LoadedSpider;

/// The results of a page or a task.
pub(crate) struct PageOutput {
    /// The spider that read it.
    pub(crate) spider: Arc<LoadedSpider>,
    /// The page for its sinks; `None` if there is nothing to store, or it is stored.
    pub(crate) page: Option<Page>,
    /// Further items for the sinks, in a file; `None` if there are none, or they are stored.
    pub(crate) file: Option<Box<FileItems>>,
    /// The links to follow.
    pub(crate) links: Vec<NewWork>,
    /// Requests for other spiders.
    pub(crate) elsewhere: Vec<(SpiderName, NewWork)>,
    /// The number of its links that limits left out so far.
    pub(crate) left_out: LeftOut,
    /// The final URL of the redirects to the page.
    pub(crate) landed: Option<CanonicalUrl>,
    /// The status of the response; `None` for a task.
    pub(crate) status: Option<u16>,
    /// How many items it gave.
    pub(crate) items: ItemCounts,
    /// How many bytes its body had.
    pub(crate) bytes: u64,
    /// The required fields that it lacks.
    pub(crate) missing: Vec<String>,
}

/// The items and the page that go to the sinks of a spider.
pub(crate) struct ForSinks {
    pub(crate) spider: Arc<LoadedSpider>,
    pub(crate) page: Option<Page>,
    pub(crate) file: Option<Box<FileItems>>,
}

impl PageOutput {
    fn has_for_sinks(&self) -> bool {
        self.page.is_some() || self.file.is_some()
    }

    /// Starts the wait for the spider's sinks, if there is anything for them.
    pub(super) fn await_sinks(&self) {
        if self.has_for_sinks() {
            self.spider.backlog.add();
        }
    }

    /// Takes the page for the sinks, if it is not stored yet.
    pub(super) fn take_for_sinks(&mut self) -> Option<ForSinks> {
        self.has_for_sinks().then(|| ForSinks {
            spider: Arc::clone(&self.spider),
            page: self.page.take(),
            file: self.file.take(),
        })
    }
}

//! Requests that other programs publish to a fleet's queues, checked by the files of spiders on this machine.

use trawl_common::frontier::Work;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::names::SpiderName;
use trawl_common::ports::Requests;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_common::text::printable;
use trawl_common::web::url::MAX_URL_BYTES;

/// Takes requests for spiders that have a file here, and for the default one.
pub(super) struct FileRequests {
    folder: Folder,
    settings: Settings,
}

impl FileRequests {
    pub(super) fn new(settings: &Settings) -> Self {
        Self { folder: Folder::new(settings), settings: settings.clone() }
    }
}

impl Requests for FileRequests {
    fn check(&self, request: Message) -> Result<Message, Malformed> {
        let name = &request.crawl.spider;
        let refused =
            |reason: String| Malformed { text: printable(request.work.as_str(), MAX_URL_BYTES), reason };
        let text = self.folder.text(name).ok().flatten();
        if text.is_none() && *name != SpiderName::default() {
            return Err(refused(format!("there is no spider {name} here")));
        }
        let Some(url) = request.work.page().cloned() else { return Ok(request) };
        let spider = self.folder.spider(name, text.as_deref(), &self.settings.items);
        let urls = spider.map_or_else(|_| self.settings.urls.clone(), |spider| spider.urls);
        let url = urls.canonical(url);
        if !urls.takes(&url) {
            return Err(refused(urls.too_long()));
        }
        let work = match &request.work {
            Work::Request(own) => Work::of_request(url, own.new.clone()),
            Work::Url(_) | Work::Task(_) => Ok(Work::Url(url)),
        };
        let work = work.map_err(|error| refused(error.to_string()))?;
        Ok(Message { work, ..request })
    }
}

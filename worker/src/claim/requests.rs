//! Checks of requests that other programs publish.

use std::sync::Arc;

use trawl_common::frontier::Work;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::ports::Requests;
use trawl_common::text::printable;
use trawl_common::web::url::MAX_URL_BYTES;

use crate::spiders::Spiders;

/// Checks requests of other programs: pages of local spiders, and tasks.
pub(crate) struct SpiderRequests {
    spiders: Arc<Spiders>,
}

impl SpiderRequests {
    pub(crate) fn new(spiders: Arc<Spiders>) -> Self {
        Self { spiders }
    }
}

impl Requests for SpiderRequests {
    /// Accepts a request for a page, in the canonical form of its URL, if its spider is here and accepts URLs
    /// of that length; or for a task. A task whose spider is not here waits for a worker that has it.
    fn check(&self, request: Message) -> Result<Message, Malformed> {
        let refused = |text: &str, reason| Err(Malformed { text: printable(text, MAX_URL_BYTES), reason });
        let name = &request.crawl.spider;
        // Checked first, so that arbitrary names do not cause a look-up.
        let url = match &request.work {
            Work::Task(_) if self.spiders.accept_published(name) => return Ok(request),
            Work::Url(_) | Work::Request(_) if self.spiders.is_for_strangers(name) => {
                match request.work.page() {
                    Some(url) => url,
                    None => return Ok(request),
                }
            }
            work => return refused(said_by(work), format!("there is no spider {name} here")),
        };
        let Some(spider) = self.spiders.get(name) else { return Ok(request) };
        let urls = &spider.spider.urls;
        let url = urls.canonical(url.clone());
        if !urls.takes(&url) {
            return refused(url.as_str(), urls.too_long());
        }
        let work = match &request.work {
            Work::Request(own) => Work::of_request(url.clone(), own.new.clone()),
            Work::Url(_) | Work::Task(_) => Ok(Work::Url(url.clone())),
        };
        match work {
            Ok(work) => Ok(Message { work, ..request }),
            Err(error) => refused(url.as_str(), error.to_string()),
        }
    }
}

/// Returns the name of a request for people.
fn said_by(work: &Work) -> &str {
    match work {
        Work::Url(url) => url.as_str(),
        Work::Request(request) => request.url.as_str(),
        Work::Task(task) => task.new.recipe.as_str(),
    }
}

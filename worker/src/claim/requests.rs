//! Checks of requests that other programs publish.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use trawl_common::frontier::Work;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::names::SpiderName;
use trawl_common::ports::Requests;
use trawl_common::text::printable;
use trawl_common::web::url::MAX_URL_BYTES;

use crate::spiders::Spiders;

/// Limit on unknown spider names from external publishers; the names are chosen by strangers.
const ELSEWHERE: usize = 64;

/// Checks requests of other programs: pages of local spiders, and tasks.
pub(crate) struct SpiderRequests {
    spiders: Arc<Spiders>,
    /// The spiders of accepted tasks whose files are not here: they may be on other workers.
    elsewhere: Mutex<HashSet<SpiderName>>,
}

impl SpiderRequests {
    pub(crate) fn new(spiders: Arc<Spiders>) -> Self {
        Self { spiders, elsewhere: Mutex::default() }
    }

    /// Whether tasks of a spider that is not here are accepted, for other workers to run.
    fn is_elsewhere(&self, name: &SpiderName) -> bool {
        let mut elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        elsewhere.contains(name) || (elsewhere.len() < ELSEWHERE && elsewhere.insert(name.clone()))
    }
}

impl Requests for SpiderRequests {
    /// Accepts a request for a page, in the canonical form of its URL, if its spider is here and accepts URLs
    /// of that length; or for a task. A task whose spider is not here waits for a worker that has it.
    fn check(&self, request: Message) -> Result<Message, Malformed> {
        let refused = |text: &str, reason| Err(Malformed { text: printable(text, MAX_URL_BYTES), reason });
        let name = &request.crawl.spider;
        // Checked first, so that arbitrary names do not cause a look-up.
        let is_here = self.spiders.is_for_strangers(name);
        let url = match &request.work {
            Work::Task(_) if is_here || self.is_elsewhere(name) => return Ok(request),
            Work::Url(_) | Work::Request(_) if is_here => match request.work.page() {
                Some(url) => url,
                None => return Ok(request),
            },
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

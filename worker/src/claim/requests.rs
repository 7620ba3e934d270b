//! Checks of requests that other programs publish.

use std::sync::Arc;

use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::names::SpiderName;
use trawl_common::ports::Requests;
use trawl_common::published::{LocalSpiders, check};
use trawl_common::settings::Urls;

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
    fn check(&self, request: Message) -> Result<Message, Malformed> {
        check(&*self.spiders, request)
    }
}

impl LocalSpiders for Spiders {
    fn is_here(&self, name: &SpiderName) -> bool {
        self.is_for_strangers(name)
    }

    fn accept_elsewhere(&self, name: &SpiderName) -> bool {
        self.accept_published(name)
    }

    fn urls(&self, name: &SpiderName) -> Option<Urls> {
        Some(self.get(name)?.spider.urls.clone())
    }
}

//! Which tasks a spider takes, and the crawl that they go to.

use super::Spider;
use crate::names::{CrawlId, CrawlRef, SpiderName};
use crate::settings::Retry;
use crate::time::UnixMs;

/// The reason why tasks cannot be submitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSubmitted {
    /// The spider has no program.
    #[error("the spider {0} has no [handler]: nothing would do its tasks")]
    NoHandler(SpiderName),
    /// The crawl never ends.
    #[error("{0} is for what others publish, and never ends: choose another crawl")]
    Adhoc(CrawlId),
}

/// Returns the crawl that tasks of `spider` go to: the one that is `named`, or else a new one, named by the time.
/// Also returns whether its id was created just now.
pub fn crawl_for(
    spider: &Spider,
    named: Option<CrawlId>,
    now: UnixMs,
) -> Result<(CrawlRef, bool), NotSubmitted> {
    spider.takes_tasks()?;
    let (id, is_new) = match named {
        Some(id) if id.is_adhoc() => return Err(NotSubmitted::Adhoc(id)),
        Some(id) => (id, false),
        None => (CrawlId::generate(now), true),
    };
    Ok((CrawlRef { id, spider: spider.name.clone() }, is_new))
}

impl Spider {
    /// Returns the retry policy for tasks and pages that its program fails at.
    pub fn program_retry(&self, settings: &Retry) -> Retry {
        let max = self.handler.as_ref().and_then(|handler| handler.retries);
        self.retry.apply(settings).with_max(max)
    }

    /// Fails if the spider has no program to do its tasks.
    pub fn takes_tasks(&self) -> Result<(), NotSubmitted> {
        match self.handler {
            Some(_) => Ok(()),
            None => Err(NotSubmitted::NoHandler(self.name.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    #[test]
    fn tasks_go_to_a_crawl_that_ends_and_to_a_spider_with_a_program() {
        let plain = Spider::without_file("payments".parse().unwrap(), &settings::Items::default());
        let no_program = crawl_for(&plain, None, UnixMs(0)).unwrap_err();
        assert!(no_program.to_string().contains("payments has no [handler]"), "{no_program}");
        let text = "[handler]\nrun = ['true']\n";
        let spider =
            crate::spider::file::read(plain, text, crate::spider::Origin::Local, &|_| None).ready().unwrap();
        let (made, is_new) = crawl_for(&spider, None, UnixMs(0)).unwrap();
        assert!(is_new && made.id.as_str().starts_with("19700101-000000-"), "{made:?}");
        let (named, is_new) = crawl_for(&spider, Some("mine".parse().unwrap()), UnixMs(0)).unwrap();
        assert_eq!((named.id.as_str(), named.spider.as_str(), is_new), ("mine", "payments", false));
        for endless in [CrawlRef::adhoc(), CrawlRef::adhoc_of(spider.name.clone())] {
            assert_eq!(
                crawl_for(&spider, Some(endless.id.clone()), UnixMs(0)),
                Err(NotSubmitted::Adhoc(endless.id))
            );
        }
    }
}

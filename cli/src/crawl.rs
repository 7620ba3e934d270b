//! Crawls as named at a shell.

use std::fmt;
use std::str::FromStr;

use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::names::{CrawlId, InvalidName};
use trawl_common::nearest::listed;
use trawl_common::ports::Stats;

use crate::Fail;

/// The word for the newest crawl.
const LATEST: &str = "latest";

/// A crawl, named by its id, by an unambiguous prefix of a generated id, or as the newest one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrawlArg {
    /// `latest`: the newest crawl. The crawl of hand-published URLs, which never ends, is left out.
    Latest,
    /// `20260101-120000-a1b2c3`, or an unambiguous prefix of a generated id. Ids that people have chosen must be given
    /// whole: `nightly` does not mean `nightly-2`, even if there is no `nightly`.
    Named(CrawlId),
}

impl FromStr for CrawlArg {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if text == LATEST { Ok(Self::Latest) } else { text.parse().map(Self::Named) }
    }
}

impl fmt::Display for CrawlArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str(LATEST),
            Self::Named(id) => id.fmt(f),
        }
    }
}

impl CrawlArg {
    /// Returns the stats of the crawl, or `None` if there is no such crawl.
    ///
    /// # Errors
    /// If several crawls match, or the store fails.
    pub async fn crawl_stats(&self, stats: &dyn Stats) -> Result<Option<CrawlStats>, Fail> {
        if let Self::Named(id) = self
            && let Some(stats) = stats.crawl_stats(id).await?
        {
            return Ok(Some(stats));
        }
        self.choose(stats.crawls().await?)
    }

    /// Picks the crawl from `crawls`, which are sorted from newest to oldest, when no crawl has exactly this id.
    fn choose(&self, crawls: Vec<CrawlStats>) -> Result<Option<CrawlStats>, Fail> {
        let Self::Named(id) = self else {
            return Ok(crawls.into_iter().find(|stats| !stats.crawl_ref().is_adhoc()));
        };
        let mut begin: Vec<CrawlStats> =
            crawls.into_iter().filter(|stats| stats.crawl.is_made_from(id.as_str())).collect();
        match begin.len() {
            0 | 1 => Ok(begin.pop()),
            _ => {
                let ids = listed(begin.iter().map(|stats| stats.crawl.as_str()));
                Err(Fail::usage(format!("several crawls begin with `{id}`: {ids}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::crawl::CrawlState;
    use trawl_common::names::CrawlRef;
    use trawl_common::time::UnixMs;

    use super::*;

    /// Returns the id of the crawl that is chosen from these crawls, newest first.
    fn chosen(arg: &str, crawls: &[&str]) -> Result<Option<String>, String> {
        let stats = |id: &&str| {
            let crawl = CrawlRef { id: id.parse().unwrap(), spider: "default".parse().unwrap() };
            CrawlStats::empty(crawl, CrawlState::Running, UnixMs(0))
        };
        let arg: CrawlArg = arg.parse().unwrap();
        let chosen = arg.choose(crawls.iter().map(stats).collect()).map_err(|fail| fail.message)?;
        Ok(chosen.map(|stats| stats.crawl.to_string()))
    }

    #[test]
    fn the_latest_crawl_is_the_newest_but_for_that_of_hand_published_urls() {
        assert_eq!(chosen("latest", &["adhoc", "b", "a"]), Ok(Some("b".to_owned())));
        assert_eq!(chosen("latest", &["adhoc"]), Ok(None));
    }

    #[test]
    fn a_crawl_is_named_by_as_much_of_its_id_as_no_other_begins_with() {
        let crawls = ["20260102-120000-aaaaaa", "20260101-130000-bbbbbb", "20260101-120000-cccccc"];
        assert_eq!(chosen("20260102", &crawls), Ok(Some(crawls[0].to_owned())));
        assert_eq!(chosen("2027", &crawls), Ok(None));
        let shown = chosen("20260101", &crawls).unwrap_err();
        assert_eq!(
            shown,
            format!("several crawls begin with `20260101`: `{}` and `{}`", crawls[1], crawls[2])
        );
    }

    #[test]
    fn a_crawl_that_a_person_has_named_is_called_by_its_whole_name() {
        assert_eq!(chosen("nightly", &["nightly-2"]), Ok(None));
        assert_eq!(chosen("2026", &["2026-all"]), Ok(None));
    }

    #[test]
    fn what_is_no_id_is_no_crawl() {
        assert!("No Crawl".parse::<CrawlArg>().is_err());
        assert_eq!("latest".parse::<CrawlArg>().unwrap().to_string(), "latest");
    }
}

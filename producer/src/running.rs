//! Decides which crawl a run of the producer is for when a crawl of its spider may still be running. Without this, runs
//! under cron would pile up crawls of the same URLs.

use std::time::Duration;

use trawl_common::frontier::DedupScope;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::ports::{Result, Stats};
use trawl_common::settings::IfRunning;
use trawl_common::text::counted;
use trawl_common::time::UnixMs;

use crate::rate_warning::whole;

/// The crawl that a run is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Beginning {
    /// Read the sources for this crawl, whose id was just created.
    New(CrawlRef),
    /// Read the sources for this crawl, which may have been opened before.
    Known(CrawlRef),
    /// Do nothing, because this crawl is not over.
    Not(Box<CrawlStats>),
}

/// Returns the crawl for a run without `--crawl`: a new one, unless a crawl of the `spider` is still running. Then
/// `if_running` decides. By default a recrawl does nothing in that case; any other run starts a crawl beside it, since
/// it finds only new URLs.
pub(crate) async fn beginning(
    stats: &dyn Stats,
    spider: &SpiderName,
    dedup: DedupScope,
    if_running: Option<IfRunning>,
) -> Result<Beginning> {
    let default = if dedup.is_revisiting() { IfRunning::Exit } else { IfRunning::Start };
    Ok(match (running(stats, spider).await?, if_running.unwrap_or(default)) {
        (Some(stats), IfRunning::Exit) => Beginning::Not(Box::new(stats)),
        (Some(stats), IfRunning::Join) => Beginning::Known(stats.crawl_ref()),
        (_, IfRunning::Start) | (None, _) => {
            Beginning::New(CrawlRef { id: CrawlId::generate(UnixMs::now()), spider: spider.clone() })
        }
    })
}

/// Returns the newest crawl of a spider that is not over.
pub(crate) async fn running(stats: &dyn Stats, spider: &SpiderName) -> Result<Option<CrawlStats>> {
    Ok(stats.open_crawls(spider).await?.into_iter().find(|stats| !stats.crawl_ref().is_adhoc()))
}

/// Returns the newest crawl of a spider.
pub(crate) async fn latest(stats: &dyn Stats, spider: &SpiderName) -> Result<Option<CrawlStats>> {
    Ok(crawls(stats, spider).await?.next())
}

/// Returns a spider's crawls, newest first, except for that of hand-published URLs, which never ends.
async fn crawls(stats: &dyn Stats, spider: &SpiderName) -> Result<impl Iterator<Item = CrawlStats>> {
    let is_one = move |stats: &CrawlStats| stats.spider == *spider && !stats.crawl_ref().is_adhoc();
    Ok(stats.crawls().await?.into_iter().filter(is_one))
}

/// The message of a run that does nothing because the crawl of these `stats` is still going on.
pub(crate) fn message(stats: &CrawlStats) -> String {
    let CrawlStats { crawl, spider, status, pending, .. } = stats;
    let way_out = match status {
        CrawlState::Paused => format!("`trawl resume {crawl}` lets it go on, `trawl cancel {crawl}` ends it"),
        _ => "`--if-running join` adds to it, `--if-running start` begins another".to_owned(),
    };
    let age = whole(Duration::from_secs_f64(stats.seconds.max(0.0)));
    format!(
        "nothing to do: crawl {crawl} of spider {spider} is {status}, begun {age} ago, {} left; {way_out}",
        counted(*pending, "URL")
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trawl_backends::embedded::Embedded;
    use trawl_common::frontier::Recrawl;
    use trawl_common::ports::{Opening, Terms};

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn named(id: &str) -> CrawlRef {
        CrawlRef { id: id.parse().unwrap(), spider: "shop".parse().unwrap() }
    }

    #[tokio::test]
    async fn a_recrawl_leaves_a_running_crawl_alone_unless_a_flag_says_otherwise() {
        let engine = Embedded::in_memory().unwrap();
        let (stats, spider) = (engine.stats(), named("first").spider);
        let begin =
            |recrawl, if_running| beginning(&*stats, &spider, DedupScope::Recrawl(recrawl), if_running);
        let is_new =
            |beginning: &Beginning| matches!(beginning, Beginning::New(crawl) if *crawl != named("first"));
        assert!(is_new(&begin(Recrawl::Always, None).await.unwrap()));

        let opening = Opening {
            judging: None,
            crawl: named("first"),
            terms: Terms::default(),
            text: None,
            is_new: true,
            lease: LONG,
            reads: None,
        };
        let session = engine.engine().open(opening, Arc::default()).await.unwrap();
        let Beginning::Not(running) = begin(Recrawl::Always, None).await.unwrap() else {
            panic!("it begins")
        };
        assert!(message(&running).contains("crawl first of spider shop is running"), "{}", message(&running));
        assert!(is_new(&begin(Recrawl::Never, None).await.unwrap()));
        assert!(is_new(&begin(Recrawl::Always, Some(IfRunning::Start)).await.unwrap()));
        assert!(matches!(begin(Recrawl::Never, Some(IfRunning::Exit)).await.unwrap(), Beginning::Not(_)));
        let joined = begin(Recrawl::Always, Some(IfRunning::Join)).await.unwrap();
        assert_eq!(joined, Beginning::Known(named("first")));
        let other = beginning(&*stats, &"news".parse().unwrap(), DedupScope::Recrawl(Recrawl::Always), None)
            .await
            .unwrap();
        assert!(is_new(&other), "another spider's crawl is none of its business");

        engine.control().pause(&named("first")).await.unwrap();
        let Beginning::Not(running) = begin(Recrawl::Always, None).await.unwrap() else {
            panic!("it begins")
        };
        assert!(
            message(&running).contains("is paused") && message(&running).contains("trawl resume first"),
            "{}",
            message(&running)
        );
        engine.control().cancel(&named("first")).await.unwrap();
        assert!(is_new(&begin(Recrawl::Always, None).await.unwrap()));
        drop(session);
    }
}

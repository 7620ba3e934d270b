//! What a job is fed from.

use std::sync::Arc;

use trawl_common::jobs::NewJob;
use trawl_common::names::SpiderName;
use trawl_common::settings::Settings;
use trawl_common::spider::FileHash;
use trawl_common::spider::folder::{Folder, Unusable};
use trawl_producer::{Html, Job, NoStart, Source, Start};

/// Why a job cannot be run here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfeedable {
    /// Its spider cannot be used.
    #[error(transparent)]
    Spider(#[from] Unusable),
    /// There is no such spider.
    #[error("there is no {0} on this worker: put it there, or take a spider that is there")]
    NoFile(String),
    /// Its spider's file says something else here.
    #[error("{file} is another version here than that of the job ({wanted})")]
    OtherVersion {
        /// The file.
        file: String,
        /// The hash of what the job was asked for with.
        wanted: FileHash,
    },
    /// It gives arguments, which would not reach the workers that fetch its pages.
    #[error("a job cannot give arguments yet: write their values into the file of spider {0}")]
    Arguments(SpiderName),
    /// It names nothing to start from.
    #[error(transparent)]
    Start(#[from] NoStart),
}

/// The run of a producer that feeds a job.
pub(crate) fn of(new: &NewJob, folder: &Folder, settings: &Settings) -> Result<Job, Unfeedable> {
    let folder = folder.clone().with_overrides(new.settings.of_spider());
    let text = folder.text(&new.spider)?;
    let file = || folder.file(&new.spider).display().to_string();
    if text.is_none() && new.spider != SpiderName::default() {
        return Err(Unfeedable::NoFile(file()));
    }
    if let Some(wanted) = new.file
        && text.as_deref().map(FileHash::of) != Some(wanted)
    {
        return Err(Unfeedable::OtherVersion { file: file(), wanted });
    }
    if !new.arguments.is_empty() {
        return Err(Unfeedable::Arguments(new.spider.clone()));
    }
    let spider = folder.spider(&new.spider, text.as_deref(), &settings.items)?;
    let start = match new.urls.is_empty() && new.sources.is_empty() {
        true => Start::of(&spider, &[])?,
        false => {
            let sources = new.sources.iter().cloned().map(Source::Web).collect();
            Start { pages: new.urls.clone(), sources }
        }
    };
    // Another worker may have opened the crawl before.
    Ok(Job {
        spider: Arc::new(spider),
        start,
        limit: new.settings.limit,
        html: Html::IsAnError,
        is_new: false,
    })
}

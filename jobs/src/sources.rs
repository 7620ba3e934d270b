//! The sources that a job is fed from.

use std::path::PathBuf;
use std::sync::Arc;

use trawl_common::jobs::NewJob;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports;
use trawl_common::spider::file::with_arguments;
use trawl_common::spider::folder::{Folder, Unusable};
use trawl_common::spider::{SpiderText, Version};
use trawl_producer::{Html, NoStart, RunPlan, RunStart, Source};

use crate::Runner;

/// The reason why a job cannot be run here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfeedable {
    /// Its spider cannot be used.
    #[error(transparent)]
    Spider(#[from] Unusable),
    /// There is no such spider.
    #[error(
        "spider {spider} is not deployed in project {project}, and there is no {file} on this worker: `trawl spider push` deploys it"
    )]
    NoSpider { project: ProjectName, spider: SpiderName, file: String },
    /// It was removed in the meantime, or never existed.
    #[error("project {project} has no version {version} with spider {spider}: was it removed?")]
    NoVersion { project: ProjectName, version: Version, spider: SpiderName },
    /// It has arguments for the spider without a file.
    #[error("spider {0} has no file, and so no arguments")]
    NoArguments(SpiderName),
    /// It has nothing to start from.
    #[error(transparent)]
    Start(#[from] NoStart),
    /// The deployed spider could not be read.
    #[error(transparent)]
    Port(#[from] ports::Error),
}

/// The text of a job's spider file.
struct SpiderFile {
    text: String,
    /// The file, for people.
    path: PathBuf,
    /// Whether the text is passed to the workers, because they may have another file.
    is_brought: bool,
}

/// Returns the producer's run that feeds a job.
pub(crate) async fn of(runner: &Runner, new: &NewJob) -> Result<RunPlan, Unfeedable> {
    let folder = runner.folder.clone().with_overrides(new.settings.of_spider());
    let file = file_of(runner, new, &folder).await?;
    let (folder, text, is_brought) = match file {
        Some(SpiderFile { text, path, is_brought }) => (folder.calling(path), Some(text), is_brought),
        None => (folder, None, false),
    };
    let mut spider = folder.spider(&new.spider, text.as_deref(), &runner.settings.items)?;
    spider.usual_dedup = new.usual_dedup();
    let start = match new.urls.is_empty() && new.sources.is_empty() {
        true => RunStart::new(&spider, &[])?,
        false => {
            let sources = new.sources.iter().cloned().map(Source::Web).collect();
            RunStart { pages: new.urls.clone(), sources }
        }
    };
    Ok(RunPlan {
        spider: Arc::new(spider),
        start,
        limit: new.settings.limit,
        html: Html::IsAnError,
        text: text.filter(|_| is_brought).map(SpiderText::from),
        // Another worker may have opened the crawl already.
        is_new: false,
    })
}

/// Returns the deployed file, or else the local one, with the values of the job's arguments; `None` for the spider that
/// needs no file.
async fn file_of(runner: &Runner, new: &NewJob, folder: &Folder) -> Result<Option<SpiderFile>, Unfeedable> {
    let NewJob { project, version, spider, arguments, .. } = new;
    let deployed = runner.ports.spider_store.text(project, version.as_ref(), spider).await?;
    let file = match (deployed, version) {
        (Some((version, text)), _) => SpiderFile {
            text: text.as_str().to_owned(),
            path: format!("{project}/{version}/{spider}.toml").into(),
            is_brought: true,
        },
        (None, Some(version)) => {
            let (project, version, spider) = (project.clone(), version.clone(), spider.clone());
            return Err(Unfeedable::NoVersion { project, version, spider });
        }
        (None, None) => match folder.text(spider)? {
            Some(text) => SpiderFile { text, path: folder.file(spider), is_brought: false },
            None if *spider != SpiderName::default() => {
                let (project, spider, file) = (project.clone(), spider.clone(), folder.file(spider));
                return Err(Unfeedable::NoSpider { project, spider, file: file.display().to_string() });
            }
            None if !arguments.is_empty() => return Err(Unfeedable::NoArguments(spider.clone())),
            None => return Ok(None),
        },
    };
    if arguments.is_empty() {
        return Ok(Some(file));
    }
    let with_values = with_arguments(&file.text, arguments);
    let mistaken =
        |mistakes| Unusable::Mistaken { path: file.path.clone(), text: file.text.clone(), mistakes };
    let text = with_values.map_err(mistaken)?;
    Ok(Some(SpiderFile { text, is_brought: true, ..file }))
}

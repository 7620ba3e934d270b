//! `trawl jobs submit`

use anstream::println;
use serde::Serialize;
use trawl_cli::{ArgumentFlags, DedupFlags, Fail, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::jobs::{IdempotencyKey, JobOverrides, NewJob};
use trawl_common::list::ListEntry;
use trawl_common::names::{CrawlId, ProjectName, SpiderName};
use trawl_common::ports::Submitted;
use trawl_common::priority::Priority;
use trawl_common::spider::Version;
use trawl_common::spider::folder::Folder;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use crate::backend::Backend;

/// The command-line arguments of `trawl jobs submit`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The spider; `default` needs no file
    spider: SpiderName,
    /// Sitemaps, sitemap indexes, feeds or lists of URLs on the web [default: what the spider's file says]
    #[arg(value_name = "SOURCE")]
    sources: Vec<CanonicalUrl>,
    /// Crawl this page, besides what SOURCEs name; may be given again
    #[arg(long = "url", value_name = "URL")]
    urls: Vec<CanonicalUrl>,
    /// The priority: the highest number is taken first
    #[arg(long, value_name = "N", default_value_t, allow_negative_numbers = true)]
    priority: Priority,
    #[command(flatten)]
    arguments: ArgumentFlags,
    #[command(flatten)]
    dedup: DedupFlags,
    /// End the crawl after N pages
    #[arg(long, value_name = "N")]
    max_pages: Option<std::num::NonZeroU64>,
    /// Take at most N URLs from the sources
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// The project of the job
    #[arg(long, value_name = "NAME", default_value_t)]
    project: ProjectName,
    /// Of that project take this version, not the latest when the job is run
    #[arg(long, value_name = "VERSION")]
    version: Option<Version>,
    /// Submit once: with a key that was used before, show the job that was created with it
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,
    /// Print the job's id as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    job: CrawlId,
    /// Whether the job is new, rather than submitted before with the same key.
    new: bool,
}

/// Warns if the job's spider is unknown here: it may come with a later version, or be on a worker.
async fn look_for_spider(backend: &Backend, new: &NewJob) -> Result<(), Fail> {
    let NewJob { project, version, spider, .. } = new;
    let is_default = *project == ProjectName::default() && version.is_none();
    let is_here = || {
        *spider == SpiderName::default() || matches!(Folder::new(&backend.settings).text(spider), Ok(Some(_)))
    };
    if is_default && is_here()
        || backend.spider_store.text(project, version.as_ref(), spider).await?.is_some()
    {
        return Ok(());
    }
    let version = version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    let unless = if is_default {
        ", nor is its file here: the job fails unless a worker has it"
    } else {
        ": the job fails unless it is soon"
    };
    anstream::eprintln!("warning: no spider {spider} is deployed in the project {project}{version}{unless}");
    Ok(())
}

impl Args {
    pub(super) async fn run(self, backend: Backend) -> Outcome {
        let DedupFlags { recrawl, dedup } = self.dedup;
        let new = NewJob {
            project: self.project,
            urls: self.urls.into_iter().map(ListEntry::from).collect(),
            sources: self.sources,
            arguments: self.arguments.arguments()?,
            version: self.version,
            settings: JobOverrides { recrawl, dedup, max_pages: self.max_pages, limit: self.limit },
            priority: self.priority,
            idempotency_key: self.idempotency_key,
            ..NewJob::new(CrawlId::generate(UnixMs::now()), self.spider)
        };
        new.check().map_err(Fail::usage)?;
        look_for_spider(&backend, &new).await?;
        let answer = match backend.jobs.submit(&new).await? {
            Submitted::New => Answer { job: new.id, new: true },
            Submitted::Known(job) => Answer { job, new: false },
        };
        let (job, done) = (&answer.job, if answer.new { "is pending" } else { "was asked for before" });
        backend.say(format_args!("job {job} {done}; `trawl wait {job}` waits for its end"));
        match self.json {
            true => print_json(&answer),
            false => println!("{job}"),
        }
        Ok(Exit::Ok)
    }
}

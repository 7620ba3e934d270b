//! `trawl seen forget`: makes later crawls treat URLs as new.

mod of_host;

use clap::Subcommand;
use of_host::of_host;
use serde_json::json;
use trawl_cli::{Fail, Global, Outcome, count, counted, print_json};
use trawl_common::exit::Exit;
use trawl_common::frontier::Key;
use trawl_common::names::SpiderName;
use trawl_common::ports::Seen;
use trawl_common::web::url::{CanonicalUrl, Host};

use crate::backend::{Backend, Subcommands};
use crate::confirm::confirm;

/// The number of URLs and requests to forget in one call.
const BATCH: usize = 500;

pub(crate) type Args = Subcommands<Command>;

/// The subcommands of `trawl seen`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Forget URLs, and what is remembered of their pages. Pending URLs of a crawl are not forgotten
    Forget(Forget),
}

/// The command-line arguments of `trawl seen forget`.
#[derive(clap::Args)]
pub(crate) struct Forget {
    /// The URLs, in any form that stands for the same page, or the keys of requests
    #[arg(required_unless_present_any = ["all", "host"], conflicts_with_all = ["all", "host"])]
    url: Vec<String>,
    /// The spider that is to forget them
    #[arg(long, value_name = "NAME", default_value = "default")]
    spider: SpiderName,
    /// Forget all that the spider has seen; none of its crawls may be running
    #[arg(long, conflicts_with = "host")]
    all: bool,
    /// Forget the URLs of this host, as far as they are stored: packed sets and state files store only those of failed
    /// and remembered pages
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
    /// Print how many there were as JSON
    #[arg(long)]
    json: bool,
}

/// The number of URLs by result.
#[derive(Default)]
struct Tally {
    forgotten: u64,
    pending: u64,
    never: u64,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = Backend::open(&global, &self.place).await?;
        match self.command {
            Command::Forget(args) => args.run(&backend).await,
        }
    }
}

impl Forget {
    async fn run(self, backend: &Backend) -> Outcome {
        let tally = match (&self.host, self.all) {
            (Some(host), _) => {
                let host = host_of(host)?;
                let urls = of_host(backend, &self.spider, &host).await?;
                if urls.is_empty() {
                    backend.say(format_args!("no URL of {host} is kept as such: name URLs, or forget --all"));
                }
                self.these(backend, urls).await?
            }
            (None, true) => self.everything(backend).await?,
            (None, false) => self.these(backend, self.urls(backend)?).await?,
        };
        self.report(backend, &tally);
        Ok(Exit::Ok)
    }

    fn urls(&self, backend: &Backend) -> Result<Vec<Key>, Fail> {
        let key = |text: &String| match text
            .parse::<Key>()
            .map_err(|reason| Fail::usage(format!("{text}: {reason}")))?
        {
            Key::Task(task) => Err(Fail::usage(format!(
                "{task} is a task, and none is forgotten: `trawl task retry {task}` does one again that failed, and another \
                 `unique` makes a new one of the same recipe"
            ))),
            Key::Url(url) => Ok(backend.settings.urls.canonical(url).into()),
            request @ Key::Request(_) => Ok(request),
        };
        self.url.iter().map(key).collect()
    }

    /// Forgets these URLs. Looks them up first, so that the question can say how many there are.
    async fn these(&self, backend: &Backend, urls: Vec<Key>) -> Result<Tally, Fail> {
        let known = backend.stats.seen_urls(&self.spider, &urls).await?;
        let ended = known.iter().filter(|seen| **seen == Seen::Ended).count() as u64;
        if ended > 0 {
            let (ended, all) = (count(ended), self::urls(urls.len() as u64));
            confirm(&format!("have the spider {} forget {ended} of {all}?", self.spider), self.yes)?;
        }
        let mut tally = Tally::default();
        for batch in urls.chunks(BATCH) {
            // The page must be fetched whole next time, so its validators are forgotten too.
            let seen = backend.control.forget_seen(&self.spider, batch).await?;
            let forgotten = batch.iter().zip(&seen).filter(|(_, seen)| **seen == Seen::Ended);
            let forgotten: Vec<CanonicalUrl> = forgotten.filter_map(|(key, _)| key.url().cloned()).collect();
            if !forgotten.is_empty() {
                backend.pages().forget(&self.spider, &forgotten).await?;
            }
            for seen in seen {
                match seen {
                    Seen::Never => tally.never += 1,
                    Seen::Ended => tally.forgotten += 1,
                    Seen::Pending => tally.pending += 1,
                }
            }
        }
        Ok(tally)
    }

    async fn everything(&self, backend: &Backend) -> Result<Tally, Fail> {
        let all = backend.stats.seen(&self.spider).await?;
        let many = all.map_or_else(|| "all URLs".to_owned(), |all| counted(all, "URL"));
        confirm(&format!("have the spider {} forget {many}, which is all?", self.spider), self.yes)?;
        backend.control.forget_all_seen(&self.spider).await?;
        let pages = backend.pages();
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let walk = pages.walk(&self.spider, at).await?;
            let urls: Vec<CanonicalUrl> = walk.pages.into_iter().map(|(url, _)| url).collect();
            if !urls.is_empty() {
                pages.forget(&self.spider, &urls).await?;
            }
            cursor = walk.next;
        }
        Ok(Tally { forgotten: all.unwrap_or_default(), ..Tally::default() })
    }

    fn report(&self, backend: &Backend, Tally { forgotten, pending, never }: &Tally) {
        backend.say(format_args!("the spider {} has forgotten {}", self.spider, urls(*forgotten)));
        if *never > 0 {
            backend.say(format_args!("{} it had not seen", count(*never)));
        }
        if *pending > 0 {
            backend.say(format_args!(
                "{} stay: a crawl has them without a final state, and would take them in once more; wait for its end, or cancel it",
                count(*pending)
            ));
        }
        if self.json {
            print_json(&json!({
                "spider": self.spider, "forgotten": forgotten, "pending": pending, "never_seen": never,
            }));
        }
    }
}

/// `1 URL`, `1,234 URLs`.
fn urls(number: u64) -> String {
    counted(number, "URL")
}

fn host_of(text: &str) -> Result<Host, Fail> {
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}/") };
    let url =
        CanonicalUrl::parse(&url).map_err(|reason| Fail::usage(format!("{text} is no host: {reason}")))?;
    Ok(url.host())
}

//! The values that shells complete: crawls, spiders and hosts, as they are known now.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Command;
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCandidates;
use trawl_cli::{Fail, Global};
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::spider::folder::Folder;

use crate::backend::{Backend, Where};

/// The variable by which a shell asks for completions.
pub(crate) const VARIABLE: &str = "TRAWL_COMPLETE";

/// Maximum time to wait for the fleet's servers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Adds to each argument that names a crawl, a spider or a host how it is completed.
pub(crate) fn with_values(command: Command) -> Command {
    let command = command.mut_args(|argument| match argument.get_id().as_str() {
        "crawl" | "crawls" => argument.add(ArgValueCandidates::new(crawls)),
        "spider" | "spiders" => argument.add(ArgValueCandidates::new(spiders)),
        "host" => argument.add(ArgValueCandidates::new(hosts)),
        _ => argument,
    });
    command.mut_subcommands(with_values)
}

fn crawls() -> Vec<CompletionCandidate> {
    let found = ask(async |backend: &Backend| Ok(backend.stats.crawls().await?)).unwrap_or_default();
    let candidate = |stats: CrawlStats| {
        let help = format!("{}, {}", stats.spider, stats.status);
        CompletionCandidate::new(stats.crawl.to_string()).help(Some(help.into()))
    };
    found.into_iter().map(candidate).collect()
}

/// Returns the spiders with a file here, and those of known crawls.
fn spiders() -> Vec<CompletionCandidate> {
    let settings = Global::default().source().load().unwrap_or_default();
    let files = Folder::new(&settings).names().unwrap_or_default();
    let mut names: BTreeSet<String> = files.iter().map(ToString::to_string).collect();
    let crawls = ask(async |backend: &Backend| Ok(backend.stats.crawls().await?)).unwrap_or_default();
    names.extend(crawls.iter().map(|stats| stats.spider.to_string()));
    names.into_iter().map(CompletionCandidate::new).collect()
}

fn hosts() -> Vec<CompletionCandidate> {
    let found = ask(async |backend: &Backend| Ok(backend.hosts.hosts().await?)).unwrap_or_default();
    found.iter().map(|host| CompletionCandidate::new(host.key.as_str())).collect()
}

/// Reads from the fleet; `None` if it does not answer soon: a shell must not hang.
fn ask<T>(read: impl AsyncFnOnce(&Backend) -> Result<T, Fail>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let (global, place) = (Global::default(), Where::default());
    let answer = async { read(&Backend::look(&global, &place).await?).await };
    runtime.block_on(async { tokio::time::timeout(TIMEOUT, answer).await }).ok()?.ok()
}

//! The state file of `trawl crawl`: the crawl to resume from it, and its name in commands.

use std::path::{Path, PathBuf};

use trawl_backends::embedded::Embedded;
use trawl_cli::Fail;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::settings::{Settings, SinkSettings};
use trawl_common::spider::arguments::Arguments;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;
use trawl_producer::Source;

/// Default destination of items.
const DEFAULT_OUT: &str = "items.jsonl";

/// Returns the unfinished crawl of a spider in the state file that has URLs or tasks left, including those
/// submitted to the spider by other crawls.
pub(crate) async fn left_of(store: &Embedded, spider: &SpiderName) -> Result<Option<CrawlStats>, Fail> {
    let is_left =
        |stats: &CrawlStats| stats.spider == *spider && stats.pending > 0 && !stats.status.is_over();
    Ok(store.stats().crawls().await?.into_iter().find(is_left))
}

/// Returns the unfinished crawl in the state file with the number of URLs left, or a new crawl. Fails if the
/// unfinished crawl is of another spider, or of other `sources` or `arguments`, so that the two are not
/// mixed. URLs submitted to other spiders do not count as a crawl.
pub(crate) async fn crawl_of(
    store: &Embedded,
    path: &Path,
    spider: &SpiderName,
    sources: &[Source],
    arguments: &Arguments,
) -> Result<(CrawlRef, Option<u64>), Fail> {
    let mut crawls = store.stats().crawls().await?.into_iter();
    let unfinished = crawls.find(|stats| !stats.status.is_over() && !stats.crawl_ref().is_adhoc());
    let (crawl, left) = match unfinished {
        Some(stats) => (stats.crawl_ref(), Some(stats.pending)),
        None => (CrawlRef { id: CrawlId::generate(UnixMs::now()), spider: spider.clone() }, None),
    };
    let named = named(sources, arguments);
    let before = store.sources(&crawl).await?;
    let other = if crawl.spider != *spider {
        Some(format!("of the spider {}", crawl.spider))
    } else {
        before
            .filter(|before| *before != named)
            .map(|before| format!("of other sources ({})", shown(&before)))
    };
    if let Some(other) = other {
        let (state, file) = (path.display(), as_argument(path));
        return Err(Fail::usage(format!(
            "{state} holds an unfinished crawl {other}: finish it with its own command, keep this one's state elsewhere \
             with --state, or give the other up with `trawl cancel {} --state {file}`",
            crawl.id
        )));
    }
    store.note_sources(&crawl, &named).await?;
    Ok((crawl, left))
}

/// Describes the start of a crawl, whatever the order of the sources on the command line.
fn named(sources: &[Source], arguments: &Arguments) -> String {
    let mut names: Vec<String> = sources.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        names.push("the [start] of its spider".to_owned());
    }
    names.extend(arguments.iter().map(|(name, value)| format!("-a {name}={value}")));
    names.join("\n")
}

fn shown(named: &str) -> String {
    printable(&named.replace('\n', ", "), 200)
}

/// Returns the sinks of a state file if neither flags nor the spider's file have any.
pub(crate) fn default_sinks(settings: &Settings) -> Vec<SinkSettings> {
    if settings.sinks.is_empty() {
        vec![SinkSettings::from_path(DEFAULT_OUT.into())]
    } else {
        settings.sinks.clone()
    }
}

/// Returns the sinks that `--out` names; `is_json` says whether `--json` is there.
pub(crate) fn sinks_of(outs: &[PathBuf], is_json: bool) -> Result<Vec<SinkSettings>, Fail> {
    if let Some(out) = outs.iter().find(|out| out.to_string_lossy().contains("://")) {
        let scheme = out.to_string_lossy().split("://").next().unwrap_or_default().to_owned();
        return Err(Fail::usage(format!(
            "--out takes files, not {scheme}:// addresses: name a server in [[sinks]] of the spider or of trawl.toml"
        )));
    }
    if is_json && outs.iter().any(|out| out.as_os_str() == "-") {
        return Err(Fail::usage("--json and --out - both write to standard output: leave one of them out"));
    }
    let sinks: Vec<SinkSettings> = outs.iter().cloned().map(SinkSettings::from_path).collect();
    if let Some(what) = sinks.iter().find_map(|sink| sink.check().err()) {
        return Err(Fail::usage(format!("--out: {what}")));
    }
    Ok(sinks)
}

/// Quotes a path for a shell, if necessary.
pub(crate) fn as_argument(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,:@%".contains(c);
    match text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(as_argument(Path::new("runs/crawl-1.db")), "runs/crawl-1.db");
        assert_eq!(as_argument(Path::new("my crawl's.db")), r"'my crawl'\''s.db'");
    }

    #[test]
    fn the_order_of_sources_is_no_difference() {
        let sources = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<_>>();
        let of = |names: &[&str]| named(&sources(names), &Arguments::default());
        assert_eq!(of(&["b.txt", "a.txt", "b.txt"]), of(&["a.txt", "b.txt"]));
        assert_ne!(of(&["a.txt"]), of(&["b.txt"]));
        assert_ne!(of(&[]), of(&["a.txt"]));
    }

    #[test]
    fn other_arguments_are_a_difference() {
        let of = |argument: &str| named(&[], &Arguments::new([argument.parse().unwrap()]).unwrap());
        assert_ne!(of("a=1"), of("a=2"));
        assert_ne!(of("a=1"), named(&[], &Arguments::default()));
    }
}

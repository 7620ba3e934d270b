//! `trawl doctor`: what may go wrong, before it does.

mod browser;
mod machine;

use anstream::println;
use anstyle::{AnsiColor, Style};
use trawl_backends::fleet;
use trawl_cli::{Fail, Global, Outcome, mistakes, print_json};
use trawl_common::exit::Exit;
use trawl_common::explain;
use trawl_common::finding::{Finding, Verdict};
use trawl_common::names::SpiderName;
use trawl_common::settings::Settings;
use trawl_common::spider::Origin;
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::folder::{Folder, Unusable};
use trawl_common::text::counted;
use trawl_extract::Examined;

use crate::backend::Backend;
use crate::spider::examine::examine;

/// The command-line arguments of `trawl doctor`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check only what `trawl crawl` needs: no servers, no workers
    #[arg(long)]
    embedded: bool,
    /// Print one JSON object for each finding
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Exits with 1 if there is an error among the findings.
    pub(crate) async fn run(self, global: &Global) -> Outcome {
        let source = global.source();
        let settings = source.load().map_err(mistakes::of_settings)?;
        let mut all = settings.manners();
        all.extend(spiders(&settings));
        all.extend(machine::examine(&settings));
        all.push(browser::examine(&settings).await);
        if !self.embedded {
            let servers = fleet::examine(&settings).await;
            let is_up = servers.iter().all(|finding| finding.verdict != Verdict::Error);
            all.extend(servers);
            if is_up {
                all.extend(workers(settings, global).await);
            }
        }
        match self.json {
            true => all.iter().for_each(print_json),
            false => print(&all),
        }
        let is_well = all.iter().all(|finding| finding.verdict != Verdict::Error);
        Ok(if is_well { Exit::Ok } else { Exit::Failed })
    }
}

/// Reads the spiders of this machine as a worker would.
fn spiders(settings: &Settings) -> Vec<Finding> {
    const SUBJECT: &str = "spiders";
    let (folder, shown) = (Folder::new(settings), settings.spiders_dir.display());
    let names = match folder.names() {
        Ok(names) => names,
        Err(error) => return vec![Finding::error(SUBJECT, format_args!("{shown}: {error}"))],
    };
    let mistaken: Vec<Finding> = names
        .iter()
        .filter_map(|name| {
            let advice = format!(
                "`trawl spider check {}` shows each mistake at its place",
                folder.file(name).display()
            );
            Some(Finding::error(SUBJECT, trouble_of(&folder, name, settings)?).advise(advice))
        })
        .collect();
    let count = match (names.len(), mistaken.len()) {
        (0, _) => format!("there are none in {shown}"),
        (all, 0) => format!("{} in {shown}, without mistakes", counted(all as u64, "spider")),
        (all, mistaken) => format!("{} of {all} in {shown} can be used here", all - mistaken),
    };
    std::iter::once(Finding::ok(SUBJECT, count)).chain(mistaken).collect()
}

/// Returns what keeps a worker on this machine from using a spider's file, if anything does.
fn trouble_of(folder: &Folder, name: &SpiderName, settings: &Settings) -> Option<Unusable> {
    let Examined { text, reading, .. } =
        match examine(&folder.file(name), &Arguments::default(), settings, Origin::Local) {
            Ok(examined) => examined,
            Err(error) => return Some(error),
        };
    let mistakes = [reading.mistakes, reading.unset].concat();
    (!mistakes.is_empty()).then(|| folder.mistaken(name, &text, mistakes))
}

/// Asks the fleet for its workers.
async fn workers(settings: Settings, global: &Global) -> Vec<Finding> {
    const SUBJECT: &str = "workers";
    let found = async {
        let backend = Backend::of_fleet(settings, global).await?;
        Ok(backend.stats.workers().await?)
    };
    let workers = match found.await {
        Ok(workers) => workers,
        Err(Fail { message, .. }) => return vec![Finding::error(SUBJECT, message)],
    };
    if workers.is_empty() {
        let none = Finding::warning(SUBJECT, "no worker is running: nothing is fetched");
        return vec![none.advise("start one with `worker`")];
    }
    let own = env!("CARGO_PKG_VERSION");
    let others = workers.iter().filter(|worker| worker.version != own).count();
    let mut all =
        vec![Finding::ok(SUBJECT, format_args!("{} running", counted(workers.len() as u64, "worker")))];
    if others > 0 {
        let what = format!("{others} of them run another version than this program, {own}");
        all.push(Finding::warning(SUBJECT, what).advise("update them one by one (docs/operations.md)"));
    }
    let unwell = workers.iter().filter(|worker| !worker.is_well());
    all.extend(
        unwell.map(|worker| Finding::error(SUBJECT, format_args!("{}: {}", worker.worker, worker.health))),
    );
    all.extend(explain::outdated(&workers).into_iter().map(|text| Finding::warning(SUBJECT, text)));
    all
}

/// Prints the findings as a table, and counts them.
fn print(all: &[Finding]) {
    let dim = Style::new().dimmed();
    for Finding { subject, verdict, text, advice } in all {
        let style = match verdict {
            Verdict::Ok => AnsiColor::Green.on_default(),
            Verdict::Warning => AnsiColor::Yellow.on_default().bold(),
            Verdict::Error => AnsiColor::Red.on_default().bold(),
        };
        println!("{style}{:<8}{style:#} {dim}{subject:<9}{dim:#} {text}", verdict.as_str());
        if let Some(advice) = advice {
            println!("{:<8} {:<9} -> {advice}", "", "");
        }
    }
    let count = |verdict| all.iter().filter(|finding| finding.verdict == verdict).count() as u64;
    let (warnings, errors) = (count(Verdict::Warning), count(Verdict::Error));
    println!("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
}

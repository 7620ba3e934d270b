//! Honest hosts beside hostile ones: whether those are asked at their pace, whatever these serve.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use strum::IntoEnumIterator;
use tokio::time::sleep;
use trawl_testkit::faults::scenario::CRAWL;
use trawl_testkit::hostile::Hostile;
use trawl_testkit::many_hosts::{Arrival, ManyHosts, Plan};

use crate::rig::{LIMIT, Rig};
use crate::row;

/// Honest hosts.
const HONEST: usize = 10;
/// Hostile hosts.
const HOSTILE: usize = 3;
/// Each honest host is asked so often in a second.
const RATE: f64 = 5.0;
/// Of what the rates of the honest hosts allow, at least this is to be asked for.
const MIN_SHARE: f64 = 0.9;
/// No honest host is to wait for longer.
const MAX_GAP: Duration = Duration::from_secs(2);

/// A spider that follows links wherever they lead.
const SPIDER: &str = "allowed_domains = [\"*\"]\n[follow]\ndepth = 1\n";

/// Measures the honest hosts alone, then beside hosts that are hostile in each of these ways, or in all. Returns
/// whether all bars are met.
pub(crate) async fn all(trawl: &Path, kinds: &[Hostile], seconds: u64) -> io::Result<bool> {
    let kinds: Vec<Hostile> = if kinds.is_empty() { Hostile::iter().collect() } else { kinds.to_vec() };
    anstream::println!("{HONEST} hosts at 5/s for {seconds} s, beside {HOSTILE} hostile hosts:");
    let mut all_met = true;
    for kind in [None].into_iter().chain(kinds.into_iter().map(Some)) {
        all_met &= beside(trawl, kind, Duration::from_secs(seconds)).await?;
    }
    Ok(all_met)
}

async fn beside(trawl: &Path, kind: Option<Hostile>, span: Duration) -> io::Result<bool> {
    let pages = (span.as_secs_f64() * RATE * 1.5) as usize;
    let mut plans = vec![Plan { pages, latency: Duration::from_millis(20), ..Plan::default() }; HONEST];
    let hostile = kind.map(|kind| Plan { pages: kind.pages(), hostile: Some(kind), ..Plan::default() });
    plans.extend(hostile.map(|plan| vec![plan; HOSTILE]).unwrap_or_default());
    let world = ManyHosts::serve(&plans).await?;
    let settings = [
        ("TRAWL__POLITENESS__RATE", "5/s"),
        ("TRAWL__FETCH__ALLOW_PRIVATE", "false"),
        ("TRAWL__FETCH__ALLOW_NETWORKS", "127.1.0.0/16"),
    ];
    let mut rig = Rig::start(trawl, 0, &settings).await?;
    let spiders = rig.folder.path().join("spiders");
    std::fs::create_dir(&spiders)?;
    std::fs::write(spiders.join("beside.toml"), SPIDER)?;
    let list = rig.folder.path().join("urls.txt");
    std::fs::write(&list, world.pages().join("\n"))?;
    let list = list.display().to_string();
    let words = ["producer", &list, "--crawl", CRAWL, "--spider", "beside"];
    rig.fleet.produce(words.map(str::to_owned).to_vec());
    rig.produced().await;
    let _worker = rig.worker()?;
    let asked_for_one = async {
        while world.log().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, asked_for_one).await.map_err(|_| io::Error::other("nothing is asked for"))?;
    sleep(span).await;
    let log = world.log();
    let times = of_honest(&log, span);
    let count: usize = times.values().map(|times| times.len().saturating_sub(2)).sum();
    let per_second = count as f64 / span.as_secs_f64();
    let longest = times.values().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0])).max();
    let (longest, most) = (longest.unwrap_or(span), HONEST as f64 * RATE);
    let what = kind.map_or("alone".to_owned(), |kind| format!("beside {kind}"));
    let hostile_asked = log.iter().filter(|arrival| arrival.host >= HONEST).count();
    anstream::println!("  {what}: {hostile_asked} requests to hostile hosts");
    let rate = row(
        &format!("{what}, of {most} pages/s"),
        &format!("{per_second:.1}"),
        &format!(">= {:.0}", MIN_SHARE * most),
        per_second >= MIN_SHARE * most,
    );
    let bar = format!("<= {} s", MAX_GAP.as_secs());
    Ok(row(
        &format!("{what}, longest gap"),
        &format!("{:.2} s", longest.as_secs_f64()),
        &bar,
        longest <= MAX_GAP,
    ) && rate)
}

/// When each honest host was asked for pages within `span` of the first request of all, between its beginning and its
/// end.
fn of_honest(log: &[Arrival], span: Duration) -> BTreeMap<usize, Vec<Duration>> {
    let begin = log.first().map_or(Duration::ZERO, |first| first.at);
    let mut times: BTreeMap<usize, Vec<Duration>> = (0..HONEST).map(|host| (host, vec![begin])).collect();
    for Arrival { host, path, at } in log {
        if path != "/robots.txt"
            && *at <= begin + span
            && let Some(times) = times.get_mut(host)
        {
            times.push(*at);
        }
    }
    times.values_mut().for_each(|times| times.push(begin + span));
    times
}

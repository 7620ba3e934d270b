//! Simulates fleets of several sizes on a large web, and prints the load on each and the time that it takes.

use std::io::Write as _;
use std::time::Duration;

use clap::Parser;
use trawl_bench::simulation::{Order, Report, Scenario, Seen, capacity, run};
use trawl_cli::{Progress, count};
use trawl_common::politeness::rate::Rate;

/// Simulate fleets on a large web, in virtual time
#[derive(Parser)]
struct Args {
    /// Number of workers; several numbers are several scenarios
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,10,100,1000")]
    workers: Vec<u32>,
    /// Fetch permits of each worker (worker.concurrency)
    #[arg(long, value_name = "N", default_value_t = Scenario::default().concurrency)]
    concurrency: u16,
    /// Messages of each queue that a worker is sent ahead of need (worker.prefetch)
    #[arg(long, value_name = "N", default_value_t = Scenario::default().prefetch)]
    prefetch: u16,
    /// Time that a worker needs for each message
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = humantime::parse_duration)]
    handling: Duration,
    /// URLs that the producer admits per second
    #[arg(long, value_name = "N", default_value_t = Scenario::default().feed)]
    feed: u32,
    /// Requests per host (politeness.rate)
    #[arg(long, value_name = "RATE", default_value_t = Scenario::default().rate)]
    rate: Rate,
    /// Maximum number of URLs without a final state (producer.max_backlog)
    #[arg(long, value_name = "N", default_value_t = Scenario::default().backlog)]
    backlog: u64,
    /// Time that a URL may wait
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    ttl: Option<Duration>,
    /// Number of hosts
    #[arg(long, value_name = "N", default_value_t = Scenario::default().hosts)]
    hosts: u32,
    /// Approximate number of URLs on all hosts together
    #[arg(long, value_name = "N", default_value_t = Scenario::default().urls)]
    urls: u32,
    /// The exponent of Zipf's law: with 0 all hosts have the same size
    #[arg(long, value_name = "X", default_value_t = Scenario::default().skew)]
    skew: f64,
    /// The order in which URLs are read
    #[arg(long, value_enum, default_value_t = Order::Mixed)]
    order: Order,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON document per scenario, with the pages of each minute
    #[arg(long)]
    json: bool,
}

fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let progress = Progress::default();
    let reports: Vec<Report> =
        args.workers.iter().map(|&workers| simulate(&args.scenario(workers), &progress)).collect();
    progress.clear();
    let mut out = std::io::stdout().lock();
    if args.json {
        for report in &reports {
            writeln!(out, "{}", serde_json::to_string(report)?)?;
        }
        return Ok(());
    }
    for (name, cells) in rows(&reports) {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>12} |")).collect();
        writeln!(out, "| {name:<44} |{cells}")?;
    }
    Ok(())
}

impl Args {
    fn scenario(&self, workers: u32) -> Scenario {
        Scenario {
            workers,
            concurrency: self.concurrency,
            prefetch: self.prefetch,
            handling: self.handling,
            feed: self.feed,
            rate: self.rate,
            backlog: self.backlog,
            ttl: self.ttl,
            hosts: self.hosts,
            urls: self.urls,
            skew: self.skew,
            order: self.order,
            seed: self.seed,
            ..Scenario::default()
        }
    }
}

fn simulate(scenario: &Scenario, progress: &Progress) -> Report {
    let mut ended = 0_u64;
    run(scenario, &mut |seen| {
        if let Seen::Ended { at, .. } = seen {
            ended += 1;
            if ended.is_multiple_of(50_000) {
                let virtual_time = time(at as f64 / 1e6);
                progress.show(format!(
                    "{} workers: {} URLs in {virtual_time}",
                    scenario.workers,
                    count(ended)
                ));
            }
        }
    })
}

type Row = (&'static str, Vec<String>);

fn rows(reports: &[Report]) -> Vec<Row> {
    let row = |name, cell: &dyn Fn(&Report) -> String| (name, reports.iter().map(cell).collect());
    let pages = |report: &Report, share: f64, from: f64, to: f64| {
        count((share * (report.done + report.expired) as f64 / (to - from).max(1e-3)) as u64)
    };
    vec![
        row("workers", &|r| count(r.scenario.workers.into())),
        ("---", vec!["---:".to_owned(); reports.len()]),
        row("50 % ended after", &|r| time(r.half)),
        row("90 %", &|r| time(r.most)),
        row("99 %", &|r| time(r.almost)),
        row("all", &|r| time(r.end)),
        row("expired", &|r| count(r.expired)),
        row("URLs/s, the first half", &|r| pages(r, 0.5, 0.0, r.half)),
        row("URLs/s, from 50 to 90 %", &|r| pages(r, 0.4, r.half, r.most)),
        row("URLs/s, from 90 to 99 %", &|r| pages(r, 0.09, r.most, r.almost)),
        row("the fetch permits could do, pages/s", &|r| count(capacity(&r.scenario) as u64)),
        row("only the largest hosts left after", &|r| time(r.tail.from)),
        row("their hosts", &|r| count(r.tail.hosts)),
        row("their URLs", &|r| count(r.tail.urls)),
        row("idle fetch permits until then", &|r| percent(r.idle)),
        row("on the ladder at once, URLs at most", &|r| count(r.parked_peak)),
        row("share of open URLs on it until then, at most", &|r| percent(r.parked_peak_share)),
        row("share of open URLs on it, mean of all time", &|r| percent(r.parked_share)),
        row("hops on the ladder per URL, mean", &|r| format!("{:.2}", r.hops)),
        row("99 of 100 URLs at most", &|r| count(r.hops_p99)),
        row("any URL at most", &|r| count(r.hops_max)),
        row("deliveries per URL", &|r| format!("{:.2}", r.deliveries)),
        row("questions to host schedules per URL", &|r| format!("{:.2}", r.asks)),
        row("slots reserved and not used", &|r| percent(r.wasted)),
        row("messages/s in the broker until the tail, mean", &|r| count(r.messages as u64)),
        row("in the busiest second", &|r| count(r.messages_peak)),
    ]
}

fn time(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

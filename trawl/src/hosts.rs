//! `trawl hosts`: the known hosts and their blocks.

use std::time::Duration;

use anstream::println;
use anstyle::{AnsiColor, Style};
use clap::Subcommand;
use serde_json::{Value, json};
use trawl_cli::{Fail, Global, Outcome, counted, print_json};
use trawl_common::exit::Exit;
use trawl_common::ports::{HostBackoff, HostState};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use crate::backend::{Backend, Subcommands};

pub(crate) type Args = Subcommands<Command>;

/// The subcommands of `trawl hosts`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the hosts that were asked lately, that are in a back-off, or that are blocked
    List {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show all that is known of one host
    Show {
        /// The host, any URL of it, or @NAME for a group of `[[politeness.host]]`
        host: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Stop all requests to a host from now on; URLs that wait for it are skipped when they are due, and kept for
    /// `trawl dlq`
    Block {
        /// The host, any URL of it, or @NAME for a group
        host: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Lift a block, or a back-off that a host asked for
    Unblock {
        /// The host, any URL of it, or @NAME for a group
        host: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = match &self.command {
            Command::List { .. } | Command::Show { .. } => Backend::look(&global, &self.place).await?,
            Command::Block { .. } | Command::Unblock { .. } => Backend::open(&global, &self.place).await?,
        };
        let key = |host: &str| backend.settings.politeness.host_key(host).map_err(Fail::usage);
        match &self.command {
            Command::List { json } => list(&backend, *json).await,
            Command::Show { host, json } => show(&backend, &key(host)?, *json).await,
            Command::Block { host, json } => block(&backend, &key(host)?, *json).await,
            Command::Unblock { host, json } => unblock(&backend, &key(host)?, *json).await,
        }
    }
}

async fn list(backend: &Backend, json: bool) -> Outcome {
    let hosts = backend.hosts.hosts().await?;
    if json {
        hosts.iter().for_each(|host| print_json(&as_json(host)));
    } else if hosts.is_empty() {
        backend.say("no host was asked lately");
    } else {
        let dim = Style::new().dimmed();
        println!(
            "{dim}{:<40} {:>12} {:>10} {:>10} {:>9} {:>9}  state{dim:#}",
            "host", "rate", "next slot", "line", "under way", "latency"
        );
        let now = UnixMs::now();
        hosts.iter().for_each(|host| print_row(host, now));
    }
    Ok(Exit::Ok)
}

async fn show(backend: &Backend, key: &HostKey, json: bool) -> Outcome {
    let Some(host) = backend.hosts.host(key).await? else {
        return Err(Fail::usage(format!("nothing is known of {key}: it was not asked lately")));
    };
    if json {
        print_json(&as_json(&host));
        return Ok(Exit::Ok);
    }
    let now = UnixMs::now();
    let backoff = |text: fn(&HostBackoff) -> String| host.backoff.as_ref().map_or_else(nothing, text);
    let lines = [
        ("host", host.key.to_string()),
        ("state", state(&host, now).0),
        ("rate", host.interval.map_or_else(nothing, rate)),
        ("next slot", wait(host.next, now)),
        ("line", wait(host.line, now)),
        ("under way", host.under_way.to_string()),
        ("this minute", counted(host.requests, "request")),
        ("latency", host.latency.map_or_else(nothing, time)),
        ("back-off since", backoff(|backoff| backoff.since.to_string())),
        ("back-off until", backoff(|backoff| backoff.until.to_string())),
        ("status", backoff(|backoff| backoff.status.to_string())),
        ("times in a row", backoff(|backoff| backoff.strikes.to_string())),
        ("blocked since", host.blocked.map_or_else(nothing, |since| since.to_string())),
    ];
    for (name, value) in lines {
        println!("{name:<15} {value}");
    }
    Ok(Exit::Ok)
}

async fn block(backend: &Backend, key: &HostKey, json: bool) -> Outcome {
    backend.hosts.block(key).await?;
    backend.say(format_args!(
        "{key} is blocked: nobody asks it until `trawl hosts unblock {key}`; `trawl dlq list --reason blocked` lists \
         what is skipped for it"
    ));
    if json {
        print_json(&json!({ "host": key.as_str(), "blocked": true }));
    }
    Ok(Exit::Ok)
}

async fn unblock(backend: &Backend, key: &HostKey, json: bool) -> Outcome {
    let is_lifted = backend.hosts.unblock(key).await?;
    match is_lifted {
        true => backend.say(format_args!(
            "{key} may be asked again; what was skipped for it: `trawl dlq replay --reason blocked`"
        )),
        false => backend.say(format_args!("{key} was not blocked, and did not ask to be left alone")),
    }
    if json {
        print_json(&json!({ "host": key.as_str(), "blocked": false, "lifted": is_lifted }));
    }
    Ok(Exit::Ok)
}

fn as_json(host: &HostState) -> Value {
    let HostState { key, interval, next, line, under_way, requests, latency, backoff, blocked } = host;
    json!({
        "host": key.as_str(),
        "interval_ms": interval.map(|interval| interval.as_secs_f64() * 1_000.0),
        "next": next.to_string(),
        "line": line.to_string(),
        "under_way": under_way,
        "requests_this_minute": requests,
        "latency_ms": latency.map(|latency| latency.as_millis() as u64),
        "backoff": backoff.as_ref().map(|backoff| json!({
            "since": backoff.since.to_string(), "until": backoff.until.to_string(), "status": backoff.status, "strikes": backoff.strikes,
        })),
        "blocked": blocked.map(|blocked| blocked.to_string()),
    })
}

fn print_row(host: &HostState, now: UnixMs) {
    let (text, colour) = state(host, now);
    let style = Style::new().fg_color(Some(colour.into()));
    println!(
        "{:<40} {:>12} {:>10} {:>10} {:>9} {:>9}  {style}{text}{style:#}",
        host.key.as_str(),
        host.interval.map_or_else(nothing, rate),
        wait(host.next, now),
        wait(host.line, now),
        host.under_way,
        host.latency.map_or_else(nothing, time),
    );
}

fn state(host: &HostState, now: UnixMs) -> (String, AnsiColor) {
    match (host.blocked, &host.backoff) {
        (Some(_), _) => ("blocked".to_owned(), AnsiColor::Red),
        (None, Some(HostBackoff { until, status, .. })) if *until > now => {
            let why = match status {
                0 => "a redirect that its spider takes for a ban".to_owned(),
                status => format!("answered {status}"),
            };
            (format!("left alone for {}, until {until}: {why}", wait(*until, now)), AnsiColor::Yellow)
        }
        _ => ("ok".to_owned(), AnsiColor::Green),
    }
}

/// Formats an interval as a rate, as in the settings, if it is a whole number.
fn rate(interval: Duration) -> String {
    let micros = interval.as_micros();
    match [(1_000_000, 's'), (60_000_000, 'm'), (3_600_000_000, 'h')] {
        _ if micros == 0 => "unlimited".to_owned(),
        units => {
            units.iter().find(|(unit, _)| unit / micros > 0 && unit % micros < micros / 100 + 1).map_or_else(
                || format!("1 each {}", time(interval)),
                |(unit, name)| format!("{}/{name}", unit / micros),
            )
        }
    }
}

fn wait(until: UnixMs, now: UnixMs) -> String {
    if until > now { time(until.wait_from(now)) } else { nothing() }
}

/// Formats a time with two units, which are enough for people.
fn time(time: Duration) -> String {
    let time = if time > Duration::from_secs(10) { Duration::from_secs(time.as_secs()) } else { time };
    let time = Duration::from_millis(time.as_millis() as u64);
    let shown = humantime::format_duration(time).to_string();
    shown.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

fn nothing() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_shown_as_it_is_set() {
        for text in ["5/s", "1/s", "30/m", "100/h", "unlimited", "7/s"] {
            let set: trawl_common::politeness::rate::Rate = text.parse().unwrap();
            assert_eq!(rate(set.interval().unwrap_or_default()), text);
        }
        assert_eq!(rate(Duration::from_secs(7 * 3600)), "1 each 7h");
    }
}

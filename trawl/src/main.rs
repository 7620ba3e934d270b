//! The program `trawl`, for people: crawls in one process, and commands for the fleet. When called as
//! `producer` or `worker`, for example through a link, it is that program: an image needs one file for all
//! three.

mod api;
mod backend;
mod complete;
mod completions;
mod confirm;
mod console;
mod control;
mod crawl;
mod crawls;
mod demo;
mod dlq;
mod doctor;
mod drain;
mod events;
mod hosts;
mod init;
mod items;
mod jobs;
mod logs;
mod pack;
mod project;
#[cfg(test)]
mod reference;
mod runner;
mod schedule;
mod seen;
mod settings;

mod spider;
mod state;
mod stats;
mod status;
mod task;
mod top;
mod url;
mod wait;
mod workers;

use std::path::Path;
use std::process::ExitCode;

use api::Served;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::CompleteEnv;
use control::Verb;
use trawl_cli::{Global, Outcome};

/// Crawl politely, lose nothing: in one process, or as a fleet on RabbitMQ and Redis
#[derive(Parser)]
#[command(name = "trawl", version, long_version = trawl_cli::version(), arg_required_else_help = true)]
struct Program {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: Global,
}

#[derive(Subcommand)]
enum Command {
    /// Crawl in this process, with no server; stopped, it goes on from its state file
    Crawl(crawl::Args),
    /// Crawl a small site that this command serves itself: needs no network
    Demo(demo::Args),
    /// Write a project: settings, a spider, and with --fleet all that a fleet of it runs on
    Init(init::Args),
    /// Show the crawls, or one of them
    Status(status::Args),
    /// Watch the fleet as `top` does a machine: crawls, workers, lanes, and hosts in a back-off
    Top(top::Args),
    /// Say where a URL is, why, and what happens next
    Url(url::Args),
    /// Wait until crawls have ended
    Wait(wait::Args),
    /// Read events of crawls and hosts: starts, ends, stalls, failures, back-offs and blocks
    Events(events::Args),
    /// Read the fleet's log: what failed, was tried again or got in the way
    Logs(logs::Args),
    /// Show the workers that live, each with what keeps it from working
    Workers(workers::Args),
    /// Have a worker end: it takes no more URLs, finishes what it has begun, and gives the rest back
    Drain(drain::Args),
    /// Hold a crawl: no fetch begins until it is resumed
    Pause(control::Args),
    /// Let a paused crawl go on
    Resume(control::Args),
    /// End a crawl; what is left of it is cancelled
    Cancel(control::Args),
    /// Forget crawls that are over
    Crawls(crawls::Args),
    /// Submit crawls for workers to run as jobs; list, show and cancel jobs
    Jobs(jobs::Args),
    /// List, hold and resume the schedules of spiders, whose crawls are asked for by themselves
    Schedule(schedule::Args),
    /// Submit tasks for the program of a spider; list, show, retry and cancel them
    Task(task::Args),
    /// List, show, send again or purge URLs and tasks that failed
    Dlq(dlq::Args),
    /// List and show hosts, block those that must not be asked
    Hosts(hosts::Args),
    /// Write, check and try spiders
    Spider(spider::Args),
    /// Fetch a page, and see what selectors find in it as you type them
    Shell(spider::shell::Args),
    /// Make items anew from archived responses (WARC), without asking their sites
    Reextract(spider::reextract::Args),
    /// Read what the fleet has scraped: the items in its stream
    Items(items::Args),
    /// Have spiders forget URLs that they have seen, so that later crawls take them in as new
    Seen(seen::Args),
    /// Pack what spiders have seen, so that it takes a tenth of the memory; crawls go on meanwhile
    Pack(pack::Args),
    /// Serve the HTTP API: crawls, hosts, workers and dead letters for other programs
    Api(api::Args),
    /// Serve web pages of the fleet for people, and the HTTP API beside them
    Console(console::Args),
    /// Show or check the settings
    Config(settings::Args),
    /// Check settings, manners, spiders, this machine and the servers, and say what to do
    Doctor(doctor::Args),
    /// Read sitemaps into the fleet's queues (the program `producer`)
    Producer(trawl_producer::cli::Args),
    /// Work on the fleet's queues (the program `worker`)
    Worker(trawl_worker::cli::Args),
    /// Make projects, say which spiders they have, and set the secrets of their programs
    Project(project::Args),
    /// Work on a machine that reaches nothing but the HTTP API; list, approve and revoke such machines
    Runner(runner::Args),
    /// Print what a shell needs to complete these commands: for bash, to a file in
    /// ~/.local/share/bash-completion/completions
    Completions(completions::Completions),
    /// Print the manual page of trawl, or write those of all its commands to a folder
    Man(completions::Man),
}

fn main() -> ExitCode {
    // Workers run spiders' handlers under this program, whatever it is called.
    if let Some(ended) = trawl_handlers::exec::run_if_called() {
        return ended;
    }
    let called = std::env::args_os().next().unwrap_or_default();
    match Path::new(&called).file_name().and_then(|name| name.to_str()) {
        Some("producer") => trawl_producer::cli::main(),
        Some("worker") => trawl_worker::cli::main(),
        _ => {
            let command = || complete::with_values(Program::command());
            CompleteEnv::with_factory(command).var(complete::VARIABLE).complete();
            let matches = Program::command().get_matches();
            let parsed = Program::from_arg_matches(&matches);
            let Program { command, global } = parsed.unwrap_or_else(|error| error.exit());
            trawl_cli::main(&named(&matches), global.color, run(command, global))
        }
    }
}

/// Returns the full name of the called command, with which its errors begin.
fn named(matches: &ArgMatches) -> String {
    let below = std::iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
    std::iter::once("trawl").chain(below.map(|(name, _)| name)).collect::<Vec<_>>().join(" ")
}

async fn run(command: Command, global: Global) -> Outcome {
    match command {
        Command::Crawl(args) => args.run(global).await,
        Command::Demo(args) => args.run(global).await,
        Command::Init(args) => args.run(&global),
        Command::Status(args) => args.run(global).await,
        Command::Top(args) => args.run(global).await,
        Command::Url(args) => args.run(global).await,
        Command::Wait(args) => args.run(global).await,
        Command::Events(args) => args.run(global).await,
        Command::Logs(args) => args.run(global).await,
        Command::Workers(args) => args.run(global).await,
        Command::Drain(args) => args.run(global).await,
        Command::Pause(args) => args.run(Verb::Pause, global).await,
        Command::Resume(args) => args.run(Verb::Resume, global).await,
        Command::Cancel(args) => args.run(Verb::Cancel, global).await,
        Command::Crawls(args) => args.run(global).await,
        Command::Jobs(args) => args.run(global).await,
        Command::Schedule(args) => args.run(global).await,
        Command::Task(args) => args.run(global).await,
        Command::Dlq(args) => args.run(global).await,
        Command::Hosts(args) => args.run(global).await,
        Command::Spider(args) => args.run(global).await,
        Command::Shell(args) => args.run(global.load(&global.source())?).await,
        Command::Reextract(args) => args.run(global).await,
        Command::Items(args) => args.run(global).await,
        Command::Seen(args) => args.run(global).await,
        Command::Pack(args) => args.run(global).await,
        Command::Api(args) => args.run(Served::Api, global).await,
        Command::Console(args) => args.run(global).await,
        Command::Config(args) => args.run(&global),
        Command::Doctor(args) => args.run(&global).await,
        Command::Producer(args) => args.run(global).await,
        Command::Worker(args) => args.run(global).await,
        Command::Project(args) => args.run(global).await,
        Command::Runner(args) => args.run(global).await,
        Command::Completions(args) => args.run(),
        Command::Man(args) => args.run(Program::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every command without subcommands, with its full name.
    fn commands() -> Vec<(String, clap::Command)> {
        let (mut left, mut found) = (vec![(String::new(), Program::command())], Vec::new());
        while let Some((words, command)) = left.pop() {
            let below = |one: &clap::Command| (format!("{words} {}", one.get_name()), one.clone());
            left.extend(command.get_subcommands().map(below));
            if command.get_subcommands().next().is_none() {
                found.push((words.trim().to_owned(), command));
            }
        }
        found
    }

    fn has(command: &clap::Command, name: &str) -> bool {
        command.get_arguments().any(|argument| argument.get_id() == name)
    }

    #[test]
    fn an_error_begins_with_the_words_of_its_command() {
        let words = ["trawl", "hosts", "block", "a.example"];
        assert_eq!(named(&Program::command().get_matches_from(words)), "trawl hosts block");
    }

    #[test]
    fn every_command_that_reports_does_so_as_json() {
        for (words, command) in commands() {
            // Items are JSON anyway; a worker and the servers report in their logs; the others write for
            // settings, shells and manuals.
            let others = ["items", "worker", "api", "console hash", "completions", "man"];
            let is_another = others.contains(&words.as_str());
            assert_eq!(has(&command, "json"), !is_another, "{words}");
        }
    }

    #[test]
    fn wherever_a_crawl_is_named_it_may_be_one_of_a_state_file() {
        let mut root = Program::command();
        root.build();
        for (words, _) in commands() {
            let command =
                words.split(' ').fold(&root, |command, word| command.find_subcommand(word).unwrap());
            // These commands apply to the fleet only.
            let is_another = ["items", "producer"].contains(&words.as_str());
            assert!(!has(command, "crawl") || is_another || has(command, "state"), "{words}");
        }
    }
}

//! The program `trawl`, for people: crawls in one process, and a window on the fleet. Called `producer` or `worker`, as by
//! a link, it is that program: an image needs one file for all three.

mod books;
mod control;
mod crawl;
mod demo;
mod desk;
mod dlq;
mod hosts;
mod items;
mod pack;
mod settings;
mod spider;
mod state;
mod status;
mod waits;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use control::Verb;
use trawl_cli::{Global, Outcome};

/// Crawl politely, lose nothing: in one process, or as a fleet on RabbitMQ and Redis
#[derive(Parser)]
#[command(name = "trawl", version, arg_required_else_help = true)]
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
    /// Show the crawls, or one of them
    Status(status::Args),
    /// Wait until a crawl of the fleet has ended
    Wait(status::WaitArgs),
    /// Hold a crawl: no fetch begins until it is resumed
    Pause(control::Args),
    /// Let a paused crawl go on
    Resume(control::Args),
    /// End a crawl; what is left of it is cancelled
    Cancel(control::Args),
    /// List, show, send again or purge URLs that failed
    Dlq(dlq::Args),
    /// List and show hosts, block those that must not be asked
    Hosts(hosts::Args),
    /// Write, check and try spiders
    Spider(spider::Args),
    /// Read what the fleet has scraped: the items in its stream
    Items(items::Args),
    /// Pack what spiders have seen, so that it takes a tenth of the memory; crawls go on meanwhile
    Pack(pack::Args),
    /// Show or check the settings
    Config(settings::Args),
    /// Read sitemaps into the fleet's queues (the program `producer`)
    Producer(trawl_producer::cli::Args),
    /// Work on the fleet's queues (the program `worker`)
    Worker(trawl_worker::cli::Args),
}

fn main() -> ExitCode {
    let called = std::env::args_os().next().unwrap_or_default();
    match Path::new(&called).file_name().and_then(|name| name.to_str()) {
        Some("producer") => trawl_producer::cli::main(),
        Some("worker") => trawl_worker::cli::main(),
        _ => {
            let Program { command, global } = Program::parse();
            trawl_cli::main("trawl", run(command, global))
        }
    }
}

async fn run(command: Command, global: Global) -> Outcome {
    match command {
        Command::Crawl(args) => args.run(global).await,
        Command::Demo(args) => args.run(global).await,
        Command::Status(args) => args.run(global).await,
        Command::Wait(args) => args.run(global).await,
        Command::Pause(args) => args.run(Verb::Pause, global).await,
        Command::Resume(args) => args.run(Verb::Resume, global).await,
        Command::Cancel(args) => args.run(Verb::Cancel, global).await,
        Command::Dlq(args) => args.run(global).await,
        Command::Hosts(args) => args.run(global).await,
        Command::Spider(args) => args.run(global).await,
        Command::Items(args) => args.run(global).await,
        Command::Pack(args) => args.run(global).await,
        Command::Config(args) => args.run(&global),
        Command::Producer(args) => args.run(global).await,
        Command::Worker(args) => args.run(global).await,
    }
}

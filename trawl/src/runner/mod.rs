//! `trawl runner`: a worker on a machine that reaches nothing but the API; and what people allow such machines.

mod access;
mod work;

use clap::Subcommand;
use trawl_cli::{Global, Outcome};
use trawl_common::names::{ProjectName, RunnerName};

use crate::backend::Where;

/// The command-line arguments of `trawl runner`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(flatten)]
    work: work::Work,
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    place: Where,
}

/// The subcommands of `trawl runner`.
#[derive(Subcommand)]
enum Command {
    /// List the runners that have asked for access, with the access of each
    List {
        /// Print one JSON object a runner
        #[arg(long)]
        json: bool,
    },
    /// Let a runner do the work of a project; compare its fingerprint with the one that it shows
    Approve {
        /// The runner
        runner: RunnerName,
        /// The project [default: default]
        #[arg(long, value_name = "NAME")]
        project: Option<ProjectName>,
        /// Do the project's work, and hand work to its spiders (the default)
        #[arg(long, conflicts_with = "submit")]
        assign: bool,
        /// Only hand work to the project's spiders
        #[arg(long)]
        submit: bool,
        /// Print the runner as JSON
        #[arg(long)]
        json: bool,
    },
    /// Take back a runner's access: within a second it gets no more work, and what it holds is handed out again
    Revoke {
        /// The runner
        runner: RunnerName,
        /// Only its access to this project
        #[arg(long, value_name = "NAME")]
        project: Option<ProjectName>,
        /// Print the runner as JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget a runner, its key and its access; its name is free for another
    Forget {
        /// The runner
        runner: RunnerName,
        /// Print its name as JSON
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let Self { work, command, place } = self;
        match command {
            None => work.run(global).await,
            Some(command) => command.run(&global, &place).await,
        }
    }
}

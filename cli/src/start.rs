//! From `main` to the first line of a program's own code.

use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use tokio::runtime;
use trawl_common::settings::{Settings, Source};
use trawl_common::telemetry;
use trawl_common::text::is_harmful;

use crate::{Fail, Outcome, Progress, mistakes};

/// Pages, items and messages are many small texts of several threads.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Flags that every program has.
#[derive(Args, Clone, Debug, Default)]
pub struct Global {
    /// Read settings from FILE [default: trawl.toml, if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Log more: -v debug, -vv trace
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Log only warnings and errors, and say nothing of the progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
}

impl Global {
    /// Where settings come from: the file, the environment and these flags.
    pub fn source(&self) -> Source {
        let mut source = Source::from_env(self.config.clone());
        match (self.quiet, self.verbose) {
            (true, _) => source.set("log.level", "warn"),
            (false, 0) => {}
            (false, 1) => source.set("log.level", "info,trawl=debug,trawl_worker=debug,trawl_producer=debug"),
            (false, _) => source.set("log.level", "trace"),
        }
        source
    }

    /// Where the program says how far it is.
    pub fn progress(&self) -> Progress {
        if self.quiet { Progress::none() } else { Progress::default() }
    }

    /// Reads the settings from `source` and starts logging by them.
    pub fn load(source: &Source) -> Result<Settings, Fail> {
        let settings = source.load().map_err(mistakes::of_settings)?;
        telemetry::start(&settings.log)
            .map_err(|error| Fail::usage(format!("settings: log.level: {error}")))?;
        Ok(settings)
    }
}

/// Runs a program: one TLS provider, one runtime, and at the end one line for an error and an exit code.
pub fn main(name: &str, program: impl Future<Output = Outcome>) -> ExitCode {
    // A second installation fails, and there is none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = match runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(program);
            // A reader of standard input blocks its thread until there is a line: don't wait for it.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(Fail::run(format!("cannot start: {error}"))),
    };
    let exit = outcome.unwrap_or_else(|fail| {
        tell(name, &fail);
        fail.exit
    });
    exit.into()
}

fn tell(name: &str, Fail { message, .. }: &Fail) {
    let harmful = |c| is_harmful(c) && c != '\n';
    let message = message.replace(harmful, " ");
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    anstream::eprintln!("{red}{name}:{red:#} {message}");
}

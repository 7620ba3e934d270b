//! The steps from `main` to a program's own code.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{Args, ColorChoice};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::runtime;
use trawl_common::open_files;
use trawl_common::settings::{Settings, Source};
use trawl_common::telemetry;
use trawl_common::text::is_harmful;

use crate::colour::has_colours;
use crate::{Fail, Outcome, Progress, mistakes};

/// Pages, items and messages are many small allocations in several threads, which jemalloc handles better than the
/// system.
#[cfg(feature = "jemalloc")]
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
    /// Be silent unless something is wrong: no progress, no summary, and of the log only warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Write in colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", global = true, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

impl Global {
    /// Returns the sources of settings: the file, the environment and these flags.
    pub fn source(&self) -> Source {
        let mut source = Source::from_env(self.config.clone());
        match self.verbose {
            0 => {}
            1 => source.set("log.level", "info,trawl=debug,trawl_worker=debug,trawl_producer=debug"),
            _ => source.set("log.level", "trace"),
        }
        source
    }

    /// Returns a progress that shows nothing if `--quiet` is given.
    pub fn progress(&self) -> Progress {
        if self.quiet { Progress::none() } else { Progress::default() }
    }

    /// Prints a message to standard error, unless `--quiet` is given.
    pub fn say(&self, what: impl fmt::Display) {
        if !self.quiet {
            anstream::eprintln!("{what}");
        }
    }

    /// Reads the settings from `source`, and starts logging.
    pub fn load(&self, source: &Source) -> Result<Settings, Fail> {
        let settings = source.load().map_err(mistakes::of_settings)?;
        telemetry::start(&settings.log, has_colours(), self.quiet)
            .map_err(|error| Fail::usage(format!("settings: log.level: {error}")))?;
        Ok(settings)
    }
}

/// Runs a program with a TLS provider and a runtime. Prints an error as one line, and returns the exit code.
pub fn main(name: &str, color: ColorChoice, program: impl Future<Output = Outcome>) -> ExitCode {
    let color = match color {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    color.write_global();
    open_files::raise_limit();
    return_free_memory();
    // Secrets are in this process' memory and environment. Keeps other programs of the same user, such as those of
    // spiders, from reading either, and the secrets out of core files. This call cannot fail.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // Fails only if a provider was installed before, and none was.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcome = match runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(program);
            // A read of standard input blocks its thread until there is a line: don't wait for it.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(Fail::run(format!("cannot start: {error}"))),
    };
    let exit = outcome.unwrap_or_else(|fail| {
        print(name, &fail);
        fail.exit
    });
    exit.into()
}

/// Lets memory that is free go back to the system within seconds, also if nothing allocates any more, as at the end of a
/// crawl. Fails only if the system can start no thread.
fn return_free_memory() {
    #[cfg(feature = "jemalloc")]
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
}

fn print(name: &str, Fail { message, .. }: &Fail) {
    let harmful = |c| is_harmful(c) && c != '\n';
    let message = message.replace(harmful, " ");
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    anstream::eprintln!("{red}{name}:{red:#} {message}");
}

//! Logs: to standard error, coloured on a terminal, as JSON on request.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::settings::{Log, LogFormat};

/// The clients of the servers say nothing of their own: what they fail at is logged where it is handled. A filter that
/// names one of them (`info,lapin=debug`) lets it speak.
const SILENT: &str = "lapin=off,redis=off";

/// Starts logging as the settings say. Called once, by `main`.
pub fn start(log: &Log) -> Result<(), ParseError> {
    let filter = EnvFilter::builder().parse(format!("{SILENT},{}", log.level))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match log.format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            builder.with_target(false).with_ansi(colours).init();
        }
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}

//! Logs: to standard error, coloured on a terminal, as JSON on request.
//!
//! Every event is written on one line, without characters that control a terminal or are invisible.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, Write};

use anstyle::Style;
use tracing::{Subscriber, error};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::settings::{Log, LogFormat};
use crate::text::{escape_json, is_harmful};

/// The prefixes of trawl's own targets.
const OWN: &[&str] = &["trawl", "producer", "worker"];

/// Libraries whose logs are dropped. Failures of server clients are logged where they are handled, and the parser
/// of HTML reports each fault of a page.
const SILENT: &[&str] = &["html5ever", "lapin", "redis"];

const DIM: Style = Style::new().dimmed();

/// Starts logging to standard error by the settings, panics included; with `is_quiet`, only warnings and errors,
/// whatever the settings say. Called once, by `main`.
///
/// # Errors
/// Fails if `log.level` cannot be read.
pub fn start(log: &Log, colours: bool, is_quiet: bool) -> Result<(), ParseError> {
    subscriber(log, colours, is_quiet)?.init();
    // A parser's panic message may quote the page.
    std::panic::set_hook(Box::new(|panic| {
        error!(%panic, "panicked");
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            eprintln!("{trace}");
        }
    }));
    Ok(())
}

/// Returns a subscriber whose maximum level is the highest level written: it opens the gates of `tracing` and
/// `log`, and html5ever logs every character of a page.
fn subscriber(
    log: &Log,
    colours: bool,
    is_quiet: bool,
) -> Result<Box<dyn Subscriber + Send + Sync>, ParseError> {
    let builder =
        tracing_subscriber::fmt().with_env_filter(EnvFilter::builder().parse(directives(&log.level))?);
    let cap = is_quiet.then_some(LevelFilter::WARN);
    Ok(match log.format {
        LogFormat::Text => {
            let builder = builder.with_writer(io::stderr).with_target(false).with_ansi(colours);
            Box::new(builder.fmt_fields(text_fields()).finish().with(cap))
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_writer(|| Json(io::stderr()));
            Box::new(builder.finish().with(cap))
        }
    })
}

/// Returns the directives for `log.level`: a level in it is for trawl's own events, while other libraries log only
/// warnings. Directives with a target (`info,lapin=debug`) are kept as they are.
fn directives(level: &str) -> String {
    let mut directives: Vec<String> = SILENT.iter().map(|library| format!("{library}=off")).collect();
    for part in level.split(',').map(str::trim) {
        match part.parse::<LevelFilter>() {
            Ok(own) if !part.is_empty() => {
                directives.push(own.min(LevelFilter::WARN).to_string());
                directives.extend(OWN.iter().map(|target| format!("{target}={own}")));
            }
            _ => directives.push(part.to_owned()),
        }
    }
    directives.join(",")
}

/// Formats the message, then `name=value` for each field. The library's own format leaves escape sequences in
/// fields.
fn text_fields() -> impl for<'a> FormatFields<'a> {
    debug_fn(|out, field, value| {
        let value = format!("{value:?}").replace(is_harmful, " ");
        match field.name() {
            "message" => write!(out, "{value}"),
            // The source of an event of the crate `log`.
            name if name.starts_with("log.") => Ok(()),
            name if out.has_ansi_escapes() => write!(out, "{DIM}{name}={DIM:#}{value}"),
            name => write!(out, "{name}={value}"),
        }
    })
    .delimited(" ")
}

/// A writer that takes one JSON event at a time, and makes it harmless.
struct Json<W>(W);

impl<W: Write> Write for Json<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(event);
        let line = escape_json(line.strip_suffix('\n').unwrap_or(&line));
        self.0.write_all((line + "\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::subscriber::with_default;
    use tracing::{debug, info, warn};

    use super::*;

    const HOSTILE: &str = "a\n\u{1b}[31m\u{9b}b\u{7f}\u{202e}\u{200b}\u{2028}c";

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Shared {
        /// Returns the log output for an event that is as hostile as possible, which should be one line.
        fn line(&self, subscriber: impl Subscriber + Send + Sync) -> String {
            with_default(
                subscriber,
                || info!(display = %HOSTILE, debug = ?HOSTILE, text = HOSTILE, "{HOSTILE}"),
            );
            let bytes = self.0.lock().unwrap().clone();
            String::from_utf8(bytes).unwrap().strip_suffix('\n').unwrap().to_owned()
        }
    }

    /// Returns the output at this `log.level` of trawl, of a library, and of the silent libraries.
    fn logged(level: &str) -> String {
        let shared = Shared::default();
        let out = shared.clone();
        let filter = EnvFilter::builder().parse(directives(level)).unwrap();
        let builder = tracing_subscriber::fmt().with_writer(move || out.clone()).with_ansi(false);
        with_default(builder.without_time().with_target(false).with_env_filter(filter).finish(), || {
            debug!(target: "trawl_worker::settle", "own");
            info!(target: "producer", "own");
            debug!(target: "hyper::client", "library");
            warn!(target: "hyper::client", "library");
            warn!(target: "html5ever::tree_builder", "silent");
            error!(target: "lapin", "silent");
        });
        let bytes = shared.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
            .join(", ")
    }

    #[test]
    fn a_level_is_that_of_trawls_own_events_and_other_libraries_log_only_warnings() {
        assert_eq!(logged("info"), "INFO own, WARN library");
        assert_eq!(logged("trace"), "DEBUG own, INFO own, WARN library");
        assert_eq!(logged("warn"), "WARN library");
        assert_eq!(logged("error"), "");
        assert_eq!(logged("off"), "");
        assert_eq!(logged("info, trawl_worker=debug"), "DEBUG own, INFO own, WARN library");
        assert_eq!(logged("warn,hyper=debug"), "DEBUG library, WARN library");
        assert_eq!(logged("info,html5ever=warn"), "INFO own, WARN library, WARN silent");
    }

    #[test]
    fn nothing_is_asked_for_that_is_not_written() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let highest = |level: &str, is_quiet| {
                let log = Log { level: level.to_owned(), format, ..Log::default() };
                subscriber(&log, false, is_quiet).unwrap().max_level_hint()
            };
            assert_eq!(highest("info", false), Some(LevelFilter::INFO));
            assert_eq!(highest("warn", false), Some(LevelFilter::WARN));
            assert_eq!(highest("info,hyper=debug", false), Some(LevelFilter::DEBUG));
        }
    }

    #[test]
    fn text_is_one_harmless_line() {
        for colours in [false, true] {
            let shared = Shared::default();
            let out = shared.clone();
            let builder = tracing_subscriber::fmt().with_writer(move || out.clone()).with_ansi(colours);
            let line = shared.line(builder.fmt_fields(text_fields()).finish());
            assert!(line.contains(" a  [31m b    c") && line.contains("text="), "{line:?}");
            // Colours are the formatter's own.
            assert!(!line.contains(|c| is_harmful(c) && !(colours && c == '\u{1b}')), "{line:?}");
            assert!(!line.contains("\u{1b}[31m"), "{line:?}");
        }
    }

    #[test]
    fn json_is_one_harmless_line_with_the_same_content() {
        let shared = Shared::default();
        let out = shared.clone();
        let builder = tracing_subscriber::fmt().json().with_writer(move || Json(out.clone()));
        let line = shared.line(builder.finish());
        assert!(!line.contains(is_harmful), "{line:?}");
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!([&event["fields"]["text"], &event["fields"]["display"]], [HOSTILE, HOSTILE]);
    }
}

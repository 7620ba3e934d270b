//! Logs: to standard error, coloured on a terminal, as JSON on request.
//!
//! Whatever an event holds, it is one line, and nothing in it acts on a terminal or hides from a reader.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write};

use anstyle::Style;
use tracing::error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;

use crate::settings::{Log, LogFormat};
use crate::text::{escape_json, is_harmful};

/// The clients of the servers say nothing of their own: what they fail at is logged where it is handled. A filter that
/// names one of them (`info,lapin=debug`) lets it speak.
const SILENT: &str = "lapin=off,redis=off";

const DIM: Style = Style::new().dimmed();

/// Starts logging as the settings say, panics included. Called once, by `main`.
pub fn start(log: &Log) -> Result<(), ParseError> {
    let filter = EnvFilter::builder().parse(format!("{SILENT},{}", log.level))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    match log.format {
        LogFormat::Text => {
            let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            let builder = builder.with_writer(io::stderr).with_target(false).with_ansi(colours);
            builder.fmt_fields(text_fields()).init();
        }
        LogFormat::Json => builder.json().flatten_event(true).with_writer(|| Json(io::stderr())).init(),
    }
    // What a parser panics with may quote the page.
    std::panic::set_hook(Box::new(|panic| {
        error!(%panic, "panicked");
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            eprintln!("{trace}");
        }
    }));
    Ok(())
}

/// The message, then `name=value` for each field. The library's own way leaves escape sequences in fields as they are.
fn text_fields() -> impl for<'a> FormatFields<'a> {
    debug_fn(|out, field, value| {
        let value = format!("{value:?}").replace(is_harmful, " ");
        match field.name() {
            "message" => write!(out, "{value}"),
            // Where an event of the crate `log` came from.
            name if name.starts_with("log.") => Ok(()),
            name if out.has_ansi_escapes() => write!(out, "{DIM}{name}={DIM:#}{value}"),
            name => write!(out, "{name}={value}"),
        }
    })
    .delimited(" ")
}

/// Takes one event of JSON at a time, and makes it harmless.
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
    use tracing::{Subscriber, info};

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
        /// What is logged when an event is as hostile as can be: it should be one line.
        fn line(&self, subscriber: impl Subscriber + Send + Sync) -> String {
            with_default(
                subscriber,
                || info!(display = %HOSTILE, debug = ?HOSTILE, text = HOSTILE, "{HOSTILE}"),
            );
            let bytes = self.0.lock().unwrap().clone();
            String::from_utf8(bytes).unwrap().strip_suffix('\n').unwrap().to_owned()
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
    fn json_is_one_harmless_line_that_says_the_same() {
        let shared = Shared::default();
        let out = shared.clone();
        let builder = tracing_subscriber::fmt().json().with_writer(move || Json(out.clone()));
        let line = shared.line(builder.finish());
        assert!(!line.contains(is_harmful), "{line:?}");
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!([&event["fields"]["text"], &event["fields"]["display"]], [HOSTILE, HOSTILE]);
    }
}

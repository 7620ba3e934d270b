//! `[handler]`: the program of a spider.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytesize::ByteSize;
use serde_json::{Map, Value};

use super::given::Given;
use super::placeholders;
use super::secret::secret_of_program;
use super::section::Section;
use crate::duration;
use crate::handler::once::MAX_ARGUMENT_BYTES;
use crate::spider::{Handler, Secret};

/// Minimum memory limit: no interpreter starts in less.
const MIN_MEMORY: ByteSize = ByteSize::mb(16);

/// Minimum disk limit: a page that is too large for a line is passed as a file.
const MIN_DISK: ByteSize = ByteSize::mb(16);

/// Reads `[handler]`; `None` if it does not say what to run.
pub(super) fn handler(mut section: Section<'_>) -> Option<Handler> {
    let run = section.need("run", run);
    let mode = section.read("mode", Given::variant).unwrap_or_default();
    let usual = Handler::new(Vec::new(), mode);
    let handler = Handler {
        timeout: section.read("timeout", timeout).unwrap_or(usual.timeout),
        concurrency: section.read("concurrency", concurrency),
        memory: section.read("memory", memory).unwrap_or(usual.memory),
        disk: section.read("disk", disk).unwrap_or(usual.disk),
        retries: section.read("retries", |given| given.whole(0)),
        secret: section.read("secret", object).unwrap_or(usual.secret),
        proxy: section.read("proxy", Given::variant).unwrap_or_default(),
        mode,
        run: Vec::new(),
    };
    section.end();
    Some(Handler { run: run?, ..handler })
}

/// Reads the program. No argument of the spider may stand there: starting a crawl must not choose what is run.
fn run(given: &Given<'_>) -> Option<Vec<String>> {
    if given.notes.is_tried() {
        return given.wrong("no program is run where a spider is tried over HTTP");
    }
    let words = given.list()?;
    let read: Option<Vec<String>> = words.iter().map(word).collect();
    match read? {
        words if words.is_empty() => given.wrong("must not be empty: write the program and its arguments"),
        words => Some(words),
    }
}

fn word(given: &Given<'_>) -> Option<String> {
    let word = given.verbatim()?;
    if placeholders::is_in(word) {
        given.wrong("no argument may say what is run")
    } else if word.is_empty() || word.contains('\0') {
        given.wrong("no program or argument is empty, or has a NUL in it")
    } else {
        Some(word.to_owned())
    }
}

fn timeout(given: &Given<'_>) -> Option<Duration> {
    match duration::parse(given.verbatim()?) {
        Ok(time) if time.is_zero() => given.wrong("must be longer than that"),
        Ok(time) if time > Handler::MAX_TIMEOUT => given.wrong("must be a week at most"),
        Ok(time) => Some(time),
        Err(error) => given.wrong(error),
    }
}

fn concurrency(given: &Given<'_>) -> Option<NonZeroUsize> {
    given.positive().and_then(|number| NonZeroUsize::try_from(number).ok())
}

fn memory(given: &Given<'_>) -> Option<ByteSize> {
    size(given, MIN_MEMORY)
}

fn disk(given: &Given<'_>) -> Option<ByteSize> {
    size(given, MIN_DISK)
}

fn size(given: &Given<'_>, least: ByteSize) -> Option<ByteSize> {
    match given.verbatim()?.parse::<ByteSize>() {
        Ok(size) if size < least => given.wrong(format_args!("must be {least} or more")),
        Ok(size) => Some(size),
        Err(_) => given.wrong("write a size, as `512 MB`"),
    }
}

/// Reads a JSON object as text. Each value may be `{ env = "NAME" }`.
fn object(given: &Given<'_>) -> Option<Secret> {
    let section = Section::from_given(given)?;
    let (mut object, mut is_whole) = (Map::new(), true);
    for (name, _, value) in section.entries() {
        let value = if is_variable(&value) {
            secret_of_program(&value).map(|secret| Value::from(secret.reveal()))
        } else {
            value.json()
        };
        match value {
            Some(value) => drop(object.insert(name, value)),
            None => is_whole = false,
        }
    }
    let text = Value::Object(object).to_string();
    if text.len() > MAX_ARGUMENT_BYTES {
        return given.wrong("is too long: it may have 128 KB");
    }
    is_whole.then(|| Secret::new(text))
}

/// Returns whether it is a table with `env`. Such a table is read as a variable, so that all mistakes in it are
/// noted.
fn is_variable(value: &Given<'_>) -> bool {
    value.value.get_ref().as_table().is_some_and(|table| table.contains_key("env"))
}

#[cfg(test)]
mod tests {
    use super::super::{Reading, read};
    use super::*;
    use crate::settings::{Items, Spiders};
    use crate::spider::{Mode, Origin, ProxyUse, Spider};

    fn usual() -> Spider {
        Spider::without_file("payments".parse().unwrap(), &Items::default())
    }

    fn reading(text: &str) -> Reading {
        read(usual(), text, Origin::Local, &|name| (name == "TOKEN").then(|| "s3cret".to_owned()))
    }

    #[track_caller]
    fn one(text: &str, expected: &str) {
        let Reading { mistakes, unset, .. } = reading(text);
        let all: Vec<_> = mistakes.iter().chain(&unset).map(|mistake| mistake.what.as_str()).collect();
        assert!(all.len() == 1 && all[0].contains(expected), "{text}\n{all:?}");
    }

    #[test]
    fn a_program_is_read_with_its_limits_and_its_secret() {
        let text = "[handler]\nrun = ['python3', 'run.py']\nmode = 'stream'\ntimeout = '1h'\nconcurrency = 4\n\
            memory = '512 MB'\ndisk = '20 GB'\nretries = 5\nproxy = 'all'\nsecret = { DB = { env = 'TOKEN' }, pages = 3, hosts = ['a'] }\n";
        let spider = reading(text).ready().unwrap();
        let handler = spider.page_handler().unwrap();
        assert_eq!(
            (&handler.run[..], handler.mode),
            (&["python3".to_owned(), "run.py".to_owned()][..], Mode::Stream)
        );
        assert_eq!((handler.timeout.as_secs(), handler.memory), (3600, ByteSize::mb(512)));
        assert_eq!(handler.disk, ByteSize::gb(20));
        assert_eq!((handler.concurrency.unwrap().get(), handler.retries), (4, Some(5)));
        assert_eq!(handler.proxy, ProxyUse::All);
        let secret: Value = serde_json::from_str(handler.secret.reveal()).unwrap();
        assert_eq!(secret, serde_json::json!({ "DB": "s3cret", "pages": 3, "hosts": ["a"] }));
        assert!(!format!("{spider:?}").contains("s3cret"));
        let plain = reading("[handler]\nrun = ['./run']").ready().unwrap().handler.unwrap();
        assert_eq!(plain, Handler::new(vec!["./run".to_owned()], Mode::Once));
    }

    #[test]
    fn mistakes_in_a_program_are_reported() {
        for (text, expected) in [
            ("[handler]", "handler: `run` is missing"),
            ("[handler]\nrun = []", "handler.run: must not be empty"),
            ("[handler]\nrun = 'python3 run.py'", "handler.run: a list in brackets is wanted"),
            ("[handler]\nrun = ['']", "no program or argument is empty"),
            ("[handler]\nrun = ['x']\nmode = 'steam'", "did you mean `stream`?"),
            ("[handler]\nrun = ['x']\ntimeout = '0s'", "handler.timeout: must be longer"),
            ("[handler]\nrun = ['x']\ntimeout = '8d'", "a week at most"),
            ("[handler]\nrun = ['x']\nconcurrency = 0", "must be 1 or more"),
            ("[handler]\nrun = ['x']\nmemory = '1 MB'", "or more"),
            ("[handler]\nrun = ['x']\ndisk = '1 MB'", "handler.disk: must be"),
            ("[handler]\nrun = ['x']\nmemory = 'much'", "write a size, as `512 MB`"),
            ("[handler]\nrun = ['x']\nsecret = { a = { env = 'NONE' } }", "NONE"),
            ("[handler]\nrun = ['x']\nsecret = { a = { env = 'NONE', b = 1 } }", "there is no key"),
            ("[handler]\nrun = ['x']\nproxy = 'offers'", "did you mean `offer`?"),
            ("[handler]\nrun = ['x']\nargs = []", "there is no key `handler.args`"),
            (
                "[handler]\nrun = ['x']\nmode = 'stream'\n[fields]\na = 'title'",
                "yields the items: leave this out",
            ),
        ] {
            let Reading { mistakes, unset, .. } = reading(text);
            let found = mistakes.iter().chain(&unset).any(|mistake| mistake.what.contains(expected));
            assert!(found, "{text}\n{mistakes:?} {unset:?}");
        }
        one(
            "[handler]\nrun = ['sh', '-c', '{arg.x}']\n[arguments]\nx = { default = 'y' }",
            "no argument may say what is run",
        );
    }

    #[test]
    fn no_text_that_came_over_http_runs_a_program() {
        let limits = Spiders::default();
        let tried = Origin::Tried(&limits);
        let Reading { spider, mistakes, .. } = read(usual(), "[handler]\nrun = ['sh']", tried, &|_| None);
        assert_eq!(spider.handler, None);
        assert!(mistakes[0].what.contains("no program is run"), "{mistakes:?}");
    }
}

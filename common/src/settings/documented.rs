//! Checks that `docs/configuration.md` lists every key with its default, and no other, as does `trawl.toml`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::{FileSink, HostRule, ServerUrl, Settings, SinkSettings, Source, Webhook, WebhookSecret};
use crate::events::Pattern;
use crate::frontier::lane::Lane;
use crate::frontier::route::{Rule, When};
use crate::politeness::rate::Rate;

const DOCUMENT: &str = include_str!("../../../docs/configuration.md");
const FILE: &str = include_str!("../../../trawl.toml");

/// Returns the rows of its tables: a key, and the text in the column of defaults.
fn rows() -> BTreeMap<&'static str, &'static str> {
    let row = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        Some((cells.next()?.strip_suffix('`')?, cells.next()?))
    };
    DOCUMENT.lines().filter_map(row).collect()
}

/// Returns the defaults, with one entry in every list.
fn one_of_each() -> Settings {
    let host = HostRule {
        host: vec!["a.example".to_owned()],
        rate: Some(Rate::Unlimited),
        burst: Some(1),
        concurrency: Some(1),
        robots: Some(true),
        group: Some("a".to_owned()),
    };
    let when = When {
        host: vec!["a.example".to_owned()],
        url: vec!["a".to_owned()],
        changefreq: vec!["daily".to_owned()],
        news: true,
    };
    let sinks = vec![
        SinkSettings::Csv(FileSink::new("x".into())),
        SinkSettings::Postgres { url: ServerUrl::new("postgres://db/x"), table: None },
        SinkSettings::Webhook {
            url: ServerUrl::new("https://a.example/"),
            secret: WebhookSecret::Variable("A".into()),
            changed: false,
        },
    ];
    let webhook = Webhook {
        url: ServerUrl::new("https://a.example/"),
        secret: WebhookSecret::Variable("A".into()),
        events: vec![Pattern::all()],
        spiders: Vec::new(),
    };
    let mut settings = Settings { sinks, webhooks: vec![webhook], ..Settings::default() };
    settings.politeness.host = vec![host];
    settings.history.postgres = Some(ServerUrl::new("postgres://db/x"));
    settings.route = vec![Rule { when: Some(when), lane: Lane::Bulk, ttl: Some(Duration::from_secs(1)) }];
    settings
}

/// Collects every key below `value`, with its value. The values inside lists are left out.
fn keys(path: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(table) if !table.is_empty() => {
            table.iter().for_each(|(key, value)| keys(&below(key), value, found));
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {
            values.iter().for_each(|value| keys(path, value, found));
        }
        value => drop(found.insert(path.to_owned(), value.clone())),
    }
}

/// Returns every key, with its value in [`one_of_each`].
fn known() -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    keys("", &serde_json::to_value(one_of_each()).unwrap(), &mut found);
    found
}

#[test]
fn the_document_has_every_key_and_no_other() {
    let known = known();
    assert_eq!(rows().into_keys().collect::<Vec<_>>(), known.keys().collect::<Vec<_>>());
}

/// Returns the keys of `trawl.toml`, with those that are commented out.
fn keys_of_file() -> BTreeMap<String, Value> {
    let is_setting = |line: &&str| {
        let is_name =
            |text: &str| text.chars().all(|letter| letter.is_ascii_lowercase() || "_.".contains(letter));
        let table = line.trim_start_matches('[').split_once(']');
        line.split_once(" = ").is_some_and(|(key, _)| is_name(key))
            || table.is_some_and(|(name, _)| is_name(name))
    };
    let lines = FILE.lines().map(|line| line.strip_prefix("# ").unwrap_or(line));
    let text: String = lines.filter(is_setting).map(|line| format!("{line}\n")).collect();
    let mut found = BTreeMap::new();
    keys("", &toml::from_str(&text).unwrap(), &mut found);
    found
}

#[test]
fn the_shipped_file_has_every_key_and_no_other() {
    let (file, known) = (keys_of_file(), known());
    // The names in such a table are those of people: `api.viewers.dashboard`.
    let is_below = |key: &str, table: &str| key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
    let missing = known.keys().filter(|key| !file.keys().any(|found| found == *key || is_below(found, key)));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new());
    let others = file.keys().filter(|key| !known.keys().any(|known| known == *key || is_below(key, known)));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn the_document_has_the_defaults() {
    let (mut text, mut defaults) = (String::new(), BTreeMap::new());
    keys("", &serde_json::to_value(Settings::default()).unwrap(), &mut defaults);
    for (key, cell) in rows() {
        let default = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
        match (default, defaults.get(key)) {
            (Some(default), _) => text += &format!("{key} = {default}\n"),
            (None, Some(Value::Null)) => assert_eq!(cell, "none", "{key}"),
            (None, is_set) => assert!(is_set.is_none() || key.starts_with("route."), "{key} has a default"),
        }
    }
    let route = DOCUMENT.find("\n[[route]]").unwrap();
    text += DOCUMENT[route..].split("```").next().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let source = Source { file: Some(file.path().to_owned()), ..Source::default() };
    assert_eq!(source.load().unwrap(), Settings::default());
}

//! `trawl spider new`: writes an example file.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};

use serde_json::json;
use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::names::SpiderName;
use trawl_common::settings::Settings;

/// A spider to begin with.
pub(crate) const EXAMPLE: &str = include_str!("new.toml");

/// Writes the example; never overwrites an existing file.
pub(super) fn run(name: &SpiderName, json: bool, settings: &Settings, global: &Global) -> Outcome {
    let folder = &settings.spiders_dir;
    let path = folder.join(format!("{name}.toml"));
    let shown = path.display();
    fs::create_dir_all(folder).map_err(|error| Fail::run(format!("{}: {error}", folder.display())))?;
    let created = OpenOptions::new().write(true).create_new(true).open(&path);
    let written = created.and_then(|mut file| file.write_all(EXAMPLE.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Fail::usage(format!("{shown} is there already")),
        _ => Fail::run(format!("{shown}: {error}")),
    })?;
    global.say(format_args!("{shown} is an example: change it, then `trawl spider check {shown}`"));
    if json {
        print_json(&json!({ "file": path }));
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use trawl_common::settings::Items;
    use trawl_common::spider::file::{Reading, read};
    use trawl_common::spider::{Origin, Spider};
    use trawl_extract::Extractor;

    use super::*;

    fn reading(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Reading {
        let usual = Spider::without_file("new".parse().unwrap(), &Items::default());
        read(usual, text, Origin::Local, environment)
    }

    #[test]
    fn the_example_has_no_mistakes_and_shows_more_than_the_minimum() {
        let reading = reading(EXAMPLE, &|_| None);
        assert_eq!((reading.mistakes, reading.unset), (vec![], vec![]));
        assert!(reading.spider.follow.is_some() && Extractor::new(&reading.spider).is_ok());
    }

    /// A key or a table that is commented out with `# ` is an offer: uncomment each in turn, and the file
    /// must still be valid.
    #[test]
    fn what_the_example_offers_behind_a_hash_is_right_too() {
        let is_word = |text: &str| !text.is_empty() && !text.contains(' ');
        let is_offer =
            |text: &str| text.starts_with('[') || text.split_once(" = ").is_some_and(|(key, _)| is_word(key));
        let open = |line: &'static str| line.strip_prefix("# ").filter(|text| is_offer(text)).unwrap_or(line);
        let text: Vec<&str> = EXAMPLE.lines().map(open).collect();
        let environment = |_: &str| Some("postgres://db/x".to_owned());
        let reading = reading(&text.join("\n"), &environment);
        assert_eq!(reading.mistakes, []);
        assert_eq!(reading.spider.request.headers.len(), 2);
    }
}

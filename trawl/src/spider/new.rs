//! `trawl spider new`

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};

use trawl_cli::{Fail, Outcome};
use trawl_common::exit::Exit;
use trawl_common::names::SpiderName;
use trawl_common::settings::Settings;

const EXAMPLE: &str = include_str!("new.toml");

/// Writes the example; a file that is there stays as it is.
pub(super) fn run(name: &SpiderName, settings: &Settings) -> Outcome {
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
    anstream::eprintln!("{shown} is an example: change it, then `trawl spider check {shown}`");
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use trawl_common::settings::Items;
    use trawl_common::spider::file::read;
    use trawl_extract::Extractor;

    use super::*;

    #[test]
    fn the_example_has_no_mistakes_and_says_more_than_it_must() {
        let reading = read("new".parse().unwrap(), EXAMPLE, &|_| None, &Items::default());
        assert_eq!((reading.mistakes, reading.unset), (vec![], vec![]));
        assert!(reading.spider.follow.is_some() && Extractor::new(&reading.spider).is_ok());
    }

    /// A line that is a key behind `# ` is an offer: take each up, and the file must still be right.
    #[test]
    fn what_the_example_offers_behind_a_hash_is_right_too() {
        let is_offer =
            |line: &&str| line.starts_with("# ") && (line.contains(" = ") || line.starts_with("# ["));
        let open = |line| if is_offer(&line) { &line[2..] } else { line };
        let text: Vec<&str> = EXAMPLE.lines().map(open).collect();
        let environment = |_: &str| Some("postgres://db/x".to_owned());
        let reading = read("new".parse().unwrap(), &text.join("\n"), &environment, &Items::default());
        assert_eq!(reading.mistakes, []);
        assert_eq!(reading.spider.request.headers.len(), 2);
    }
}

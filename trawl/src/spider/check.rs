//! `trawl spider check`

use std::path::Path;

use anstream::println;
use anstyle::AnsiColor;
use serde_json::{Value, json};
use trawl_cli::{Outcome, SpiderArg, mistakes};
use trawl_common::exit::Exit;
use trawl_common::settings::Settings;
use trawl_common::spider::Mistake;

use super::examine::{Examined, Robots, examine};
use super::summary;
use crate::settings::NAMELESS;

/// Checks each file, and fails if there are mistakes in any.
pub(super) fn run(spiders: &[SpiderArg], json: bool, settings: &Settings) -> Outcome {
    let mut exit = Exit::Ok;
    for spider in spiders {
        let file = &spider.file(settings)?;
        let is_right = match examine(file, settings) {
            Ok(examined) if json => {
                println!("{}", as_json(&examined));
                examined.ready.is_some()
            }
            Ok(examined) => {
                tell(&examined);
                examined.ready.is_some()
            }
            Err(error) if json => {
                println!("{}", json!({ "file": shown(file), "error": error.to_string() }));
                false
            }
            Err(error) => {
                anstream::eprintln!("{error}");
                false
            }
        };
        if !is_right {
            exit = Exit::Usage;
        }
    }
    Ok(exit)
}

fn tell(examined: &Examined) {
    let Examined { path, text, reading, ready, robots } = examined;
    mistakes::tell(path, text, &reading.mistakes);
    let yellow = AnsiColor::Yellow.on_default().bold();
    for unset in &reading.unset {
        let warning = Mistake { what: format!("warning: {}", unset.what), ..unset.clone() };
        anstream::eprintln!("{}", mistakes::shown(path, text, &warning, yellow));
    }
    if let Robots::ForTrawl = robots {
        anstream::eprintln!(
            "{}: {yellow}warning:{yellow:#} {NAMELESS}: set `request.robots_name`",
            path.display()
        );
    }
    if let Some(ready) = ready {
        summary::print(path, &reading.spider, ready, robots);
    }
}

fn as_json(examined: &Examined) -> Value {
    let list = |mistakes: &[Mistake]| mistakes.iter().map(one).collect::<Vec<_>>();
    json!({
        "file": shown(&examined.path),
        "spider": examined.reading.spider.name.as_str(),
        "mistakes": list(&examined.reading.mistakes),
        "unset": list(&examined.reading.unset),
        "robots_name": examined.robots.name(),
        "needs_tree": examined.ready.as_ref().map(|ready| ready.extractor.needs_tree()),
    })
}

fn one(mistake: &Mistake) -> Value {
    json!({
        "line": mistake.place.map(|place| place.line),
        "column": mistake.place.map(|place| place.column),
        "what": mistake.what,
    })
}

fn shown(file: &Path) -> String {
    file.display().to_string()
}

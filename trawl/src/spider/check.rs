//! `trawl spider check`

use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use trawl_cli::{Outcome, SpiderArg, mistakes, print_json};
use trawl_common::exit::Exit;
use trawl_common::settings::Settings;
use trawl_common::spider::Mistake;
use trawl_common::spider::arguments::{Arguments, Declaration};
use trawl_common::spider::folder::Unusable;
use trawl_extract::{Examined, Robots};

use super::examine::examine;
use crate::settings::NAMELESS;

/// Checks each file, and fails if there are mistakes in any.
pub(super) fn run(spiders: &[SpiderArg], arguments: &Arguments, json: bool, settings: &Settings) -> Outcome {
    let mut exit = Exit::Ok;
    for spider in spiders {
        let file = &spider.file(settings)?;
        let examined = examine(file, arguments, settings);
        match &examined {
            examined if json => print_json(&as_json(file, examined.as_ref())),
            Ok(examined) => tell(file, examined),
            Err(error) => anstream::eprintln!("{error}"),
        }
        if !examined.is_ok_and(|examined| examined.ready.is_some()) {
            exit = Exit::Usage;
        }
    }
    Ok(exit)
}

fn tell(path: &Path, examined: &Examined) {
    let Examined { text, reading, ready, robots } = examined;
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
    if ready.is_some() {
        summarise(path, examined);
    }
}

/// Says what a spider without mistakes does.
fn summarise(path: &Path, examined: &Examined) {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    anstream::println!("{bold}{}{bold:#}: no mistakes", path.display());
    for (word, what) in examined.summary() {
        anstream::println!("  {dim}{word:<8}{dim:#} {what}");
    }
}

/// What was found in a file, or why it cannot be read.
pub(super) fn as_json(file: &Path, examined: Result<&Examined, &Unusable>) -> Value {
    let examined = match examined {
        Ok(examined) => examined,
        Err(error) => return json!({ "file": file, "error": error.to_string() }),
    };
    let list = |mistakes: &[Mistake]| mistakes.iter().map(mistakes::as_json).collect::<Vec<_>>();
    json!({
        "file": file,
        "spider": examined.reading.spider.name.as_str(),
        "mistakes": list(&examined.reading.mistakes),
        "unset": list(&examined.reading.unset),
        "arguments": examined.reading.arguments.iter().map(argument_as_json).collect::<Vec<_>>(),
        "schedule": examined.reading.spider.schedule.as_ref().map(crate::schedule::as_json),
        "robots_name": examined.robots.name(),
        "needs_tree": examined.ready.as_ref().map(|ready| ready.extractor.needs_tree()),
    })
}

fn argument_as_json((name, Declaration { value, help, .. }): (&String, &Declaration)) -> Value {
    json!({ "name": name, "default": value, "help": help })
}

//! `trawl spider check`

use std::collections::BTreeSet;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use trawl_cli::{Outcome, SpiderArg, mistakes, print_json};
use trawl_common::exit::Exit;
use trawl_common::mistake::Mistake;
use trawl_common::settings::{NAMELESS, Settings};
use trawl_common::spider::arguments::{Arguments, Declaration};
use trawl_common::spider::folder::{Folder, Unusable};
use trawl_common::spider::{Handler, Origin};
use trawl_extract::{Examined, Robots};

use super::examine::examine;

/// Checks each file, and fails if there are mistakes in any.
pub(super) fn run(spiders: &[SpiderArg], arguments: &Arguments, json: bool, settings: &Settings) -> Outcome {
    let mut exit = Exit::Ok;
    for spider in spiders {
        let file = &spider.file(settings)?;
        let examined = examine(file, arguments, settings, Origin::Local);
        match &examined {
            examined if json => print_json(&as_json(file, examined.as_ref(), settings)),
            Ok(examined) => print_report(file, examined, settings),
            Err(error) => anstream::eprintln!("{error}"),
        }
        if !examined
            .is_ok_and(|examined| examined.ready.is_some() && program_mistake(file, &examined).is_none())
        {
            exit = Exit::Usage;
        }
    }
    Ok(exit)
}

/// Returns the reason why the spider's program cannot be run on this machine, if so.
fn program_mistake(file: &Path, examined: &Examined) -> Option<Mistake> {
    let handler = examined.reading.spider.handler.as_ref()?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let error = trawl_handlers::file_of(handler, folder).err()?;
    Some(Mistake { place: None, what: format!("handler.run: {error}") })
}

/// Returns a warning if the second word of a program's command looks like a script that does not exist in the folder of
/// the file.
fn program_warning(file: &Path, examined: &Examined) -> Option<String> {
    let handler = examined.reading.spider.handler.as_ref()?;
    let script = handler.run.get(1).filter(|script| !script.starts_with('-'))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let is_missing = Path::new(script).extension().is_some() && !folder.join(script).exists();
    is_missing.then(|| format!("handler.run: there is no {}", folder.join(script).display()))
}

fn print_report(path: &Path, examined: &Examined, settings: &Settings) {
    let Examined { text, reading, ready, robots } = examined;
    mistakes::print(path, text, &reading.mistakes);
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
    for warning in warnings(path, examined, settings) {
        anstream::eprintln!("{}: {yellow}warning:{yellow:#} {warning}", path.display());
    }
    if let Some(mistake) = program_mistake(path, examined) {
        mistakes::print(path, text, &[mistake]);
    } else if ready.is_some() {
        summarise(path, examined);
    }
}

/// Returns a warning for each spider that is handed something and has no file here.
fn hand_over_warnings(examined: &Examined, settings: &Settings) -> Vec<String> {
    let (folder, spider) = (Folder::new(settings), &examined.reading.spider);
    let others = spider.hand_overs.iter().map(|one| &one.spider.value);
    let others: BTreeSet<_> = others.filter(|name| **name != spider.name).collect();
    let missing = others.into_iter().filter(|name| folder.text(name).is_ok_and(|text| text.is_none()));
    missing.map(|name| format!("hand_over: there is no {}", folder.file(name).display())).collect()
}

/// Returns the warnings about a spider, its program, and the spiders that it hands to.
fn warnings(path: &Path, examined: &Examined, settings: &Settings) -> Vec<String> {
    let others = hand_over_warnings(examined, settings);
    examined.warnings().into_iter().chain(program_warning(path, examined)).chain(others).collect()
}

/// Prints a summary of a spider without mistakes.
fn summarise(path: &Path, examined: &Examined) {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    anstream::println!("{bold}{}{bold:#}: no mistakes", path.display());
    for (word, what) in examined.summary() {
        anstream::println!("  {dim}{word:<8}{dim:#} {what}");
    }
}

/// Returns the result of examining a file, or the reason why it cannot be read, as JSON.
pub(super) fn as_json(file: &Path, examined: Result<&Examined, &Unusable>, settings: &Settings) -> Value {
    let examined = match examined {
        Ok(examined) => examined,
        Err(error) => return json!({ "file": file, "error": error.to_string() }),
    };
    let list = |mistakes: &[Mistake]| mistakes.iter().map(mistakes::as_json).collect::<Vec<_>>();
    json!({
        "file": file,
        "spider": examined.reading.spider.name.as_str(),
        "mistakes": list(&[examined.reading.mistakes.clone(), program_mistake(file, examined).into_iter().collect()].concat()),
        "unset": list(&examined.reading.unset),
        "warnings": warnings(file, examined, settings),
        "arguments": examined.reading.arguments.iter().map(argument_as_json).collect::<Vec<_>>(),
        "schedule": examined.reading.spider.schedule.as_ref().map(crate::schedule::as_json),
        "handler": examined.reading.spider.handler.as_ref().map(handler_as_json),
        "robots_name": examined.robots.name(),
        "needs_tree": examined.ready.as_ref().map(|ready| ready.extractor.needs_tree()),
    })
}

fn handler_as_json(handler: &Handler) -> Value {
    let Handler { run, mode, timeout, memory, disk, proxy, .. } = handler;
    json!({
        "run": run,
        "mode": mode.to_string(),
        "timeout": timeout.as_secs_f64(),
        "memory": memory.as_u64(),
        "disk": disk.as_u64(),
        "proxy": proxy.to_string(),
    })
}

fn argument_as_json((name, Declaration { value, help, .. }): (&String, &Declaration)) -> Value {
    json!({ "name": name, "default": value, "help": help })
}

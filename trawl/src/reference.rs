//! Checks that `docs/cli.md` describes the commands: the part below its marker is generated from them.

use std::fmt::Write;
use std::{env, fs};

use clap::{Arg, ArgAction, Command, CommandFactory};
use trawl_common::exit::Exit;
use trawl_common::nearest::listed;

use crate::Program;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md");
/// The first generated line.
const MARKER: &str = "## Every command";

/// With `UPDATE_DOCS=1` it writes the file.
#[test]
fn the_document_of_commands_has_every_command_and_flag_and_no_other() {
    let text = fs::read_to_string(FILE).unwrap();
    let by_hand = &text[..text.find(MARKER).unwrap()];
    let right = format!("{by_hand}{MARKER}\n{}", reference());
    if env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(FILE, right).unwrap();
    }
    for (line, right) in text.lines().zip(right.lines()) {
        assert_eq!(line, right, "`UPDATE_DOCS=1 cargo test -p trawl reference` writes docs/cli.md");
    }
    assert_eq!(text.len(), right.len());
}

#[test]
fn the_document_of_commands_has_every_exit_code() {
    let text = fs::read_to_string(FILE).unwrap();
    let exits = [
        Exit::Ok,
        Exit::Failed,
        Exit::Usage,
        Exit::FailedUrls,
        Exit::Cancelled,
        Exit::Unavailable,
        Exit::TimedOut,
    ];
    for exit in exits {
        assert!(text.contains(&format!("\n| {} |", exit.code())), "{exit:?}");
    }
}

fn reference() -> String {
    let mut root = Program::command();
    root.build();
    let mut text = String::from("\n### With every command\n\n");
    let globals = root.get_arguments().filter(|argument| argument.is_global_set());
    globals.for_each(|argument| text.push_str(&row(argument)));
    let mut without = Vec::new();
    without_json(&root, &mut without);
    let without = listed(without.iter().map(String::as_str));
    writeln!(text, "\nMany commands also take these:\n\n- `--json`: Print JSON: one object, or one a line; all take it but {without}").unwrap();
    let shared = shared(&root);
    shared.iter().for_each(|row| text.push_str(row));
    text.push_str("\n`--version` of each program prints its version, commit and features (`-V`: the version alone), `--help` (`-h`) what a command takes.\n");
    root.get_subcommands().for_each(|command| section(&mut text, command, &shared));
    text
}

/// Collects the commands that do not print JSON.
fn without_json(command: &Command, found: &mut Vec<String>) {
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        let has_json = below.get_arguments().any(is_json);
        if !has_json && !below.is_subcommand_required_set() {
            found.push(without_trawl(below).to_owned());
        }
        without_json(below, found);
    }
}

/// Returns the words of a command after `trawl`.
fn without_trawl(command: &Command) -> &str {
    let words = command.get_bin_name().unwrap();
    words.split_once(' ').map_or(words, |(_, words)| words)
}

fn is_json(argument: &Arg) -> bool {
    argument.get_long() == Some("json")
}

/// Returns the rows of arguments that three commands or more take with the same meaning, in the order of the commands.
fn shared(root: &Command) -> Vec<String> {
    let mut rows = Vec::new();
    count(root, &mut rows);
    rows.into_iter().filter(|(_, commands)| *commands > 2).map(|(row, _)| row).collect()
}

/// Counts the commands below `command` that take an argument, for each row of one.
fn count(command: &Command, rows: &mut Vec<(String, usize)>) {
    for argument in command.get_arguments().filter(|argument| is_own(argument) && !is_json(argument)) {
        let row = row(argument);
        match rows.iter_mut().find(|(known, _)| *known == row) {
            Some((_, commands)) => *commands += 1,
            None => rows.push((row, 1)),
        }
    }
    command.get_subcommands().for_each(|below| count(below, rows));
}

fn section(text: &mut String, command: &Command, shared: &[String]) {
    if command.get_name() == "help" {
        return;
    }
    // A command that only groups others has nothing to describe.
    if !command.is_subcommand_required_set() {
        let (words, about) = (without_trawl(command), command.get_about().unwrap());
        writeln!(text, "\n### `{words}`\n\n{about}.").unwrap();
        arguments(text, command, shared);
    }
    command.get_subcommands().for_each(|below| section(text, below, shared));
}

/// Describes what a command takes: `--json`, global flags and `--help` not at all, shared arguments by their names.
fn arguments(text: &mut String, command: &Command, shared: &[String]) {
    let arguments = command.get_arguments().filter(|argument| is_own(argument) && !is_json(argument));
    let (also, own): (Vec<&Arg>, Vec<&Arg>) = arguments.partition(|argument| shared.contains(&row(argument)));
    if !own.is_empty() {
        text.push('\n');
        own.into_iter().for_each(|argument| text.push_str(&row(argument)));
    }
    if !also.is_empty() {
        let name = |argument: &Arg| match argument.get_long() {
            Some(long) => format!("`--{long}`"),
            None => format!("`{argument}`"),
        };
        let mut names: Vec<_> = also.into_iter().map(name).collect();
        names.sort();
        writeln!(text, "\nAlso {}.", names.join(", ")).unwrap();
    }
}

/// Whether the argument is not one that every command takes.
fn is_own(argument: &Arg) -> bool {
    let is_global = ["config", "verbose", "quiet", "color"].contains(&argument.get_id().as_str());
    !is_global && !matches!(argument.get_action(), ArgAction::Help | ArgAction::Version)
}

fn row(argument: &Arg) -> String {
    let help = argument.get_help().unwrap().to_string().replace('\n', " ");
    let mut notes = String::new();
    if argument.get_action().takes_values() {
        let possible: Vec<_> = argument.get_possible_values();
        if !possible.is_empty() {
            notes += &format!(": {}", listed(possible.iter().map(|value| value.get_name())));
        }
        for value in argument.get_default_values() {
            notes += &format!(" [default: {}]", value.to_string_lossy());
        }
    }
    format!("- `{}`: {help}{notes}\n", name(argument))
}

/// Formats an argument as in a shell: `-y, --yes`, `--limit <N>`, `[CRAWL]`.
fn name(argument: &Arg) -> String {
    let short = argument.get_short().map_or_else(String::new, |short| format!("-{short}, "));
    short + &argument.to_string()
}

//! Output for programs.

use serde::Serialize;
use trawl_common::text::escape_json;

/// Prints an object as JSON on one line of standard output, with characters escaped that could harm a terminal.
pub fn print_json(object: &impl Serialize) {
    // Its fields are plain numbers and names, which always serialise.
    if let Ok(line) = serde_json::to_string(object) {
        anstream::println!("{}", escape_json(&line));
    }
}

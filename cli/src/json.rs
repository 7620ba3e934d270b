//! What programs read.

use serde::Serialize;
use trawl_common::text::escape_json;

/// Prints an object as JSON on one line of standard output, harmless to a terminal.
pub fn print_json(object: &impl Serialize) {
    // Plain numbers and names: they always serialise.
    if let Ok(line) = serde_json::to_string(object) {
        anstream::println!("{}", escape_json(&line));
    }
}

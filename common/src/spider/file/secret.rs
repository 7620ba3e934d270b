//! Values that may come from the environment, and that no mistake repeats.

use super::given::Given;
use super::placeholders;
use super::section::Section;
use crate::mistake::Place;
use crate::settings::ServerUrl;
use crate::spider::Secret;
use crate::text::printable;

/// Reads a text, or `{ env = "NAME" }` for the value of a variable.
pub(super) fn secret(given: &Given<'_>) -> Option<Secret> {
    read(given, variable)
}

/// Like [`secret`], for a program, which may use any variable: a program that a worker runs is defined by the
/// worker's own file, unless that was fetched by Git.
pub(super) fn secret_of_program(given: &Given<'_>) -> Option<Secret> {
    match given.notes.is_fetched() {
        true => read(given, variable),
        false => read(given, any_variable),
    }
}

fn read<'a>(
    given: &Given<'a>,
    variable: impl FnOnce(&Given<'a>) -> Option<(Place, &'a str)>,
) -> Option<Secret> {
    if !given.is_table() {
        return Some(Secret::new(given.text()?.value));
    }
    let mut section = Section::from_given(given)?;
    let name = section.need("env", variable);
    section.end();
    let (place, name) = name?;
    given.notes.variable(place, name).map(Secret::new)
}

/// Returns the address of a server, given as a text or by a variable. It is guarded, except where the owner of the
/// machine chose it: the value of a variable, or a text of this machine without arguments.
pub(super) fn server(given: &Given<'_>, url: &Secret) -> ServerUrl {
    let server = ServerUrl::new(url.reveal());
    let has_argument = || given.verbatim().is_some_and(placeholders::is_in);
    let is_own = given.is_table() || given.notes.limits().is_none() && !has_argument();
    if is_own { server } else { server.guarded() }
}

/// Reads the name of an environment variable that the text may use.
pub(super) fn variable<'a>(given: &Given<'a>) -> Option<(Place, &'a str)> {
    let (place, name) = any_variable(given)?;
    match given.notes.limits() {
        // It has none anyway, and is told so if it would send one.
        Some(_) if given.notes.is_tried() => Some((place, name)),
        Some(limits) if !limits.variables.iter().any(|listed| listed == name) => given.wrong(format_args!(
            "a spider that is deployed, or comes with a crawl, may name only the variables that `spiders.variables` \
             of the settings lists, and {} is not among them",
            printable(name, 60)
        )),
        _ => Some((place, name)),
    }
}

/// Reads the name of an environment variable. No argument may choose it.
fn any_variable<'a>(given: &Given<'a>) -> Option<(Place, &'a str)> {
    let name = given.verbatim()?;
    if placeholders::is_in(name) {
        given.wrong("no argument may say which environment variable is read")
    } else if name.trim().is_empty() {
        given.wrong("must not be empty")
    } else if name.contains(['=', '\0']) {
        given.wrong("no environment variable has `=` in its name")
    } else {
        Some((given.place(), name))
    }
}

//! The lists of attacks and their outcomes, compared with the tests that try them. Each package has one,
//! `tests/attacks.md`.

use std::fmt::Write;
use std::path::PathBuf;

/// The attacks of one section.
#[derive(Debug)]
pub struct Section {
    list: PathBuf,
    title: &'static str,
    table: String,
    /// Attacks with an unexpected outcome, one per line.
    wrong: String,
}

impl Section {
    /// Returns the section with this title in the list of a package, without rows. `package` is its folder,
    /// `env!("CARGO_MANIFEST_DIR")`.
    pub fn new(package: &str, title: &'static str) -> Self {
        let list = [package, "tests", "attacks.md"].iter().collect();
        Self { list, title, table: "| attack | gets |\n|---|---|\n".to_owned(), wrong: String::new() }
    }

    /// Adds an attack and its required outcome.
    pub fn row(&mut self, attack: &str, gets: &str) {
        let cell = |text: &str| text.replace('|', "\\|");
        writeln!(self.table, "| {} | {} |", cell(attack), cell(gets)).expect("a string takes all");
    }

    /// Adds an attack and its required outcome `gets`, in the form `class: words`: `got` must begin with the class and
    /// contain the words.
    pub fn tried(&mut self, attack: &str, gets: &str, got: &str) {
        let (class, words) = gets.split_once(": ").expect("it must get a class and words");
        if !got.starts_with(class) || !got.contains(words) {
            writeln!(self.wrong, "{attack}: must get `{gets}`, got `{got}`").expect("a string takes all");
        }
        self.row(attack, gets);
    }

    /// Compares the section with the list.
    ///
    /// # Panics
    /// If an attack had an unexpected outcome, or the list does not have this section with exactly these rows; the
    /// message says what the list should hold.
    pub fn check(&self) {
        assert!(self.wrong.is_empty(), "{}", self.wrong);
        let list = self.list.display();
        let document = std::fs::read_to_string(&self.list).unwrap_or_else(|error| panic!("{list}: {error}"));
        let sections = document.split("\n## ").filter_map(|section| section.split_once('\n'));
        let found = sections.into_iter().find(|(title, _)| title.trim() == self.title);
        let table = found.and_then(|(_, text)| text.find("| attack").map(|start| &text[start..]));
        let is_same = table.is_some_and(|table| table.trim() == self.table.trim());
        assert!(is_same, "{list} should say:\n\n## {}\n\n{}", self.title, self.table);
    }
}

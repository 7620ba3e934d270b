//! The lists of attacks and what they get, held against the tests that try them. Each package has one, `tests/attacks.md`.

use std::fmt::Write;
use std::path::PathBuf;

/// The attacks of one section.
#[derive(Debug)]
pub struct Section {
    list: PathBuf,
    title: &'static str,
    table: String,
    /// What got something else, a line each.
    wrong: String,
}

impl Section {
    /// The section with this title in the list of a package, still without rows. `package` is its folder,
    /// `env!("CARGO_MANIFEST_DIR")`.
    pub fn new(package: &str, title: &'static str) -> Self {
        let list = [package, "tests", "attacks.md"].iter().collect();
        Self { list, title, table: "| attack | gets |\n|---|---|\n".to_owned(), wrong: String::new() }
    }

    /// Adds what was tried, and what it must get.
    pub fn row(&mut self, attack: &str, gets: &str) {
        let cell = |text: &str| text.replace('|', "\\|");
        writeln!(self.table, "| {} | {} |", cell(attack), cell(gets)).expect("a string takes all");
    }

    /// Adds what was tried and what it must get, `class: words`: what it `got` begins with the class and has the words.
    pub fn tried(&mut self, attack: &str, gets: &str, got: &str) {
        let (class, words) = gets.split_once(": ").expect("it must get a class and words");
        if !got.starts_with(class) || !got.contains(words) {
            writeln!(self.wrong, "{attack}: must get `{gets}`, got `{got}`").expect("a string takes all");
        }
        self.row(attack, gets);
    }

    /// Panics if an attack got something else than it must, or unless the list has this section with these very rows,
    /// and says then what it should hold.
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

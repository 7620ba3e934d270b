//! `docs/attacks.md`, which lists attacks and what they get, held against the tests that try them.

use std::fmt::Write;

/// The attacks of one section.
#[derive(Debug)]
pub struct Section {
    title: &'static str,
    table: String,
}

impl Section {
    /// The section with this title, still without rows.
    pub fn new(title: &'static str) -> Self {
        Self { title, table: "| attack | gets |\n|---|---|\n".to_owned() }
    }

    /// Adds what was tried, and what it must get.
    pub fn row(&mut self, attack: &str, gets: &str) {
        let cell = |text: &str| text.replace('|', "\\|");
        writeln!(self.table, "| {} | {} |", cell(attack), cell(gets)).expect("a string takes all");
    }

    /// Panics unless the document has this section with these very rows, and says then what it should hold.
    pub fn check(&self) {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/attacks.md");
        let document = std::fs::read_to_string(file).expect("docs/attacks.md is there");
        let sections = document.split("\n## ").filter_map(|section| section.split_once('\n'));
        let found = sections.into_iter().find(|(title, _)| title.trim() == self.title);
        let table = found.and_then(|(_, text)| text.find("| attack").map(|start| &text[start..]));
        let is_same = table.is_some_and(|table| table.trim() == self.table.trim());
        assert!(is_same, "docs/attacks.md should say:\n\n## {}\n\n{}", self.title, self.table);
    }
}

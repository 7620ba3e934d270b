//! Tables of data. Those that only arrange a page are read as what stands in their cells.

use scraper::ElementRef;

use super::{Base, Inline};

/// Maximum number of columns: a table's first line names each.
const MAX_COLUMNS: usize = 100;

/// Whether a table holds data: several columns, and nothing in its cells that needs lines of its own.
pub(super) fn is_data(table: ElementRef<'_>) -> bool {
    let columns = rows_of(table).map(|row| cells(row).count()).max().unwrap_or_default();
    let has_blocks = || {
        table.descendent_elements().skip(1).any(|element| {
            matches!(
                element.value().name(),
                "table" | "ul" | "ol" | "pre" | "blockquote" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6"
            )
        })
    };
    (2..=MAX_COLUMNS).contains(&columns) && !has_blocks()
}

/// Returns the caption of a table.
pub(super) fn caption(table: ElementRef<'_>) -> Option<ElementRef<'_>> {
    table.child_elements().find(|child| child.value().name() == "caption")
}

/// Returns the lines of a table, the first of which is its head.
pub(super) fn rows(table: ElementRef<'_>, base: &Base<'_>) -> String {
    let columns = rows_of(table).map(|row| cells(row).count()).max().unwrap_or_default();
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines = Vec::new();
    for row in rows_of(table) {
        let mut row: Vec<String> = cells(row).map(|cell| Inline::of_line(cell, base)).collect();
        if row.iter().all(String::is_empty) {
            continue;
        }
        if lines.is_empty() {
            row.resize(columns, String::new());
            lines.extend([line(row), line(vec!["---".to_owned(); columns])]);
        } else {
            lines.push(line(row));
        }
    }
    lines.join("\n")
}

/// Returns the rows of a table.
fn rows_of(table: ElementRef<'_>) -> impl Iterator<Item = ElementRef<'_>> {
    let parts =
        table.child_elements().filter(|child| matches!(child.value().name(), "thead" | "tbody" | "tfoot"));
    parts.flat_map(|part| part.child_elements()).filter(|row| row.value().name() == "tr")
}

/// Returns the cells of a row.
fn cells(row: ElementRef<'_>) -> impl Iterator<Item = ElementRef<'_>> {
    row.child_elements().filter(|cell| matches!(cell.value().name(), "td" | "th"))
}

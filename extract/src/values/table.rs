//! Converts tables to rows.

use std::collections::HashMap;
use std::rc::Rc;

use ego_tree::NodeId;
use scraper::ElementRef;
use serde_json::{Map, Value};
use trawl_common::text::legible;

use crate::document::found::visible_words;
use crate::limits::MAX_TEXT;

/// Maximum number of columns of a table; further cells are left out.
const MAX_COLUMNS: usize = 1000;

/// Returns the rows of a table below its headings, each as an object with the headings as keys. The headings are the
/// rows of `<thead>`, or else the first row if it has only `<th>` cells; several headings of one column are joined in
/// order. A column without heading is named `column 3`, and a repeated heading `price 2`. A cell that spans rows or
/// columns is in each of them.
pub(crate) fn rows(table: ElementRef<'_>) -> impl Iterator<Item = Value> {
    let mut rows = own_rows(table).peekable();
    let mut headings = Vec::new();
    while let Some(row) = rows.next_if(|row| row.is_heading(headings.is_empty())) {
        headings.push(row);
    }
    let mut grid = Grid::default();
    let mut names = rows.peek().map(|_| Names::new(headings.iter().map(|row| grid.row(row)).collect()));
    rows.map(move |row| {
        let cells = grid.row(&row);
        let named = cells.iter().enumerate().filter_map(|(column, text)| {
            let value = text.as_deref().map_or(Value::Null, Value::from);
            Some((names.as_mut()?.of(column).to_owned(), value))
        });
        Value::Object(named.collect::<Map<_, _>>())
    })
}

/// The text of a cell, or `None` if it is empty; shared by all rows and columns that the cell spans.
type Text = Option<Rc<str>>;

struct Row<'a> {
    element: ElementRef<'a>,
    /// The parent: `<thead>`, `<tbody>`, `<tfoot>` or the table.
    group: ElementRef<'a>,
}

impl Row<'_> {
    fn is_heading(&self, is_first: bool) -> bool {
        self.group.value().name() == "thead"
            || is_first && cells(self.element).all(|cell| cell.value().name() == "th")
    }
}

/// Returns the rows with cells that belong to this table and not to a nested one.
fn own_rows(table: ElementRef<'_>) -> impl Iterator<Item = Row<'_>> {
    let is_row =
        |element: &ElementRef<'_>| element.value().name() == "tr" && cells(*element).next().is_some();
    table.child_elements().flat_map(move |child| {
        let own = is_row(&child).then_some(Row { element: child, group: table });
        let is_group = matches!(child.value().name(), "thead" | "tbody" | "tfoot");
        let below = is_group.then(|| child.child_elements().filter(is_row));
        own.into_iter().chain(below.into_iter().flatten().map(move |element| Row { element, group: child }))
    })
}

fn cells(row: ElementRef<'_>) -> impl Iterator<Item = ElementRef<'_>> {
    row.child_elements().filter(|cell| matches!(cell.value().name(), "td" | "th"))
}

/// The cells that span from rows of a group into the next one.
#[derive(Default)]
struct Grid {
    group: Option<NodeId>,
    /// The text and the number of remaining rows by column.
    spans: Vec<Option<(Text, usize)>>,
}

impl Grid {
    /// Returns the texts of a row by column.
    fn row(&mut self, row: &Row<'_>) -> Vec<Text> {
        if self.group.replace(row.group.id()) != Some(row.group.id()) {
            self.spans.clear();
        }
        let mut texts = Vec::new();
        for cell in cells(row.element) {
            self.spanned(&mut texts);
            let text = legible(&visible_words(cell), MAX_TEXT);
            let text: Text = Some(text).filter(|text| !text.is_empty()).map(Rc::from);
            // `rowspan=0` means up to the end of the group.
            let below = span(cell, "rowspan", 65_534).checked_sub(1).unwrap_or(usize::MAX);
            for _ in 0..span(cell, "colspan", MAX_COLUMNS).max(1) {
                if texts.len() >= MAX_COLUMNS {
                    return texts;
                }
                self.keep(texts.len(), &text, below);
                texts.push(text.clone());
            }
        }
        self.spanned(&mut texts);
        texts
    }

    /// Appends the texts of cells above that span into the next columns.
    fn spanned(&mut self, texts: &mut Vec<Text>) {
        while let Some(span) = self.spans.get_mut(texts.len())
            && let Some((text, rows)) = span
        {
            texts.push(text.clone());
            *rows -= 1;
            if *rows == 0 {
                *span = None;
            }
        }
    }

    fn keep(&mut self, column: usize, text: &Text, rows: usize) {
        if rows > 0 {
            if self.spans.len() <= column {
                self.spans.resize(column + 1, None);
            }
            self.spans[column] = Some((text.clone(), rows));
        }
    }
}

/// The names of the columns, created as rows need them.
struct Names {
    headings: Vec<Vec<Text>>,
    names: Vec<String>,
    /// The number of times that each heading occurred.
    counts: HashMap<String, usize>,
}

impl Names {
    fn new(headings: Vec<Vec<Text>>) -> Self {
        Self { headings, names: Vec::new(), counts: HashMap::new() }
    }

    fn of(&mut self, column: usize) -> &str {
        while self.names.len() <= column {
            let name = self.next();
            self.names.push(name);
        }
        &self.names[column]
    }

    fn next(&mut self) -> String {
        let column = self.names.len();
        let mut texts: Vec<&str> =
            self.headings.iter().filter_map(|row| row.get(column)?.as_deref()).collect();
        texts.dedup();
        let heading = if texts.is_empty() { format!("column {}", column + 1) } else { texts.join(" ") };
        let heading = legible(&heading, MAX_TEXT);
        let mut name = heading.clone();
        // A heading may equal a numbered one.
        while self.counts.contains_key(&name) {
            let count = self.counts.entry(heading.clone()).or_default();
            *count += 1;
            name = format!("{heading} {count}");
        }
        self.counts.insert(name.clone(), 1);
        name
    }
}

/// Returns a number of columns or rows, bounded as in the HTML standard.
fn span(cell: ElementRef<'_>, name: &str, max: usize) -> usize {
    cell.attr(name).and_then(|number| number.trim().parse().ok()).map_or(1, |number: usize| number.min(max))
}

#[cfg(test)]
mod tests {
    use scraper::{Html, Selector};
    use serde_json::json;

    use super::*;

    fn of(table: &str) -> Value {
        let document = Html::parse_document(&format!("<table>{table}</table>"));
        let selector = Selector::parse("table").unwrap();
        rows(document.select(&selector).next().unwrap()).collect()
    }

    #[test]
    fn rows_are_objects_by_heading() {
        let rows = json!([{"Name": "a", "Price": "1"}, {"Name": "b", "Price": null}]);
        let body = "<tr><td>a<td>1<tr><td> b <td>";
        assert_eq!(of(&format!("<tr><th>Name<th>Price{body}")), rows);
        assert_eq!(of(&format!("<thead><tr><td>Name<td>Price<tbody>{body}")), rows);
        let nested = "<tr><th>a<tr><td>1<table><tr><th>b<tr><td>2</table>";
        assert_eq!(of(nested), json!([{"a": "1 b 2"}]));
    }

    #[test]
    fn columns_without_a_heading_of_their_own_have_a_number() {
        assert_eq!(of("<tr><td>1<td>2"), json!([{"column 1": "1", "column 2": "2"}]));
        assert_eq!(
            of("<tr><th>a<th><th>a<tr><td>1<td>2<td>3<td>4"),
            json!([
                {"a": "1", "column 2": "2", "a 2": "3", "column 4": "4"}
            ])
        );
        assert_eq!(
            of("<tr><th>a<td>1<tr><th>b<td>2"),
            json!([
                {"column 1": "a", "column 2": "1"}, {"column 1": "b", "column 2": "2"}
            ])
        );
    }

    #[test]
    fn what_spans_is_in_every_row_and_column() {
        let headings = "<thead><tr><th rowspan=2>Day<th colspan=2>Price<tr><th>net<th>gross<tbody>";
        let rows = "<tr><td rowspan=2>Mon<td>1<td>2<tr><td colspan=2>3<tr><td>Tue<td>4<td>5";
        assert_eq!(
            of(&format!("{headings}{rows}")),
            json!([
                {"Day": "Mon", "Price net": "1", "Price gross": "2"},
                {"Day": "Mon", "Price net": "3", "Price gross": "3"},
                {"Day": "Tue", "Price net": "4", "Price gross": "5"},
            ])
        );
    }

    #[test]
    fn a_span_beyond_all_sense_is_bounded() {
        let rows = of("<tr><td colspan=1000000 rowspan=1000000>x<td>y<tr><td>z");
        assert_eq!(rows[0].as_object().unwrap().len(), MAX_COLUMNS);
    }
}

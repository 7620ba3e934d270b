//! The main part of a page as Markdown: [CommonMark](https://spec.commonmark.org/0.31.2/) with the tables and
//! strikethrough of [GitHub's](https://github.github.com/gfm/). Links and images have absolute URLs.

mod inline;
mod table;

use scraper::ElementRef;

use self::inline::Inline;
use crate::document::base::Base;
use crate::document::found::is_inline;
use crate::limits::MAX_TEXT;
use crate::values::main_text::{self, is_aside};

/// Maximum number of bytes before the text of a line: quotes and lists beyond it are not marked.
const MAX_PREFIX: usize = 64;

/// Returns the main part of a page as Markdown.
pub(crate) fn markdown(root: ElementRef<'_>, base: &Base<'_>) -> String {
    let mut writer =
        Writer { base, text: String::new(), prefix: String::new(), marker: None, due: Break::None };
    writer.block(main_text::main(root));
    writer.text
}

/// Writes blocks. The recursion is as deep as the tree, which is bounded.
struct Writer<'a> {
    base: &'a Base<'a>,
    text: String,
    /// The beginning of each line: the marks of quotes, and the indentation of lists.
    prefix: String,
    /// The mark of a list's item whose text has not begun. It stands in place of the end of the prefix.
    marker: Option<String>,
    due: Break,
}

/// The break before the next block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Break {
    None,
    Line,
    Paragraph,
}

impl Writer<'_> {
    fn block(&mut self, element: ElementRef<'_>) {
        if is_aside(element) || self.text.len() > MAX_TEXT {
            return;
        }
        match element.value().name() {
            name @ ("h1" | "h2" | "h3" | "h4" | "h5" | "h6") => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                let title = Inline::of_line(element, self.base);
                if !title.is_empty() {
                    self.lines(&format!("{} {title}", "#".repeat(level)));
                }
            }
            "p" => {
                self.begin(Break::Paragraph);
                self.flow(element);
                self.begin(Break::Paragraph);
            }
            "ul" | "menu" | "dir" => self.list(element, None),
            "ol" => {
                let start = element.attr("start").and_then(|start| start.trim().parse().ok());
                self.list(element, Some(start.unwrap_or(1)));
            }
            "blockquote" => self.within("> ", None, element),
            "pre" => self.code(element),
            "hr" => self.lines("---"),
            "table" if table::is_data(element) => {
                if let Some(caption) = table::caption(element) {
                    self.lines(&inline::escape_line(&Inline::of_line(caption, self.base)));
                }
                self.lines(&table::rows(element, self.base));
            }
            "dt" => {
                let term = Inline::of_line(element, self.base);
                if !term.is_empty() {
                    self.lines(&format!("**{term}**"));
                }
            }
            _ => self.flow(element),
        }
    }

    /// Writes the children of an element: blocks, and paragraphs of what stands between them.
    fn flow(&mut self, element: ElementRef<'_>) {
        let mut paragraph = Inline::new(self.base);
        for child in element.children() {
            match ElementRef::wrap(child) {
                Some(child) if !inline::is_part(child) => {
                    self.paragraph(std::mem::replace(&mut paragraph, Inline::new(self.base)));
                    self.begin(Break::Paragraph);
                    self.block(child);
                    self.begin(Break::Paragraph);
                }
                _ => paragraph.node(child),
            }
        }
        self.paragraph(paragraph);
    }

    fn paragraph(&mut self, paragraph: Inline<'_>) {
        if !paragraph.text.is_empty() {
            let lines: Vec<String> = paragraph.text.lines().map(inline::escape_line).collect();
            self.write(&lines.join("\n"));
        }
    }

    /// Writes the items of a list, from number `first` on if they are numbered.
    fn list(&mut self, list: ElementRef<'_>, first: Option<u32>) {
        // A list in an item stands close to its text.
        let around = if self.prefix.is_empty() { Break::Paragraph } else { Break::Line };
        self.due = self.due.min(around);
        self.begin(around);
        let mut number = first;
        for item in list.child_elements().filter(|item| !is_aside(*item)) {
            let marker = number.map_or("- ".to_owned(), |number| format!("{number}. "));
            self.within(&" ".repeat(marker.len()), Some(marker), item);
            number = number.map(|number| number.saturating_add(1));
            self.due = Break::Line;
        }
        self.begin(around);
    }

    /// Writes an element whose lines begin with `prefix`, the first one with `marker` if there is one.
    fn within(&mut self, prefix: &str, marker: Option<String>, element: ElementRef<'_>) {
        if self.prefix.len() + prefix.len() > MAX_PREFIX {
            return self.flow(element);
        }
        if self.marker.is_some() {
            self.write("");
        }
        if marker.is_none() {
            self.begin(Break::Paragraph);
            self.open();
        }
        let outer = self.prefix.len();
        self.prefix.push_str(prefix);
        self.marker = marker;
        self.flow(element);
        self.marker = None;
        self.prefix.truncate(outer);
        self.begin(Break::Paragraph);
    }

    /// Writes a block of code as it stands.
    fn code(&mut self, element: ElementRef<'_>) {
        let code: String = element.text().collect();
        let code = code.trim_matches('\n').trim_end();
        if code.is_empty() {
            return;
        }
        let fence = "`".repeat(inline::longest_run(code, '`').max(2) + 1);
        let inner = element.child_elements().find(|child| child.value().name() == "code");
        let language = [Some(element), inner].into_iter().flatten().find_map(language).unwrap_or_default();
        self.lines(&format!("{fence}{language}\n{code}\n{fence}"));
    }

    /// Writes a block of its own.
    fn lines(&mut self, block: &str) {
        self.begin(Break::Paragraph);
        self.write(block);
        self.begin(Break::Paragraph);
    }

    /// Puts at least this break before the next block, unless that begins an item.
    fn begin(&mut self, least: Break) {
        if self.marker.is_none() {
            self.due = self.due.max(least);
        }
    }

    /// Ends the last block.
    fn open(&mut self) {
        let due = std::mem::replace(&mut self.due, Break::None);
        if self.text.is_empty() || due == Break::None {
            return;
        }
        self.text.push('\n');
        if due == Break::Paragraph {
            self.text.push_str(self.prefix.trim_end());
            self.text.push('\n');
        }
    }

    /// Writes the lines of a block.
    fn write(&mut self, block: &str) {
        self.open();
        let marker = self.marker.take();
        for (number, line) in block.split('\n').enumerate() {
            if number > 0 {
                self.text.push('\n');
            }
            let prefix = match &marker {
                Some(marker) if number == 0 => {
                    let outer = self.prefix.len() - marker.len();
                    format!("{}{marker}", &self.prefix[..outer])
                }
                _ => self.prefix.clone(),
            };
            let prefix = if line.is_empty() { prefix.trim_end() } else { &prefix };
            self.text.push_str(prefix);
            self.text.push_str(line);
        }
        self.due = Break::Line;
    }
}

/// Returns the language of code, as highlighters name it in a class.
fn language(element: ElementRef<'_>) -> Option<&str> {
    let name = element
        .value()
        .classes()
        .find_map(|class| class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-")))?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "+#-_.".contains(c);
    Some(name).filter(|name| name.len() <= 32 && name.chars().all(is_name))
}

#[cfg(test)]
mod tests;

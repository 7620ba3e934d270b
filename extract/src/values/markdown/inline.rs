//! Text within a line, with its links, images, emphasis and code.

use ego_tree::NodeRef;
use scraper::{ElementRef, Node};

use super::{Base, is_aside, is_inline};
use crate::limits::MAX_TEXT;

/// The text of a paragraph, a heading or a cell.
pub(super) struct Inline<'a> {
    base: &'a Base<'a>,
    /// The text so far, without white space around it.
    pub(super) text: String,
    /// The gap before the first word, and before the next one.
    first_gap: Gap,
    gap: Gap,
    /// Whether the text has to stay on one line.
    is_line: bool,
    /// The open marks, which are not repeated within themselves.
    open: Vec<&'static str>,
    has_link: bool,
}

/// The gap between two words.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
}

/// Whether an element is a part of a paragraph.
pub(super) fn is_part(element: ElementRef<'_>) -> bool {
    let name = element.value().name();
    is_inline(name) || matches!(name, "br" | "img" | "picture")
}

impl<'a> Inline<'a> {
    pub(super) fn new(base: &'a Base<'a>) -> Self {
        let (text, first_gap, gap, open) = Default::default();
        Self { base, text, first_gap, gap, is_line: false, open, has_link: false }
    }

    /// Returns the text of an element on one line.
    pub(super) fn of_line(element: ElementRef<'_>, base: &'a Base<'a>) -> String {
        let mut inline = Self { is_line: true, ..Self::new(base) };
        inline.children(element);
        inline.text
    }

    pub(super) fn node(&mut self, node: NodeRef<'_, Node>) {
        if self.text.len() > MAX_TEXT {
            return;
        }
        match (node.value(), ElementRef::wrap(node)) {
            (Node::Text(piece), _) => self.words(piece),
            (_, Some(element)) if !is_aside(element) => self.element(element),
            _ => {}
        }
    }

    fn children(&mut self, element: ElementRef<'_>) {
        element.children().for_each(|child| self.node(child));
    }

    fn element(&mut self, element: ElementRef<'_>) {
        match element.value().name() {
            "br" => self.part(if self.is_line { Gap::Space } else { Gap::Line }),
            "img" => self.image(element),
            "a" if !self.has_link => self.link(element),
            "em" | "i" | "cite" | "dfn" | "var" => self.marked("*", element),
            "strong" | "b" => self.marked("**", element),
            "del" | "s" | "strike" => self.marked("~~", element),
            "code" | "kbd" | "samp" | "tt" => self.code(element),
            _ if is_part(element) => self.children(element),
            // A block within a paragraph stands apart.
            _ => {
                self.part(Gap::Space);
                self.children(element);
                self.part(Gap::Space);
            }
        }
    }

    fn marked(&mut self, mark: &'static str, element: ElementRef<'_>) {
        if self.open.contains(&mark) {
            return self.children(element);
        }
        self.open.push(mark);
        self.around(element, |inner| format!("{mark}{inner}{mark}"));
        self.open.pop();
    }

    fn link(&mut self, element: ElementRef<'_>) {
        let link = element.attr("href").and_then(|href| self.base.resolve(href));
        let Some(link) = link.filter(|link| !is_embedded(link)) else { return self.children(element) };
        self.has_link = true;
        self.around(element, |inner| format!("[{inner}]({})", escape_url(&link)));
        self.has_link = false;
    }

    fn image(&mut self, element: ElementRef<'_>) {
        let link = element.attr("src").and_then(|src| self.base.resolve(src));
        let Some(link) = link.filter(|link| !is_embedded(link)) else { return };
        let mut alternative = Inline { is_line: true, ..Self::new(self.base) };
        alternative.words(element.attr("alt").unwrap_or_default());
        self.push(&format!("![{}]({})", alternative.text, escape_url(&link)));
    }

    fn code(&mut self, element: ElementRef<'_>) {
        let text: String = element.text().collect();
        let code = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.part_if(text.starts_with(char::is_whitespace));
        if code.is_empty() {
            return;
        }
        let mark = "`".repeat(longest_run(&code, '`') + 1);
        let space = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
        self.push(&format!("{mark}{space}{code}{space}{mark}"));
        self.part_if(text.ends_with(char::is_whitespace));
    }

    /// Adds the text in an element with marks around it. The gaps at its ends are outside the marks.
    fn around(&mut self, element: ElementRef<'_>, mark: impl FnOnce(&str) -> String) {
        let open = std::mem::take(&mut self.open);
        let mut inner = Self { is_line: self.is_line, open, has_link: self.has_link, ..Self::new(self.base) };
        inner.children(element);
        self.open = inner.open;
        self.part(inner.first_gap);
        if !inner.text.is_empty() {
            self.push(&mark(&inner.text));
        }
        self.part(inner.gap);
    }

    /// Adds a text as it stands, after the gap that is due.
    fn push(&mut self, piece: &str) {
        let gap = std::mem::take(&mut self.gap);
        match gap {
            _ if self.text.is_empty() => self.first_gap = gap,
            Gap::None => {}
            Gap::Space => self.text.push(' '),
            Gap::Line => self.text.push_str("\\\n"),
        }
        self.text.push_str(piece);
    }

    /// Puts at least this gap before the next word.
    fn part(&mut self, least: Gap) {
        self.gap = self.gap.max(least);
    }

    fn part_if(&mut self, is_space: bool) {
        self.part(if is_space { Gap::Space } else { Gap::None });
    }

    /// Adds the words of a text.
    fn words(&mut self, text: &str) {
        self.part_if(text.starts_with(char::is_whitespace));
        for (number, word) in text.split_whitespace().enumerate() {
            self.part_if(number > 0);
            self.push(&escape(word));
        }
        self.part_if(text.ends_with(char::is_whitespace));
    }
}

/// Whether a URL carries its content, or a script, in itself.
fn is_embedded(link: &str) -> bool {
    ["data:", "javascript:", "blob:"].iter().any(|scheme| link.starts_with(scheme))
}

/// Returns a URL as the target of a link.
fn escape_url(url: &str) -> String {
    let escape = |c: char| if matches!(c, '(' | ')' | '\\' | '<' | '>') { Some('\\') } else { None };
    url.chars().flat_map(|c| escape(c).into_iter().chain([if c == ' ' { '+' } else { c }])).collect()
}

/// Returns a word without the meaning that its characters have in Markdown.
fn escape(word: &str) -> String {
    let mut escaped = String::with_capacity(word.len());
    let mut before = None;
    let mut rest = word.chars().peekable();
    while let Some(c) = rest.next() {
        let is_within =
            before.is_some_and(char::is_alphanumeric) && rest.peek().is_some_and(|c| c.is_alphanumeric());
        let has_meaning = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '|' | '~' => true,
            '_' => !is_within,
            '&' => rest.peek().is_some_and(|c| c.is_ascii_alphanumeric() || *c == '#'),
            _ => false,
        };
        if has_meaning {
            escaped.push('\\');
        }
        escaped.push(c);
        before = Some(c);
    }
    escaped
}

/// Returns a line of a paragraph without the meaning that its beginning has in Markdown.
pub(super) fn escape_line(line: &str) -> String {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - rest.len();
    if (1..10).contains(&digits) && rest.starts_with(['.', ')']) {
        return format!("{}\\{rest}", &line[..digits]);
    }
    if line.starts_with(['#', '>', '+', '-', '=']) { format!("\\{line}") } else { line.to_owned() }
}

/// Returns the length of the longest run of a character.
pub(super) fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or_default()
}

//! Values as they are found, before conversion to the type of a field.

use std::borrow::Cow;
use std::io::{self, Write};

use ego_tree::NodeRef;
use ego_tree::iter::Edge;
use html5ever::serialize::{SerializeOpts, TraversalScope, serialize};
use scraper::{ElementRef, Node};
use serde_json::Value;
use trawl_common::text::legible;

use crate::limits::MAX_TEXT;

/// Number of bytes read of an element's text: elements may be nested, and each would be read whole.
const MAX_READ: usize = 1 << 20;

/// One value as it appears in a response.
#[derive(Clone, Debug)]
pub(crate) enum Found<'a> {
    /// A text, or the value of an attribute or a header.
    Text(Cow<'a, str>),
    /// An element.
    Element(ElementRef<'a>),
    /// A JSON value, or structured data of the same shape.
    Json(Cow<'a, Value>),
}

impl<'a> Found<'a> {
    /// Creates a value from a text of the response.
    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Formats the value as text for people.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Element(element) => legible(&visible_words(*element), MAX_TEXT).into(),
            Self::Json(value) => value.as_str().map_or_else(|| value.to_string().into(), Cow::Borrowed),
        }
    }
}

/// Whether the content of an element with this name is invisible to readers.
pub(crate) fn is_hidden(name: &str) -> bool {
    matches!(name, "script" | "style" | "noscript" | "template")
}

/// Returns the visible text of an element as it stands in the page.
pub(crate) fn visible_text(element: ElementRef<'_>) -> String {
    let mut text = String::new();
    for node in element.descendants() {
        let Some(piece) = node.value().as_text() else { continue };
        let parent = node.parent().and_then(|parent| Some(parent.value().as_element()?.name()));
        if !parent.is_some_and(is_hidden) {
            text.push_str(piece);
        }
        if text.len() > MAX_READ {
            break;
        }
    }
    text
}

/// The text of an element that a reader sees, with a line break where a block or `<br>` begins another line, an empty
/// line between paragraphs, and the lines of `<pre>` and `<textarea>` as they are. White space within a line, and empty
/// lines beyond that, are for the caller to leave out.
pub(crate) fn visible_lines(element: ElementRef<'_>) -> String {
    Lines::default().of(element)
}

/// Returns the text of an element that a reader sees, likewise, but with all white space of the page: what stands on
/// several lines is several words.
pub(crate) fn visible_words(element: ElementRef<'_>) -> String {
    Lines { preformatted: 1, ..Lines::default() }.of(element)
}

impl Lines {
    /// Returns the lines of an element.
    fn of(self, element: ElementRef<'_>) -> String {
        let mut lines = self;
        for edge in element.traverse() {
            if lines.text.len() > MAX_READ {
                break;
            }
            match edge {
                Edge::Open(node) if is_preformatted(node) => {
                    lines.preformatted += 1;
                    lines.begin(breaks_around(node));
                }
                Edge::Close(node) if is_preformatted(node) => {
                    lines.preformatted -= 1;
                    lines.begin(breaks_around(node));
                }
                Edge::Open(node) => match node.value() {
                    Node::Text(piece) if !lines.is_hidden(node.parent()) => lines.write(piece),
                    Node::Element(element) if element.name() == "br" => lines.text.push('\n'),
                    Node::Element(element) if matches!(element.name(), "td" | "th") => lines.text.push('\t'),
                    Node::Element(element) => lines.begin(breaks(element.name())),
                    _ => {}
                },
                Edge::Close(node) => lines.begin(breaks_around(node)),
            }
        }
        lines.text
    }
}

/// Collects a text with its lines.
#[derive(Default)]
struct Lines {
    text: String,
    /// The number of line breaks before the next text.
    due: usize,
    /// The number of open elements whose line breaks count.
    preformatted: usize,
}

impl Lines {
    fn is_hidden(&self, parent: Option<NodeRef<'_, Node>>) -> bool {
        parent.and_then(|parent| Some(parent.value().as_element()?.name())).is_some_and(is_hidden)
    }

    /// Puts at least `breaks` line breaks before the next text.
    fn begin(&mut self, breaks: usize) {
        self.due = self.due.max(breaks);
    }

    /// Writes a text, whose own line breaks are spaces unless it is preformatted.
    fn write(&mut self, piece: &str) {
        if !piece.trim().is_empty() {
            self.text.extend(std::iter::repeat_n('\n', std::mem::take(&mut self.due)));
        }
        match self.preformatted {
            0 => self.text.extend(piece.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c })),
            _ => self.text.push_str(piece),
        }
    }
}

/// Whether a node is an element whose line breaks a reader sees.
fn is_preformatted(node: NodeRef<'_, Node>) -> bool {
    node.value().as_element().is_some_and(|element| matches!(element.name(), "pre" | "textarea"))
}

/// The number of line breaks around a node.
fn breaks_around(node: NodeRef<'_, Node>) -> usize {
    node.value().as_element().map_or(0, |element| breaks(element.name()))
}

/// The number of line breaks around an element of this name.
fn breaks(name: &str) -> usize {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "ul" | "ol" | "dl" | "blockquote" | "pre"
        | "table" => 2,
        _ => usize::from(is_block(name)),
    }
}

/// Whether browsers begin a new line for an element with this name.
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "body"
            | "caption"
            | "center"
            | "dd"
            | "details"
            | "dialog"
            | "dir"
            | "div"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "head"
            | "header"
            | "hgroup"
            | "hr"
            | "html"
            | "legend"
            | "li"
            | "listing"
            | "main"
            | "menu"
            | "nav"
            | "optgroup"
            | "option"
            | "plaintext"
            | "search"
            | "section"
            | "summary"
            | "tbody"
            | "tfoot"
            | "thead"
            | "title"
            | "tr"
            | "xmp"
    )
}

/// Whether an element with this name is part of a sentence, for the main text of a page.
pub(crate) fn is_inline(name: &str) -> bool {
    matches!(
        name,
        "a" | "abbr"
            | "b"
            | "bdi"
            | "bdo"
            | "big"
            | "cite"
            | "code"
            | "data"
            | "del"
            | "dfn"
            | "em"
            | "font"
            | "i"
            | "ins"
            | "kbd"
            | "mark"
            | "q"
            | "s"
            | "samp"
            | "small"
            | "span"
            | "strike"
            | "strong"
            | "sub"
            | "sup"
            | "time"
            | "tt"
            | "u"
            | "var"
            | "wbr"
    )
}

/// Returns the HTML of an element, including its own tags; only the beginning of a long one.
pub(crate) fn outer_html(element: ElementRef<'_>) -> String {
    let mut html = Beginning(Vec::new());
    let options = SerializeOpts {
        scripting_enabled: true,
        traversal_scope: TraversalScope::IncludeNode,
        create_missing_parent: false,
    };
    // It fails once there is enough.
    let _ = serialize(&mut html, &element, options);
    String::from_utf8_lossy(&html.0).into_owned()
}

/// Takes twice the size that a field can hold, because at most half of it is dropped later.
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() > 2 * MAX_TEXT {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use scraper::Html;

    use super::*;

    #[test]
    fn lines_are_as_a_reader_sees_them() {
        for (html, lines) in [
            ("<p>One\nline</p><p>two</p>", "One line\n\ntwo"),
            ("<div>a<div><div>b</div></div>c</div>", "a\nb\nc"),
            ("a<br>b<br><br>c", "a\nb\n\nc"),
            ("<ul><li>a</li><li><b>b</b> <i>c</i></li></ul>d", "a\nb c\n\nd"),
            ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
            ("<pre>a\n<b>b</b>\n\nc\n</pre>d\ne", "a\nb\n\nc\n\nd e"),
            ("a <textarea>b\nc</textarea> d", "a b\nc d"),
            ("a<script>x</script><style>y</style><span> b</span>", "a b"),
            ("<my-price>12</my-price><sup>50</sup>", "1250"),
        ] {
            let page = Html::parse_document(html);
            let text = visible_lines(page.root_element());
            let text: Vec<String> = text.trim().lines().map(|line| legible(line, 99)).collect();
            assert_eq!(text.join("\n").replace("\n\n\n", "\n\n"), lines, "{html}");
            let words = lines.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(legible(&visible_words(page.root_element()), 99), words, "{html}");
        }
    }
}

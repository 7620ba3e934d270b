//! Values as they are found, before they become what a field says.

use std::borrow::Cow;
use std::io::{self, Write};

use html5ever::serialize::{SerializeOpts, TraversalScope, serialize};
use scraper::ElementRef;
use serde_json::Value;

use crate::limits::MAX_TEXT;

/// How much of an element's text is read: elements may lie in each other, and each would be read whole.
const MAX_READ: usize = 1 << 20;

/// One value as it stands in a response.
#[derive(Clone, Debug)]
pub(crate) enum Found<'a> {
    /// A text, or the value of an attribute or a header.
    Text(Cow<'a, str>),
    /// An element.
    Element(ElementRef<'a>),
    /// A value of JSON, or what has the same shape.
    Json(Cow<'a, Value>),
}

impl<'a> Found<'a> {
    /// A text of the response.
    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

/// Whether what stands in an element of this name is not for readers.
pub(crate) fn is_hidden(name: &str) -> bool {
    matches!(name, "script" | "style" | "noscript" | "template")
}

/// The text of an element that a reader sees.
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

/// The HTML of an element, itself included; of a long one, the beginning.
pub(crate) fn outer_html(element: ElementRef<'_>) -> String {
    let mut html = Beginning(Vec::new());
    let options = SerializeOpts {
        scripting_enabled: true,
        traversal_scope: TraversalScope::IncludeNode,
        create_missing_parent: false,
    };
    // It fails when there is enough.
    let _ = serialize(&mut html, &element, options);
    String::from_utf8_lossy(&html.0).into_owned()
}

/// Takes twice what a field can hold: what is dropped of it later is no more than that.
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

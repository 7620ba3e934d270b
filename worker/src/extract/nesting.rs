//! A look at a page before a tree is built of it.
//!
//! Tree construction takes time quadratic in the number of open elements, and in the attributes of one
//! tag: a megabyte of `<div>` keeps it busy for half a minute. Pages that people read stay far below
//! these limits. The count of open elements is an estimate, as only the tree builder knows them all: markup
//! made for the purpose can hide some, so a caller does well to parse off the threads that serve others.

use trawl_common::outcome::{Class, Failure};

use super::markup::{Tag, Tags, is_one_of};

/// The most elements that may be open at once.
const MAX_OPEN: usize = 512;
/// The most attributes that one tag may have.
const MAX_ATTRIBUTES: usize = 256;

/// Elements without an end tag.
const VOID: &[&str] = &[
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "image", "img", "input",
    "keygen", "link", "meta", "param", "source", "track", "wbr",
];
/// Elements that hold text and no markup, except in SVG and MathML.
const TEXT_ONLY: &[&str] =
    &["script", "style", "title", "textarea", "iframe", "noembed", "noframes", "noscript", "xmp"];
/// Elements that are opened again, after the one around them was closed, until their own end tag.
const FORMATTING: &[&str] =
    &["b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
/// Elements whose end tag may be left out, each with those that its start tag ends.
const ENDED_BY_START: &[(&[&str], &[&str])] = &[
    (&["a"], &["a"]),
    (&["p"], &["p"]),
    (&["li"], &["li", "p"]),
    (&["dd", "dt"], &["dd", "dt", "p"]),
    (&["option", "optgroup"], &["option"]),
    (&["td", "th"], &["td", "th", "p"]),
    (&["tr"], &["tr", "td", "th", "p"]),
    (&["tbody", "thead", "tfoot"], &["tbody", "thead", "tfoot", "tr", "td", "th", "p"]),
];

/// Refuses a page that would keep the tree builder busy.
pub(super) fn check(html: &str) -> Result<(), Failure> {
    let mut tags = Tags::new(html.as_bytes());
    let mut open = OpenElements::default();
    while let Some(tag) = tags.next() {
        if tag.attributes.clone().nth(MAX_ATTRIBUTES).is_some() {
            return Err(refusal(MAX_ATTRIBUTES, "attributes in one tag"));
        }
        if tag.is_end {
            open.end(tag.name);
        } else if open.start(&tag) && is_one_of(tag.name, TEXT_ONLY) && !open.is_foreign() {
            tags.skip_text_of(tag.name);
        }
        if open.count() > MAX_OPEN {
            return Err(refusal(MAX_OPEN, "open elements"));
        }
    }
    Ok(())
}

fn refusal(limit: usize, what: &str) -> Failure {
    Failure::new(Class::Parse, format_args!("more than {limit} {what}"))
}

/// The names of the elements that are open.
#[derive(Default)]
struct OpenElements<'a> {
    /// Each within the one before.
    nested: Vec<&'a [u8]>,
    /// Those that wait to be opened again.
    suspended: Vec<&'a [u8]>,
}

impl<'a> OpenElements<'a> {
    /// Opens the element of `tag`, unless it can have no content.
    fn start(&mut self, tag: &Tag<'a>) -> bool {
        if is_one_of(tag.name, VOID) || tag.is_self_closing() && self.is_foreign() {
            return false;
        }
        let ends = ENDED_BY_START
            .iter()
            .find(|(starts, _)| is_one_of(tag.name, starts))
            .map_or(&[][..], |(_, ends)| ends);
        while self.nested.last().is_some_and(|open| is_one_of(open, ends)) {
            self.nested.pop();
        }
        self.nested.push(tag.name);
        true
    }

    fn end(&mut self, name: &[u8]) {
        let is_same = |open: &&[u8]| open.eq_ignore_ascii_case(name);
        if let Some(index) = self.nested.iter().rposition(is_same) {
            let ended = self.nested.drain(index..).skip(1);
            self.suspended.extend(ended.filter(|name| is_one_of(name, FORMATTING)));
        } else if let Some(index) = self.suspended.iter().rposition(is_same) {
            self.suspended.remove(index);
        }
    }

    fn count(&self) -> usize {
        self.nested.len() + self.suspended.len()
    }

    /// Whether this is inside of SVG or MathML.
    fn is_foreign(&self) -> bool {
        self.nested.iter().any(|open| is_one_of(open, &["svg", "math"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(html: &str) -> String {
        check(html).map_or_else(|failure| failure.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert_eq!(detail(&"<div>".repeat(512)), "fine");
        assert_eq!(detail(&"<div>".repeat(513)), "parse: more than 512 open elements");
        assert_eq!(detail(&"<x-y a=b>text".repeat(600)), "parse: more than 512 open elements");
        assert_eq!(detail(&"<ul><li>".repeat(300)), "parse: more than 512 open elements");
        assert_eq!(
            detail(&format!("<svg><style>{}", "<g>".repeat(600))),
            "parse: more than 512 open elements"
        );
    }

    #[test]
    fn a_tag_with_very_many_attributes_is_refused() {
        let tag = |attributes| format!("<p {}>", "a='b' ".repeat(attributes));
        assert_eq!(detail(&tag(256)), "fine");
        assert_eq!(detail(&tag(257)), "parse: more than 256 attributes in one tag");
    }

    #[test]
    fn long_pages_that_leave_out_end_tags_are_fine() {
        for part in [
            "<p>text",
            "<a name=x>",
            "<p><b>a</p></b>",
            "<br>",
            "<p>a<ul><li>b<li>c</ul>",
            "<dl><dt>a<dd>b</dl>",
            "<select><option>a<option>b</select>",
            "<table><tr><td>a<td>b<tr><td><p>c</table>",
            "<svg><path d='x'/></svg>",
            "<DIV></div>",
            "</b>",
            "<script>'<div>'</script>",
            "<!-- <div> -->",
        ] {
            assert_eq!(detail(&part.repeat(600)), "fine", "{part}");
        }
    }
}

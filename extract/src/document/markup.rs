//! The tags of an HTML text, as the HTML standard delimits them (section 13.2.5), in linear time and without building a
//! tree.

use std::borrow::Cow;

/// One start or end tag.
#[derive(Debug)]
pub(crate) struct Tag<'a> {
    /// The name as written.
    pub(crate) name: &'a [u8],
    /// The length of the text from its `<` on.
    pub(crate) left: usize,
    /// Whether it is an end tag.
    pub(crate) is_end: bool,
    /// Whether the tag is complete.
    pub(crate) is_whole: bool,
    /// Everything after the name, up to `>`.
    pub(crate) attributes: Attributes<'a>,
}

/// Whether `name` is among `names`, ignoring case.
pub(crate) fn is_one_of(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()))
}

/// Reads the tags of a text one after the other, leaving out comments, and what the HTML standard reads as one: `<?`,
/// `<!` and `</` up to the next `>`.
pub(crate) struct Tags<'a>(&'a [u8]);

impl<'a> Tags<'a> {
    /// Returns the tags of `text`.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self(text)
    }

    /// Returns the text after the last tag.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Skips the text of an element in which no tag counts but its own end tag, such as `<script>`; after `<plaintext>`
    /// not even that does.
    pub(crate) fn skip_text(&mut self, name: &[u8]) {
        if is_one_of(name, &["plaintext"]) {
            self.0 = &[];
        }
        loop {
            self.0 = from_first(self.0, b'<');
            match self.0 {
                [b'<', b'/', rest @ ..]
                    if rest.get(..name.len()).is_some_and(|end| end.eq_ignore_ascii_case(name))
                        && rest.get(name.len()).is_none_or(|c| ends_name(*c)) =>
                {
                    return;
                }
                [_, rest @ ..] => self.0 = rest,
                [] => return,
            }
        }
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let text = from_first(self.0, b'<');
            self.0 = text.get(1..)?;
            if let Some(comment) = self.0.strip_prefix(b"!--") {
                self.0 = after_comment(comment);
                continue;
            }
            let is_end = self.0.starts_with(b"/");
            let tag = &self.0[usize::from(is_end)..];
            if !tag.first().is_some_and(u8::is_ascii_alphabetic) {
                // Without a `>` that ends it, the rest is a comment.
                if is_end && !tag.is_empty() || self.0.starts_with(b"?") || self.0.starts_with(b"!") {
                    self.0 = from_first(self.0, b'>');
                }
                continue;
            }
            let (name, rest) = split_where(tag, ends_name);
            let mut end = Attributes(rest);
            end.by_ref().for_each(drop);
            self.0 = end.0;
            let is_whole = !end.0.is_empty();
            return Some(Tag {
                name,
                left: text.len(),
                is_end,
                is_whole,
                attributes: Attributes(&rest[..rest.len() - end.0.len()]),
            });
        }
    }
}

/// Elements in whose text only their own end tag is a tag.
pub(crate) const RAW_TEXT: &[&str] =
    &["script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp", "plaintext"];

/// Returns a page without the content of its `<template>` elements, which is not displayed unless a script uses it. The
/// content of a declarative shadow root is displayed, so it is kept.
pub(crate) fn without_templates(html: &str) -> Cow<'_, str> {
    const NAME: &[&str] = &["template"];
    let bytes = html.as_bytes();
    let may_start =
        |at: usize| bytes[at + 1..].get(..8).is_some_and(|name| name.eq_ignore_ascii_case(b"template"));
    if !memchr::memchr_iter(b'<', bytes).any(may_start) {
        return Cow::Borrowed(html);
    }
    let (mut kept, mut from, mut depth) = (String::new(), 0, 0_usize);
    let mut tags = Tags::new(bytes);
    while let Some(tag) = tags.next() {
        let end = html.len() - tags.rest().len() + usize::from(tag.is_whole);
        if !tag.is_end && is_one_of(tag.name, RAW_TEXT) {
            tags.skip_text(tag.name);
        }
        if !is_one_of(tag.name, NAME) {
            continue;
        }
        let is_root = || tag.attributes.clone().any(|(name, _)| name.eq_ignore_ascii_case(b"shadowrootmode"));
        match (tag.is_end, depth) {
            (false, 0) if is_root() => {}
            (false, 0) => {
                kept.push_str(&html[from..end]);
                depth = 1;
            }
            (false, _) => depth += 1,
            (true, 0) => {}
            (true, 1) => {
                from = html.len() - tag.left;
                depth = 0;
            }
            (true, _) => depth -= 1,
        }
    }
    match (kept.is_empty(), depth) {
        (true, 0) => Cow::Borrowed(html),
        (_, 0) => Cow::Owned(kept + &html[from..]),
        (_, _) => Cow::Owned(kept),
    }
}

/// The attributes of a tag: name and value as written, in their order, duplicates included.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (_, text) = split_where(self.0, |c| !is_space(c) && c != b'/');
        self.0 = text;
        if text.first().is_none_or(|&c| c == b'>') {
            return None;
        }
        // An equals sign at the start belongs to the name.
        let (rest_of_name, _) = split_where(&text[1..], |c| is_space(c) || matches!(c, b'/' | b'>' | b'='));
        let (name, rest) = text.split_at(1 + rest_of_name.len());
        let Some(value) = trim_start(rest).strip_prefix(b"=").map(trim_start) else {
            self.0 = rest;
            return Some((name, &[]));
        };
        let (value, rest) = match value {
            [quote @ (b'"' | b'\''), value @ ..] => {
                let (value, rest) = split_where(value, |c| c == *quote);
                (value, rest.get(1..).unwrap_or(rest))
            }
            _ => split_where(value, |c| is_space(c) || c == b'>'),
        };
        self.0 = rest;
        Some((name, value))
    }
}

/// Returns the text after a comment. A comment ends at `-->` or `--!>`, and one that begins with `>` or `->` is empty.
fn after_comment(text: &[u8]) -> &[u8] {
    if let Some(rest) = text.strip_prefix(b">").or_else(|| text.strip_prefix(b"->")) {
        return rest;
    }
    let mut rest = text;
    while !rest.is_empty() {
        rest = from_first(rest, b'-');
        if let Some(rest) = rest.strip_prefix(b"-->").or_else(|| rest.strip_prefix(b"--!>")) {
            return rest;
        }
        rest = rest.get(1..).unwrap_or(rest);
    }
    rest
}

/// Whether a byte ends the name of a tag.
fn ends_name(c: u8) -> bool {
    is_space(c) || matches!(c, b'/' | b'>')
}

fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

fn trim_start(text: &[u8]) -> &[u8] {
    split_where(text, |c| !is_space(c)).1
}

fn from_first(text: &[u8], byte: u8) -> &[u8] {
    split_where(text, |c| c == byte).1
}

/// Splits `text` before the first byte for which `end` is true.
fn split_where(text: &[u8], end: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|&c| end(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Vec<String> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let describe = |tag: Tag<'_>| {
            let pairs = tag.attributes.map(|(name, value)| format!(" {}={}", text_of(name), text_of(value)));
            format!("{}{}{}", if tag.is_end { "/" } else { "" }, text_of(tag.name), pairs.collect::<String>())
        };
        Tags::new(text.as_bytes()).map(describe).collect()
    }

    #[test]
    fn tags_are_found_among_text_and_comments() {
        assert_eq!(
            tags("<!doctype html>a < b <P>x</p ><!-- <i> --><b/><br / ><!--><u><?x ><q>"),
            ["P", "/p", "b", "br", "u", "q"]
        );
        assert_eq!(tags("<!-- <i> --!><b><!-- never closed <u>"), ["b"]);
        assert_eq!(tags("<?php echo '<i>' ?><b><! <i> ><p></ <i> ></><q><!doctype"), ["b", "p", "q"]);
    }

    #[test]
    fn attributes_are_quoted_or_bare_or_without_value() {
        assert_eq!(
            tags("<a b='x>y' c = \"1 2\" d=e/f g/h = i =j><k>"),
            ["a b=x>y c=1 2 d=e/f g= h=i =j=", "k"]
        );
    }

    #[test]
    fn what_is_cut_off_is_still_a_tag() {
        assert!(Tags::new(b"<a b><c d").map(|tag| tag.is_whole).eq([true, false]));
        assert_eq!(tags("<a"), ["a"]);
        assert_eq!(tags("<a b='c"), ["a b=c"]);
        assert_eq!(tags("<a b="), ["a b="]);
        assert_eq!(tags("<"), [""; 0]);
        assert_eq!(tags("</"), [""; 0]);
    }
    #[test]
    fn templates_are_empty() {
        for (html, kept) in [
            ("a<template id=t>x<p>y</template>b", "a<template id=t></template>b"),
            ("<template>x<template>y</template>z</template>b", "<template></template>b"),
            (
                "<TEMPLATE>x</Template >b<template>c</template>",
                "<TEMPLATE></Template >b<template></template>",
            ),
            ("a<template>never closed", "a<template>"),
            (
                "<template shadowrootmode=open>x<template>y</template></template>b",
                "<template shadowrootmode=open>x<template></template></template>b",
            ),
        ] {
            assert_eq!(without_templates(html), kept, "{html}");
        }
        for html in [
            "a</template>b",
            "<script>'<template>'</script>b<!-- <template> --><p title='<template>'>c<templates>d",
            "<title><template></title>b",
            "<title></titles><template></title>b",
            "a<plaintext></plaintext><template>b",
            "<?php echo '<template>' ?>b<! <template> >c",
        ] {
            assert!(matches!(without_templates(html), Cow::Borrowed(_)), "{html}");
        }
    }
}

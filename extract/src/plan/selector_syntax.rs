//! The syntax of CSS fields, which is that of Scrapy's parsel.
//!
//! `h1::text` takes the texts directly in the elements that `h1` matches, `h1 ::text` also all texts below them.
//! `a::attr(href)` takes attributes of the matches, `a ::attr(href)` also those of all elements below. A selector
//! without a pseudo-element takes the elements. Each selector of a list has its own pseudo-element.

use scraper::error::SelectorErrorKind;

use crate::document::selector::Selector;

/// The part of an element that a selector takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// The element itself.
    Element,
    /// Each text directly in the element.
    Text,
    /// Each text anywhere in the element.
    AllText,
    /// The value of an attribute.
    Attribute(String),
}

/// One selector of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The selector without pseudo-element; never empty.
    pub(crate) css: String,
    /// The part taken of each match.
    pub(crate) take: Take,
}

/// Splits a list into its selectors.
pub(crate) fn parts(notation: &str) -> Result<Vec<Part>, String> {
    let commas = outside(notation).filter(|(_, c)| *c == ',').map(|(at, _)| at);
    let mut start = 0;
    let mut parts = Vec::new();
    for end in commas.chain([notation.len()]) {
        parts.push(part(notation[start..end].trim())?);
        start = end + 1;
    }
    Ok(parts)
}

/// Parses a selector.
pub(crate) fn selector(css: &str) -> Result<Selector, String> {
    Selector::parse(css).map_err(reason)
}

/// Binds the first compound of a selector to the scope and the elements below it, so that no element outside can match.
pub(crate) fn scoped(css: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '>' | '+' | '~');
    let end = outside(css).find(|(_, c)| is_end(*c)).map_or(css.len(), |(at, _)| at);
    let (first, rest) = css.split_at(end);
    format!("{first}:is(:scope, :scope *){rest}")
}

fn part(text: &str) -> Result<Part, String> {
    let colons = outside(text).filter(|(at, c)| *c == ':' && text[*at..].starts_with("::"));
    let Some((at, _)) = colons.last() else {
        return Ok(Part { css: non_empty(text)?, take: Take::Element });
    };
    let (css, pseudo) = (&text[..at], &text[at + 2..]);
    let below = below(css);
    let take = match (pseudo_element(pseudo)?, below.is_some()) {
        (Take::Text, true) => Take::AllText,
        (take, _) => take,
    };
    let css = match below {
        None if css.trim_end().ends_with(['>', '+', '~']) => format!("{css}*"),
        None => css.trim_end().to_owned(),
        // The scope is the page or the element that fields are looked for in.
        Some("") if take == Take::AllText => ":scope".to_owned(),
        Some("") => "*".to_owned(),
        Some(css) if take == Take::AllText => css.to_owned(),
        Some(css) => format!(":is({css}, {css} *)"),
    };
    Ok(Part { css: non_empty(&css)?, take })
}

fn non_empty(css: &str) -> Result<String, String> {
    if css.is_empty() { Err("empty selector".to_owned()) } else { Ok(css.to_owned()) }
}

/// Returns the part of `css` before a final descendant combinator with nothing or `*` after it, or `None` if `css` ends
/// otherwise.
fn below(css: &str) -> Option<&str> {
    let before = css.strip_suffix('*').unwrap_or(css);
    let start = before.trim_end();
    if start.is_empty() {
        return Some("");
    }
    let is_below = start.len() < before.len() && !start.ends_with(['>', '+', '~']);
    is_below.then_some(start)
}

fn pseudo_element(text: &str) -> Result<Take, String> {
    let unknown = || format!("`::{text}` is not known: write `::text` or `::attr(name)`");
    if text.eq_ignore_ascii_case("text") {
        return Ok(Take::Text);
    }
    let (function, argument) = text.split_once('(').ok_or_else(unknown)?;
    let name = argument.strip_suffix(')').filter(|_| function.eq_ignore_ascii_case("attr"));
    let name = name.ok_or_else(unknown)?.trim().trim_matches(['"', '\'']).trim();
    let is_name = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | '(' | ')' | '=' | '>' | '/');
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("`::{text}` names no attribute"));
    }
    Ok(Take::Attribute(name.to_ascii_lowercase()))
}

/// Returns the characters of a selector outside strings, brackets and escapes, with their offsets.
fn outside(css: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    css.char_indices().filter(move |&(_, c)| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match (quote, c) {
            (_, '\\') => is_escaped = true,
            (Some(end), _) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, _) => return depth == 0,
        }
        false
    })
}

/// Describes a parse error in words; the parser's own messages say less.
fn reason(error: SelectorErrorKind) -> String {
    let name = match error {
        SelectorErrorKind::UnexpectedSelectorParseError(kind) => format!("{kind:?}"),
        other => format!("{other:?}"),
    };
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(notation: &str) -> String {
        let all = parts(notation).unwrap();
        all.into_iter().map(|part| format!("{} {:?}", part.css, part.take)).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn each_selector_of_a_list_says_what_is_taken() {
        for (notation, meaning) in [
            ("h1", "h1 Element"),
            ("h1::text", "h1 Text"),
            (" h1::TEXT ", "h1 Text"),
            ("h1 ::text", "h1 AllText"),
            ("h1 *::text", "h1 AllText"),
            ("h1 > ::text", "h1 > * Text"),
            ("h1 > *::text", "h1 > * Text"),
            ("::text", ":scope AllText"),
            ("*::text", ":scope AllText"),
            ("a::attr(HREF)", "a Attribute(\"href\")"),
            ("a::attr( 'href' )", "a Attribute(\"href\")"),
            ("nav ::attr(href)", ":is(nav, nav *) Attribute(\"href\")"),
            ("::attr(href)", "* Attribute(\"href\")"),
            ("h1, h2::text , a::attr(x)", "h1 Element | h2 Text | a Attribute(\"x\")"),
            ("a[x=\"::text, b\"], :is(p, i)::text", "a[x=\"::text, b\"] Element | :is(p, i) Text"),
            ("a\\::text::text", "a\\::text Text"),
        ] {
            assert_eq!(meant(notation), meaning, "{notation}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let error = |notation| parts(notation).unwrap_err();
        assert_eq!(error("p::before"), "`::before` is not known: write `::text` or `::attr(name)`");
        assert_eq!(error("p::text b"), "`::text b` is not known: write `::text` or `::attr(name)`");
        assert_eq!(error("p::attr()"), "`::attr()` names no attribute");
        assert_eq!(error("p,,b"), "empty selector");
        assert_eq!(error(""), "empty selector");
        let error = |css| selector(css).unwrap_err();
        assert_eq!(error("p >"), "dangling combinator");
        assert_eq!(error("p["), "end of line");
        assert_eq!(error("p:first"), "unsupported pseudo class or element");
    }

    #[test]
    fn a_scoped_selector_begins_at_the_scope() {
        for (css, scoped_css) in [
            ("a", "a:is(:scope, :scope *)"),
            ("a[x='> b'] > c", "a[x='> b']:is(:scope, :scope *) > c"),
            ("a+b", "a:is(:scope, :scope *)+b"),
        ] {
            assert_eq!(scoped(css), scoped_css);
            selector(&scoped(css)).unwrap();
        }
    }
}

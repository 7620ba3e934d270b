//! A row of the screen: styled pieces of text, cut to the available width.

use std::fmt;

use anstyle::{AnsiColor, Style};

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row(Vec<(Style, String)>);

pub(super) const PLAIN: Style = Style::new();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const BOLD: Style = Style::new().bold();

/// Returns a style with this colour.
pub(super) fn coloured(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
}

impl Row {
    /// Appends a piece.
    #[must_use]
    pub(super) fn with(mut self, style: Style, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    /// Returns this row followed by the pieces of another.
    pub(super) fn joined(&self, other: Self) -> Self {
        Self(self.0.iter().cloned().chain(other.0).collect())
    }

    /// The width in characters.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Returns the row cut to `width` characters; an ellipsis stands for the rest.
    pub(super) fn cut(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let (mut left, mut row) = (width.saturating_sub(1), Self::default());
        for (style, text) in &self.0 {
            let part: String = text.chars().take(left).collect();
            left -= part.chars().count();
            row = row.with(*style, part);
            if left == 0 {
                break;
            }
        }
        if width > 0 { row.with(PLAIN, "\u{2026}") } else { row }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(style, text)| write!(f, "{style}{text}{style:#}"))
    }
}

/// Formats a name in exactly `width` characters; one that is too long ends in an ellipsis.
pub(super) fn fixed(name: &str, width: usize) -> String {
    let cut = Row::default().with(PLAIN, name).cut(width);
    let text: String = cut.0.into_iter().map(|(_, text)| text).collect();
    format!("{text:<width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_to_what_fits_and_says_that_it_was() {
        let row = Row::default().with(BOLD, "abc").with(PLAIN, "déf");
        let plain = |row: Row| row.0.into_iter().map(|(_, text)| text).collect::<String>();
        assert_eq!(plain(row.cut(6)), "abcdéf");
        assert_eq!(plain(row.cut(5)), "abcd\u{2026}");
        assert_eq!(plain(row.cut(1)), "\u{2026}");
        assert_eq!(plain(row.cut(0)), "");
        assert_eq!(fixed("a-long-name", 6), "a-lon\u{2026}");
        assert_eq!(fixed("ab", 4), "ab  ");
    }
}

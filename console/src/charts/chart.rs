//! A chart, drawn in SVG.

use std::fmt::Write;

use super::Span;

/// The size of a chart, in its own units.
const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 48.0;

/// One value over the last minutes, or several of a kind.
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    /// The largest value in this time.
    pub(crate) most: String,
    pub(crate) series: Vec<Series>,
}

/// The course of one value.
pub(crate) struct Series {
    /// The name of the value; empty if it is the only one.
    pub(crate) name: &'static str,
    /// The current value; `None` before the first sample, or if it could not be determined.
    pub(crate) now: Option<String>,
    /// The points of its line in SVG syntax.
    pub(crate) line: String,
}

impl Chart {
    pub(super) fn new(
        title: &'static str,
        series: Vec<(&'static str, Vec<Option<f64>>)>,
        shown: &dyn Fn(f64) -> String,
        span: Span,
    ) -> Self {
        let most = series.iter().flat_map(|(_, values)| values).flatten().copied().fold(0.0, f64::max);
        let of = |(name, values): (_, Vec<Option<f64>>)| Series {
            name,
            now: values.last().copied().flatten().map(shown),
            line: line(&values, if most > 0.0 { most } else { 1.0 }, span.points()),
        };
        Self { title, most: shown(most), series: series.into_iter().map(of).collect() }
    }

    /// The only value, if there is just one.
    pub(crate) fn only(&self) -> Option<&Series> {
        self.series.first().filter(|_| self.series.len() == 1)
    }
}

impl Series {
    /// The line as an area above the baseline, in SVG syntax.
    pub(crate) fn area(&self) -> String {
        let first = self.line.split(',').next().unwrap_or_default();
        match self.line.is_empty() {
            true => String::new(),
            false => format!("{first},{HEIGHT} {}{WIDTH},{HEIGHT}", self.line),
        }
    }
}

/// Returns the points of these values, of which `points` fit. The latest is at the right edge, however many there are.
fn line(values: &[Option<f64>], most: f64, points: usize) -> String {
    let first = points - values.len();
    let mut line = String::new();
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let x = (first + index) as f64 / (points - 1) as f64 * WIDTH;
        let y = HEIGHT - 1.0 - value / most * (HEIGHT - 3.0);
        let _ = write!(line, "{x:.1},{y:.1} ");
    }
    line
}

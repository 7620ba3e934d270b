//! How pages answer, and how long that takes at most.

use std::time::Duration;

/// How a page answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// With a page.
    Good,
    /// With 404.
    Missing,
    /// With 500 so many times, then with a page.
    Flaky(usize),
    /// With 500.
    Broken,
    /// Never.
    Silent,
    /// With a redirect to the page of this number.
    Redirect(usize),
}

/// The longest time that a request beyond the pace waits.
pub const HELD_BACK: Duration = Duration::from_secs(4);
/// Who asks gives up after this.
pub const TIMEOUT: Duration = Duration::from_secs(8);

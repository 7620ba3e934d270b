//! `recrawl`: whether pages that were crawled before are fetched again.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::frontier::outcome::Skip;
use crate::time::UnixMs;

/// Tolerance between a sitemap's clock and the crawler's, including the time that a page takes to arrive.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(300);

/// `recrawl` and `--recrawl`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Recrawl {
    /// Never: a URL is crawled once.
    #[default]
    Never,
    /// If the page may have changed: by the sitemap's `lastmod`, or by asking the server with `If-None-Match` and
    /// `If-Modified-Since`.
    Changed,
    /// Always, in full: the server is not asked whether the page has changed.
    Always,
    /// If the last fetch is longer ago than this; then as with `Changed`.
    Age(Duration),
}

impl Recrawl {
    /// Returns whether no page is ever fetched again.
    pub fn is_never(self) -> bool {
        self == Self::Never
    }

    /// Returns whether unchanged pages are spared: they are not requested, or only conditionally.
    pub fn asks_for_changes(self) -> bool {
        matches!(self, Self::Changed | Self::Age(_))
    }

    /// Returns the reason why a page fetched at `last` need not be requested, if there is one. `modified` is the
    /// latest instant at which it may have changed, by its sitemap. A page is requested if the sitemap says
    /// nothing, or if the change might be younger than the fetch.
    pub fn reason_to_skip(self, last: Option<UnixMs>, modified: Option<UnixMs>, now: UnixMs) -> Option<Skip> {
        let last = last?;
        match self {
            Self::Never | Self::Always => None,
            Self::Changed => modified.filter(|at| at.plus(MAX_CLOCK_SKEW) <= last).map(|_| Skip::Unchanged),
            Self::Age(age) => (last.plus(age) > now).then_some(Skip::Fresh),
        }
    }

    /// Returns whether a cached response of `fetched_at` may be used now, in a crawl that started at `start`.
    pub fn may_use_cached(self, fetched_at: UnixMs, start: UnixMs, now: UnixMs) -> bool {
        match self {
            Self::Never => true,
            Self::Changed | Self::Always => fetched_at >= start,
            Self::Age(age) => fetched_at.plus(age) > now,
        }
    }
}

/// The error for a text that names no [`Recrawl`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no answer to when a page is fetched again: write `never`, `changed`, `always`, or an age as `12h`"
)]
pub struct UnknownRecrawl(String);

impl FromStr for Recrawl {
    type Err = UnknownRecrawl;
    fn from_str(text: &str) -> Result<Self, UnknownRecrawl> {
        Ok(match text {
            "never" => Self::Never,
            "changed" => Self::Changed,
            "always" => Self::Always,
            age => Self::Age(humantime::parse_duration(age).map_err(|_| UnknownRecrawl(age.to_owned()))?),
        })
    }
}

as_text!(Recrawl);

impl fmt::Display for Recrawl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Changed => f.write_str("changed"),
            Self::Always => f.write_str("always"),
            Self::Age(age) => humantime::format_duration(*age).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn any_recrawl() -> impl Strategy<Value = Recrawl> {
        let age = any::<u32>().prop_map(|seconds| Recrawl::Age(Duration::from_secs(seconds.into())));
        prop_oneof![Just(Recrawl::Never), Just(Recrawl::Changed), Just(Recrawl::Always), age]
    }

    fn any_instant() -> impl Strategy<Value = UnixMs> {
        any::<u32>().prop_map(|seconds| UnixMs(u64::from(seconds) * 1000))
    }

    #[test]
    fn a_page_is_spared_only_if_its_sitemap_is_surely_older_than_the_fetch() {
        let (last, now) = (UnixMs(1_000_000_000), UnixMs(2_000_000_000));
        let spared = |modified: u64| Recrawl::Changed.reason_to_skip(Some(last), Some(UnixMs(modified)), now);
        assert_eq!(spared(last.0 - 300_000), Some(Skip::Unchanged));
        assert_eq!(spared(last.0 - 299_999), None, "clocks may differ");
        assert_eq!(spared(last.0), None);
        assert_eq!(spared(u64::MAX), None);
        assert_eq!(Recrawl::Changed.reason_to_skip(Some(last), None, now), None, "nothing is said");
    }

    #[test]
    fn a_page_is_spared_until_it_has_the_age() {
        let last = UnixMs(1_000);
        let at = |now: UnixMs| Recrawl::Age(DAY).reason_to_skip(Some(last), None, now);
        assert_eq!(at(last), Some(Skip::Fresh));
        assert_eq!(at(UnixMs(last.plus(DAY).0 - 1)), Some(Skip::Fresh));
        assert_eq!(at(last.plus(DAY)), None);
    }

    #[test]
    fn a_kept_answer_hides_no_change() {
        let (start, now) = (UnixMs(1_000_000), UnixMs(1_500_000));
        for recrawl in [Recrawl::Changed, Recrawl::Always] {
            assert!(!recrawl.may_use_cached(UnixMs(start.0 - 1), start, now));
            assert!(recrawl.may_use_cached(start, start, now));
        }
        assert!(Recrawl::Never.may_use_cached(UnixMs(0), start, now));
        let age = Recrawl::Age(Duration::from_secs(600));
        assert!(age.may_use_cached(UnixMs(start.0 - 1), start, now));
        assert!(!age.may_use_cached(UnixMs(now.0 - 600_000), start, now));
    }

    proptest! {
        #[test]
        fn what_was_never_fetched_is_due(recrawl in any_recrawl(), modified in proptest::option::of(any_instant()), now in any_instant()) {
            prop_assert_eq!(recrawl.reason_to_skip(None, modified, now), None);
        }

        #[test]
        fn always_and_never_spare_nothing(last in any_instant(), modified in any_instant(), now in any_instant()) {
            for recrawl in [Recrawl::Always, Recrawl::Never] {
                prop_assert_eq!(recrawl.reason_to_skip(Some(last), Some(modified), now), None);
            }
        }

        /// A page that is due stays due after more time has passed, and also if it changed later.
        #[test]
        fn what_is_due_stays_due(
            recrawl in any_recrawl(), last in any_instant(), modified in any_instant(), now in any_instant(), later in any::<u32>()
        ) {
            let later = Duration::from_millis(later.into());
            if recrawl.reason_to_skip(Some(last), Some(modified), now).is_none() {
                prop_assert_eq!(recrawl.reason_to_skip(Some(last), Some(modified), now.plus(later)), None);
                prop_assert_eq!(recrawl.reason_to_skip(Some(last), Some(modified.plus(later)), now), None);
            }
        }

        #[test]
        fn a_mode_reads_as_it_is_written(recrawl in any_recrawl()) {
            prop_assert_eq!(recrawl.to_string().parse(), Ok(recrawl));
        }
    }
}

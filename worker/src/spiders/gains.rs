//! Pages that lack a required field, and whether a browser finds it: where it hardly ever does, few are rendered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use moka::sync::Cache;
use trawl_common::web::url::CanonicalUrl;

/// Number of rendered pages of a shape before which all are rendered.
const MIN_RENDERED: u32 = 20;

/// One page in this many is rendered where it is hardly ever a gain. Where it is at least so often a gain, all are.
const TRIAL: u32 = 50;

/// Maximum number of shapes that are remembered.
const MAX_SHAPES: u64 = 10_000;

/// The pages of a spider that lacked a field, by kind and by the shape of their URLs.
pub(crate) struct Gains(Cache<Shape, Arc<Counts>>);

/// The number of a page's kind, and its URL without what differs from page to page.
type Shape = (Option<usize>, String);

#[derive(Default)]
struct Counts {
    /// Number of pages that a browser found a field of.
    gained: AtomicU32,
    /// Number of pages that were rendered in vain.
    in_vain: AtomicU32,
    /// Number of pages that were not rendered, or for trial.
    passed: AtomicU32,
}

impl Default for Gains {
    fn default() -> Self {
        Self(Cache::new(MAX_SHAPES))
    }
}

impl Gains {
    /// Whether a page that lacks a field is to be rendered.
    pub(crate) fn is_promising(&self, kind: Option<usize>, url: &CanonicalUrl) -> bool {
        let Some(counts) = self.0.get(&shape(kind, url)) else { return true };
        let (gained, in_vain) =
            (counts.gained.load(Ordering::Relaxed), counts.in_vain.load(Ordering::Relaxed));
        let rendered = gained.saturating_add(in_vain);
        let is_known = rendered >= MIN_RENDERED && gained.saturating_mul(TRIAL) < rendered;
        !is_known || (counts.passed.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(TRIAL)
    }

    /// Records whether a browser found a field of a page that lacked it.
    pub(crate) fn note(&self, kind: Option<usize>, url: &CanonicalUrl, has_gained: bool) {
        let counts = self.0.get_with(shape(kind, url), Arc::default);
        let number = if has_gained { &counts.gained } else { &counts.in_vain };
        number.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns the shape of a page: its host, and the path with `*` for the last part and for those with a digit.
fn shape(kind: Option<usize>, url: &CanonicalUrl) -> Shape {
    let url = url.to_url();
    let mut shape = url.host_str().unwrap_or_default().to_owned();
    let mut parts = url.path_segments().into_iter().flatten().peekable();
    while let Some(part) = parts.next() {
        let differs = parts.peek().is_none() || part.bytes().any(|byte| byte.is_ascii_digit());
        shape.push('/');
        shape.push_str(if differs && !part.is_empty() { "*" } else { part });
    }
    (kind, shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hat(number: usize) -> CanonicalUrl {
        format!("http://shop.example/hat/blue-{number}?x={number}").parse().unwrap()
    }

    #[test]
    fn pages_alike_in_kind_and_url_have_one_shape() {
        let of = |url: &str| shape(None, &url.parse().unwrap()).1;
        assert_eq!(shape(None, &hat(1)), shape(None, &hat(2)));
        assert_ne!(shape(None, &hat(1)), shape(Some(0), &hat(1)));
        assert_eq!(of("http://a.example/c7/hats/red"), "a.example/*/hats/*");
        assert_eq!([of("http://a.example/"), of("http://a.example/x/")], ["a.example/", "a.example/x/"]);
    }

    #[test]
    fn where_rendering_was_in_vain_one_page_in_fifty_is_rendered_for_trial() {
        let gains = Gains::default();
        for number in 0..20 {
            assert!(gains.is_promising(None, &hat(number)));
            gains.note(None, &hat(number), false);
        }
        let trials = (0..500).filter(|number| gains.is_promising(None, &hat(*number))).count();
        assert_eq!(trials, 10);
        assert!(gains.is_promising(Some(0), &hat(0)), "pages of another kind are another matter");
    }

    #[test]
    fn a_trial_that_gains_has_all_pages_rendered_again() {
        let gains = Gains::default();
        for number in 0..40 {
            gains.note(None, &hat(number), false);
        }
        assert!(!gains.is_promising(None, &hat(0)));
        gains.note(None, &hat(0), true);
        assert!((0..100).all(|number| gains.is_promising(None, &hat(number))));
    }
}

//! Pages of a fixed size, filled from pages of the API, which are as the store has them.

use crate::failure::Failure;
use crate::form::written;

/// A position in a list of the API: a cursor, and the number of entries there that were shown already.
pub(super) struct Spot {
    cursor: Option<String>,
    skip: usize,
}

impl Spot {
    /// Returns the position that the fields `cursor` and `skip` of an address name.
    pub(super) fn new(cursor: Option<String>, skip: &Option<String>) -> Self {
        Self { cursor, skip: written(skip).and_then(|skip| skip.parse().ok()).unwrap_or_default() }
    }

    pub(super) fn is_first(&self) -> bool {
        self.cursor.is_none() && self.skip == 0
    }

    /// Returns the fields of an address that names it.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'static str, String)> {
        let skip = (self.skip > 0).then(|| ("skip", self.skip.to_string()));
        self.cursor.map(|cursor| ("cursor", cursor)).into_iter().chain(skip)
    }
}

/// Returns the `size` entries of a list from a position on, and the next position. `ask` returns a page of the API at a
/// cursor and the next cursor; it is called `most` times at most.
pub(super) async fn fill<T, A: Future<Output = Result<(Vec<T>, Option<String>), Failure>>>(
    from: Spot,
    size: usize,
    most: usize,
    ask: impl Fn(Option<String>) -> A,
) -> Result<(Vec<T>, Option<Spot>), Failure> {
    let (mut shown, mut at) = (Vec::new(), Some(from));
    for _ in 0..most {
        let Some(Spot { cursor, skip }) = at.take() else { break };
        let (page, next) = ask(cursor.clone()).await?;
        let (count, left) = (page.len(), size - shown.len());
        shown.extend(page.into_iter().skip(skip).take(left));
        at = match count > skip.saturating_add(left) {
            true => Some(Spot { cursor, skip: skip + left }),
            false => next.map(|next| Spot { cursor: Some(next), skip: 0 }),
        };
        // If a page of the API is empty, the search has taken long already.
        if shown.len() == size || count == 0 {
            break;
        }
    }
    Ok((shown, at))
}

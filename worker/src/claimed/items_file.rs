//! Items that a program has left in a file. They are read as the sinks take them, so that few are in memory
//! at once.

use std::collections::HashMap;

use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::ports::Page;
use trawl_common::spider::item::{Item, item_id, task_item_id};
use trawl_common::web::url::Fingerprint;
use trawl_handlers::{Batch, FilePosition, ItemsFile};

type Fields = serde_json::Map<String, serde_json::Value>;

/// The number of items of a task among which equal ones are counted at once. A larger file is read once per
/// share of this size.
const SHARE: u64 = 500_000;

/// The items of a file that remain to be stored.
pub(crate) struct FileItems {
    file: ItemsFile,
    /// The page or task that output them, without items.
    page: Page,
    /// Their common properties.
    like: Item,
    ids: Ids,
    place: FilePosition,
}

/// The source of an item's id.
pub(crate) enum Ids {
    /// The item's position on the page of this name, after this many items in the answer itself.
    ByPlace(String, usize),
    /// The item's content.
    ByContent(Contents),
}

impl Ids {
    /// Starts the next share of the items, if there is one.
    fn begin_share(&mut self) -> bool {
        match self {
            Self::ByPlace(..) => false,
            Self::ByContent(contents) => contents.begin_share(),
        }
    }
}

impl FileItems {
    /// Returns the items of a file that `page` has in addition to its own. `like` has all their properties
    /// but the ids and fields.
    pub(crate) fn new(file: ItemsFile, page: &Page, like: Item, ids: Ids) -> Self {
        let Page { key, crawl, referrer, .. } = page;
        let page = Page {
            key: key.clone(),
            crawl: crawl.clone(),
            referrer: referrer.clone(),
            items: Vec::new(),
            exchange: None,
        };
        Self { file, page, like, ids, place: FilePosition::default() }
    }

    /// Returns the next items to store; `None` after the last. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, Failure> {
        loop {
            let batch = self.file.read(self.place).await;
            let Batch { items, next } = batch.map_err(|why| Failure::new(Class::Handler, why))?;
            if items.is_empty() {
                if self.place.items() != self.file.items() {
                    return Err(Failure::new(Class::Handler, "the items_file was changed while it was read"));
                }
                if !self.ids.begin_share() {
                    return Ok(None);
                }
                self.place = FilePosition::default();
                continue;
            }
            let numbers = self.place.items()..;
            self.place = next;
            let items: Vec<Item> =
                numbers.zip(items).filter_map(|(number, fields)| self.item(number, fields)).collect();
            if !items.is_empty() {
                return Ok(Some(Page { items, ..self.page.clone() }));
            }
        }
    }

    /// Returns an item, if it belongs to the current share.
    fn item(&mut self, number: u64, fields: Fields) -> Option<Item> {
        let like = &self.like;
        let id = match &mut self.ids {
            Ids::ByPlace(name, before) => {
                item_id(&like.spider, name, None, before.saturating_add(usize::try_from(number).ok()?))
            }
            Ids::ByContent(contents) => {
                let said = as_text(&fields);
                task_item_id(&like.spider, self.page.key.as_str(), &said, contents.equals_before(&said)?)
            }
        };
        Some(Item { id, fields, ..like.clone() })
    }
}

/// The properties of a file's items that are needed to compare their page with its previous state.
pub(crate) struct InFile {
    pub(crate) content: Fingerprint,
    pub(crate) count: u64,
}

impl InFile {
    /// Reads a whole file.
    pub(crate) async fn new(file: &ItemsFile) -> Result<Self, Failure> {
        let mut content = Fingerprint::from_text("");
        let show =
            |fields: &Fields| content = Fingerprint::from_text(&format!("{content}{}", as_text(fields)));
        match file.look(show).await {
            Ok(count) => Ok(Self { content, count }),
            Err(why) => Err(Failure::new(Class::Handler, why)),
        }
    }
}

/// Formats the fields of an item as JSON, from which its id is derived.
pub(crate) fn as_text(fields: &Fields) -> String {
    serde_json::to_string(fields).expect("fields were JSON")
}

/// Counts items with equal content.
#[derive(Default)]
pub(crate) struct Equals(HashMap<Fingerprint, usize>);

impl Equals {
    /// Counts an item, and returns the number of earlier items with equal content.
    pub(crate) fn before(&mut self, said: &str) -> usize {
        self.count(Fingerprint::from_text(said))
    }

    fn count(&mut self, said: Fingerprint) -> usize {
        let count = self.0.entry(said).or_default();
        *count += 1;
        *count - 1
    }
}

/// Counts the equal items of a file, one share of them after another.
pub(crate) struct Contents {
    /// The items that the answer itself has.
    of_answer: Equals,
    of_share: Equals,
    share: u64,
    shares: u64,
}

impl Contents {
    /// Starts with the items of the answer, before those of this file.
    pub(crate) fn new(of_answer: Equals, file: &ItemsFile) -> Self {
        Self { of_answer, of_share: Equals::default(), share: 0, shares: file.items().div_ceil(SHARE) }
    }

    /// Returns the number of earlier items with equal content; `None` if the item belongs to another share.
    fn equals_before(&mut self, said: &str) -> Option<usize> {
        let said = Fingerprint::from_text(said);
        let is_of_share = said.short().cast_unsigned() % self.shares == self.share;
        is_of_share
            .then(|| self.of_answer.0.get(&said).copied().unwrap_or_default() + self.of_share.count(said))
    }

    /// Starts the next share, if there is one.
    fn begin_share(&mut self) -> bool {
        (self.share, self.of_share) = (self.share + 1, Equals::default());
        self.share < self.shares
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The contents with the number of earlier equal ones that a file in this many shares yields for these
    /// items.
    fn numbered(shares: u64, said: &[&str]) -> Vec<(String, usize)> {
        let mut of_answer = Equals::default();
        of_answer.before("a");
        let mut contents = Contents { of_answer, of_share: Equals::default(), share: 0, shares };
        let mut all = Vec::new();
        loop {
            let share =
                said.iter().filter_map(|said| Some(((*said).to_owned(), contents.equals_before(said)?)));
            all.extend(share);
            if !contents.begin_share() {
                return all;
            }
        }
    }

    #[test]
    fn each_item_is_given_once_and_numbered_alike_in_whatever_order_and_however_many_shares() {
        let (said, other) = (["a", "b", "a", "c", "b", "a"], ["b", "a", "a", "a", "c", "b"]);
        let expected: HashSet<_> = [("a", 1), ("a", 2), ("a", 3), ("b", 0), ("b", 1), ("c", 0)]
            .map(|(said, equals)| (said.to_owned(), equals))
            .into();
        for shares in [1, 2, 7] {
            for said in [&said, &other] {
                let numbered = numbered(shares, said);
                assert_eq!(numbered.len(), said.len());
                assert_eq!(HashSet::from_iter(numbered), expected);
            }
        }
    }
}

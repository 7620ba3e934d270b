//! For programs that produce no items.

use async_trait::async_trait;
use trawl_common::item::Item;
use trawl_common::ports::{Error, ErrorKind, Result, Sink};

/// Takes no items: the producer has none.
pub struct NoItems;

#[async_trait]
impl Sink for NoItems {
    async fn put(&self, _: &[Item]) -> Result<()> {
        Err(Error::new(ErrorKind::Refused, "this program stores no items"))
    }
}

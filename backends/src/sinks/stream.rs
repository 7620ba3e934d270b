//! Items to the stream of the fleet's broker.

use std::sync::Arc;

use async_trait::async_trait;
use trawl_common::ports::{Page, Result, Sink};

use crate::rabbitmq::RabbitMq;

/// The stream `items`: one persistent message an item, each confirmed.
pub struct Stream(Arc<RabbitMq>);

impl Stream {
    /// On the connection that messages are published on.
    pub fn new(broker: Arc<RabbitMq>) -> Self {
        Self(broker)
    }
}

#[async_trait]
impl Sink for Stream {
    fn name(&self) -> &str {
        "stream items"
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        self.0.publish_items(pages).await
    }
}

//! The sink that sends items to the stream of the fleet's broker.

use std::sync::Arc;

use async_trait::async_trait;
use trawl_common::ports::{Page, Result, Sink};

use crate::rabbitmq::RabbitMq;

/// The stream `items`: one persistent, confirmed message per item.
pub struct Stream(Arc<RabbitMq>);

impl Stream {
    /// Creates the sink on the connection for publishing messages.
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

//! Both engines keep every promise of the store of deployed spiders: the fleet's on a real Redis.

use std::sync::Arc;

use trawl_backends::embedded::Embedded;
use trawl_backends::redis::RedisSpiderStore;
use trawl_common::ports::SpiderStore;

use crate::support::own_link;

mod fleet {
    use super::*;

    async fn store() -> ((), Arc<dyn SpiderStore>) {
        ((), Arc::new(RedisSpiderStore::new(own_link().await)))
    }

    trawl_testkit::spider_store_conformance!(store);
}

mod embedded {
    use super::*;

    async fn store() -> ((), Arc<dyn SpiderStore>) {
        ((), Embedded::in_memory().unwrap().spider_store())
    }

    trawl_testkit::spider_store_conformance!(store);
}

//! Both engines keep every promise of the store of deployed spiders: the fleet's on a real Redis.

use std::sync::Arc;

use trawl_backends::embedded::Embedded;
use trawl_backends::redis::{self, RedisSpiderStore};
use trawl_common::ports::SpiderStore;
use trawl_common::settings::Redis;
use trawl_testkit::servers;

mod fleet {
    use super::*;

    async fn store() -> ((), Arc<dyn SpiderStore>) {
        let settings = Redis { url: servers::own_database().await, ..Redis::default() };
        ((), Arc::new(RedisSpiderStore::new(redis::connect(&settings).await.unwrap())))
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

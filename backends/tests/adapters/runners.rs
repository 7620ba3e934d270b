//! Both engines keep every promise of runners: the fleet's on a real Redis.

use std::sync::Arc;

use trawl_backends::embedded::Embedded;
use trawl_backends::redis::RedisRunners;
use trawl_common::ports::{ErrorKind, MAX_RUNNERS, RunnerKey, Runners};

use crate::support::own_link;

mod fleet {
    use super::*;

    async fn runners() -> ((), Arc<dyn Runners>) {
        ((), Arc::new(RedisRunners::new(own_link().await)))
    }

    trawl_testkit::runners_conformance!(runners);
}

mod embedded {
    use super::*;

    async fn runners() -> ((), Arc<dyn Runners>) {
        ((), Embedded::in_memory().unwrap().runners())
    }

    trawl_testkit::runners_conformance!(runners);
}

#[tokio::test]
async fn a_flood_of_runners_that_ask_is_refused_and_those_that_are_known_are_not() {
    let runners = Embedded::in_memory().unwrap().runners();
    let key = RunnerKey::generate().digest();
    for number in 0..MAX_RUNNERS {
        runners.ask(&format!("r{number}").parse().unwrap(), &key).await.unwrap();
    }
    let refused = runners.ask(&"one-more".parse().unwrap(), &key).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Refused);
    assert!(runners.ask(&"r7".parse().unwrap(), &key).await.is_ok());
}

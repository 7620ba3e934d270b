//! Both engines keep every promise of jobs: the fleet's on a real Redis and a real RabbitMQ.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::timeout;
use trawl_backends::embedded::Embedded;
use trawl_backends::rabbitmq::JobWakeUps;
use trawl_backends::redis::RedisJobs;
use trawl_common::ports::Jobs;
use trawl_common::settings::{self, Queues};
use trawl_testkit::conformance::jobs::{obeys_the_model, steps};
use trawl_testkit::servers::VirtualHost;

use crate::support::own_link;

/// Longer than any step of a test.
const LONG: Duration = Duration::from_secs(60);

async fn on_redis(per_spider: u32) -> RedisJobs {
    RedisJobs::new(own_link().await, NonZeroU32::new(per_spider).unwrap())
}

fn in_process(per_spider: u32) -> Arc<dyn Jobs> {
    let per_spider = NonZeroU32::new(per_spider).unwrap();
    Embedded::in_memory()
        .unwrap()
        .with_jobs(&settings::Jobs { per_spider, ..settings::Jobs::default() })
        .jobs()
}

mod fleet {
    use super::*;

    async fn jobs() -> ((), Arc<dyn Jobs>) {
        ((), Arc::new(on_redis(1).await))
    }

    trawl_testkit::jobs_conformance!(jobs);
}

mod embedded {
    use super::*;

    async fn jobs() -> ((), Arc<dyn Jobs>) {
        ((), in_process(1))
    }

    trawl_testkit::jobs_conformance!(jobs);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_calls_makes_redis_depart_from_the_transitions(steps in steps(), per_spider in 1..3_u32) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let jobs: Arc<dyn Jobs> = Arc::new(on_redis(per_spider).await);
            obeys_the_model(&jobs, per_spider as usize, &steps).await.unwrap();
        });
    }

    #[test]
    fn no_order_of_calls_makes_the_embedded_engine_depart_from_the_transitions(
        steps in steps(), per_spider in 1..3_u32
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let jobs = in_process(per_spider);
        runtime.block_on(obeys_the_model(&jobs, per_spider as usize, &steps)).unwrap();
    }
}

fn new_job(id: &str) -> trawl_common::jobs::NewJob {
    trawl_common::jobs::NewJob::new(id.parse().unwrap(), "shop".parse().unwrap())
}

#[tokio::test]
async fn whoever_asks_for_a_job_wakes_another_process_through_the_broker() {
    let vhost = VirtualHost::new().await;
    let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let wake_ups = || Arc::new(JobWakeUps::new(&broker, &Queues::default()).unwrap());
    let asking = on_redis(1).await.with_wake_ups(wake_ups());
    let waiting = wake_ups();
    let woken = tokio::spawn({
        let waiting = Arc::clone(&waiting);
        async move { waiting.next().await }
    });
    asking.submit(&new_job("one")).await.unwrap();
    timeout(LONG, woken).await.unwrap().unwrap();
    // A notice sent while nobody waits is kept for the next waiter.
    asking.submit(&new_job("two")).await.unwrap();
    timeout(LONG, waiting.next()).await.unwrap();
}

#[tokio::test]
async fn in_one_process_whoever_asks_for_a_job_wakes_who_waits_or_comes() {
    let jobs = in_process(1);
    jobs.submit(&new_job("one")).await.unwrap();
    timeout(LONG, jobs.wake_up()).await.unwrap();
}

#[tokio::test]
async fn what_a_process_fed_that_died_is_fed_anew_as_soon_as_the_state_file_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.db");
    let runner = "one".parse().unwrap();
    let engine = Embedded::open(&path).unwrap();
    engine.jobs().submit(&new_job("one")).await.unwrap();
    assert!(engine.jobs().take(&runner, LONG).await.unwrap().is_some());
    drop(engine);
    let engine = Embedded::open(&path).unwrap();
    assert!(engine.jobs().take(&runner, LONG).await.unwrap().is_some());
}

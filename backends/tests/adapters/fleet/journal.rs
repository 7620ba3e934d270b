//! Jobs submitted in the last second survive a Redis that has lost them.

use std::sync::Arc;
use std::time::Duration;

use trawl_backends::fleet::{Asked, asked_of};
use trawl_common::jobs::{Hold, JobOutcome, JobStatus, NewJob};
use trawl_common::names::WorkerId;
use trawl_common::ports::{Jobs, ScheduleState, Submitted};
use trawl_common::settings::{self, ServerUrl, Settings};
use trawl_common::time::UnixMs;
use trawl_testkit::servers::{self, VirtualHost};

use crate::support::link;

/// A server and all its data by key.
struct Kept {
    redis: redis::aio::MultiplexedConnection,
    values: Vec<(String, Vec<u8>)>,
}

impl Kept {
    async fn from_url(url: &ServerUrl) -> Self {
        let client = redis::Client::open(url.reveal()).unwrap();
        let mut redis = client.get_multiplexed_async_connection().await.unwrap();
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut redis).await.unwrap();
        let mut values = Vec::new();
        for key in keys {
            let value = redis::cmd("DUMP").arg(&key).query_async(&mut redis).await.unwrap();
            values.push((key, value));
        }
        Self { redis, values }
    }

    /// Simulates a restart that lost all data since then.
    async fn restart(mut self) {
        let () = redis::cmd("FLUSHDB").query_async(&mut self.redis).await.unwrap();
        for (key, value) in &self.values {
            let restore = redis::cmd("RESTORE").arg(key).arg(0).arg(value).to_owned();
            let () = restore.query_async(&mut self.redis).await.unwrap();
        }
        let run = redis::cmd("SET").arg("{jobs}:journal").arg("before lease").to_owned();
        let () = run.query_async(&mut self.redis).await.unwrap();
    }
}

async fn asked(vhost: &VirtualHost, url: &ServerUrl) -> Asked {
    let rabbitmq = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let settings = Settings { rabbitmq, ..Settings::default() };
    asked_of(&settings, link(ServerUrl::new(url.reveal())).await).unwrap()
}

fn job(id: &str, spider: &str) -> NewJob {
    let key = Some(format!("key-{id}").parse().unwrap());
    NewJob { idempotency_key: key, ..NewJob::new(id.parse().unwrap(), spider.parse().unwrap()) }
}

async fn status(jobs: &Arc<dyn Jobs>, id: &str) -> Option<JobStatus> {
    jobs.job(&id.parse().unwrap()).await.unwrap().map(|job| job.status())
}

const LEASE: Duration = Duration::from_secs(600);

#[tokio::test]
async fn what_was_said_of_jobs_in_a_second_that_the_store_has_lost_holds() {
    let (vhost, url) = (VirtualHost::new().await, servers::own_database().await);
    let Asked { jobs, .. } = asked(&vhost, &url).await;
    let (one, two): (WorkerId, WorkerId) = ("one".parse().unwrap(), "two".parse().unwrap());
    for (id, spider) in [("cancelled", "a"), ("ended", "b"), ("fed", "c")] {
        jobs.submit(&job(id, spider)).await.unwrap();
    }
    let kept = Kept::from_url(&url).await;
    assert_eq!(jobs.cancel(&"cancelled".parse().unwrap()).await.unwrap(), Some(JobStatus::Pending));
    for _ in 0..2 {
        jobs.take(&one, LEASE).await.unwrap().unwrap();
    }
    jobs.end(&"ended".parse().unwrap(), &JobOutcome::Finished { problem: None }).await.unwrap();
    assert_eq!(jobs.submit(&job("submitted", "d")).await.unwrap(), Submitted::New);
    kept.restart().await;
    // Another process meets the job first.
    let Asked { jobs, .. } = asked(&vhost, &url).await;
    let taken = jobs.take(&two, LEASE).await.unwrap().unwrap();
    assert_eq!(taken.new, job("submitted", "d"));
    assert_eq!(jobs.take(&two, LEASE).await.unwrap(), None, "the rest is taken, or over");
    assert_eq!(jobs.extend(&one, &["fed".parse().unwrap()], LEASE).await.unwrap(), [Hold::Kept]);
    assert_eq!(status(&jobs, "cancelled").await, Some(JobStatus::Cancelled));
    assert_eq!(status(&jobs, "ended").await, Some(JobStatus::Finished));
    let again = NewJob { id: "again".parse().unwrap(), ..job("submitted", "d") };
    assert_eq!(jobs.submit(&again).await.unwrap(), Submitted::Known(job("submitted", "d").id));
}

#[tokio::test]
async fn schedules_go_on_from_where_they_were_and_what_is_held_stays_so() {
    let (vhost, url) = (VirtualHost::new().await, servers::own_database().await);
    let Asked { schedules, .. } = asked(&vhost, &url).await;
    let (done, held) = ("done".parse().unwrap(), "held".parse().unwrap());
    schedules.note(&done, UnixMs(1_000)).await.unwrap();
    let kept = Kept::from_url(&url).await;
    schedules.note(&done, UnixMs(2_000)).await.unwrap();
    schedules.pause(&held).await.unwrap();
    kept.restart().await;
    let Asked { schedules, .. } = asked(&vhost, &url).await;
    let expected = [(done, ScheduleState::Done(UnixMs(2_000))), (held, ScheduleState::Paused)].into();
    assert_eq!(schedules.list().await.unwrap(), expected);
}

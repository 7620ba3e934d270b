//! Both engines keep every promise of schedules: the fleet's on a real Redis.

use std::sync::Arc;

use trawl_backends::embedded::Embedded;
use trawl_backends::redis::RedisSchedules;
use trawl_common::ports::{ScheduleState, Schedules};
use trawl_common::time::UnixMs;

use crate::support::own_link;

mod fleet {
    use super::*;

    async fn schedules() -> ((), Arc<dyn Schedules>) {
        ((), Arc::new(RedisSchedules::new(own_link().await)))
    }

    trawl_testkit::schedules_conformance!(schedules);
}

mod embedded {
    use super::*;

    async fn schedules() -> ((), Arc<dyn Schedules>) {
        ((), Embedded::in_memory().unwrap().schedules())
    }

    trawl_testkit::schedules_conformance!(schedules);
}

#[tokio::test]
async fn what_cannot_be_read_of_one_schedule_holds_up_no_other_until_it_is_held_and_resumed() {
    let mut link = own_link().await;
    let schedules = RedisSchedules::new(link.clone());
    let (shop, news) = ("shop".parse().unwrap(), "news".parse().unwrap());
    schedules.note(&news, UnixMs(1)).await.unwrap();
    for (field, value) in [("shop", "yesterday"), ("No Name", "7"), ("bytes", "-1")] {
        let () =
            ::redis::cmd("HSET").arg("schedules").arg(field).arg(value).query_async(&mut link).await.unwrap();
    }
    schedules.note(&shop, UnixMs(7)).await.unwrap();
    let all = schedules.list().await.unwrap();
    assert_eq!(all.into_iter().collect::<Vec<_>>(), [(news, ScheduleState::Done(UnixMs(1)))]);
    schedules.pause(&shop).await.unwrap();
    schedules.resume(&shop, UnixMs(9)).await.unwrap();
    assert_eq!(schedules.list().await.unwrap().get(&shop), Some(&ScheduleState::Done(UnixMs(9))));
}

//! Admissions that Redis loses with its last second are made again by their producer.

use trawl_backends::redis::RedisRecords;
use trawl_common::frontier::outcome::{Skip, Terminal};
use trawl_common::ports::{Claim, Engine, Finish, NewWork, Opening, Stats, Terms};
use trawl_engine::{Claims, Coordinator, Settlements};
use trawl_testkit::own_redis::OwnRedis;
use trawl_testkit::stand_ins::NoPages;

use super::*;

#[tokio::test]
async fn a_url_that_ended_in_the_second_that_redis_lost_is_admitted_again_by_its_producer() {
    let (mut redis, vhost) = (OwnRedis::start().await, VirtualHost::new().await);
    let records = Arc::new(RedisRecords::new(link(redis.url.clone()).await, LONG, Dedup::Plain));
    let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let broker = RabbitMq::connect(&broker, &Queues::default(), &Items::default()).await.unwrap();
    let engine = Coordinator::new(records.clone(), Arc::new(broker), Arc::new(NoPages));
    let crawl = CrawlRef { id: "lost".parse().unwrap(), spider: "lost".parse().unwrap() };
    let opening = Opening {
        crawl: crawl.clone(),
        terms: Terms::default(),
        text: None,
        judging: None,
        reads: None,
        is_new: true,
        lease: LONG,
    };
    let session = engine.open(opening, Arc::default()).await.unwrap();
    let page = |number: u8| {
        let url: CanonicalUrl = format!("http://site.example/{number}").parse().unwrap();
        NewWork::seed(url, Lane::Bulk)
    };
    session.admit(&[page(0)]).await.unwrap();
    redis.save().await;

    // Its host is blocked: it ends at once, and its message with it.
    session.admit(&[page(1)]).await.unwrap();
    let worker = "w".parse().unwrap();
    records.claim(&worker, &[page(1).message(&crawl)]).await.unwrap();
    let claim = Claim { crawl: crawl.clone(), key: page(1).work.key() };
    let blocked = Finish { why: Some(Skip::Blocked.as_str()), ..Finish::new(claim, Terminal::Skipped) };
    assert_eq!(records.finish(&worker, &[blocked]).await.unwrap(), [true]);
    redis.restart().await;

    session.close().await.unwrap();
    let stats = records.crawl_stats(&crawl.id).await.unwrap().unwrap();
    assert_eq!((stats.counts.admitted, stats.pending, stats.counts.skipped), (2, 2, 0));
}

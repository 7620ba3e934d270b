//! Tests of a program that asks a host during a crawl.

use async_trait::async_trait;
use tokio::sync::SetOnce;
use trawl_common::fleet_log::LogWriter;
use trawl_common::task::TaskView;
use trawl_common::web::url::CanonicalUrl;

use super::*;
use crate::schedule::polite::AsSpider;
use crate::spiders::LoadedSpider;
use crate::tasks::{Gave, Ran};

/// Requests the URLs of its task, one after the other.
struct Asks {
    memory: Memory,
    /// The worker's client, once the worker has started.
    asker: Arc<SetOnce<PoliteClient>>,
}

#[async_trait]
impl TaskRunner for Asks {
    fn runs(&self, _: &LoadedSpider) -> bool {
        true
    }

    async fn run(&self, spider: &LoadedSpider, task: TaskView, _: &LogWriter) -> Ran {
        let asker = self.asker.wait().await;
        let own = AsSpider::new(&spider.spider, &asker.settings, spider.fetcher.clone());
        for url in task.recipe.as_str().split(' ') {
            let host = url.parse::<CanonicalUrl>().unwrap().host();
            let policy = own.politeness.host_policy(&host);
            self.memory.called("program", "asks");
            let asking = asker.permit(&own, &policy, &host, Instant::now() + LIMIT).await;
            let Ok(permit) = asking else { panic!("nothing forbids it") };
            self.memory.called("program", "may");
            permit.end(true);
        }
        Ran::Done(Gave::default())
    }
}

/// Returns a worker with `urls` URLs of a host, five of which have been fetched, and a program that makes
/// `requests` requests to it.
async fn beside_a_crawl(memory: &Memory, urls: usize, requests: usize) -> Worker {
    for number in 0..urls {
        memory.page(&format!("{}{number}", url(1)), QUICK);
    }
    let asker = Arc::<SetOnce<PoliteClient>>::default();
    let runner = Arc::new(Asks { memory: memory.clone(), asker: Arc::clone(&asker) });
    let worker = Worker::start_with(memory, |_| {}, Some((runner, 1)));
    assert!(asker.set(worker.asker.clone()).is_ok());
    timeout(LIMIT, memory.until("fetched", 5)).await.unwrap();
    memory.task(&serde_json::to_string(&vec![url(1); requests].join(" ")).unwrap());
    worker
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_program_waits_for_two_slots_of_a_host_and_not_for_all_that_its_crawl_has_reserved() {
    let (memory, begun) = (Memory::default(), Instant::now());
    let worker = beside_a_crawl(&memory, 35, 3).await;
    let calls = worker.until_ended(36).await;
    // Those of the crawl that are sent while each request of the program waits.
    let (mut sent, mut is_waiting) = (Vec::new(), false);
    for call in &calls {
        match call.as_str() {
            "program asks" => {
                is_waiting = true;
                sent.push(0);
            }
            "program may" => is_waiting = false,
            call if is_waiting && call.starts_with("ask for") => *sent.last_mut().unwrap() += 1,
            _ => {}
        }
    }
    // None, if the machine was so slow that the slot of the next one was due as well.
    assert!(sent.len() == 3 && sent.iter().all(|sent| *sent <= 1), "{sent:?}: {calls:#?}");
    let took = begun.elapsed().as_secs_f64();
    assert!((36.9..45.0).contains(&took), "38 requests, one a second: {took}");
}

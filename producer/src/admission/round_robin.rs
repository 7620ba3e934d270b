//! Turns parts of sources into bundles for admission, with hosts in round robin: workers that take messages
//! in this order ask many hosts at once, and no host's URLs hold up the others.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use trawl_common::web::url::authority;

use crate::finding::Finding;

/// Maximum number of findings in a bundle, which is one call of the frontier.
const MAX_BUNDLE: usize = 500;

/// The number of findings to mix, which may be slightly exceeded: the URLs of a few sitemaps.
const MAX_MIXED: usize = 4_000;

/// Bytes of payload for which a task or a request counts as one more finding: it may have a megabyte.
const WEIGHT_BYTES: usize = 4 * 1024;

/// Passes findings on until `limit` of them have passed or the run is stopped.
pub(crate) async fn run(
    mut parts: mpsc::Receiver<Vec<Finding>>,
    pass: mpsc::Sender<Vec<Finding>>,
    mut limit: u64,
    stop: CancellationToken,
) {
    let mut mix = RoundRobin::default();
    let mut is_open = true;
    while limit > 0 && (is_open || mix.count > 0) {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            // Receiving comes first: the more findings are mixed, the better.
            part = parts.recv(), if is_open && mix.weight < MAX_MIXED => {
                is_open = part.is_some();
                mix.add(part.unwrap_or_default());
            }
            permit = pass.reserve(), if mix.count > 0 => {
                let Ok(permit) = permit else { return };
                let bundle = mix.take(MAX_BUNDLE.min(usize::try_from(limit).unwrap_or(usize::MAX)));
                limit -= bundle.len() as u64;
                permit.send(bundle);
            }
        }
    }
}

/// Findings by host; invalid entries have no host.
#[derive(Default)]
struct RoundRobin {
    hosts: HashMap<Arc<str>, VecDeque<Finding>>,
    next_hosts: VecDeque<Arc<str>>,
    count: usize,
    /// Their total weight.
    weight: usize,
}

impl RoundRobin {
    fn add(&mut self, findings: Vec<Finding>) {
        self.count += findings.len();
        for finding in findings {
            self.weight += weight(&finding);
            let host = match &finding {
                Finding::Page(candidate) => authority(candidate.page.work.as_str()),
                Finding::Invalid { .. } => "",
            };
            if let Some(queue) = self.hosts.get_mut(host) {
                queue.push_back(finding);
                continue;
            }
            let host = Arc::from(host);
            self.next_hosts.push_back(Arc::clone(&host));
            self.hosts.insert(host, VecDeque::from([finding]));
        }
    }

    /// Takes up to `most` findings: one of each host, then another of each.
    fn take(&mut self, most: usize) -> Vec<Finding> {
        let mut taken = Vec::with_capacity(most.min(self.count));
        let mut taken_weight = 0;
        while taken.len() < most
            && taken_weight < MAX_BUNDLE
            && let Some(host) = self.next_hosts.pop_front()
        {
            let queue = self.hosts.get_mut(&host);
            let is_left = queue.is_some_and(|queue| {
                let next = queue.pop_front();
                taken_weight += next.as_ref().map_or(0, weight);
                taken.extend(next);
                !queue.is_empty()
            });
            if is_left {
                self.next_hosts.push_back(host);
            } else {
                self.hosts.remove(&host);
            }
        }
        self.count -= taken.len();
        self.weight -= taken_weight;
        taken
    }
}

/// Returns the number of findings that this one counts as.
pub(super) fn weight(finding: &Finding) -> usize {
    match finding {
        Finding::Page(candidate) => 1 + candidate.page.work.payload_bytes() / WEIGHT_BYTES,
        Finding::Invalid { .. } => 1,
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::lane::Lane;
    use trawl_common::ports::NewWork;

    use super::*;
    use crate::finding::Candidate;
    use crate::sources::read::PART_SIZE;

    fn pages(urls: &[&str]) -> Vec<Finding> {
        let page = |url: &&str| NewWork::seed(url.parse().unwrap(), Lane::Bulk);
        let finding = |url| Finding::Page(Candidate { page: page(url), ttl: None, modified: None });
        urls.iter().map(finding).collect()
    }

    #[test]
    fn hosts_alternate_and_each_keeps_its_order() {
        let mut mix = RoundRobin::default();
        mix.add(pages(&["http://a.example/1", "http://a.example/2", "http://a.example/3"]));
        mix.add(pages(&["http://b.example/1", "http://b.example/2", "http://c.example/1"]));
        let order = [
            "http://a.example/1",
            "http://b.example/1",
            "http://c.example/1",
            "http://a.example/2",
            "http://b.example/2",
            "http://a.example/3",
        ];
        assert_eq!(mix.take(4), pages(&order[..4]));
        assert_eq!(mix.take(4), pages(&order[4..]));
        assert_eq!(mix.count, 0);
    }

    #[tokio::test]
    async fn all_pass_or_as_many_as_are_asked_for() {
        for (limit, passing) in [(u64::MAX, 4 * PART_SIZE), (70, 70)] {
            let (send, parts) = mpsc::channel(4);
            let (pass, mut passed) = mpsc::channel(4);
            for _ in 0..4 {
                send.send(pages(&["http://a.example/"; PART_SIZE])).await.unwrap();
            }
            drop(send);
            run(parts, pass, limit, CancellationToken::new()).await;
            let mut count = 0;
            while let Some(bundle) = passed.recv().await {
                count += bundle.len();
            }
            assert_eq!(count, passing);
        }
    }
}

//! Stored requests: separate from URLs, which are stored as they were before requests existed.

use trawl_common::frontier::Request;
use trawl_common::request::NewRequest;

use super::*;

const PENDING: &str = "{crawled_urls}:pending:c";
const RECIPES: &str = "{crawled_urls}:recipes:c";

fn request(body: &str) -> Request {
    let new = NewRequest { body: body.to_owned().into(), ..NewRequest::get("") };
    Request::new(Fixture::url(0), new).unwrap()
}

impl Fixture {
    async fn hash(&self, key: &str) -> Vec<(String, String)> {
        self.ask(redis::cmd("HGETALL").arg(key)).await
    }

    /// Returns the keys of the server, except for those that no crawl adds to.
    async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.ask(redis::cmd("KEYS").arg("{crawled_urls}:*")).await;
        keys.sort();
        keys
    }
}

#[tokio::test]
async fn the_record_of_a_request_says_that_only_newer_programs_read_it() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    let request = request("a");
    let new = NewWork::new(request.clone().into(), Lane::Bulk);
    fixture.frontier.admit(&lease, std::slice::from_ref(&new)).await.unwrap();
    let key = request.key.to_string();
    let kept = async || fixture.hash(PENDING).await.remove(0);
    let (name, record) = kept().await;
    assert!(name == key && record.starts_with("v3 n"), "{record}");
    assert_eq!(fixture.hash(RECIPES).await, [(key.clone(), request.payload())]);
    let message = new.message(&fixture.crawl);
    fixture.frontier.confirm(std::slice::from_ref(&message)).await.unwrap();
    assert_eq!(kept().await.1, record.replace(" n", " q"));
    let reply = fixture.frontier.claim(&fixture.worker, &[message]).await.unwrap();
    assert!(matches!(reply[..], [ClaimReply::Take { .. }]), "{reply:?}");
    assert!(kept().await.1.starts_with("v3 h"));
}

#[tokio::test]
async fn a_url_is_kept_as_it_was_before_there_were_requests() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    let before = fixture.keys().await;
    fixture.frontier.admit(&lease, &[NewWork::seed(Fixture::url(1), Lane::Bulk)]).await.unwrap();
    let (url, record) = fixture.hash(PENDING).await.remove(0);
    let is_short =
        record.len() == 14 && record.starts_with('n') && record[1..].bytes().all(|b| b.is_ascii_digit());
    assert!(is_short, "{record}");
    assert_eq!(url, Fixture::url(1).as_str());
    let mut after = fixture.keys().await;
    after.retain(|key| !before.contains(key));
    assert_eq!(
        after,
        ["{crawled_urls}:hosts:c", "{crawled_urls}:outbox", PENDING],
        "nothing else is kept of it"
    );
}

//! Hosts: blocked after a confirmation, and unblocked.

use crate::fixture::{Fixture, OPERATOR};

#[tokio::test]
async fn a_host_is_blocked_after_a_question_and_unblocked() {
    let console = Fixture::fleet().await;
    let anna = console.log_in(OPERATOR).await;
    let (ask, host) = ("/hosts/block?host=slow.example", "/hosts?host=slow.example");
    assert!(anna.get(ask).await.has("Block slow.example?"));
    assert!(anna.get(host).await.has("Nothing is known of slow.example"));
    assert_eq!(anna.submit(ask, "/hosts/block", &[]).await.location(), host);
    let shown = anna.get(host).await;
    assert!(shown.has(">blocked<"), "{}", shown.text);
    assert_eq!(anna.submit("/hosts", "/hosts/unblock", &[]).await.location(), host);
    assert!(!anna.get(host).await.has(">blocked<"));
}

#[tokio::test]
async fn what_is_no_host_is_said_to_be_none() {
    let console = Fixture::open().await;
    for nonsense in ["a+b", "*", "..", "*.example.com", "%3Cb%3E"] {
        let ask = format!("/hosts/block?host={nonsense}");
        let shown = console.nobody().submit(&ask, "/hosts/block", &[]).await;
        assert_eq!(shown.status, 404, "{nonsense}: {}", shown.text);
        assert!(shown.has("is no host"), "{nonsense}: {}", shown.text);
    }
    assert!(console.backend.hosts.hosts().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_thousand_hosts_come_in_pages() {
    let console = Fixture::open().await;
    for number in 0..1000 {
        let key = console.backend.settings.politeness.host_key(&format!("h{number}.example")).unwrap();
        console.backend.hosts.block(&key).await.unwrap();
    }
    let shown = console.nobody().get("/hosts").await;
    assert_eq!(shown.text.matches("<th scope=\"row\"").count(), 100);
    assert!(shown.has("rel=\"next\""));
}

//! Values in Redis that are larger than any that trawl writes.

use trawl_common::ports::ErrorKind;

use super::*;

#[tokio::test]
async fn no_more_is_read_of_a_value_than_trawl_writes() {
    let server = servers::own_database().await;
    let client = redis::Client::open(server.reveal()).unwrap();
    let mut writer = client.get_multiplexed_async_connection().await.unwrap();
    let redis = link(server).await;
    let url: CanonicalUrl = "http://site.example/large".parse().unwrap();
    let head =
        br#"{"status":200,"redirected_to":null,"fetched_at":1,"address":null,"length":5,"encoding":"plain"}"#;
    let robots = RobotsKey::origin(&url.origin());
    for (key, start) in [
        (format!("content:{url}"), [&head[..], b"\n"].concat()),
        (format!("robots:{robots}"), b"200\n".to_vec()),
    ] {
        let () = redis::cmd("SET").arg(&key).arg(start).query_async(&mut writer).await.unwrap();
        // The rest of the value is zeros.
        let () = redis::cmd("SETRANGE")
            .arg(&key)
            .arg(100_000_000)
            .arg("x")
            .query_async(&mut writer)
            .await
            .unwrap();
    }
    let cached = RedisCache::new(redis.clone(), Encoding::Plain).get(&url).await;
    assert_eq!(cached.unwrap_err().kind, ErrorKind::Corrupt);
    let file = RedisHosts::new(redis, 100_000_000).robots(&robots, Duration::from_secs(1)).await;
    assert_eq!(file.unwrap_err().kind, ErrorKind::Corrupt);
}

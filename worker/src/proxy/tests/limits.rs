//! Tests of the limits on programs, and of the resources left for the others.

use super::super::credentials::MAX_CONNECTIONS;
use super::*;

fn slow() -> Plan {
    Plan { latency: Duration::from_secs(600), ..pages() }
}

/// Waits until this many requests are in flight at the only host.
async fn until_under_way(fixture: &Fixture, site: &ManyHosts, count: u64) {
    let waiting = async {
        while fixture.requests_under_way(&site.host(0)).await != count {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, waiting).await.unwrap();
}

fn ten_a_second(settings: &mut Settings) {
    settings.politeness.rate = "10/s".parse().unwrap();
}

#[tokio::test]
async fn who_goes_away_leaves_nothing_in_flight() {
    let (site, fixture) = (site(slow()).await, Fixture::new(ten_a_second));
    let run = fixture.run();
    let mut stream = run.connect().await;
    let request = run.head(&format!("GET {}", site.url(0, "/page/1")));
    stream.write_all(request.as_bytes()).await.unwrap();
    timeout(LIMIT, site.asked_for(1)).await.unwrap();
    assert_eq!(fixture.requests_under_way(&site.host(0)).await, 1);
    drop(stream);
    until_under_way(&fixture, &site, 0).await;
}

#[tokio::test]
async fn a_run_that_ends_leaves_nothing_in_flight() {
    let (site, fixture) = (site(slow()).await, Fixture::new(ten_a_second));
    let run = fixture.run();
    let (mut asks, mut tunnels) = (run.connect().await, BufReader::new(run.connect().await));
    let request = run.head(&format!("GET {}", site.url(0, "/page/1")));
    asks.write_all(request.as_bytes()).await.unwrap();
    let host = site.url(0, "").trim_start_matches("http://").to_owned();
    tunnels.write_all(run.head(&format!("CONNECT {host}")).as_bytes()).await.unwrap();
    assert_eq!(read(&mut tunnels).await.status, 200);
    timeout(LIMIT, site.asked_for(1)).await.unwrap();
    assert_eq!(fixture.requests_under_way(&site.host(0)).await, 2);
    // Processes that it started may still hold the connections.
    drop(run);
    until_under_way(&fixture, &site, 0).await;
    assert_eq!(timeout(LIMIT, tunnels.read(&mut [0])).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_run_has_so_many_connections_and_others_have_theirs() {
    let (site, fixture) = (site(pages()).await, Fixture::new(|_| {}));
    let (greedy, other) = (fixture.run(), fixture.run());
    let host = site.url(0, "").trim_start_matches("http://").to_owned();
    let mut tunnels = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut tunnel = BufReader::new(greedy.connect().await);
        tunnel.write_all(greedy.head(&format!("CONNECT {host}")).as_bytes()).await.unwrap();
        assert_eq!(read(&mut tunnel).await.status, 200);
        tunnels.push(tunnel);
    }
    let got = greedy.get(&site.url(0, "/page/1")).await;
    assert_eq!((got.status, got.head.contains("connection_limit_reached")), (503, true), "{got:?}");
    assert_eq!(other.get(&site.url(0, "/page/1")).await.status, 200);
    drop(tunnels);
    let again = async { while greedy.get(&site.url(0, "/page/1")).await.status == 503 {} };
    timeout(LIMIT, again).await.unwrap();
}

#[tokio::test]
async fn who_says_nothing_reads_nothing_or_floods_keeps_nobody_waiting() {
    let (site, fixture) = (site(pages()).await, Fixture::new(|_| {}));
    let (hostile, other) = (fixture.run(), fixture.run());
    let mut held = Vec::new();
    for _ in 0..60 {
        // Slow: half a head.
        let mut stream = hostile.connect().await;
        stream.write_all(b"GET http://x/ HTTP/1.1\r\nA: ").await.unwrap();
        held.push(stream);
        // Never reads its responses.
        let mut stream = hostile.connect().await;
        let request = hostile.head(&format!("GET {}", site.url(0, "/page/1")));
        for _ in 0..20 {
            stream.write_all(request.as_bytes()).await.unwrap();
        }
        held.push(stream);
    }
    // An endless head.
    let mut flood = BufReader::new(hostile.connect().await);
    flood.write_all(b"GET http://x/ HTTP/1.1\r\n").await.unwrap();
    let line = format!("{}: {}\r\n", "a".repeat(100), "b".repeat(8_000));
    while flood.write_all(line.as_bytes()).await.is_ok() {
        let refused = timeout(Duration::from_millis(20), flood.fill_buf()).await;
        if refused.is_ok() {
            break;
        }
    }
    assert_eq!(other.get(&site.url(0, "/page/2")).await.status, 200);
}

/// Another user of the machine can open any number of connections, and needs no credentials for it.
#[tokio::test]
async fn half_heads_of_nobody_known_hold_up_no_run() {
    let (site, fixture) = (site(pages()).await, Fixture::new(|_| {}));
    let run = fixture.run();
    let mut kept = BufReader::new(run.connect().await);
    let _ = kept.write_all(b"GET http://x/ HTTP/1.1\r\nA: ").await;
    let mut known = BufReader::new(run.connect().await);
    known.write_all(run.head(&format!("GET {}", site.url(0, "/page/1"))).as_bytes()).await.unwrap();
    assert_eq!(read(&mut known).await.status, 200);
    let mut held = Vec::new();
    for _ in 0..700 {
        let mut stream = run.connect().await;
        let _ = stream.write_all(b"GET http://x/ HTTP/1.1\r\nA: ").await;
        held.push(stream);
    }
    assert_eq!(run.get(&site.url(0, "/page/2")).await.status, 200);
    known.write_all(run.head(&format!("GET {}", site.url(0, "/page/3"))).as_bytes()).await.unwrap();
    assert_eq!(read(&mut known).await.status, 200, "a connection of a run goes on");
    let ended = timeout(LIMIT, kept.read(&mut [0])).await.unwrap();
    assert!(matches!(ended, Ok(0) | Err(_)), "the oldest half head has made room");
}

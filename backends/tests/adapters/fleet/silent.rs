//! A broker that stops answering, while its connections and heartbeats continue.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use trawl_backends::rabbitmq::RabbitMq;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{ErrorKind, Result};
use trawl_common::settings::{self, Items, Queues, ServerUrl};
use trawl_engine::Broker;
use trawl_testkit::servers::VirtualHost;

/// Up to four calls in a row may wait for an answer before the program gives up, half a minute each; two of them
/// declare streams that are not needed yet.
const LIMIT: Duration = Duration::from_secs(4 * 30 + 30);

/// The type of a heartbeat frame.
const HEARTBEAT: u8 = 8;

/// Starts a proxy that forwards `frames` frames of the broker, counted over all connections, and after that only
/// heartbeats.
async fn silent_after(broker: &ServerUrl, frames: usize) -> (ServerUrl, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap();
    let (before, rest) = broker.reveal().split_once('@').unwrap();
    let (to, vhost) = rest.split_once('/').unwrap();
    let to: SocketAddr = to.replace("localhost", "127.0.0.1").parse().unwrap();
    let url = ServerUrl::new(format!("{before}@{own}/{vhost}"));
    let passed = Arc::<AtomicUsize>::default();
    let counting = Arc::clone(&passed);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (from_client, to_client) = client.into_split();
            let (from_broker, to_broker) = TcpStream::connect(to).await.unwrap().into_split();
            tokio::spawn(pass_on(from_client, to_broker));
            tokio::spawn(fall_silent(from_broker, to_client, Arc::clone(&counting), frames));
        }
    });
    (url, passed)
}

async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = copy(&mut from, &mut to).await;
}

async fn fall_silent(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    passed: Arc<AtomicUsize>,
    frames: usize,
) -> std::io::Result<()> {
    loop {
        let mut frame = vec![0; 7];
        from.read_exact(&mut frame).await?;
        let size = u32::from_be_bytes(frame[3..7].try_into().unwrap()) as usize;
        frame.resize(7 + size + 1, 0);
        from.read_exact(&mut frame[7..]).await?;
        if frame[0] == HEARTBEAT || passed.fetch_add(1, Ordering::Relaxed) < frames {
            to.write_all(&frame).await?;
        }
    }
}

/// Connects, publishes, consumes and acknowledges.
async fn go(url: ServerUrl) -> Result<()> {
    let broker = settings::RabbitMq { url, ..settings::RabbitMq::default() };
    let queue = RabbitMq::connect(&broker, &Queues::default(), &Items::default()).await?;
    let url = "https://site.example/".parse().unwrap();
    queue.publish(&[Message::seed(url, CrawlRef::adhoc(), Lane::Bulk)]).await?;
    queue.consume(10, 0).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_waits_for_ever_whichever_answer_does_not_come() {
    let vhost = VirtualHost::new().await;
    let (url, passed) = silent_after(&vhost.url, usize::MAX).await;
    go(url).await.unwrap();
    let all = passed.load(Ordering::Relaxed);
    assert!(all > 30, "{all} frames");
    // Each frame of the handshake and of the last steps; only every seventh of the many declarations.
    let frames = (0..all - 2).filter(|frame| *frame < 10 || frame + 14 > all || frame % 7 == 0);
    let broker = &vhost.url;
    let going = frames.map(|frames| async move {
        let (url, _) = silent_after(broker, frames).await;
        let gone = timeout(LIMIT, go(url)).await;
        let error = gone.unwrap_or_else(|_| panic!("silent after {frames} frames: no end")).err();
        (frames, error)
    });
    for (frames, error) in join_all(going.collect::<Vec<_>>()).await {
        assert!(
            error.as_ref().is_none_or(|error| error.kind == ErrorKind::Unavailable),
            "silent after {frames} of {all}: {error:?}"
        );
        assert!(error.is_some() || frames + 6 > all, "silent after {frames} of {all}: nothing was missing");
    }
}

//! What the producer is measured against: bare publishing to a quorum queue, with a window of confirms and nothing else.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, PublisherConfirm};

/// Publishes every URL of a list to a queue of its own, and removes it.
#[derive(Parser)]
struct Arguments {
    /// The list, one URL a line.
    urls: PathBuf,
    /// The broker.
    #[arg(long, env = "RABBITMQ_URL")]
    rabbitmq: String,
    /// How many messages may be without a confirm.
    #[arg(long, default_value_t = 800)]
    window: usize,
}

const QUEUE: &str = "bench.publish";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Arguments { urls, rabbitmq, window } = Arguments::parse();
    let connection = Connection::connect(&rabbitmq, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let mut quorum = FieldTable::default();
    quorum.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    channel.queue_declare(QUEUE.into(), durable, quorum).await?;
    let urls = std::fs::read_to_string(urls)?;
    let from = Instant::now();
    let mut waiting = VecDeque::with_capacity(window);
    for url in urls.lines() {
        if waiting.len() >= window
            && let Some(oldest) = waiting.pop_front()
        {
            confirmed(oldest).await?;
        }
        waiting.push_back(publish(&channel, url).await?);
    }
    for confirm in waiting {
        confirmed(confirm).await?;
    }
    eprintln!("{} URLs in {:.3} s", urls.lines().count(), from.elapsed().as_secs_f64());
    channel.queue_delete(QUEUE.into(), QueueDeleteOptions::default()).await?;
    Ok(())
}

async fn publish(channel: &Channel, url: &str) -> lapin::Result<PublisherConfirm> {
    let persistent = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    channel.basic_publish("".into(), QUEUE.into(), options, url.as_bytes(), persistent).await
}

async fn confirmed(confirm: PublisherConfirm) -> Result<(), Box<dyn std::error::Error>> {
    match confirm.await? {
        Confirmation::Ack(None) => Ok(()),
        other => Err(format!("not confirmed: {other:?}").into()),
    }
}

//! The baseline for the producer: bare publishing to the same queue, with a window of confirms and nothing else.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, PublisherConfirm};
use trawl_backends::rabbitmq::RabbitMq;
use trawl_common::settings::{self, Items, Queues, ServerUrl};

/// Publishes every URL of a list to the queue of the bulk lane.
#[derive(Parser)]
struct Arguments {
    /// The list, one URL a line.
    urls: PathBuf,
    /// The broker.
    #[arg(long, env = "RABBITMQ_URL")]
    rabbitmq: String,
    /// Maximum number of unconfirmed messages.
    #[arg(long, default_value_t = 800)]
    window: usize,
}

const QUEUE: &str = "url_queue_ttl";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Arguments { urls, rabbitmq, window } = Arguments::parse();
    let broker =
        settings::RabbitMq { url: ServerUrl::new(rabbitmq.as_str()), ..settings::RabbitMq::default() };
    // Declares the queues.
    drop(RabbitMq::connect(&broker, &Queues::default(), &Items::default()).await?);
    let connection = Connection::connect(&rabbitmq, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
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

//! Consuming: four queues on one channel, the urgent ones first.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures::Stream;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection};
use trawl_common::line::Line;
use trawl_common::ports::{Consumer, Delivery, Error, ErrorKind, Receipt, Result};

use super::acks::{Ack, Acks};
use super::connection::failed;
use super::{codec, names};

/// The channel that deliveries come from and acks go to. A receipt of an older session is void: the
/// broker has put its message back.
pub(super) struct Session {
    pub(super) id: u64,
    /// Closes when dropped.
    _connection: Connection,
    channel: Channel,
    acks: Mutex<Acks>,
}

impl Session {
    pub(super) async fn open(
        id: u64,
        connection: Connection,
        prefetch: u16,
    ) -> Result<(Self, RabbitConsumer)> {
        let channel = connection.create_channel().await.map_err(failed)?;
        // Not global: each consumer that follows gets a window of its own.
        channel.basic_qos(prefetch, BasicQosOptions::default()).await.map_err(failed)?;
        let mut streams = Vec::new();
        for line in Line::ALL {
            let queue = names::line(line);
            let options = BasicConsumeOptions::default();
            let tag = format!("trawl.{queue}");
            let stream =
                channel.basic_consume(queue.into(), tag.into(), options, FieldTable::default()).await;
            streams.push((line, stream.map_err(failed)?));
        }
        // A quarter of the window may wait for a straggler before acks are sent singly.
        let acks = Mutex::new(Acks::new(usize::from(prefetch) / 4));
        let session = Self { id, _connection: connection, channel, acks };
        Ok((session, RabbitConsumer { session: id, streams }))
    }

    pub(super) async fn ack(&self, tags: impl IntoIterator<Item = u64>) -> Result<()> {
        let acks = self.tracker().settle(tags);
        self.send(acks).await
    }

    pub(super) async fn release(&self, tags: impl IntoIterator<Item = u64>) -> Result<()> {
        for tag in tags {
            let options = BasicNackOptions { requeue: true, multiple: false };
            self.channel.basic_nack(tag, options).await.map_err(failed)?;
            let ack = self.tracker().returned(tag);
            self.send(ack).await?;
        }
        let held_back = self.tracker().flush();
        self.send(held_back).await
    }

    async fn send(&self, acks: impl IntoIterator<Item = Ack>) -> Result<()> {
        for Ack { tag, multiple } in acks {
            self.channel.basic_ack(tag, BasicAckOptions { multiple }).await.map_err(failed)?;
        }
        Ok(())
    }

    fn tracker(&self) -> std::sync::MutexGuard<'_, Acks> {
        self.acks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The deliveries of one session.
pub(super) struct RabbitConsumer {
    session: u64,
    streams: Vec<(Line, lapin::Consumer)>,
}

#[async_trait]
impl Consumer for RabbitConsumer {
    async fn next(&mut self, max: usize) -> Result<Vec<Delivery>> {
        std::future::poll_fn(|context| self.poll_batch(context, max)).await
    }
}

impl RabbitConsumer {
    /// Takes what is there, in the order of the streams. Nothing is held across a wait, so a cancelled
    /// call has taken nothing.
    fn poll_batch(&mut self, context: &mut Context<'_>, max: usize) -> Poll<Result<Vec<Delivery>>> {
        let mut batch = Vec::new();
        for (line, stream) in &mut self.streams {
            while batch.len() < max {
                match Pin::new(&mut *stream).poll_next(context) {
                    Poll::Ready(Some(Ok(delivery))) => batch.push(Delivery {
                        receipt: Receipt { session: self.session, tag: delivery.delivery_tag },
                        content: codec::content(&delivery, *line),
                    }),
                    // What was taken comes again after the reconnect that the error asks for.
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(failed(error))),
                    Poll::Ready(None) => return Poll::Ready(Err(cancelled(stream))),
                    Poll::Pending => break,
                }
            }
        }
        if batch.is_empty() { Poll::Pending } else { Poll::Ready(Ok(batch)) }
    }
}

fn cancelled(stream: &lapin::Consumer) -> Error {
    let text = format!("rabbitmq ended the consumer of {}: the queue was deleted or moved", stream.queue());
    Error::new(ErrorKind::Unavailable, text)
}

/// The session that is open now.
#[derive(Default)]
pub(super) struct Current(Mutex<Option<Arc<Session>>>);

impl Current {
    pub(super) fn set(&self, session: Session) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(session));
    }

    pub(super) fn get(&self) -> Option<Arc<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

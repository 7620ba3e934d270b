//! Consuming: five queues and the lanes' inlets on one channel, the urgent ones first, and after them the queues
//! of other programs.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures::Stream;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::FieldTable;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::metrics;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::Topology;
use trawl_common::trace;
use trawl_engine::{Consumer, Content, Delivery, Receipt};

use super::acks::{Ack, Acks};
use super::channel::answered;
use super::codec::Trust;
use super::connection::failed;
use super::erased::{Channel, Connection, Incoming};
use super::layout::Layout;
use super::{codec, names, passive};

/// The interval of checks for a queue of another program that does not exist yet.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum time that an acknowledgement is held back, so that one can be sent for many.
const MAX_ACK_DELAY: Duration = Duration::from_millis(50);

/// The channel for deliveries and acknowledgements. A receipt of an older session is void: the broker has put its
/// message back.
pub(super) struct ConsumerSession {
    pub(super) id: u64,
    /// Closes when dropped.
    connection: Connection,
    channel: Channel,
    /// Locked until its acknowledgements are sent. Otherwise another task could first send one for many that
    /// covers a later one, and the broker closes a channel that acknowledges twice.
    acks: AsyncMutex<Acks>,
    /// Whether held-back acknowledgements are about to be sent.
    is_flushing: AtomicBool,
}

impl ConsumerSession {
    pub(super) async fn open(
        id: u64,
        connection: Connection,
        (prefetch, tasks): (u16, u16),
        layout: &Arc<Layout>,
        trust: &Trust,
    ) -> Result<(Arc<Self>, RabbitConsumer)> {
        let channel = connection.channel().await?;
        // A quarter of the window may wait for a straggler before acknowledgements are sent singly.
        let acks = AsyncMutex::new(Acks::new(usize::from(prefetch) / 4));
        let is_flushing = AtomicBool::new(false);
        let session = Arc::new(Self { id, connection, channel, acks, is_flushing });
        let mut streams = Vec::new();
        let window = |source| if source == SourceQueue::Task { tasks } else { prefetch };
        for source in SourceQueue::ALL.into_iter().filter(|source| window(*source) > 0) {
            // Not global: each consumer that follows gets its own window.
            let options = BasicQosOptions::default();
            answered(session.channel.basic_qos(window(source), options)).await.map_err(failed)?;
            streams.push((source, session.consume(names::source(source)).await?));
            if let Some(inlet) = names::inlet(source)
                && session.has_inlet(inlet, layout).await?
            {
                streams.push((source, session.consume(inlet).await?));
            }
        }
        let (tell, found) = mpsc::unbounded_channel();
        let search = tokio::spawn(search(Arc::clone(&session), Arc::clone(layout), tell));
        let _search = AbortOnDropHandle::new(search);
        Ok((session, RabbitConsumer { session: id, trust: trust.clone(), streams, found, _search }))
    }

    /// Returns whether there is this inlet. If another program declares the queues, it may not know of inlets.
    async fn has_inlet(&self, inlet: &str, layout: &Layout) -> Result<bool> {
        match layout.queues.topology {
            Topology::Declare => Ok(true),
            Topology::Passive => passive::exists(&self.connection, inlet).await,
        }
    }

    async fn consume(&self, queue: &str) -> Result<Incoming> {
        let (tag, options) = (format!("trawl.{queue}"), BasicConsumeOptions::default());
        self.channel.consume(queue, tag, options, FieldTable::default()).await
    }

    /// Acknowledges deliveries, at once or after a moment.
    pub(super) async fn ack(self: &Arc<Self>, tags: impl IntoIterator<Item = u64>) -> Result<()> {
        let mut count = 0;
        let mut acks = self.acks.lock().await;
        let send = acks.settle(tags.into_iter().inspect(|_| count += 1));
        self.send(send).await?;
        metrics::acked(count);
        if acks.holds_back() && !self.is_flushing.swap(true, Ordering::Relaxed) {
            tokio::spawn(Arc::clone(self).flush_soon());
        }
        Ok(())
    }

    /// Sends held-back acknowledgements after a moment. If stragglers and held-back ones fill the window, nothing
    /// else would send them.
    async fn flush_soon(self: Arc<Self>) {
        tokio::time::sleep(MAX_ACK_DELAY).await;
        let mut acks = self.acks.lock().await;
        self.is_flushing.store(false, Ordering::Relaxed);
        let held_back = acks.flush();
        // The consumer notices that the channel is broken.
        let _ = self.send(held_back).await;
    }

    pub(super) async fn release(&self, tags: impl IntoIterator<Item = u64>) -> Result<()> {
        let mut acks = self.acks.lock().await;
        for tag in tags {
            let options = BasicNackOptions { requeue: true, multiple: false };
            answered(self.channel.basic_nack(tag, options)).await.map_err(failed)?;
            let send = acks.returned(tag);
            self.send(send).await?;
        }
        let held_back = acks.flush();
        self.send(held_back).await
    }

    /// Sends held-back acknowledgements and closes the channel. The broker answers when it has handled them.
    pub(super) async fn close(&self) -> Result<()> {
        let held_back = self.acks.lock().await.flush();
        self.send(held_back).await?;
        answered(self.channel.close(200, "the worker ends".into())).await.map_err(failed)
    }

    async fn send(&self, acks: impl IntoIterator<Item = Ack>) -> Result<()> {
        for Ack { tag, multiple } in acks {
            answered(self.channel.basic_ack(tag, BasicAckOptions { multiple })).await.map_err(failed)?;
        }
        Ok(())
    }
}

/// Consumes the queues of other programs that settings name, each once it exists: they may be declared later.
async fn search(session: Arc<ConsumerSession>, layout: Arc<Layout>, tell: mpsc::UnboundedSender<Incoming>) {
    let mut missing: Vec<&str> = layout.queues.listen.iter().map(|queue| queue.as_str()).collect();
    loop {
        let mut still = Vec::new();
        for queue in missing {
            match look(&session, queue).await {
                Ok(Some(consumer)) => {
                    info!(queue, "listening to a queue of another program");
                    // Nobody consumes from a session that is over.
                    let _ = tell.send(consumer);
                }
                Ok(None) => {
                    if layout.is_news(queue) {
                        warn!(
                            queue,
                            "queues.listen: there is no such queue yet; it is looked for every few seconds"
                        );
                    }
                    still.push(queue);
                }
                Err(error) => {
                    debug!(queue, %error, "cannot look for a queue of another program");
                    still.push(queue);
                }
            }
        }
        if still.is_empty() {
            return;
        }
        missing = still;
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

async fn look(session: &ConsumerSession, queue: &str) -> Result<Option<Incoming>> {
    match passive::exists(&session.connection, queue).await? {
        true => session.consume(queue).await.map(Some),
        false => Ok(None),
    }
}

/// The deliveries of one session.
pub(super) struct RabbitConsumer {
    session: u64,
    trust: Trust,
    streams: Vec<(SourceQueue, Incoming)>,
    /// Queues of other programs, as they are found.
    found: mpsc::UnboundedReceiver<Incoming>,
    _search: AbortOnDropHandle<()>,
}

#[async_trait]
impl Consumer for RabbitConsumer {
    async fn next(&mut self, max: usize) -> Result<Vec<Delivery>> {
        std::future::poll_fn(|context| self.poll_batch(context, max)).await
    }
}

impl RabbitConsumer {
    /// Takes the available deliveries, in the order of the streams. Nothing is held across a wait, so a cancelled
    /// call has taken nothing.
    fn poll_batch(&mut self, context: &mut Context<'_>, max: usize) -> Poll<Result<Vec<Delivery>>> {
        while let Poll::Ready(Some(stream)) = self.found.poll_recv(context) {
            self.streams.push((SourceQueue::Bulk, stream));
        }
        let mut batch = Vec::new();
        for (source, stream) in &mut self.streams {
            while batch.len() < max {
                match Pin::new(&mut **stream).poll_next(context) {
                    Poll::Ready(Some(Ok(delivery))) => {
                        let receipt = Receipt { session: self.session, tag: delivery.delivery_tag };
                        let content = codec::content(&delivery, *source, &self.trust);
                        if let Content::Message(message) = &content
                            && message.trace.is_some()
                        {
                            trace::waited(message, stream.queue().as_str());
                        }
                        batch.push(Delivery { receipt, content });
                    }
                    // The taken deliveries come again after the reconnect that the error causes.
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(failed(error))),
                    Poll::Ready(None) => return Poll::Ready(Err(cancelled(stream))),
                    Poll::Pending => break,
                }
            }
        }
        if batch.is_empty() {
            return Poll::Pending;
        }
        // The bulk lane, its inlet and the queues of other programs take turns.
        if let Some(first) = self.streams.iter().position(|(source, _)| *source == SourceQueue::Bulk) {
            self.streams[first..].rotate_left(1);
        }
        Poll::Ready(Ok(batch))
    }
}

fn cancelled(stream: &Incoming) -> Error {
    let text = format!("rabbitmq ended the consumer of {}: the queue was deleted or moved", stream.queue());
    Error::new(ErrorKind::Unavailable, text)
}

/// The session that is open now.
#[derive(Default)]
pub(super) struct Current(Mutex<Option<Arc<ConsumerSession>>>);

impl Current {
    pub(super) fn set(&self, session: Arc<ConsumerSession>) {
        *self.0.lock() = Some(session);
    }

    pub(super) fn get(&self) -> Option<Arc<ConsumerSession>> {
        self.0.lock().clone()
    }
}

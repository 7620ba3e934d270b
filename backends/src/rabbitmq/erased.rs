//! Connections and channels behind types that the compiler need not look into.
//!
//! It proves anew for each function that its future may move between threads, down to the last field of what that holds.
//! For the types of lapin, which hold each other, this takes seconds for each: two minutes of this crate's three. So
//! they are held erased, calls of theirs are boxed ([`answered`]), and so are the calls that most others make.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::BasicConsumeOptions;
use lapin::types::FieldTable;
use trawl_common::ports::Result;

use super::channel::answered;
use super::connection::failed;

/// A connection to the broker. Closes when dropped.
pub(super) type Connection = Erased<lapin::Connection>;

/// A channel of a connection.
pub(super) type Channel = Erased<lapin::Channel>;

/// The deliveries to a consumer on a channel.
pub(super) type Incoming = Erased<lapin::Consumer>;

/// A value behind a type that says only that it may be sent and shared.
pub(super) struct Erased<T>(Box<dyn Any + Send + Sync>, PhantomData<fn() -> T>);

impl<T: Send + Sync + 'static> Erased<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Box::new(value), PhantomData)
    }
}

impl Connection {
    /// Opens a channel.
    pub(super) fn channel(&self) -> BoxFuture<'_, Result<Channel>> {
        async { Ok(Channel::new(answered(self.create_channel()).await.map_err(failed)?)) }.boxed()
    }
}

impl Channel {
    /// Starts to consume a queue. Without a tag the broker makes one.
    pub(super) fn consume<'a>(
        &'a self,
        queue: &'a str,
        tag: String,
        options: BasicConsumeOptions,
        arguments: FieldTable,
    ) -> BoxFuture<'a, Result<Incoming>> {
        let consuming = self.basic_consume(queue.into(), tag.into(), options, arguments);
        async { Ok(Incoming::new(answered(consuming).await.map_err(failed)?)) }.boxed()
    }
}

impl Incoming {
    /// Awaits the next message; `None` if the consumer is cancelled. A cancelled call has taken nothing.
    pub(super) fn next(&mut self) -> BoxFuture<'_, Option<lapin::Result<Delivery>>> {
        (**self).next().boxed()
    }
}

impl<T: Clone + Send + Sync + 'static> Clone for Erased<T> {
    fn clone(&self) -> Self {
        Self::new((**self).clone())
    }
}

impl<T: 'static> Deref for Erased<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.downcast_ref().expect("it was made of this type")
    }
}

impl<T: 'static> DerefMut for Erased<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.downcast_mut().expect("it was made of this type")
    }
}

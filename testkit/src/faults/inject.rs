//! Injects one fault, and returns when the damage is repaired.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::broker::{Broker, QUEUES};
use super::database::Database;
use super::fleet::{Fleet, Programs, Running};
use super::kind::{Kind, Subject};
use super::ledger::{Injected, SETTLING};
use super::operator::{HAD_LEAVE, Operator};
use super::plan::Step;
use super::private::{POLL_INTERVAL, PrivateServers};
use super::proxy::{Mode, Proxy};
use super::replies::ReplyLoser;
use super::signal::Signal;
use super::store::Store;
use super::timeline::Timeline;

/// Delay between two signals.
const IMPATIENCE: Duration = Duration::from_millis(100);
/// Time after which a replaced worker is running, and has received messages.
const WORKER_STARTS: Duration = Duration::from_millis(1500);
/// Maximum time until the reply that is to be lost comes.
const REPLIES_COME: Duration = Duration::from_secs(5);
/// Maximum time until the producer that is to be hit has started.
const PRODUCER_STARTS: Duration = Duration::from_secs(3);

/// Multiple of `recovery.lost_after` after which RabbitMQ has again the messages of a paused crawl that it lost: the
/// fleet checks for them every eight, and on a busy machine a check may come late.
const WHOLE_AGAIN: u32 = 16;

/// The reply to lose is chosen among this number of replies.
const REPLIES: u64 = 100;

/// Number of pages that a worker fetches at once.
pub const CONCURRENCY: usize = 8;
/// Number of messages that a worker is sent ahead.
pub const PREFETCH: usize = 32;

/// The servers. Redis and RabbitMQ are behind proxies.
pub struct Injector {
    /// Redis.
    pub store: Store,
    /// The proxy that the fleet takes for Redis.
    pub store_proxy: Proxy,
    /// The proxy between that and Redis.
    replies: ReplyLoser,
    /// RabbitMQ.
    pub broker: Broker,
    /// The proxy that the fleet takes for RabbitMQ.
    pub broker_proxy: Proxy,
    /// PostgreSQL, if a crawl stores in it.
    pub database: Option<Database>,
    /// Gives orders about crawls and hosts.
    pub operator: Operator,
    lost_after: Duration,
    start: Instant,
}

impl Injector {
    /// Starts the servers; PostgreSQL only if `has_database`. Times are since `start`; `lost_after` is the fleet's
    /// `recovery.lost_after`.
    ///
    /// # Errors
    /// If one does not start.
    pub async fn set_up(
        servers: &Arc<PrivateServers>,
        lost_after: Duration,
        start: Instant,
        has_database: bool,
    ) -> io::Result<Self> {
        let database = async {
            match has_database {
                true => Database::start(Arc::clone(servers)).await.map(Some),
                false => Ok(None),
            }
        };
        let (store, broker, database) = tokio::try_join!(
            Store::start(Arc::clone(servers)),
            Broker::start(Arc::clone(servers)),
            database
        )?;
        let replies = ReplyLoser::start(servers.store).await?;
        let store_proxy = Proxy::start(replies.address).await?;
        let broker_proxy = Proxy::start(servers.broker).await?;
        let operator = Operator::new(start);
        Ok(Self { store, store_proxy, replies, broker, broker_proxy, database, operator, lost_after, start })
    }

    /// Returns the settings of every program of the fleet, as environment variables.
    pub fn env(&self) -> Vec<(String, String)> {
        let own = |name: &str, value: String| (name.to_owned(), value);
        let database = self.database.as_ref();
        let database = database.map(|database| own("POSTGRES_URL", database.url().reveal().to_owned()));
        let settings = [
            own("RABBITMQ_URL", format!("amqp://guest:guest@{}/%2f", self.broker_proxy.address)),
            own("REDIS_URL", format!("redis://{}/0", self.store_proxy.address)),
            own("TRAWL__RECOVERY__LOST_AFTER", format!("{}ms", self.lost_after.as_millis())),
            own("TRAWL__FETCH__ALLOW_PRIVATE", "true".to_owned()),
            // The site delays sitemaps until the crawl has caught up.
            own("TRAWL__FETCH__TIMEOUT", "1h".to_owned()),
            own("TRAWL__POLITENESS__RATE", "unlimited".to_owned()),
            // Workers have names of their own, which the files of spiders with programs ask for.
            own("TRAWL__FETCH__USER_AGENT", "producer".to_owned()),
            own("TRAWL__RETRY__BACKOFF", "100ms".to_owned()),
            // Each fetch must reach the site's log.
            own("TRAWL__CACHE__TTL", "0s".to_owned()),
            own("TRAWL__WORKER__CONCURRENCY", CONCURRENCY.to_string()),
            own("TRAWL__WORKER__PREFETCH", PREFETCH.to_string()),
            own("TRAWL__WORKER__SHUTDOWN_TIMEOUT", "5s".to_owned()),
        ];
        settings.into_iter().chain(database).collect()
    }

    /// Injects one fault.
    ///
    /// # Errors
    /// If a server does not come back, or does not accept a command.
    pub async fn inject(&mut self, step: &Step, fleet: &Fleet, timeline: &Timeline) -> io::Result<Injected> {
        let from = self.start.elapsed();
        let victim = match step.kind.subject() {
            Subject::Worker => self.hit_worker(step, fleet).await?,
            Subject::Producer => self.hit_producer(step, fleet).await?,
            Subject::Store | Subject::Broker => {
                self.hit_server(step, fleet).await?;
                None
            }
            Subject::Crawl => {
                self.give_order(step, fleet.programs()).await?;
                None
            }
            Subject::Database => {
                self.hit_database(step).await?;
                None
            }
        };
        let to = self.start.elapsed();
        let whom = victim.map_or(String::new(), |victim| format!(" of number {}", victim.number));
        timeline.note(format!("{}{whom}, for {:.1} s", step.kind, (to - from).as_secs_f64()));
        Ok(Injected { kind: step.kind, victim: victim.map(|victim| victim.number), from, to })
    }

    /// Returns a time that is long enough for heartbeats and leases to expire.
    fn long(&self) -> Duration {
        self.lost_after.mul_f64(0.75)
    }

    /// Returns a random time between a quarter of [`long`](Self::long) and the whole, chosen by the step.
    fn while_of(&self, step: &Step) -> Duration {
        self.long().mul_f64(0.25 + (step.pick >> 32) as f64 / f64::from(u32::MAX) * 0.75)
    }

    async fn hit_worker(&self, step: &Step, fleet: &Fleet) -> io::Result<Option<Running>> {
        let Some(worker) = fleet.worker(step.pick) else { return Ok(None) };
        match step.kind {
            Kind::WorkerKillFlushed => {
                worker.signal(Signal::Kill).await?;
                self.store.flush().await?;
            }
            Kind::WorkerClock => {
                fleet.set_clock(step.pick)?;
                return Ok(None);
            }
            Kind::WorkerStop => {
                worker.signal(Signal::Stop).await?;
                sleep(self.long()).await;
                worker.signal(Signal::Continue).await?;
            }
            Kind::WorkerTerm => worker.signal(Signal::Term).await?,
            Kind::WorkerTermTwice => {
                worker.signal(Signal::Term).await?;
                sleep(IMPATIENCE).await;
                worker.signal(Signal::Term).await?;
            }
            _ => worker.signal(Signal::Kill).await?,
        }
        Ok(Some(worker))
    }

    async fn hit_producer(&self, step: &Step, fleet: &Fleet) -> io::Result<Option<Running>> {
        fleet.produce_again();
        let deadline = Instant::now() + PRODUCER_STARTS;
        let producer = loop {
            if let Some(producer) = fleet.producer() {
                break producer;
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            sleep(POLL_INTERVAL).await;
        };
        // At some point between its start and its end.
        sleep(Duration::from_millis(step.pick % 400)).await;
        if step.kind == Kind::ProducerStop {
            producer.signal(Signal::Stop).await?;
            sleep(self.long()).await;
            producer.signal(Signal::Continue).await?;
        } else {
            producer.signal(Signal::Kill).await?;
        }
        Ok(Some(producer))
    }

    async fn hit_server(&mut self, step: &Step, fleet: &Fleet) -> io::Result<()> {
        match step.kind {
            Kind::StoreCut => self.store_proxy.cut(),
            Kind::StoreReplyLost => {
                let number = 1 + step.pick % REPLIES;
                self.replies.lose(number);
                let coming = Instant::now() + REPLIES_COME;
                while self.replies.passed() < number && Instant::now() < coming {
                    sleep(POLL_INTERVAL).await;
                }
                self.replies.lose(0);
            }
            Kind::StoreSilent => silence(&self.store_proxy, step, self.while_of(step)).await,
            Kind::StoreStop => {
                self.store.signal(Signal::Stop).await?;
                sleep(self.while_of(step)).await;
                self.store.signal(Signal::Continue).await?;
            }
            Kind::StoreFull => {
                self.store.full(true).await?;
                sleep(self.while_of(step)).await;
                self.store.full(false).await?;
            }
            Kind::StoreKill => self.store.restart().await?,
            Kind::StoreTruncated => self.store.restart_truncated().await?,
            Kind::StoreTruncatedAfterPause => {
                self.operator.pause(fleet.programs()).await?;
                self.store.restart_truncated().await?;
                sleep(SETTLING + self.while_of(step)).await;
                self.operator.resume(fleet.programs()).await?;
            }
            Kind::StoreFlushed => self.store.flush().await?,
            Kind::StoreEmptied => self.store.restart_emptied().await?,
            Kind::BrokerCut => self.broker_proxy.cut(),
            Kind::BrokerSilent => silence(&self.broker_proxy, step, self.while_of(step)).await,
            Kind::BrokerStop => {
                self.broker.signal(Signal::Stop).await?;
                sleep(self.while_of(step)).await;
                self.broker.signal(Signal::Continue).await?;
            }
            Kind::BrokerAlarm => {
                self.broker.alarm(true).await?;
                sleep(self.while_of(step)).await;
                self.broker.alarm(false).await?;
            }
            Kind::BrokerKill => self.broker.restart().await?,
            Kind::BrokerPurged => self.broker.purge().await?,
            Kind::BrokerDeleted => {
                self.broker.delete_queue(QUEUES[(step.pick % QUEUES.len() as u64) as usize]).await?;
            }
            Kind::ControlDeleted => self.broker.delete_queue("control").await?,
            Kind::BrokerLimit => {
                self.broker.limit_deliveries(Some(1)).await?;
                for _ in 0..2 {
                    for worker in fleet.workers() {
                        worker.signal(Signal::Kill).await?;
                    }
                    sleep(WORKER_STARTS).await;
                }
                self.broker.limit_deliveries(None).await?;
            }
            Kind::BrokerGone => self.broker.restart_emptied().await?,
            // Kinds with other subjects.
            _ => {}
        }
        Ok(())
    }

    async fn hit_database(&mut self, step: &Step) -> io::Result<()> {
        let time = SETTLING + self.while_of(step);
        let Some(database) = &mut self.database else { return Ok(()) };
        if step.kind == Kind::DatabaseStop {
            database.signal(Signal::Stop).await?;
            sleep(time).await;
            database.signal(Signal::Continue).await
        } else {
            database.kill().await?;
            database.launch().await
        }
    }

    async fn give_order(&mut self, step: &Step, programs: &Programs) -> io::Result<()> {
        // At first, requests that have already started may still arrive.
        let time = SETTLING + self.while_of(step);
        match step.kind {
            kind if kind.blocks_host() => {
                self.operator.block(programs).await?;
                if kind.truncates_store() {
                    self.store.restart_truncated().await?;
                }
                sleep(HAD_LEAVE + time).await;
                self.operator.unblock(programs).await
            }
            Kind::DeadLettersReplayed => self.operator.replay(programs).await,
            Kind::OtherCancelled => self.operator.cancel(programs).await,
            Kind::StoreTruncatedAfterCancel => {
                self.operator.cancel(programs).await?;
                self.store.restart_truncated().await
            }
            Kind::OtherStuck => self.operator.stick(programs, time).await,
            Kind::OtherFull => self.operator.fill(programs, time).await,
            kind => {
                self.operator.pause(programs).await?;
                if kind == Kind::CrawlPausedBothLost {
                    self.broker.restart_emptied().await?;
                    // Paused messages that do not come back are published again.
                    sleep(self.lost_after * WHOLE_AGAIN).await;
                }
                if kind.empties_store() {
                    self.store.restart_emptied().await?;
                }
                sleep(time).await;
                self.operator.resume(programs).await
            }
        }
    }
}

/// Swallows everything for a while; then passes on what waited, or cuts the connections.
async fn silence(proxy: &Proxy, step: &Step, time: Duration) {
    proxy.set(Mode::Swallow);
    sleep(time).await;
    if step.pick.is_multiple_of(2) {
        proxy.cut();
    }
    proxy.set(Mode::Pass);
}

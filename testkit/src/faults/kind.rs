//! The kinds of fault.

use std::time::Duration;

use super::store::UNSYNCED;

/// A kind of fault, in the order of the table. `faults.md` lists each with its documentation here.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
    strum::EnumMessage,
)]
pub enum Kind {
    /// `kill -9` of a worker; another takes its place.
    #[strum(serialize = "worker-kill")]
    WorkerKill,
    /// SIGSTOP of a worker for longer than its heartbeat lives, then SIGCONT.
    #[strum(serialize = "worker-stop")]
    WorkerStop,
    /// SIGTERM of a worker; another takes its place.
    #[strum(serialize = "worker-term")]
    WorkerTerm,
    /// SIGTERM of a worker, and again before it has ended.
    #[strum(serialize = "worker-term-twice")]
    WorkerTermTwice,
    /// `kill -9` of a worker, and `FLUSHALL` at once.
    #[strum(serialize = "worker-kill-redis-flushed")]
    WorkerKillFlushed,
    /// The clock of a worker's machine jumps, by less than a minute off.
    #[strum(serialize = "worker-clock")]
    WorkerClock,
    /// `kill -9` of the producer, which is run again.
    #[strum(serialize = "producer-kill")]
    ProducerKill,
    /// SIGSTOP of the producer for a while, then SIGCONT.
    #[strum(serialize = "producer-stop")]
    ProducerStop,
    /// Every connection to Redis is cut.
    #[strum(serialize = "redis-cut")]
    StoreCut,
    /// One answer of Redis is lost, and its connection cut.
    #[strum(serialize = "redis-reply-lost")]
    StoreReplyLost,
    /// Redis is reachable and answers nothing.
    #[strum(serialize = "redis-silent")]
    StoreSilent,
    /// SIGSTOP of Redis for a while.
    #[strum(serialize = "redis-stop")]
    StoreStop,
    /// Redis refuses to write for a while: its memory is full.
    #[strum(serialize = "redis-full")]
    StoreFull,
    /// `kill -9` of Redis, and a restart with its data.
    #[strum(serialize = "redis-kill")]
    StoreKill,
    /// `kill -9` of Redis, and a restart without the last second of its append-only file.
    #[strum(serialize = "redis-truncated")]
    StoreTruncated,
    /// The crawl is paused; at once `kill -9` of Redis, and a restart without its last second. Later the crawl goes on.
    #[strum(serialize = "redis-truncated-after-pause")]
    StoreTruncatedAfterPause,
    /// The host is blocked; at once `kill -9` of Redis, and a restart without its last second. Later the block is lifted.
    #[strum(serialize = "redis-truncated-after-block")]
    StoreTruncatedAfterBlock,
    /// A second crawl is cancelled; at once `kill -9` of Redis, and a restart without its last second.
    #[strum(serialize = "redis-truncated-after-cancel")]
    StoreTruncatedAfterCancel,
    /// `FLUSHALL`.
    #[strum(serialize = "redis-flushed")]
    StoreFlushed,
    /// `kill -9` of Redis, and a restart with nothing.
    #[strum(serialize = "redis-emptied")]
    StoreEmptied,
    /// Every connection to RabbitMQ is cut.
    #[strum(serialize = "rabbitmq-cut")]
    BrokerCut,
    /// RabbitMQ is reachable and answers nothing.
    #[strum(serialize = "rabbitmq-silent")]
    BrokerSilent,
    /// SIGSTOP of RabbitMQ for a while.
    #[strum(serialize = "rabbitmq-stop")]
    BrokerStop,
    /// RabbitMQ's memory alarm, for a while: it blocks publishers.
    #[strum(serialize = "rabbitmq-alarm")]
    BrokerAlarm,
    /// `kill -9` of RabbitMQ, and a restart with its data.
    #[strum(serialize = "rabbitmq-kill")]
    BrokerKill,
    /// Every queue of URLs and tasks is purged.
    #[strum(serialize = "rabbitmq-purged")]
    BrokerPurged,
    /// One queue is deleted under its consumers.
    #[strum(serialize = "rabbitmq-deleted")]
    BrokerDeleted,
    /// The stream `control` is deleted under its readers.
    #[strum(serialize = "control-deleted")]
    ControlDeleted,
    /// RabbitMQ drops messages that come back twice, and every worker is killed twice.
    #[strum(serialize = "rabbitmq-delivery-limit")]
    BrokerLimit,
    /// `kill -9` of RabbitMQ, and a restart with an empty disk.
    #[strum(serialize = "rabbitmq-gone")]
    BrokerGone,
    /// The crawl is paused for a while.
    #[strum(serialize = "crawl-paused")]
    CrawlPaused,
    /// The crawl is paused, Redis is emptied meanwhile, and the crawl goes on.
    #[strum(serialize = "crawl-paused-redis-emptied")]
    CrawlPausedEmptied,
    /// The crawl is paused, RabbitMQ loses everything, then Redis does, and the crawl goes on.
    #[strum(serialize = "crawl-paused-rabbitmq-gone-redis-emptied")]
    CrawlPausedBothLost,
    /// The host is blocked for a while; then the skipped URLs are replayed.
    #[strum(serialize = "host-blocked")]
    HostBlocked,
    /// Every dead letter is replayed.
    #[strum(serialize = "dead-letters-replayed")]
    DeadLettersReplayed,
    /// A second crawl runs beside, and is cancelled.
    #[strum(serialize = "other-crawl-cancelled")]
    OtherCancelled,
    /// A second crawl runs beside, and its sink takes nothing for a while.
    #[strum(serialize = "other-crawl-stuck")]
    OtherStuck,
    /// A second crawl runs beside, and the disk of its sink is full for a while.
    #[strum(serialize = "other-crawl-disk-full")]
    OtherFull,
    /// SIGSTOP of PostgreSQL for a while.
    #[strum(serialize = "postgres-stop")]
    DatabaseStop,
    /// `kill -9` of PostgreSQL, and a restart with its data.
    #[strum(serialize = "postgres-kill")]
    DatabaseKill,
}

/// The target of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One worker.
    Worker,
    /// The producer.
    Producer,
    /// Redis.
    Store,
    /// RabbitMQ.
    Broker,
    /// A crawl or a host, through an order.
    Crawl,
    /// PostgreSQL, if a crawl stores in it.
    Database,
}

impl Kind {
    /// Returns the target.
    pub fn subject(self) -> Subject {
        match self {
            Self::WorkerKill
            | Self::WorkerStop
            | Self::WorkerTerm
            | Self::WorkerTermTwice
            | Self::WorkerKillFlushed
            | Self::WorkerClock => Subject::Worker,
            Self::ProducerKill | Self::ProducerStop => Subject::Producer,
            Self::StoreCut
            | Self::StoreReplyLost
            | Self::StoreSilent
            | Self::StoreStop
            | Self::StoreFull
            | Self::StoreKill
            | Self::StoreTruncated
            | Self::StoreTruncatedAfterPause
            | Self::StoreFlushed
            | Self::StoreEmptied => Subject::Store,
            Self::BrokerCut
            | Self::BrokerSilent
            | Self::BrokerStop
            | Self::BrokerAlarm
            | Self::BrokerKill
            | Self::BrokerPurged
            | Self::BrokerDeleted
            | Self::ControlDeleted
            | Self::BrokerLimit
            | Self::BrokerGone => Subject::Broker,
            Self::CrawlPaused
            | Self::CrawlPausedEmptied
            | Self::CrawlPausedBothLost
            | Self::HostBlocked
            | Self::StoreTruncatedAfterBlock
            | Self::DeadLettersReplayed
            | Self::OtherCancelled
            | Self::StoreTruncatedAfterCancel
            | Self::OtherStuck
            | Self::OtherFull => Subject::Crawl,
            Self::DatabaseStop | Self::DatabaseKill => Subject::Database,
        }
    }

    /// Whether a server loses data that it had confirmed. Two such faults never overlap: either server may lose
    /// everything, not both.
    pub fn loses_data(self) -> bool {
        let broker_loses =
            [Self::BrokerPurged, Self::BrokerDeleted, Self::ControlDeleted, Self::BrokerGone].contains(&self);
        self.forgets() || broker_loses
    }

    /// Whether this fault may come before the fleet has recovered from `earlier`. The servers may not both lose data;
    /// and what Redis forgets must not be in flight in a worker that is lost too, unless the ledger knows of it.
    pub fn may_follow(self, earlier: Self) -> bool {
        let both_lose = self.loses_data() && earlier.loses_data();
        let worker_and_memory =
            self.takes_worker() && earlier.forgets() || self.forgets() && earlier.takes_worker();
        !(both_lose || worker_and_memory)
    }

    /// Whether a worker loses the URLs that it has in hand.
    pub fn takes_worker(self) -> bool {
        match self {
            Self::WorkerClock => false,
            Self::BrokerLimit => true,
            kind => kind.subject() == Subject::Worker,
        }
    }

    /// Returns how much of the time before it the fault undoes.
    pub fn reaches_back(self) -> Duration {
        // The file's size is only sampled at intervals.
        if self.truncates_store() { UNSYNCED + Duration::from_millis(200) } else { Duration::ZERO }
    }

    /// Whether Redis forgets finished work.
    pub fn forgets(self) -> bool {
        self.empties_store() || self.truncates_store()
    }

    /// Whether Redis forgets its last second.
    pub fn truncates_store(self) -> bool {
        matches!(
            self,
            Self::StoreTruncated
                | Self::StoreTruncatedAfterPause
                | Self::StoreTruncatedAfterBlock
                | Self::StoreTruncatedAfterCancel
        )
    }

    /// Whether the host of the crawl is blocked for a while.
    pub fn blocks_host(self) -> bool {
        matches!(self, Self::HostBlocked | Self::StoreTruncatedAfterBlock)
    }

    /// Whether Redis forgets everything, so that finished URLs may be fetched again.
    pub fn empties_store(self) -> bool {
        matches!(
            self,
            Self::StoreFlushed
                | Self::StoreEmptied
                | Self::CrawlPausedEmptied
                | Self::CrawlPausedBothLost
                | Self::WorkerKillFlushed
        )
    }
}

#[cfg(test)]
mod tests {
    use strum::{EnumMessage, VariantArray};

    use super::*;

    #[test]
    fn the_list_names_every_fault_and_what_is_done() {
        let row = |kind: &Kind| format!("| `{kind}` | {} |\n", kind.get_documentation().unwrap());
        let rows: String = Kind::VARIANTS.iter().map(row).collect();
        let list = include_str!("faults.md");
        assert!(list.ends_with(&rows), "faults.md should end with:\n\n{rows}");
    }

    #[test]
    fn two_losses_do_not_meet_nor_a_loss_of_memory_and_the_loss_of_a_worker() {
        for (earlier, later, may) in [
            (Kind::StoreEmptied, Kind::BrokerGone, false),
            (Kind::BrokerGone, Kind::StoreTruncated, false),
            (Kind::StoreFlushed, Kind::WorkerStop, false),
            (Kind::WorkerKill, Kind::StoreEmptied, false),
            (Kind::BrokerGone, Kind::WorkerKill, true),
            (Kind::WorkerKill, Kind::BrokerGone, true),
            (Kind::StoreEmptied, Kind::BrokerKill, true),
            (Kind::StoreEmptied, Kind::BrokerLimit, false),
            (Kind::WorkerStop, Kind::WorkerKillFlushed, false),
            (Kind::StoreEmptied, Kind::WorkerClock, true),
            (Kind::StoreEmptied, Kind::DatabaseKill, true),
            (Kind::DatabaseKill, Kind::BrokerGone, true),
        ] {
            assert_eq!(later.may_follow(earlier), may, "{later} after {earlier}");
        }
    }
}

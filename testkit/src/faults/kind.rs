//! The kinds of fault.

use std::time::Duration;

use super::named::named;
use super::store::UNSYNCED;

/// What is done to the fleet. The order is that of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `kill -9` of a worker; another takes its place.
    WorkerKill,
    /// SIGSTOP of a worker for longer than its heartbeat lives, then SIGCONT.
    WorkerStop,
    /// SIGTERM of a worker; another takes its place.
    WorkerTerm,
    /// SIGTERM of a worker, and again before it has ended.
    WorkerTermTwice,
    /// `kill -9` of a worker, and `FLUSHALL` at once.
    WorkerKillFlushed,
    /// The clock of a worker's machine jumps, by less than a minute off.
    WorkerClock,
    /// `kill -9` of the producer, which is run again.
    ProducerKill,
    /// SIGSTOP of the producer for a while, then SIGCONT.
    ProducerStop,
    /// Every connection to Redis is cut.
    StoreCut,
    /// One answer of Redis is lost, and its connection cut.
    StoreReplyLost,
    /// Redis is reachable and answers nothing.
    StoreSilent,
    /// SIGSTOP of Redis for a while.
    StoreStop,
    /// Redis refuses to write for a while: its memory is full.
    StoreFull,
    /// `kill -9` of Redis, and a restart with its data.
    StoreKill,
    /// `kill -9` of Redis, and a restart without the last second of its append-only file.
    StoreTruncated,
    /// `FLUSHALL`.
    StoreFlushed,
    /// `kill -9` of Redis, and a restart with nothing.
    StoreEmptied,
    /// Every connection to RabbitMQ is cut.
    BrokerCut,
    /// RabbitMQ is reachable and answers nothing.
    BrokerSilent,
    /// SIGSTOP of RabbitMQ for a while.
    BrokerStop,
    /// RabbitMQ's memory alarm, for a while: it blocks who publishes.
    BrokerAlarm,
    /// `kill -9` of RabbitMQ, and a restart with its data.
    BrokerKill,
    /// Every queue of URLs is purged.
    BrokerPurged,
    /// One queue is deleted under its consumers.
    BrokerDeleted,
    /// RabbitMQ gives up what comes back twice, and every worker is killed twice.
    BrokerLimit,
    /// `kill -9` of RabbitMQ, and a restart with an empty disk.
    BrokerGone,
    /// The crawl is paused for a while.
    CrawlPaused,
    /// The crawl is paused, Redis is emptied meanwhile, and the crawl goes on.
    CrawlPausedEmptied,
    /// The host is blocked for a while; then what was skipped is sent again.
    HostBlocked,
    /// Every dead letter is sent again.
    LettersReplayed,
    /// A second crawl runs beside, and is cancelled.
    OtherCancelled,
    /// A second crawl runs beside, and its sink takes nothing for a while.
    OtherStuck,
    /// A second crawl runs beside, and the disk of its sink is full for a while.
    OtherFull,
    /// SIGSTOP of PostgreSQL for a while.
    DatabaseStop,
    /// `kill -9` of PostgreSQL, and a restart with its data.
    DatabaseKill,
}

/// What a fault is done to.
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
    /// A crawl, by order.
    Crawl,
    /// PostgreSQL, where a crawl stores in it.
    Database,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 35] = [
        Self::WorkerKill,
        Self::WorkerStop,
        Self::WorkerTerm,
        Self::WorkerTermTwice,
        Self::WorkerKillFlushed,
        Self::WorkerClock,
        Self::ProducerKill,
        Self::ProducerStop,
        Self::StoreCut,
        Self::StoreReplyLost,
        Self::StoreSilent,
        Self::StoreStop,
        Self::StoreFull,
        Self::StoreKill,
        Self::StoreTruncated,
        Self::StoreFlushed,
        Self::StoreEmptied,
        Self::BrokerCut,
        Self::BrokerSilent,
        Self::BrokerStop,
        Self::BrokerAlarm,
        Self::BrokerKill,
        Self::BrokerPurged,
        Self::BrokerDeleted,
        Self::BrokerLimit,
        Self::BrokerGone,
        Self::CrawlPaused,
        Self::CrawlPausedEmptied,
        Self::HostBlocked,
        Self::LettersReplayed,
        Self::OtherCancelled,
        Self::OtherStuck,
        Self::OtherFull,
        Self::DatabaseStop,
        Self::DatabaseKill,
    ];

    /// The name in the table and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WorkerKill => "worker-kill",
            Self::WorkerStop => "worker-stop",
            Self::WorkerTerm => "worker-term",
            Self::WorkerTermTwice => "worker-term-twice",
            Self::WorkerKillFlushed => "worker-kill-redis-flushed",
            Self::WorkerClock => "worker-clock",
            Self::ProducerKill => "producer-kill",
            Self::ProducerStop => "producer-stop",
            Self::StoreCut => "redis-cut",
            Self::StoreReplyLost => "redis-reply-lost",
            Self::StoreSilent => "redis-silent",
            Self::StoreStop => "redis-stop",
            Self::StoreFull => "redis-full",
            Self::StoreKill => "redis-kill",
            Self::StoreTruncated => "redis-truncated",
            Self::StoreFlushed => "redis-flushed",
            Self::StoreEmptied => "redis-emptied",
            Self::BrokerCut => "rabbitmq-cut",
            Self::BrokerSilent => "rabbitmq-silent",
            Self::BrokerStop => "rabbitmq-stop",
            Self::BrokerAlarm => "rabbitmq-alarm",
            Self::BrokerKill => "rabbitmq-kill",
            Self::BrokerPurged => "rabbitmq-purged",
            Self::BrokerDeleted => "rabbitmq-deleted",
            Self::BrokerLimit => "rabbitmq-delivery-limit",
            Self::BrokerGone => "rabbitmq-gone",
            Self::CrawlPaused => "crawl-paused",
            Self::CrawlPausedEmptied => "crawl-paused-redis-emptied",
            Self::HostBlocked => "host-blocked",
            Self::LettersReplayed => "letters-replayed",
            Self::OtherCancelled => "other-crawl-cancelled",
            Self::OtherStuck => "other-crawl-stuck",
            Self::OtherFull => "other-crawl-disk-full",
            Self::DatabaseStop => "postgres-stop",
            Self::DatabaseKill => "postgres-kill",
        }
    }

    /// What it is done to.
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
            | Self::StoreFlushed
            | Self::StoreEmptied => Subject::Store,
            Self::BrokerCut
            | Self::BrokerSilent
            | Self::BrokerStop
            | Self::BrokerAlarm
            | Self::BrokerKill
            | Self::BrokerPurged
            | Self::BrokerDeleted
            | Self::BrokerLimit
            | Self::BrokerGone => Subject::Broker,
            Self::CrawlPaused
            | Self::CrawlPausedEmptied
            | Self::HostBlocked
            | Self::LettersReplayed
            | Self::OtherCancelled
            | Self::OtherStuck
            | Self::OtherFull => Subject::Crawl,
            Self::DatabaseStop | Self::DatabaseKill => Subject::Database,
        }
    }

    /// Whether a server loses what it had confirmed. Two such faults never meet: either server may lose
    /// everything, not both.
    pub fn loses_data(self) -> bool {
        self.forgets() || matches!(self, Self::BrokerPurged | Self::BrokerDeleted | Self::BrokerGone)
    }

    /// Whether this fault may come before the fleet has mended what `earlier` did to it. Both servers may not lose
    /// data at once; and what Redis forgets must not be lost with a worker that had it in hand, but where the ledger is told.
    pub fn may_follow(self, earlier: Self) -> bool {
        let both_lose = self.loses_data() && earlier.loses_data();
        let worker_and_memory =
            self.takes_worker() && earlier.forgets() || self.forgets() && earlier.takes_worker();
        !(both_lose || worker_and_memory)
    }

    /// Whether what a worker has in hand is taken from it.
    pub fn takes_worker(self) -> bool {
        match self {
            Self::WorkerClock => false,
            Self::BrokerLimit => true,
            kind => kind.subject() == Subject::Worker,
        }
    }

    /// What happened so long before the fault is undone by it.
    pub fn reaches_back(self) -> Duration {
        // The file's size is looked at now and then.
        if self == Self::StoreTruncated { UNSYNCED + Duration::from_millis(200) } else { Duration::ZERO }
    }

    /// Whether Redis forgets what was finished.
    pub fn forgets(self) -> bool {
        self.empties_store() || self == Self::StoreTruncated
    }

    /// Whether Redis forgets everything, so that what was finished may be fetched again.
    pub fn empties_store(self) -> bool {
        matches!(
            self,
            Self::StoreFlushed | Self::StoreEmptied | Self::CrawlPausedEmptied | Self::WorkerKillFlushed
        )
    }
}

named!(Kind, "fault");

#[cfg(test)]
mod tests {
    use super::*;

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

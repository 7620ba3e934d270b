//! The adapters of trawl. Each port of `trawl-common` has one here on servers and one embedded:
//!
//! | port | fleet | embedded |
//! |---|---|---|
//! | `Engine` | [`fleet`]: a coordinator over `Records` on [`redis`] and a `Broker` on [`rabbitmq`] | [`embedded`]: one SQLite file |
//! | `Stats`, `Control`, `Hosts`, `HostControl`, `Cache`, `PageHistories`, `Sessions`, `Logs` | [`redis`] | [`embedded`] |
//! | `Jobs`, `Schedules`, `SpiderStore`, `Runners` | [`redis`] | [`embedded`] |
//! | `Items` | [`rabbitmq`]: the stream of items | none |
//! | `History` | [`history`]: PostgreSQL | none |
//! | `Sink`, `FileStore` | [`sinks`] | [`sinks`] |

mod control_log;
pub mod embedded;
pub mod fleet;
pub mod history;
mod journal;
mod left_out;
mod notes;
pub mod rabbitmq;
pub mod redis;
pub mod sinks;
mod tls;
mod versions;
pub mod webhooks;

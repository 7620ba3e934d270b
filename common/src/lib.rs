//! What every part of trawl shares: the vocabulary, the pure policy, the ports, the settings.
//!
//! No I/O client lives here. The ports in [`ports`] are the traits that the adapters of
//! `trawl-backends` implement; `trawl-producer` and `trawl-worker` know nothing else of the world.

mod as_text;
pub mod backoff;
pub mod ceiling;
pub mod cell;
pub mod clock;
pub mod crawl;
mod escape;
pub mod exit;
pub mod gcra;
pub mod headers;
pub mod health;
pub mod host;
pub mod item;
pub mod ladder;
pub mod lane;
pub mod letter;
pub mod lifetime;
pub mod limit;
pub mod line;
pub mod message;
pub mod names;
pub mod nearest;
pub mod outcome;
pub mod ports;
pub mod rate;
pub mod retry;
pub mod robots;
pub mod route;
pub mod settings;
pub mod sniff;
pub mod spider;
pub mod telemetry;
pub mod text;
pub mod ticket;
pub mod time;
pub mod turns;
pub mod url;
pub mod visited;
pub mod waiting;

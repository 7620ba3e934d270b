//! What trawl's three programs share: start-up, signals, errors for people, numbers and progress.

mod ending;
mod fail;
mod progress;
mod signals;
mod start;

pub use ending::await_end;
pub use fail::{Fail, Outcome};
pub use progress::{Progress, count};
pub use signals::Signals;
pub use start::{Global, main};

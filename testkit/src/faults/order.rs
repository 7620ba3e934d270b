//! Commands that are repeated until they succeed.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::fleet::Programs;
use super::private::{POLL_INTERVAL, output};

/// Time for which a command is repeated that fails, as when a server is away.
pub(super) const GIVEN_FOR: Duration = Duration::from_secs(60);

/// Repeats a command until it succeeds. Returns its output.
pub(super) async fn order(programs: &Programs, words: &[&str]) -> io::Result<String> {
    let deadline = Instant::now() + GIVEN_FOR;
    loop {
        match timeout_at(deadline, output(programs.command(words.iter().copied()))).await? {
            Err(_) => sleep(POLL_INTERVAL).await,
            printed => return printed,
        }
    }
}

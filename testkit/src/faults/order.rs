//! One order, given until it is carried out.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::fleet::Programs;
use super::private::{LOOK, output};

/// An order that a server's absence keeps from being carried out is given again for so long.
pub(super) const GIVEN_FOR: Duration = Duration::from_secs(60);

/// Gives an order until it is carried out. Returns what it printed.
pub(super) async fn order(programs: &Programs, words: &[&str]) -> io::Result<String> {
    let deadline = Instant::now() + GIVEN_FOR;
    loop {
        match timeout_at(deadline, output(programs.command(words.iter().copied()))).await? {
            Err(_) => sleep(LOOK).await,
            printed => return printed,
        }
    }
}

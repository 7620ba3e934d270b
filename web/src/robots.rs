//! Asking an origin for its robots.txt.

use bytes::Bytes;
use trawl_common::outcome::{Class, Failure};
use trawl_common::ports::RobotsFile;
use trawl_common::robots::MAX_BYTES;
use trawl_common::url::Origin;

use super::Fetcher;

/// How many redirects are followed (RFC 9309 2.3.1.2).
const REDIRECTS: usize = 5;

/// A robots.txt as an origin answered, and whether that says something for longer than a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Robots {
    /// What it answered.
    pub file: RobotsFile,
    /// Whether the answer is good for a day, or is to be asked for again soon.
    pub is_lasting: bool,
}

impl Fetcher {
    /// Asks for the robots.txt of an origin. The only failures are those of a host that wants to be left alone (429, 503), and
    /// of a proxy that is away; all else says something of what may be asked for.
    pub async fn robots(&self, origin: &Origin) -> Result<Robots, Failure> {
        let passing = |status, body| Robots { file: RobotsFile { status, body }, is_lasting: false };
        match self.read_start(&origin.robots_txt(), MAX_BYTES, REDIRECTS).await {
            Ok(answer) if matches!(answer.status, 429 | 503) => {
                let (status, retry_after) = (Some(answer.status), answer.retry_after);
                let failure =
                    Failure::new(Class::Robots, format_args!("robots.txt: status {}", answer.status));
                Err(Failure { status, retry_after, ..failure })
            }
            Ok(answer) if answer.status < 500 => {
                Ok(Robots { file: RobotsFile { status: answer.status, body: answer.body }, is_lasting: true })
            }
            Ok(answer) => Ok(passing(answer.status, Bytes::from(format!("status {}", answer.status)))),
            // What the pages meet as well, each with its own failure; too many redirects lead to no file.
            Err(failure) if matches!(failure.class, Class::Forbidden | Class::Redirect) => {
                Ok(passing(404, Bytes::new()))
            }
            Err(failure) if failure.class == Class::Proxy => Err(failure),
            Err(failure) => Ok(passing(0, Bytes::from(failure.to_string()))),
        }
    }
}

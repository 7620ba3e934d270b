//! Jobs: crawls that are asked for before anyone runs them.
//!
//! A job's id is the id of the crawl that it becomes. It waits in one line with all others until a worker takes it: the highest
//! priority first, and among equals the one that was asked for first. Its spider may be busy with jobs before it; then the line
//! goes on with the next spider. Who takes a job feeds it, that is, reads its sources into its crawl, under a lease; after that
//! the job waits for the end of its crawl, and nobody needs to hold it.

mod cancel;
mod idempotency_key;
mod job;
mod new_job;
mod outcome;
mod overrides;
mod priority;
mod shown;
mod stored;
mod transitions;

pub use cancel::cancel;
pub use idempotency_key::{IdempotencyKey, InvalidIdempotencyKey};
pub use job::{Ended, Job, JobState, JobStatus, Run};
pub use new_job::{InvalidJob, NewJob};
pub use outcome::{JobOutcome, Problem};
pub use overrides::{InvalidOverride, JobOverrides};
pub use priority::{InvalidPriority, Priority, Turn};
pub use stored::{ImpossibleState, StoredState};
pub use transitions::Hold;

//! Jobs: crawls that are submitted before anyone runs them.
//!
//! A job's id is the id of the crawl that it becomes. All jobs wait in one queue until a worker takes them: the
//! highest priority first, among equals the one that was submitted first. Jobs whose spider is busy are skipped.
//! The worker that takes a job feeds it: it reads the job's sources into its crawl, under a lease. After that the
//! job waits for the end of its crawl without a lease.

mod idempotency_key;
mod job;
mod new_job;
mod outcome;
mod overrides;
mod queue_position;
mod shown;
mod status;
mod stored;
mod transitions;

pub use idempotency_key::{IdempotencyKey, InvalidIdempotencyKey};
pub use job::{Ended, Job, JobState, Run};
pub use new_job::{InvalidJob, NewJob};
pub use outcome::{JobOutcome, Problem};
pub use overrides::{InvalidOverride, JobOverrides};
pub use queue_position::QueuePosition;
pub use status::JobStatus;
pub use stored::{ImpossibleState, StoredState};
pub use transitions::Hold;

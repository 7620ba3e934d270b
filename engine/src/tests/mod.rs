//! A member of a fleet on in-memory servers: which calls it makes, and in which order.

mod failures;
mod messages;
mod servers;
mod settling;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::dead_letter::Cause;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::health::Health;
use trawl_common::ports::{
    Claim, Claimed, Completion, Disposition, Fatal, Finish, Frontier, Join, Joined, Joining, NewWork,
    Settled, Settlement,
};
use trawl_common::settings::Settings;
use trawl_common::time::UnixMs;
use trawl_testkit::stand_ins::{AllRequests, NoPages};

use self::servers::Servers;
use crate::coordinator::Coordinator;

/// The longest time that a test waits, on paused time.
const LIMIT: Duration = Duration::from_secs(600);

/// A worker that has joined.
struct Member {
    frontier: Arc<dyn Frontier>,
    health: Arc<Health>,
    maintenance: Mutex<JoinSet<Fatal>>,
}

impl Member {
    fn join(servers: &Servers, set: impl FnOnce(&mut Settings)) -> Self {
        Self::join_for(servers, 10, set)
    }

    /// Joins a worker that may hold this many tasks.
    fn join_for(servers: &Servers, tasks: u16, set: impl FnOnce(&mut Settings)) -> Self {
        let all = Arc::new(servers.clone());
        let engine = Coordinator::new(all.clone(), all, Arc::new(NoPages));
        let (mut settings, health) = (Settings::default(), Arc::<Health>::default());
        set(&mut settings);
        let Joined { frontier, maintenance } = engine.join(Joining {
            worker: "worker".parse().unwrap(),
            settings,
            health: Arc::clone(&health),
            requests: Arc::new(AllRequests),
            tasks,
            stop: CancellationToken::new(),
        });
        Self { frontier, health, maintenance: JoinSet::from_iter([maintenance]).into() }
    }

    async fn claim(&self) -> Claimed {
        timeout(LIMIT, self.frontier.claim(1)).await.unwrap().unwrap().remove(0)
    }

    /// The error with which its background work ends.
    async fn fatal(&self) -> Fatal {
        let mut maintenance = self.maintenance.lock().await;
        timeout(LIMIT, maintenance.join_next()).await.unwrap().unwrap().unwrap()
    }

    async fn settle(&self, message: Message, disposition: Disposition) -> Result<Settled, Fatal> {
        timeout(LIMIT, self.frontier.settle(vec![Settlement { message, disposition }])).await.unwrap()
    }
}

fn ends(message: &Message, terminal: Terminal) -> Completion {
    Completion::new(Finish::new(Claim::new(message), terminal))
}

/// The end of a URL that becomes a dead letter.
fn fails(message: &Message) -> Disposition {
    let cause = Cause { attempts: 1, ..Cause::new(Reason::Final, "", UnixMs(0)) };
    Disposition::Finish(Box::new(Completion { dead_letter: Some(cause), ..ends(message, Terminal::Failed) }))
}

/// The end of a page that links to another.
fn links(message: &Message) -> Disposition {
    let links = vec![NewWork::seed(B.parse().unwrap(), Lane::Bulk)];
    Disposition::Finish(Box::new(Completion { links, ..ends(message, Terminal::Done) }))
}

fn waits(_: &Message) -> Disposition {
    Disposition::Snooze { until: UnixMs::now().plus(Duration::from_secs(60)) }
}

/// Makes the disposition on a URL.
type VerdictOf = fn(&Message) -> Disposition;

const A: &str = "http://site.example/a";
const B: &str = "http://site.example/b";

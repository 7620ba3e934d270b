//! The grants of the projects that spiders belong to, as this worker was told last.

use std::sync::Arc;

use moka::sync::Cache;
use tracing::warn;
use trawl_common::health::Health;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{self, Fatal, Grants};
use trawl_common::project::{Grant, GrantedSecret};
use trawl_common::spider::Secret;

use super::Unready;

/// Maximum number of spiders whose grants are remembered: their names are chosen by strangers.
const MAX_KNOWN: u64 = 10_000;

/// Maximum number of spiders to ask about at once.
const MAX_ASKED: usize = 500;

/// The grants of spiders.
pub(super) struct ProjectGrants {
    port: Arc<dyn Grants>,
    known: Cache<SpiderName, Arc<Granted>>,
}

/// The grant of a spider.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Granted {
    /// The spider is in no project.
    #[default]
    Nothing,
    /// The grant of its project.
    Project(Grant),
    /// Nobody can say, for this reason.
    Unknown(String),
}

impl Granted {
    /// Returns the project of the spider, if it is in one.
    pub(crate) fn project(&self) -> Option<&ProjectName> {
        match self {
            Self::Project(grant) => Some(&grant.project),
            Self::Nothing | Self::Unknown(_) => None,
        }
    }

    /// Whether programs are given the same by both.
    pub(super) fn gives_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Project(one), Self::Project(other)) => {
                one.project == other.project && one.secret == other.secret
            }
            (one, other) => one == other,
        }
    }

    /// Returns the secret for a program of the spider, which has this one of its own.
    pub(super) fn secret(&self, own: &Secret) -> Result<Secret, Unready> {
        match self {
            Self::Nothing => Ok(own.clone()),
            Self::Unknown(why) => Err(Unready::Secret(why.clone())),
            Self::Project(Grant { project, secret, .. }) => match secret {
                GrantedSecret::None => Ok(own.clone()),
                GrantedSecret::Given(secret) => {
                    secret.with_own(own.reveal()).map(Secret::new).map_err(|why| {
                        Unready::Secret(format!(
                            "[handler] secret, with the secret of the project {project}: {why}"
                        ))
                    })
                }
                GrantedSecret::Denied(why) => Err(Unready::Secret(why.clone())),
            },
        }
    }
}

impl From<Option<Grant>> for Granted {
    fn from(grant: Option<Grant>) -> Self {
        grant.map_or(Self::Nothing, Self::Project)
    }
}

impl ProjectGrants {
    pub(super) fn new(port: Arc<dyn Grants>) -> Self {
        Self { port, known: Cache::new(MAX_KNOWN) }
    }

    /// Returns the grant of a spider, as it was told last.
    pub(super) fn of(&self, spider: &SpiderName) -> Arc<Granted> {
        self.known.get(spider).unwrap_or_default()
    }

    /// Asks for the grant of a spider that nobody has asked about. Returns whether that was so.
    pub(super) async fn learn(&self, spider: &SpiderName, health: &Health) -> Result<bool, Fatal> {
        if self.known.contains_key(spider) {
            return Ok(false);
        }
        let spiders = std::slice::from_ref(spider);
        let asked = health.retry("looking up the project of a spider", || self.port.grants(spiders)).await;
        let granted = match asked.map(|mut grants| grants.pop()) {
            Ok(grant) => grant.flatten().into(),
            // The process is ending.
            Err(error) if error.is_temporary() => return Err(Fatal(error)),
            Err(error) => Granted::Unknown(error.to_string()),
        };
        self.known.insert(spider.clone(), Arc::new(granted));
        Ok(true)
    }

    /// Returns the port, which is also told of versions.
    pub(super) fn port(&self) -> &dyn Grants {
        &*self.port
    }

    /// Returns all grants.
    pub(super) fn all(&self) -> Vec<Grant> {
        let grant = |granted: Arc<Granted>| match &*granted {
            Granted::Project(grant) => Some(grant.clone()),
            Granted::Nothing | Granted::Unknown(_) => None,
        };
        self.known.iter().filter_map(|(_, granted)| grant(granted)).collect()
    }

    /// Asks again for all grants. While nobody answers, they are as before.
    pub(super) async fn refresh(&self) {
        let spiders: Vec<SpiderName> = self.known.iter().map(|(spider, _)| (*spider).clone()).collect();
        for spiders in spiders.chunks(MAX_ASKED) {
            match self
                .port
                .grants(spiders)
                .await
                .and_then(|grants| ports::one_each(grants, spiders.len(), "grants"))
            {
                Ok(grants) => {
                    for (spider, grant) in spiders.iter().zip(grants) {
                        self.known.insert(spider.clone(), Arc::new(grant.into()));
                    }
                }
                Err(error) if error.is_temporary() => {}
                Err(error) => warn!(%error, "the projects of spiders cannot be looked up again"),
            }
        }
    }
}

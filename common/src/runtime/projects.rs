//! Projects: opening and setting their secrets, the version of their code, and forgetting them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;

use crate::names::{ProjectName, SpiderName};
use crate::ports::{Error, ErrorKind, Grants, Projects, Result, Runners};
use crate::project::{
    Grant, GrantedSecret, ProjectCode, ProjectSecret, SealedSecret, SealingKey, VersionReport, Wanted,
};
use crate::settings::Secrets;

/// Opens the secrets of projects with the key of this machine, if it has one.
pub struct Keeper {
    projects: Arc<dyn Projects>,
    key: Option<SealingKey>,
}

impl Keeper {
    /// Returns a keeper of these projects.
    pub fn new(projects: Arc<dyn Projects>, key: Option<SealingKey>) -> Self {
        Self { projects, key }
    }

    /// Returns what a project grants on this machine.
    fn grant(&self, name: &ProjectName, ProjectCode { secret, wanted, .. }: ProjectCode) -> Grant {
        let cannot = |why: &dyn std::fmt::Display| {
            GrantedSecret::Denied(format!("the secret of the project {name} cannot be opened: {why}"))
        };
        let secret = match (secret, &self.key) {
            (Err(error), _) => cannot(&format_args!("{error}: set it anew")),
            (Ok(None), _) => GrantedSecret::None,
            (Ok(Some(_)), None) => GrantedSecret::Denied(format!(
                "the project {name} has a secret, and secrets.key_file of this machine names no key to open it"
            )),
            (Ok(Some(sealed)), Some(key)) => match sealed.open(name, key) {
                Ok(secret) => GrantedSecret::Given(secret),
                Err(why) => cannot(&why),
            },
        };
        Grant { project: name.clone(), secret, wanted }
    }
}

#[async_trait]
impl Grants for Keeper {
    async fn grants(&self, spiders: &[SpiderName]) -> Result<Vec<Option<Grant>>> {
        let owners = self.projects.owners(spiders).await?;
        let names: BTreeSet<ProjectName> = owners.iter().flatten().cloned().collect();
        let names: Vec<ProjectName> = names.into_iter().collect();
        let code = self.projects.code(&names).await?;
        let grants: HashMap<&ProjectName, Grant> =
            names.iter().zip(code).filter_map(|(name, code)| Some((name, self.grant(name, code?)))).collect();
        let granted = |owner: &Option<ProjectName>| grants.get(owner.as_ref()?).cloned();
        Ok(owners.iter().map(granted).collect())
    }

    async fn note_version(&self, report: &VersionReport) -> Result<()> {
        self.projects.note_version(report).await
    }
}

/// Seals a project's secret with the key of this machine, and stores it. Returns whether there is such a project.
///
/// # Errors
/// Fails with `Refused` if this machine has no key.
pub async fn set_secret(
    projects: &dyn Projects,
    secrets: &Secrets,
    name: &ProjectName,
    secret: &ProjectSecret,
) -> Result<bool> {
    let refused = |why: &dyn std::fmt::Display| Error::new(ErrorKind::Refused, why);
    let key = secrets.key().map_err(|error| refused(&error))?;
    let none =
        "no key seals secrets here: name a file in secrets.key_file (`openssl rand -hex 32` prints a key)";
    let key = key.ok_or_else(|| refused(&none))?;
    projects.set_secret(name, Some(&SealedSecret::seal(secret, name, &key))).await
}

/// Has workers run the commit that stands at the end of a project's branch now, as its repository was asked, or says why
/// that is not known.
///
/// # Errors
/// Fails with `Unavailable` if the repository gave no answer, and with `Stale` if the project is no more.
pub async fn pull(
    projects: &dyn Projects,
    name: &ProjectName,
    tip: std::result::Result<Wanted, String>,
) -> Result<Wanted> {
    let wanted = tip.map_err(|why| Error::new(ErrorKind::Unavailable, why))?;
    match projects.want(name, &wanted).await? {
        true => Ok(wanted),
        false => Err(Error::new(ErrorKind::Stale, format!("the project {name} was forgotten"))),
    }
}

/// Forgets a project, and the access of runners to it: another project of that name is for other runners. Returns whether
/// there was one.
///
/// # Errors
/// Fails as its ports do; then a part may be left.
pub async fn forget(projects: &dyn Projects, runners: &dyn Runners, name: &ProjectName) -> Result<bool> {
    for runner in runners.runners().await? {
        if runner.access.contains_key(name) {
            runners.revoke(&runner.name, Some(name)).await?;
        }
    }
    projects.forget(name).await
}

//! The promises of [`Runners`].

use std::sync::Arc;

use trawl_common::names::{ProjectName, RunnerName};
use trawl_common::ports::{Access, Result, RunnerKey, Runners};

use super::unique;

/// Makes a test of each promise of [`Runners`].
#[macro_export]
macro_rules! runners_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, runners:
            a_runner_has_the_key_with_which_it_asked_first
            access_is_given_and_taken_back_by_project
            a_runner_that_is_forgotten_begins_anew
            what_is_not_known_gets_no_access
        }
    };
}

fn name() -> RunnerName {
    unique("runner").parse().expect("it is a name")
}

fn projects() -> [ProjectName; 2] {
    ["shop", "news"].map(|name| name.parse().expect("it is a name"))
}

/// Another machine that asks under the same name gets neither its access nor its place.
pub async fn a_runner_has_the_key_with_which_it_asked_first(runners: &Arc<dyn Runners>) -> Result<()> {
    let (name, key, other) = (name(), RunnerKey::generate().digest(), RunnerKey::generate().digest());
    assert_eq!(runners.runner(&name).await?, None);
    let asked = runners.ask(&name, &key).await?;
    assert_eq!((&asked.name, asked.key, asked.access.len()), (&name, key, 0));
    let again = runners.ask(&name, &other).await?;
    assert_eq!((again.key, again.since), (key, asked.since));
    let listed = runners.runners().await?;
    assert_eq!(listed.iter().filter(|runner| runner.name == name).count(), 1);
    assert!(listed.is_sorted_by_key(|runner| runner.name.clone()));
    Ok(())
}

/// Access to one project is independent of that to another.
pub async fn access_is_given_and_taken_back_by_project(runners: &Arc<dyn Runners>) -> Result<()> {
    let (name, [shop, news]) = (name(), projects());
    runners.ask(&name, &RunnerKey::generate().digest()).await?;
    assert!(runners.allow(&name, &shop, Access::Submit).await?);
    assert!(runners.allow(&name, &shop, Access::Assign).await?);
    assert!(runners.allow(&name, &news, Access::Submit).await?);
    let both = [(shop.clone(), Access::Assign), (news.clone(), Access::Submit)].into();
    let runner = runners.runner(&name).await?.expect("it has asked");
    assert_eq!((runner.access.clone(), runner.assigned().collect::<Vec<_>>()), (both, vec![&shop]));
    assert!(runners.revoke(&name, Some(&shop)).await?);
    assert!(!runners.revoke(&name, Some(&shop)).await?, "it is taken back once");
    let left = runners.runner(&name).await?.expect("it is still known").access;
    assert_eq!(left, [(news, Access::Submit)].into());
    assert!(runners.revoke(&name, None).await?);
    assert!(runners.runner(&name).await?.expect("it is still known").access.is_empty());
    Ok(())
}

/// Its name is free for another key.
pub async fn a_runner_that_is_forgotten_begins_anew(runners: &Arc<dyn Runners>) -> Result<()> {
    let (name, [shop, _]) = (name(), projects());
    runners.ask(&name, &RunnerKey::generate().digest()).await?;
    runners.allow(&name, &shop, Access::Assign).await?;
    assert!(runners.forget(&name).await?);
    assert!(!runners.forget(&name).await?);
    assert_eq!(runners.runner(&name).await?, None);
    let key = RunnerKey::generate().digest();
    let anew = runners.ask(&name, &key).await?;
    assert_eq!((anew.key, anew.access.len()), (key, 0));
    Ok(())
}

/// A mistyped name leaves nothing behind.
pub async fn what_is_not_known_gets_no_access(runners: &Arc<dyn Runners>) -> Result<()> {
    let (name, [shop, _]) = (name(), projects());
    assert!(!runners.allow(&name, &shop, Access::Assign).await?);
    assert!(!runners.revoke(&name, None).await?);
    assert_eq!(runners.runner(&name).await?, None);
    Ok(())
}

//! The promises of [`Projects`].

use std::sync::Arc;

use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{ErrorKind, MAX_REPORTS, Projects, Result};
use trawl_common::project::{
    Project, ProjectSecret, SealedSecret, SealingKey, Source, VersionReport, VersionResult, Wanted,
};
use trawl_common::time::UnixMs;

use super::unique;

/// Makes a test of each promise of [`Projects`].
#[macro_export]
macro_rules! projects_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, projects:
            a_project_is_made_once_and_listed
            a_spider_belongs_to_one_project
            a_secret_is_stored_sealed_and_removed
            a_version_is_wanted_until_the_source_changes
            the_code_of_projects_is_told_in_order
            machines_say_of_the_wanted_version_what_they_made_of_it
            reports_on_versions_are_bounded
            a_project_that_is_forgotten_leaves_nothing
            what_is_not_made_has_no_spiders_and_no_secret
        }
    };
}

fn project() -> ProjectName {
    unique("project").parse().expect("it is a name")
}

fn spider() -> SpiderName {
    unique("spider").parse().expect("it is a name")
}

fn sealed(project: &ProjectName) -> SealedSecret {
    let key: SealingKey = "12".repeat(32).parse().expect("it is a key");
    SealedSecret::seal(&ProjectSecret::from_json(b"{}").expect("it is an object"), project, &key)
}

async fn known(projects: &Arc<dyn Projects>, name: &ProjectName) -> Result<Project> {
    Ok(projects.project(name).await?.expect("it was made"))
}

async fn secret_of(projects: &Arc<dyn Projects>, name: &ProjectName) -> Result<Option<SealedSecret>> {
    let code = projects.code(std::slice::from_ref(name)).await?.remove(0);
    Ok(code.and_then(|code| code.secret.expect("it is a secret")))
}

/// Making it again changes nothing.
pub async fn a_project_is_made_once_and_listed(projects: &Arc<dyn Projects>) -> Result<()> {
    let (name, other) = (project(), project());
    assert!(projects.project(&name).await?.is_none());
    assert!(projects.create(&name).await?);
    assert!(projects.create(&other).await?);
    assert!(!projects.create(&name).await?);
    let made = known(projects, &name).await?;
    assert_eq!((&made.name, made.spiders.len(), made.has_secret), (&name, 0, false));
    let all = projects.made().await?;
    assert!(all.contains(&made) && all.iter().any(|project| project.name == other));
    assert!(all.is_sorted_by_key(|project| project.name.clone()));
    Ok(())
}

/// Its program is given the secret of that project alone.
pub async fn a_spider_belongs_to_one_project(projects: &Arc<dyn Projects>) -> Result<()> {
    let (one, other, [a, b, none]) = (project(), project(), [(); 3].map(|()| spider()));
    projects.create(&one).await?;
    projects.create(&other).await?;
    for _ in 0..2 {
        assert!(projects.add_spider(&one, &a).await?, "adding it again changes nothing");
    }
    assert!(projects.add_spider(&other, &b).await?);
    let refused = projects.add_spider(&other, &a).await.expect_err("it is the other's");
    assert_eq!(refused.kind, ErrorKind::Refused);
    assert!(refused.to_string().contains(one.as_str()), "{refused}");
    let asked = [none, a.clone(), b];
    assert_eq!(projects.owners(&asked).await?, [None, Some(one.clone()), Some(other.clone())]);
    assert_eq!(projects.owners(&[]).await?, []);
    assert_eq!(known(projects, &one).await?.spiders, [a.clone()].into());
    assert!(!projects.remove_spider(&other, &a).await?, "it is not this one's");
    assert!(projects.remove_spider(&one, &a).await?);
    assert!(projects.add_spider(&other, &a).await?);
    Ok(())
}

/// A second one replaces the first.
pub async fn a_secret_is_stored_sealed_and_removed(projects: &Arc<dyn Projects>) -> Result<()> {
    let name = project();
    projects.create(&name).await?;
    assert_eq!(secret_of(projects, &name).await?, None);
    for secret in [sealed(&name), sealed(&name)] {
        assert!(projects.set_secret(&name, Some(&secret)).await?);
        assert_eq!(secret_of(projects, &name).await?, Some(secret));
    }
    assert!(known(projects, &name).await?.has_secret);
    assert!(projects.set_secret(&name, None).await?);
    assert_eq!(secret_of(projects, &name).await?, None);
    assert!(!known(projects, &name).await?.has_secret);
    Ok(())
}

fn source(branch: &str) -> Source {
    let clone_url = "https://git.example/shop.git".parse().expect("it is a URL");
    Source { clone_url, branch: branch.parse().expect("it is a branch") }
}

fn wanted(digit: char) -> Wanted {
    let commit = digit.to_string().repeat(40).parse().expect("it is a commit");
    Wanted { clone_url: source("main").clone_url, commit }
}

/// A commit of one repository is none of another.
pub async fn a_version_is_wanted_until_the_source_changes(projects: &Arc<dyn Projects>) -> Result<()> {
    let (name, none) = (project(), project());
    projects.create(&name).await?;
    assert!(projects.set_source(&name, Some(&source("main"))).await?);
    for digit in ['1', '2'] {
        assert!(projects.want(&name, &wanted(digit)).await?);
        let made = known(projects, &name).await?;
        assert_eq!((made.source, made.wanted), (Some(source("main")), Some(wanted(digit))));
    }
    assert!(projects.set_source(&name, Some(&source("next"))).await?);
    let made = known(projects, &name).await?;
    assert_eq!((made.source, made.wanted), (Some(source("next")), None));
    projects.want(&name, &wanted('3')).await?;
    assert!(projects.set_source(&name, None).await?);
    let made = known(projects, &name).await?;
    assert_eq!((made.source, made.wanted), (None, None));
    assert!(!projects.set_source(&none, Some(&source("main"))).await?);
    assert!(!projects.want(&none, &wanted('1')).await?);
    Ok(())
}

/// One that nobody has made has none.
pub async fn the_code_of_projects_is_told_in_order(projects: &Arc<dyn Projects>) -> Result<()> {
    let (name, none, other) = (project(), project(), project());
    for name in [&name, &other] {
        projects.create(name).await?;
    }
    projects.set_source(&other, Some(&source("main"))).await?;
    projects.want(&other, &wanted('1')).await?;
    let all = projects.code(&[other.clone(), none, name.clone()]).await?;
    let [Some(code), None, Some(bare)] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&code.source, &code.wanted), (&Some(source("main")), &Some(wanted('1'))));
    assert_eq!((&bare.source, &bare.wanted, &bare.secret), (&None, &None, &Ok(None)));
    assert_eq!(bare.created, known(projects, &name).await?.created);
    assert_eq!(projects.code(&[]).await?, []);
    Ok(())
}

fn report(project: &ProjectName, digit: char, machine: &str, failure: Option<&str>) -> VersionReport {
    let result = failure.map_or(VersionResult::Taken, |text| VersionResult::Failed(text.to_owned().into()));
    let machine = machine.to_owned().into();
    VersionReport { project: project.clone(), wanted: wanted(digit), machine, at: UnixMs(7), result }
}

/// A report on another version says nothing, and each machine says one thing.
pub async fn machines_say_of_the_wanted_version_what_they_made_of_it(
    projects: &Arc<dyn Projects>,
) -> Result<()> {
    let (name, none) = (project(), project());
    projects.create(&name).await?;
    projects.set_source(&name, Some(&source("main"))).await?;
    projects.want(&name, &wanted('1')).await?;
    let (failed, taken) =
        (report(&name, '1', "a", Some("status 3:\nno such package")), report(&name, '1', "b", None));
    for told in [&taken, &failed, &report(&name, '2', "c", None), &report(&none, '1', "d", None)] {
        projects.note_version(told).await?;
    }
    assert_eq!(projects.reports(&name).await?, [failed, taken.clone()]);
    assert_eq!(projects.reports(&none).await?, []);
    let again = report(&name, '1', "a", None);
    projects.note_version(&again).await?;
    projects.want(&name, &wanted('1')).await?;
    assert_eq!(projects.reports(&name).await?, [again, taken], "it is wanted as before");
    projects.want(&name, &wanted('2')).await?;
    assert_eq!(projects.reports(&name).await?, []);
    projects.note_version(&report(&name, '2', "a", None)).await?;
    projects.set_source(&name, Some(&source("next"))).await?;
    assert_eq!(projects.reports(&name).await?, []);
    Ok(())
}

/// Anybody who may do a project's work may report under many names.
pub async fn reports_on_versions_are_bounded(projects: &Arc<dyn Projects>) -> Result<()> {
    let name = project();
    projects.create(&name).await?;
    projects.want(&name, &wanted('1')).await?;
    for number in 0..MAX_REPORTS + 2 {
        projects.note_version(&report(&name, '1', &number.to_string(), None)).await?;
    }
    projects.note_version(&report(&name, '1', "7", Some("it failed"))).await?;
    let reports = projects.reports(&name).await?;
    assert_eq!(reports.len(), MAX_REPORTS);
    assert!(reports.contains(&report(&name, '1', "7", Some("it failed"))), "known machines are heard");
    Ok(())
}

/// Another project of its name has neither its secret nor its spiders.
pub async fn a_project_that_is_forgotten_leaves_nothing(projects: &Arc<dyn Projects>) -> Result<()> {
    let (name, other, spider, theirs) = (project(), project(), spider(), spider());
    for name in [&name, &other] {
        projects.create(name).await?;
        projects.set_secret(name, Some(&sealed(name))).await?;
        projects.set_source(name, Some(&source("main"))).await?;
        projects.want(name, &wanted('1')).await?;
        projects.note_version(&report(name, '1', "a", None)).await?;
    }
    projects.add_spider(&name, &spider).await?;
    projects.add_spider(&other, &theirs).await?;
    assert!(projects.forget(&name).await?);
    assert!(!projects.forget(&name).await?);
    assert_eq!(projects.owners(&[spider, theirs]).await?, [None, Some(other.clone())]);
    assert!(projects.create(&name).await?);
    let anew = known(projects, &name).await?;
    assert_eq!((anew.spiders.len(), anew.has_secret, anew.source, anew.wanted), (0, false, None, None));
    projects.want(&name, &wanted('1')).await?;
    assert_eq!((projects.reports(&name).await?.len(), projects.reports(&other).await?.len()), (0, 1));
    assert!(secret_of(projects, &other).await?.is_some());
    Ok(())
}

/// A mistyped name leaves nothing behind.
pub async fn what_is_not_made_has_no_spiders_and_no_secret(projects: &Arc<dyn Projects>) -> Result<()> {
    let (name, spider) = (project(), spider());
    assert!(!projects.add_spider(&name, &spider).await?);
    assert!(!projects.remove_spider(&name, &spider).await?);
    assert!(!projects.set_secret(&name, Some(&sealed(&name))).await?);
    assert_eq!(projects.owners(&[spider]).await?, [None]);
    assert_eq!((secret_of(projects, &name).await?, projects.project(&name).await?), (None, None));
    Ok(())
}

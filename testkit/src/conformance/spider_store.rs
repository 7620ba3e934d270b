//! The promises of the store of deployed spiders: the version that was added last is found, and nothing else changes.

use std::sync::Arc;

use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{MAX_VERSIONS, Result, SpiderStore};
use trawl_common::spider::{SpiderFiles, SpiderText, Version};

/// Makes a test of each promise; the fixture returns a guard and an empty `Arc<dyn SpiderStore>`.
#[macro_export]
macro_rules! spider_store_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, spider_store:
            a_version_gives_back_what_it_was_added_with
            the_latest_version_is_the_one_that_was_added_last
            a_version_that_is_added_again_is_replaced_and_the_latest
            what_is_removed_is_gone_and_the_rest_stays
            of_too_many_versions_the_oldest_go
            the_latest_version_comes_with_all_its_files
            each_change_of_what_is_the_latest_is_seen
        }
    };
}

fn project(text: &str) -> ProjectName {
    text.parse().expect("it is written as a name")
}

fn version(text: &str) -> Version {
    text.parse().expect("it is written as a version")
}

fn spider(text: &str) -> SpiderName {
    text.parse().expect("it is written as a name")
}

async fn add(
    store: &Arc<dyn SpiderStore>,
    project_name: &str,
    version_name: &str,
    files: &[(&str, &str)],
) -> Result<()> {
    let files = files.iter().map(|(name, text)| (spider(name), (*text).to_owned())).collect();
    let files = SpiderFiles::new(files).expect("it is not too much");
    store.add(&project(project_name), &version(version_name), &files).await
}

/// Returns the version and the text of a spider's file, in a version or in the latest.
async fn text(
    store: &Arc<dyn SpiderStore>,
    project_name: &str,
    version_name: Option<&str>,
    name: &str,
) -> Result<Option<(String, String)>> {
    let version = version_name.map(version);
    let found = store.text(&project(project_name), version.as_ref(), &spider(name)).await?;
    Ok(found.map(|(version, text)| (version.to_string(), text.as_str().to_owned())))
}

fn some(version: &str, text: &str) -> Option<(String, String)> {
    Some((version.to_owned(), text.to_owned()))
}

async fn versions(store: &Arc<dyn SpiderStore>, name: &str) -> Result<Vec<String>> {
    Ok(store.versions(&project(name)).await?.into_iter().map(|one| one.version.to_string()).collect())
}

/// A version returns its files to the byte, even if two spiders have equal files.
pub async fn a_version_gives_back_what_it_was_added_with(store: &Arc<dyn SpiderStore>) -> Result<()> {
    let strange = "max_pages = 1\r\n# \u{e4}\u{1f577} {\"v\":[]} %s \\0\n";
    add(store, "shop", "r1", &[("books", strange), ("hats", strange), ("toys", "")]).await?;
    for name in ["books", "hats"] {
        assert_eq!(text(store, "shop", Some("r1"), name).await?, some("r1", strange));
    }
    assert_eq!(text(store, "shop", None, "toys").await?, some("r1", ""));
    assert_eq!(text(store, "shop", None, "none").await?, None);
    assert_eq!(text(store, "shop", Some("r2"), "toys").await?, None);
    assert_eq!(text(store, "other", None, "toys").await?, None);
    let all = store.versions(&project("shop")).await?;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].spiders, [spider("books"), spider("hats"), spider("toys")]);
    assert_eq!(store.projects().await?, [project("shop")]);
    let found = store.text(&project("shop"), None, &spider("hats")).await?;
    assert_eq!(found.map(|(_, text)| text), Some(SpiderText::from(strange.to_owned())));
    Ok(())
}

/// The latest version is the one that was added last, whatever the versions' names.
pub async fn the_latest_version_is_the_one_that_was_added_last(store: &Arc<dyn SpiderStore>) -> Result<()> {
    for name in ["r9", "r10", "r1"] {
        add(store, "shop", name, &[("books", name)]).await?;
    }
    add(store, "another", "r99", &[("books", "another")]).await?;
    assert_eq!(versions(store, "shop").await?, ["r9", "r10", "r1"]);
    assert_eq!(text(store, "shop", None, "books").await?, some("r1", "r1"));
    assert_eq!(text(store, "shop", Some("r9"), "books").await?, some("r9", "r9"));
    assert_eq!(store.projects().await?, [project("another"), project("shop")]);
    Ok(())
}

/// A version that is added again replaces all of the earlier one, and is the latest.
pub async fn a_version_that_is_added_again_is_replaced_and_the_latest(
    store: &Arc<dyn SpiderStore>,
) -> Result<()> {
    add(store, "shop", "r1", &[("books", "old"), ("hats", "old")]).await?;
    add(store, "shop", "r2", &[("books", "old")]).await?;
    add(store, "shop", "r1", &[("books", "new")]).await?;
    assert_eq!(versions(store, "shop").await?, ["r2", "r1"]);
    assert_eq!(text(store, "shop", None, "books").await?, some("r1", "new"));
    assert_eq!(text(store, "shop", None, "hats").await?, None);
    assert_eq!(text(store, "shop", Some("r2"), "books").await?, some("r2", "old"), "two versions shared it");
    Ok(())
}

/// Removing a version, or a project, leaves the others.
pub async fn what_is_removed_is_gone_and_the_rest_stays(store: &Arc<dyn SpiderStore>) -> Result<()> {
    for name in ["r1", "r2"] {
        add(store, "shop", name, &[("books", "same"), ("hats", name)]).await?;
    }
    add(store, "kept", "r1", &[("books", "kept")]).await?;
    assert!(store.remove(&project("shop"), Some(&version("r2"))).await?);
    assert!(!store.remove(&project("shop"), Some(&version("r2"))).await?, "it is gone");
    assert_eq!(text(store, "shop", None, "books").await?, some("r1", "same"), "the other version has it too");
    assert_eq!(text(store, "shop", None, "hats").await?, some("r1", "r1"));
    assert!(store.remove(&project("shop"), None).await?);
    assert!(!store.remove(&project("shop"), None).await?);
    assert_eq!((versions(store, "shop").await?.len(), store.projects().await?), (0, vec![project("kept")]));
    add(store, "last", "r1", &[("books", "last")]).await?;
    assert!(store.remove(&project("last"), Some(&version("r1"))).await?);
    assert_eq!(store.projects().await?, [project("kept")], "a project without versions is none");
    Ok(())
}

/// Beyond the maximum number of versions the oldest are removed, so that a deployment for each commit does not fill the
/// store.
pub async fn of_too_many_versions_the_oldest_go(store: &Arc<dyn SpiderStore>) -> Result<()> {
    for number in 0..MAX_VERSIONS + 2 {
        add(store, "shop", &format!("r{number}"), &[("books", &number.to_string())]).await?;
    }
    let all = versions(store, "shop").await?;
    assert_eq!((all.len(), all[0].as_str()), (MAX_VERSIONS, "r2"));
    Ok(())
}

/// The latest version comes with all its files, and no others.
pub async fn the_latest_version_comes_with_all_its_files(store: &Arc<dyn SpiderStore>) -> Result<()> {
    assert_eq!(store.latest(&project("shop")).await?, None);
    add(store, "shop", "r1", &[("books", "old"), ("hats", "old")]).await?;
    add(store, "shop", "r2", &[("books", "new"), ("toys", "new"), ("hats", "")]).await?;
    let (name, files) = store.latest(&project("shop")).await?.expect("it was added");
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text)).collect();
    assert_eq!((name, files), (version("r2"), vec![("books", "new"), ("hats", ""), ("toys", "new")]));
    store.remove(&project("shop"), Some(&version("r2"))).await?;
    let (name, files) = store.latest(&project("shop")).await?.expect("it is left");
    assert_eq!((name, files.iter().count()), (version("r1"), 2));
    Ok(())
}

/// Each change of the latest version changes the revision, even if a project was removed and added again.
pub async fn each_change_of_what_is_the_latest_is_seen(store: &Arc<dyn SpiderStore>) -> Result<()> {
    let mut seen = vec![store.revision(&project("shop")).await?];
    for name in ["r1", "r2", "r1"] {
        add(store, "shop", name, &[("books", name)]).await?;
        seen.push(store.revision(&project("shop")).await?);
        assert_eq!(seen.last(), Some(&store.revision(&project("shop")).await?), "nothing has changed");
    }
    store.remove(&project("shop"), Some(&version("r1"))).await?;
    seen.push(store.revision(&project("shop")).await?);
    store.remove(&project("shop"), None).await?;
    add(store, "shop", "r1", &[("books", "again")]).await?;
    seen.push(store.revision(&project("shop")).await?);
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
    Ok(())
}

//! Files that spiders keep.

use std::os::unix::fs::symlink;

use bytes::Bytes;
use trawl_common::mistake::Sited;
use trawl_common::ports::{ErrorKind, FileContent, FileStore, PartialFile, Resume};
use trawl_common::spider::{Download, FileTemplate, PageFollow};
use trawl_common::web::url::Fingerprint;

use super::*;

const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn download(to: &Path, below: Option<&Path>) -> Download {
    let (each, area, request, form) = Default::default();
    let (link, include, exclude, carry) = Default::default();
    Download {
        name: Sited::nowhere("file"),
        page: Vec::new(),
        links: PageFollow { name: None, each, link, area, include, exclude, carry, request, form },
        to: to.to_owned(),
        below: below.map(Path::to_owned),
        path: FileTemplate::default(),
        max_size: Download::DEFAULT_MAX_SIZE,
        types: Vec::new(),
        sync: true,
    }
}

fn store(to: &Path) -> Result<Arc<dyn FileStore>> {
    Sinks::new(worker(), Vec::new()).open_files(&spider(), &download(to, None))
}

fn key(name: &str) -> Fingerprint {
    Fingerprint::from_text(name)
}

fn resume() -> Option<Resume> {
    Some(Resume { url: "http://a.example/".to_owned(), validator: "\"v\"".to_owned(), total: 10 })
}

async fn written(store: &dyn FileStore, name: &str, text: &str) -> (Box<dyn PartialFile>, FileContent) {
    let mut part = store.open(key(name)).await.unwrap();
    part.restart(None).await.unwrap();
    part.write(Bytes::from(text.to_owned())).await.unwrap();
    let content = part.content().await.unwrap();
    (part, content)
}

async fn keep(store: &dyn FileStore, path: &str, text: &str) -> Result<String> {
    let (part, content) = written(store, path, text).await;
    part.keep(path, &content).await
}

/// Returns the files below a folder with their content, by path.
fn all(folder: &Path) -> Vec<(String, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

#[tokio::test]
async fn a_file_is_kept_once_and_another_of_its_name_beside_it() {
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("{spider}");
    let store = store(&to).unwrap();
    let to = place.path().join(spider().name.as_str());
    let at = |path: &str| to.join(path).to_string_lossy().into_owned();
    let (part, content) = written(&*store, "a", "hello").await;
    assert_eq!(content, FileContent { size: 5, sha256: HELLO.to_owned() });
    assert_eq!(part.keep("x/a.txt", &content).await.unwrap(), at("x/a.txt"));
    assert_eq!(keep(&*store, "x/a.txt", "hello").await.unwrap(), at("x/a.txt"));
    let other = keep(&*store, "x/a.txt", "other").await.unwrap();
    assert_eq!(keep(&*store, "x/a.txt", "other").await.unwrap(), other);
    let name = other.strip_prefix(&at("x/")).unwrap();
    assert!(name.starts_with("a-") && name.ends_with(".txt") && name.len() == "a-.txt".len() + 16, "{name}");
    assert_eq!(all(&to.join("x")), pairs([(name, "other"), ("a.txt", "hello")]), "and nothing of it is left");
    assert_eq!(all(&to).len(), 2);
}

#[tokio::test]
async fn what_is_written_stays_for_the_next_attempt_and_nobody_else_writes_to_it() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path()).unwrap();
    let mut part = store.open(key("a")).await.unwrap();
    assert_eq!(part.left(), None);
    part.restart(resume()).await.unwrap();
    part.write(Bytes::from_static(b"he")).await.unwrap();
    assert_eq!(part.start(9).await.unwrap(), "he");
    assert_eq!(store.open(key("a")).await.err().unwrap().kind, ErrorKind::Busy);
    drop(part);
    let again = self::store(place.path()).unwrap();
    let mut part = again.open(key("a")).await.unwrap();
    let left = part.left().unwrap();
    assert_eq!((left.bytes, Some(&left.resume)), (2, resume().as_ref()));
    part.write(Bytes::from_static(b"llo")).await.unwrap();
    assert_eq!(part.start(3).await.unwrap(), "hel");
    let content = part.content().await.unwrap();
    assert_eq!(content.sha256, HELLO);
    part.keep("a", &content).await.unwrap();
    assert_eq!(all(place.path()), pairs([("a", "hello")]));
}

#[tokio::test]
async fn what_cannot_be_resumed_begins_anew_and_what_is_discarded_is_gone() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path()).unwrap();
    let (part, _) = written(&*store, "a", "he").await;
    drop(part);
    let mut part = store.open(key("a")).await.unwrap();
    assert_eq!(part.left(), None, "it has no validator");
    part.restart(resume()).await.unwrap();
    part.write(Bytes::from_static(b"0123456789")).await.unwrap();
    part.content().await.unwrap();
    drop(part);
    let mut part = store.open(key("a")).await.unwrap();
    assert_eq!(part.left(), None, "a whole file has no rest");
    part.restart(resume()).await.unwrap();
    part.write(Bytes::from_static(b"hello")).await.unwrap();
    assert_eq!(part.content().await.unwrap().sha256, HELLO);
    part.discard().await.unwrap();
    assert!(all(place.path()).is_empty());
}

#[tokio::test]
async fn a_name_that_no_file_can_have_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path()).unwrap();
    keep(&*store, "a", "hello").await.unwrap();
    assert_eq!(keep(&*store, "a/b", "hello").await.unwrap_err().kind, ErrorKind::Refused);
    let name = "n".repeat(300);
    assert_eq!(keep(&*store, &name, "hello").await.unwrap_err().kind, ErrorKind::Refused);
    // A folder has no content.
    keep(&*store, "x/y", "hello").await.unwrap();
    assert!(keep(&*store, "x", "hello").await.unwrap().ends_with(&format!("x-{}", &HELLO[..16])));
}

#[tokio::test]
async fn nothing_leads_out_of_the_folder_of_a_delivered_spider() {
    let place = tempfile::tempdir().unwrap();
    let (root, outside) = (place.path().join("items"), place.path().join("outside"));
    fs::create_dir_all(root.join("shop")).unwrap();
    fs::create_dir(&outside).unwrap();
    symlink(&outside, root.join("link")).unwrap();
    symlink(&outside, root.join("shop/link")).unwrap();
    fs::write(outside.join("secret"), "hello").unwrap();
    symlink(outside.join("secret"), root.join("shop/named")).unwrap();
    let open = |to: &str| {
        Sinks::new(worker(), Vec::new()).open_files(&spider(), &download(&root.join(to), Some(&root)))
    };
    assert!(open("link").is_err() && open("../outside").is_err());
    let store = open("shop").unwrap();
    assert!(keep(&*store, "link/a", "hello").await.is_err());
    assert_eq!(keep(&*store, "b/a", "hello").await.unwrap(), root.join("shop/b/a").to_string_lossy());
    // A link has no content, whatever it leads to.
    assert!(!keep(&*store, "named", "hello").await.unwrap().ends_with("named"));
    assert_eq!(all(&outside), pairs([("secret", "hello")]));
}

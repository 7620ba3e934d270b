//! Spiders deployed over HTTP: the contents of a version, and the validation of jobs for them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;
use trawl_common::jobs::NewJob;
use trawl_common::mistake::Mistake;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::{self, SpiderStore};
use trawl_common::settings::Settings;
use trawl_common::spider::arguments::{Arguments, Declaration, Declarations};
use trawl_common::spider::file::with_arguments;
use trawl_common::spider::folder::{Folder, IN_OWN_FOLDER, Unusable, name_of};
use trawl_common::spider::{FileHash, InvalidFiles, Origin, Spider, SpiderFiles, Version};
use trawl_extract::Examined;

use crate::Api;
use crate::identity::Identity;
use crate::problem::Problem;
use crate::threads::on_a_thread_apart;

/// Maximum size of an unpacked bundle with everything in it, in bytes.
const MAX_UNPACKED: u64 = 16 * 1024 * 1024;
/// Maximum memory for the patterns of all files of a version, in bytes.
const MAX_PATTERNS: usize = 32 << 20;
/// The time that a caller waits while other texts are examined, including another one of their own.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why an upload is not a version.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    /// It is a Python egg.
    #[error(
        "this is a Python egg: trawl runs spider files; send NAME.toml, or a tar of such files. A Scrapy project lies on the workers, where \
         [handler] of a spider file runs it (docs/scrapy.md)"
    )]
    Egg,
    /// It is one file without a name.
    #[error(
        "the file has no name NAME.toml, by which its spider would be known; a tar of spider files needs none"
    )]
    Nameless,
    /// A file is called `spider.toml`, and its folder is not said.
    #[error("a `spider.toml` is known by its folder, which is not said here: send it as NAME.toml")]
    Folderless,
    /// It cannot be unpacked.
    #[error("the bundle cannot be unpacked: {0}")]
    Broken(#[from] io::Error),
    /// It unpacks to too much.
    #[error("the bundle has more than {MAX_UNPACKED} bytes unpacked")]
    TooLarge,
    /// A file in it cannot be a spider's.
    #[error(transparent)]
    Name(#[from] Unusable),
    /// A file in it is not UTF-8.
    #[error("{0}.toml is not UTF-8")]
    Text(SpiderName),
    /// Two files are of one name.
    #[error("there are two files of spider {0}")]
    Twice(SpiderName),
    /// There are too few or too many files.
    #[error(transparent)]
    Files(#[from] InvalidFiles),
    /// The patterns take too much memory when compiled.
    #[error("the patterns of all files take more than {} MiB together: deploy fewer at once, as projects of their own", MAX_PATTERNS >> 20)]
    Patterns,
    /// Some of the files have mistakes.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Mistaken(Vec<Unusable>),
}

/// Returns the spiders in an upload: one file `NAME.toml`, or a tar of such files, optionally compressed with
/// gzip. Other files in it are ignored, and so are the names of its folders.
pub(crate) fn files_of(name: Option<&str>, upload: &[u8], settings: &Settings) -> Result<SpiderFiles, Unfit> {
    let mut files = BTreeMap::new();
    if upload.starts_with(b"PK\x03\x04") {
        return Err(Unfit::Egg);
    } else if upload.starts_with(b"\x1f\x8b") {
        unpack(GzDecoder::new(upload), &mut files)?;
    } else if upload.get(257..262) == Some(b"ustar") {
        unpack(upload, &mut files)?;
    } else {
        let path = name.map(Path::new).filter(|path| is_spider_file(path)).ok_or(Unfit::Nameless)?;
        add(path, upload.to_vec(), &mut files)?;
    }
    let files = SpiderFiles::new(files)?;
    let (mut mistaken, mut patterns) = (Vec::new(), 0);
    for (name, text) in files.iter() {
        let origin = Origin::Delivered(&settings.spiders);
        let reading = Examined::new(name.clone(), text, &Arguments::default(), settings, origin).reading;
        patterns += reading.patterns;
        if patterns > MAX_PATTERNS {
            return Err(Unfit::Patterns);
        }
        if !reading.mistakes.is_empty() {
            mistaken.push(self::mistaken(name, text, reading.mistakes));
        }
    }
    if mistaken.is_empty() { Ok(files) } else { Err(Unfit::Mistaken(mistaken)) }
}

fn unpack(bundle: impl Read, files: &mut BTreeMap<SpiderName, String>) -> Result<(), Unfit> {
    // One byte more than the limit shows that it is exceeded.
    let mut bundle = tar::Archive::new(bundle.take(MAX_UNPACKED + 1));
    let mut unpacked: u64 = 0;
    for entry in bundle.entries()? {
        let mut entry = entry?;
        // A sparse file may claim any size.
        unpacked = unpacked.checked_add(entry.size()).ok_or(Unfit::TooLarge)?;
        if unpacked > MAX_UNPACKED {
            return Err(Unfit::TooLarge);
        }
        let path = entry.path()?.into_owned();
        if entry.header().entry_type().is_file() && is_spider_file(&path) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            add(&path, bytes, files)?;
        }
    }
    Ok(())
}

fn is_spider_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

fn add(path: &Path, bytes: Vec<u8>, files: &mut BTreeMap<SpiderName, String>) -> Result<(), Unfit> {
    let name = name_of(path)?;
    let has_folder = path.parent().and_then(Path::file_name).is_some();
    if !has_folder && path.file_name().is_some_and(|file| file == IN_OWN_FOLDER) {
        return Err(Unfit::Folderless);
    }
    let text = String::from_utf8(bytes).map_err(|_| Unfit::Text(name.clone()))?;
    match files.insert(name.clone(), text) {
        None => Ok(()),
        Some(_) => Err(Unfit::Twice(name)),
    }
}

fn mistaken(name: &SpiderName, text: &str, mistakes: Vec<Mistake>) -> Unusable {
    Unusable::Mistaken { path: format!("{name}.toml").into(), text: text.to_owned(), mistakes }
}

impl Api {
    /// Examines a caller's text, separately from other requests. Each caller has one text examined at a time,
    /// and waits meanwhile.
    pub(crate) async fn examine<T: Send + 'static>(
        &self,
        identity: &Identity,
        examine: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let place = self.examiners.wait(identity, QUEUE_TIMEOUT).await?;
        let examine = move || {
            // Held to the end, even if the caller has gone.
            let _place = place;
            examine()
        };
        Ok(on_a_thread_apart(examine).await)
    }

    /// Returns the spiders that have files on this machine.
    pub(crate) fn spiders_here(&self) -> Vec<SpiderName> {
        Folder::new(&self.backend.settings).names().unwrap_or_default()
    }

    /// Returns the text of a spider's file: of a deployed one, with its version, or, in the default project,
    /// of one on this machine.
    pub(crate) async fn spider_text(
        &self,
        project: &ProjectName,
        version: Option<&Version>,
        spider: &SpiderName,
    ) -> Result<(Option<Version>, String), Problem> {
        if let Some((version, text)) = self.backend.spider_store.text(project, version, spider).await? {
            return Ok((Some(version), text.as_str().to_owned()));
        }
        let may_be_here = version.is_none() && *project == ProjectName::default();
        let here = may_be_here.then(|| Folder::new(&self.backend.settings).text(spider)).transpose();
        match here.map_err(Problem::malformed)?.flatten() {
            Some(text) => Ok((None, text)),
            None => {
                let (project, spider) = (project.clone(), spider.clone());
                Err(Problem::not_found(Unrunnable::Spider { project, spider }))
            }
        }
    }
}

/// The reason why a job cannot run, as far as this is known here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unrunnable {
    /// Nothing of its project is deployed.
    #[error("project '{0}' not found")]
    Project(ProjectName),
    /// Its project has no such version.
    #[error("version '{version}' of project '{project}' not found")]
    Version { project: ProjectName, version: Version },
    /// Its spider is not in the version.
    #[error("spider '{spider}' not found in project '{project}'")]
    Spider { project: ProjectName, spider: SpiderName },
    /// Its arguments are not those of the spider.
    #[error(transparent)]
    Arguments(Unusable),
    /// The store failed.
    #[error(transparent)]
    Port(#[from] ports::Error),
}

impl From<Unrunnable> for Problem {
    fn from(wrong: Unrunnable) -> Self {
        match wrong {
            Unrunnable::Port(error) => error.into(),
            wrong => Self::malformed(wrong),
        }
    }
}

/// The place of the file of a job's spider, as far as this is known here.
pub(crate) enum Found {
    /// Deployed in its project, with this text.
    Deployed(String),
    /// On this machine, with this text.
    Here(String),
    /// Not found here; it may be on workers.
    Nowhere,
}

/// Looks for the file of a job's spider. If the job names a version, it must be in that version.
pub(crate) async fn find(
    store: &dyn SpiderStore,
    new: &NewJob,
    settings: &Settings,
) -> Result<Found, Unrunnable> {
    match store.text(&new.project, new.version.as_ref(), &new.spider).await? {
        Some((_, text)) => Ok(Found::Deployed(text.as_str().to_owned())),
        None if new.version.is_some() => Err(missing(store, new).await?),
        None => Ok(match Folder::new(settings).text(&new.spider) {
            Ok(Some(text)) => Found::Here(text),
            _ => Found::Nowhere,
        }),
    }
}

/// Checks that a job has the arguments that the file of its spider declares.
pub(crate) fn check_arguments(new: &NewJob, text: &str, settings: &Settings) -> Result<(), Unrunnable> {
    let spider = &new.spider;
    let wrong = |mistakes| Unrunnable::Arguments(mistaken(spider, text, mistakes));
    let text = with_arguments(text, &new.arguments).map_err(wrong)?;
    let reading = Folder::new(settings).reading(spider, &text);
    let unset = not_given(&reading.arguments);
    if unset.is_empty() { Ok(()) } else { Err(wrong(unset)) }
}

/// Returns the spider for work that is admitted here. An unset variable is not a mistake, since it may be set
/// on workers only; and a crawl that has begun has been given its arguments.
pub(crate) fn spider_of(
    name: &SpiderName,
    text: &str,
    has_begun: bool,
    settings: &Settings,
) -> Result<Spider, Unusable> {
    let reading = Folder::new(settings).reading(name, text);
    let mut mistakes = reading.mistakes;
    if !has_begun {
        mistakes.extend(not_given(&reading.arguments));
    }
    match mistakes.is_empty() {
        true => Ok(Spider { file: Some(FileHash::from_text(text)), ..reading.spider }),
        false => Err(mistaken(name, text, mistakes)),
    }
}

/// Returns a mistake for each argument without a value.
pub(crate) fn not_given(arguments: &Declarations) -> Vec<Mistake> {
    let unset = arguments.iter().filter(|(_, declared)| declared.value.is_none());
    let mistake = |(name, declared): (&String, &Declaration)| Mistake {
        place: Some(declared.place),
        what: format!("arguments.{name}: has no default and is not given"),
    };
    unset.map(mistake).collect()
}

/// Returns the part of a job that is not deployed: its project, its version, or its spider.
pub(crate) async fn missing(store: &dyn SpiderStore, new: &NewJob) -> ports::Result<Unrunnable> {
    let (project, spider) = (new.project.clone(), new.spider.clone());
    let versions = store.versions(&project).await?;
    Ok(match &new.version {
        // The default project is there without versions, too.
        _ if versions.is_empty() && project != ProjectName::default() => Unrunnable::Project(project),
        Some(version) if versions.iter().all(|known| known.version != *version) => {
            Unrunnable::Version { project, version: version.clone() }
        }
        _ => Unrunnable::Spider { project, spider },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a number as GNU tar does if it is too large for octal digits.
    fn large(number: u64) -> [u8; 12] {
        let mut field = [0; 12];
        field[0] = 0x80;
        field[4..].copy_from_slice(&number.to_be_bytes());
        field
    }

    fn header(kind: tar::EntryType, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_path("books.toml").unwrap();
        header.set_entry_type(kind);
        header.set_size(size);
        header
    }

    #[test]
    fn many_files_with_costly_patterns_are_refused_before_all_are_compiled() {
        let text = "[start]\nurls = ['http://a.example/']\n[follow]\ninclude = ['\\w{100}', '\\w{100}']\n";
        let mut bundle = tar::Builder::new(Vec::new());
        for number in 0..500 {
            let mut header = header(tar::EntryType::Regular, text.len() as u64);
            header.set_path(format!("s{number}.toml")).unwrap();
            header.set_cksum();
            bundle.append(&header, text.as_bytes()).unwrap();
        }
        let files = files_of(None, &bundle.into_inner().unwrap(), &Settings::default());
        assert!(matches!(files, Err(Unfit::Patterns)), "{files:?}");
    }

    #[test]
    fn a_file_that_is_known_by_its_folder_is_refused_without_one() {
        let files = |name| files_of(Some(name), b"max_pages = 1", &Settings::default());
        for name in ["spider.toml", "./spider.toml"] {
            assert!(matches!(files(name), Err(Unfit::Folderless)), "{name}");
        }
        let names = |name| files(name).unwrap().iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
        assert_eq!(
            (names("quotes/spider.toml"), names("books.toml")),
            (vec!["quotes".to_owned()], vec!["books".to_owned()])
        );
    }

    #[test]
    fn a_sparse_file_that_claims_the_largest_size_there_is_is_too_large() {
        let mut first = header(tar::EntryType::Regular, 1);
        first.set_cksum();
        let mut sparse = header(tar::EntryType::GNUSparse, 0);
        let gnu = sparse.as_gnu_mut().unwrap();
        gnu.realsize = large(u64::MAX);
        gnu.sparse[0].offset = large(u64::MAX);
        gnu.sparse[0].numbytes = *b"00000000000\0";
        sparse.set_cksum();
        let mut bundle = tar::Builder::new(Vec::new());
        bundle.append(&first, &b"#"[..]).unwrap();
        bundle.append(&sparse, &b""[..]).unwrap();
        let bundle = bundle.into_inner().unwrap();
        let unpacked = unpack(bundle.as_slice(), &mut BTreeMap::new());
        assert!(matches!(unpacked, Err(Unfit::TooLarge)), "{unpacked:?}");
    }
}

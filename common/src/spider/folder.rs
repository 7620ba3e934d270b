//! Finds and reads the files of spiders.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::file::{self, Reading};
use super::{FileHash, Handler, Origin, Spider, SpiderOverrides};
use crate::mistake::Mistake;
use crate::names::{InvalidName, SpiderName};
use crate::settings::{self, Settings, Urls};
use crate::small_file;

/// The name of a spider's file in a folder of its own, beside its program; it is known by the name of the folder.
pub const IN_OWN_FOLDER: &str = "spider.toml";

/// Maximum size of a file.
const MAX_KILOBYTES: u16 = 256;

/// The folder in which spiders are found by name, with the command line's overrides.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// A file outside the folder that is found by its name too.
    named: Option<PathBuf>,
    /// The path that mistakes report for a text that is not the spider's file here.
    called: Option<PathBuf>,
    /// Whether it holds the code of a project that was fetched by Git.
    is_fetched: bool,
    overrides: SpiderOverrides,
    /// The arguments of one spider.
    arguments: Option<(SpiderName, Arguments)>,
    urls: Urls,
    /// The settings that confine a text that is not the spider's file here.
    limits: settings::Spiders,
}

/// The reason why a spider's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// Its name cannot be a spider's.
    #[error("{}: {error}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// The rules for names.
        error: InvalidName,
    },
    /// The file has mistakes.
    #[error("{}", Listing(path, mistakes))]
    Mistaken {
        /// The file.
        path: PathBuf,
        /// The text of the file.
        text: String,
        /// The mistakes.
        mistakes: Vec<Mistake>,
    },
}

/// Mistakes on one line: `spiders/shop.toml:3:1: …; spiders/shop.toml:7:9: …`.
struct Listing<'a>(&'a Path, &'a [Mistake]);

impl fmt::Display for Listing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.1.iter().enumerate() {
            let gap = if number == 0 { "" } else { "; " };
            write!(f, "{gap}{}", self.0.display())?;
            if let Some(place) = mistake.place {
                write!(f, ":{place}")?;
            }
            write!(f, ": {mistake}")?;
        }
        Ok(())
    }
}

impl Folder {
    /// Creates the folder that the settings name.
    pub fn new(settings: &Settings) -> Self {
        let (named, called, is_fetched, overrides, arguments) = Default::default();
        Self {
            path: settings.spiders_dir.clone(),
            named,
            called,
            is_fetched,
            overrides,
            arguments,
            urls: settings.urls.clone(),
            limits: settings.spiders.clone(),
        }
    }

    /// Adds a file, which is then the file of the spider that it is named for.
    #[must_use]
    pub fn with_file(self, file: PathBuf) -> Self {
        Self { named: Some(file), ..self }
    }

    /// Returns the folder at `path` with the code of a project, which was fetched by Git, for the spiders of that project:
    /// one without a file of its name has the `spider.toml` at the top.
    #[must_use]
    pub fn fetched(&self, path: PathBuf) -> Self {
        Self { path, named: None, is_fetched: true, ..self.clone() }
    }

    /// Sets the path that mistakes report for a text that was deployed and is no file here.
    #[must_use]
    pub fn calling(self, path: PathBuf) -> Self {
        Self { called: Some(path), ..self }
    }

    /// Overrides the files of all spiders.
    #[must_use]
    pub fn with_overrides(self, overrides: SpiderOverrides) -> Self {
        Self { overrides, ..self }
    }

    /// Sets the arguments of the spider `name`.
    #[must_use]
    pub fn with_arguments(self, name: SpiderName, arguments: Arguments) -> Self {
        Self { arguments: Some((name, arguments)), ..self }
    }

    /// Returns the file that the spider `name` has, if any: `<name>.toml`, or `<name>/spider.toml` if there is no
    /// such file.
    pub fn file(&self, name: &SpiderName) -> PathBuf {
        let named = self.named.as_ref().filter(|file| name_of(file).is_ok_and(|other| other == *name));
        if let Some(file) = named {
            return file.clone();
        }
        let (file, own_folder) = (self.path.join(format!("{name}.toml")), self.path.join(name.as_str()));
        let in_own_folder = own_folder.join(IN_OWN_FOLDER);
        match file.exists() {
            true => file,
            false if in_own_folder.exists() => in_own_folder,
            false if self.is_fetched => self.path.join(IN_OWN_FOLDER),
            false => file,
        }
    }

    /// Returns the folder of that file, in which the spider's program runs.
    pub fn program_folder(&self, name: &SpiderName) -> PathBuf {
        let file = self.file(name);
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new(".")).to_owned()
    }

    /// Whether the spider's file has a folder of its own: `<name>/spider.toml`.
    pub fn has_own_folder(&self, name: &SpiderName) -> bool {
        self.file(name).file_name().is_some_and(|file| file == IN_OWN_FOLDER)
    }

    /// Returns the spiders in the folder, by name; none if there is no folder. Other files are left out.
    pub fn names(&self) -> io::Result<Vec<SpiderName>> {
        let entries = match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                names.extend(named(&path, path.file_stem()));
            } else if path.join(IN_OWN_FOLDER).exists() {
                names.extend(named(&path, path.file_name()));
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Returns the text of the file of the spider `name`, with the values of its arguments; `None` if it has none.
    pub fn text(&self, name: &SpiderName) -> Result<Option<String>, Unusable> {
        match text(&self.file(name)) {
            Err(Unusable::Unreadable { error, .. }) if error.kind() == ErrorKind::NotFound => Ok(None),
            text => self.with_values(name, text?).map(Some),
        }
    }

    fn with_values(&self, name: &SpiderName, text: String) -> Result<String, Unusable> {
        match &self.arguments {
            Some((other, arguments)) if other == name => {
                let given = file::with_arguments(&text, arguments);
                given.map_err(|mistakes| self.mistaken(name, &text, mistakes))
            }
            _ => Ok(text),
        }
    }

    /// Returns the origin of `text` as the file of the spider `name`: local if it equals the file here, with the
    /// argument values of `text`; otherwise elsewhere.
    pub fn origin(&self, name: &SpiderName, text: &str) -> Origin<'_> {
        let is_here = self::text(&self.file(name))
            .is_ok_and(|own| own == text || self.is_same_with_values(name, &own, text));
        if is_here { self.own_origin() } else { Origin::Delivered(&self.limits) }
    }

    /// Returns the origin of its files.
    fn own_origin(&self) -> Origin<'_> {
        if self.is_fetched { Origin::Fetched(&self.limits) } else { Origin::Local }
    }

    /// Returns whether `own` equals `brought` once it has its argument values.
    fn is_same_with_values(&self, name: &SpiderName, own: &str, brought: &str) -> bool {
        let declared =
            file::read(self.usual(name), brought, Origin::Delivered(&self.limits), &|_| None).arguments;
        let values = Arguments::of_declared(&declared);
        let with_values = |text| file::with_arguments(text, &values).ok();
        !values.is_empty() && with_values(own).is_some_and(|own| with_values(brought) == Some(own))
    }

    /// Returns the spider `name` as it would be without a file.
    fn usual(&self, name: &SpiderName) -> Spider {
        Spider { urls: self.urls.clone(), ..Spider::without_file(name.clone(), &settings::Items::default()) }
    }

    /// Reads `text` as the file of the spider `name`, with all mistakes in it. Things that a text from elsewhere
    /// may not use count as mistakes.
    pub fn reading(&self, name: &SpiderName, text: &str) -> Reading {
        file::read(self.usual(name), text, self.origin(name, text), &environment)
    }

    /// Returns the spider `name`, ready to work, from its file, if it has one.
    pub fn spider(
        &self,
        name: &SpiderName,
        text: Option<&str>,
        items: &settings::Items,
    ) -> Result<Spider, Unusable> {
        self.read(name, text, items, Reading::ready)
    }

    /// Like [`Folder::spider`], for a process that only asks workers to run the spider: variables of the
    /// environment may be set only there.
    pub fn spider_elsewhere(
        &self,
        name: &SpiderName,
        text: Option<&str>,
        items: &settings::Items,
    ) -> Result<Spider, Unusable> {
        self.read(name, text, items, Reading::ready_elsewhere)
    }

    fn read(
        &self,
        name: &SpiderName,
        text: Option<&str>,
        items: &settings::Items,
        ready: impl FnOnce(Reading) -> Result<Spider, Vec<Mistake>>,
    ) -> Result<Spider, Unusable> {
        let usual = Spider { urls: self.urls.clone(), ..Spider::without_file(name.clone(), items) };
        let spider = match text {
            None => usual,
            Some(text) => {
                let ready = ready(file::read(usual, text, self.origin(name, text), &environment));
                let spider = ready.map_err(|mistakes| self.mistaken(name, text, mistakes))?;
                Spider { file: Some(FileHash::from_text(text)), ..spider }
            }
        };
        Ok(self.overrides.apply(spider))
    }

    /// Returns the program in the file of the spider `name` here, with the argument values of `brought`, another
    /// text of that spider. Other missing values do not matter.
    pub fn handler(&self, name: &SpiderName, brought: &str) -> Result<Option<Handler>, Unusable> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let mistaken = |mistakes| self.mistaken(name, &text, mistakes);
        let read = |text: &str| file::read(self.usual(name), text, self.own_origin(), &environment);
        let (declared, values) = (read(&text).arguments, read(brought).arguments);
        let arguments = Arguments::of_declared(&values).only(|name| declared.contains_key(name));
        let given = file::with_arguments(&text, &arguments).map_err(mistaken)?;
        let reading = read(&given);
        if reading.mistakes.is_empty() { Ok(reading.spider.handler) } else { Err(mistaken(reading.mistakes)) }
    }

    /// Returns the error for mistakes in the file of the spider `name`.
    pub fn mistaken(&self, name: &SpiderName, text: &str, mistakes: Vec<Mistake>) -> Unusable {
        let path = self.called.clone().unwrap_or_else(|| self.file(name));
        Unusable::Mistaken { path, text: text.to_owned(), mistakes }
    }
}

/// Returns the file that a path names: for a folder the `spider.toml` in it.
pub fn file_at(path: PathBuf) -> PathBuf {
    if path.is_dir() { path.join(IN_OWN_FOLDER) } else { path }
}

/// Returns the spider that a file is named for; a `spider.toml` is named for its folder.
pub fn name_of(file: &Path) -> Result<SpiderName, Unusable> {
    let folder = file.parent().and_then(Path::file_name);
    let is_in_own_folder = folder.is_some() && file.file_name().is_some_and(|name| name == IN_OWN_FOLDER);
    named(file, if is_in_own_folder { folder } else { file.file_stem() })
}

fn named(file: &Path, name: Option<&OsStr>) -> Result<SpiderName, Unusable> {
    let name = name.unwrap_or_default().to_string_lossy();
    name.parse().map_err(|error| Unusable::Name { path: file.to_owned(), error })
}

/// Reads a file.
pub fn text(path: &Path) -> Result<String, Unusable> {
    small_file::read(path, MAX_KILOBYTES)
        .map_err(|error| Unusable::Unreadable { path: path.to_owned(), error })
}

/// Returns a variable of the process's own environment.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::num::NonZeroU64;

    use super::*;
    use crate::politeness::rate::Rate;

    fn folder(path: &Path) -> Folder {
        Folder::new(&Settings { spiders_dir: path.to_owned(), ..Settings::default() })
    }

    fn load(folder: &Folder, name: &str) -> Result<Spider, Unusable> {
        let name = name.parse().unwrap();
        let text = folder.text(&name)?;
        folder.spider(&name, text.as_deref(), &settings::Items::default())
    }

    #[test]
    fn a_spider_is_found_by_its_name_or_by_a_path() {
        let temporary = tempfile::tempdir().unwrap();
        let elsewhere = temporary.path().join("elsewhere.toml");
        fs::write(temporary.path().join("shop.toml"), "max_pages = 1").unwrap();
        fs::write(&elsewhere, "max_pages = 2").unwrap();
        let folder = folder(&temporary.path().join(".")).with_file(elsewhere);
        let pages = |name| load(&folder, name).unwrap().max_pages.map(std::num::NonZeroU64::get);
        assert_eq!([pages("shop"), pages("elsewhere"), pages("none")], [Some(1), Some(2), None]);
    }

    #[test]
    fn a_folder_lists_its_spiders_by_name_and_one_that_is_not_there_has_none() {
        let temporary = tempfile::tempdir().unwrap();
        for file in ["b.toml", "a.toml", "notes.txt", "Not A Name.toml"] {
            fs::write(temporary.path().join(file), "").unwrap();
        }
        let names = folder(temporary.path()).names().unwrap();
        assert_eq!(names.iter().map(SpiderName::as_str).collect::<Vec<_>>(), ["a", "b"]);
        assert!(folder(&temporary.path().join("none")).names().unwrap().is_empty());
    }

    #[test]
    fn a_spider_may_have_a_folder_of_its_own_with_its_program() {
        let temporary = tempfile::tempdir().unwrap();
        let own = temporary.path().join("shop");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("spider.toml"), "max_pages = 1").unwrap();
        fs::create_dir(temporary.path().join("empty")).unwrap();
        let folder = folder(temporary.path());
        let name: SpiderName = "shop".parse().unwrap();
        assert_eq!(folder.names().unwrap(), vec![name.clone()]);
        assert_eq!(
            (folder.file(&name), folder.program_folder(&name)),
            (own.join("spider.toml"), own.clone())
        );
        assert_eq!(name_of(&own.join("spider.toml")).unwrap(), name);
        assert_eq!(file_at(own.clone()), own.join("spider.toml"));
        assert_eq!(file_at(own.join("spider.toml")), own.join("spider.toml"));
        assert_eq!(name_of(Path::new("spider.toml")).unwrap().as_str(), "spider");
        fs::write(temporary.path().join("shop.toml"), "max_pages = 2").unwrap();
        assert_eq!(folder.names().unwrap(), vec![name.clone()], "a file beside the folder comes first");
        assert_eq!(load(&folder, "shop").unwrap().max_pages.map(NonZeroU64::get), Some(2));
        assert_eq!(folder.program_folder(&name), temporary.path());
    }

    #[test]
    fn a_program_is_known_though_an_argument_of_its_file_has_no_value_and_has_the_values_that_a_crawl_gives()
    {
        let temporary = tempfile::tempdir().unwrap();
        let text = |arguments: &str| {
            format!(
                "[start]\nurls = ['{{arg.site}}/1']\n[handler]\nrun = ['run']\nsecret = {{ of = '{{arg.site}}' }}\n\
                 [arguments]\n{arguments}\n"
            )
        };
        fs::write(temporary.path().join("shop.toml"), text("site = { help = 'where' }")).unwrap();
        let folder = folder(temporary.path());
        let handler = |brought: &str| folder.handler(&"shop".parse().unwrap(), brought);
        let secret = |brought: &str| handler(brought).unwrap().unwrap().secret.reveal().to_owned();
        assert_eq!(secret(&text("site = 'http://a.example'")), r#"{"of":"http://a.example"}"#);
        assert_eq!(handler("").unwrap().unwrap().run, ["run"]);
        assert_eq!(handler("[arguments]\nother = 'x'").unwrap().unwrap().run, ["run"]);
        assert_eq!(folder.handler(&"none".parse().unwrap(), "").unwrap(), None);
        fs::write(temporary.path().join("shop.toml"), "[handler]\nrun = []").unwrap();
        assert!(handler("").unwrap_err().to_string().contains("shop.toml:2:"));
    }

    #[test]
    fn who_has_others_work_needs_none_of_their_variables_but_every_argument() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = folder(temporary.path());
        let read = |text: &str| {
            folder.spider_elsewhere(&"shop".parse().unwrap(), Some(text), &settings::Items::default())
        };
        let program = "[handler]\nrun = ['run']\nsecret = { key = { env = 'NOBODY_SETS_THIS' } }\n";
        assert!(read(program).unwrap().handler.is_some());
        let error = read(&format!("{program}[arguments]\nsite = {{}}\n[start]\nurls = ['{{arg.site}}']"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("has no default") && !error.contains("NOBODY"), "{error}");
    }

    #[test]
    fn what_cannot_be_a_spider_is_an_error_that_names_the_file() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = folder(temporary.path());
        let error = |file: &str, bytes: &[u8]| {
            fs::write(temporary.path().join(format!("{file}.toml")), bytes).unwrap();
            let error = load(&folder, file).unwrap_err().to_string();
            assert!(error.contains(&format!("{file}.toml")), "{error}");
            error
        };
        assert!(error("large", &vec![b'#'; 300_000]).contains("256 KB"));
        assert!(error("bytes", b"\xff").contains("UTF-8"));
        let message = error("wrong", b"a = 1\nb = 2\n");
        assert!(
            message.contains("wrong.toml:1:1: ")
                && message.contains("; ")
                && message.contains("wrong.toml:2:1: ")
        );
        fs::create_dir(temporary.path().join("dir.toml")).unwrap();
        assert!(load(&folder, "dir").unwrap_err().to_string().contains("is no file"));
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("slow.toml"), "[politeness]\nrate = '1/h'").unwrap();
        let overrides = SpiderOverrides {
            rate: Some(Rate::Unlimited),
            follow: true,
            max_pages: NonZeroU64::new(7),
            ..SpiderOverrides::default()
        };
        let spider = load(&folder(temporary.path()).with_overrides(overrides.clone()), "slow").unwrap();
        assert_eq!((spider.politeness.rate, spider.max_pages), (overrides.rate, overrides.max_pages));
        assert!(spider.follow.is_some());
    }
}

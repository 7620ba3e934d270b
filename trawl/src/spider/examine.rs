//! A spider file with all that is wrong in it, whoever finds it.

use std::path::{Path, PathBuf};

use trawl_cli::{Fail, SpiderArg, unusable};
use trawl_common::politeness::robots::RobotsName;
use trawl_common::settings::Settings;
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::file::{self, Reading};
use trawl_common::spider::folder::{self, Folder, Unusable};
use trawl_common::spider::{Mistake, Spider};
use trawl_extract::Ready;
use trawl_worker::Unready;

/// A file, and what was found in it.
pub(crate) struct Examined {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) reading: Reading,
    /// Nothing, where the file has mistakes.
    pub(crate) ready: Option<Ready>,
    pub(crate) robots: Robots,
}

/// Whose rules of a robots.txt a spider obeys.
pub(crate) enum Robots {
    Ignored,
    /// Those for this name.
    For(RobotsName),
    /// Those for `trawl`, as no name is set or told.
    ForTrawl,
}

impl Robots {
    fn of(spider: &Spider, settings: &Settings) -> Self {
        if !spider.politeness.apply(&settings.politeness).robots {
            return Self::Ignored;
        }
        spider.request.apply(&settings.fetch).robots_name().map_or(Self::ForTrawl, Self::For)
    }

    /// The name that is obeyed.
    pub(crate) fn name(&self) -> Option<RobotsName> {
        match self {
            Self::Ignored => None,
            Self::For(name) => Some(name.clone()),
            Self::ForTrawl => Some(RobotsName::default()),
        }
    }
}

/// Reads a file, with these values for its arguments, as far as it can be read.
pub(crate) fn examine(path: &Path, arguments: &Arguments, settings: &Settings) -> Result<Examined, Unusable> {
    let name = folder::name_of(path)?;
    let written = folder::text(path)?;
    let (text, mistaken) = match file::with_arguments(&written, arguments) {
        Ok(text) => (text, Vec::new()),
        Err(mistakes) => (written, mistakes),
    };
    let mut reading = file::read(Spider::of_settings(name, settings), &text, &folder::environment);
    reading.mistakes.extend(mistaken);
    let ready = Ready::of(&reading.spider);
    if let Err(mistakes) = &ready {
        // Some are found by both.
        let is_new = |new: &&Mistake| reading.mistakes.iter().all(|known| known.place != new.place);
        let new: Vec<_> = mistakes.iter().filter(is_new).cloned().collect();
        reading.mistakes.extend(new);
    }
    reading.mistakes.sort_by_key(|mistake| mistake.place);
    let ready = ready.ok().filter(|_| reading.mistakes.is_empty());
    let robots = Robots::of(&reading.spider, settings);
    Ok(Examined { path: path.to_owned(), text, reading, ready, robots })
}

/// A spider as a person names it, ready to work, from what is found in its `folder`. Every mistake in its file is shown.
pub(crate) fn load(
    arg: &SpiderArg,
    folder: &Folder,
    settings: &Settings,
    no_file: bool,
) -> Result<(Spider, Ready), Fail> {
    let spider = arg.load(folder, settings, no_file)?;
    match Ready::of(&spider) {
        Ok(ready) => Ok((spider, ready)),
        Err(mistakes) => Err(match arg.text(folder)? {
            Some(text) => unusable(folder.mistaken(&spider.name, &text, mistakes)),
            None => Fail::usage(Unready::Mistaken(mistakes)),
        }),
    }
}

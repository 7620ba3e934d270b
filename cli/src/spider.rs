//! Spiders as named at a shell.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use trawl_common::names::SpiderName;
use trawl_common::nearest::nearest;
use trawl_common::settings::Settings;
use trawl_common::spider::Spider;
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::folder::{self, Folder, Unusable};

use crate::{Fail, counted, mistakes};

/// A spider, given by its name or by its file. A name may have a file in `spiders_dir`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpiderArg {
    /// A name: `shop`.
    Name(String),
    /// A file: `spiders/shop.toml`.
    File(PathBuf),
}

impl Default for SpiderArg {
    /// Returns the default spider, which needs no file.
    fn default() -> Self {
        Self::Name(SpiderName::default().to_string())
    }
}

impl FromStr for SpiderArg {
    type Err = Infallible;

    /// Parses a text with a slash or the ending `.toml` as a file, or as the folder of a spider with its program; any
    /// other as a name.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_file = text.contains(['/', std::path::MAIN_SEPARATOR]) || text.ends_with(".toml");
        Ok(if is_file { Self::File(folder::file_at(text.into())) } else { Self::Name(text.to_owned()) })
    }
}

impl SpiderArg {
    /// Returns its name.
    pub fn name(&self) -> Result<SpiderName, Fail> {
        match self {
            Self::Name(name) => name.parse().map_err(Fail::usage),
            Self::File(file) => folder::name_of(file).map_err(unusable),
        }
    }

    /// Returns the folder that it is found in, with all other spiders of the settings. `arguments` are the values for
    /// its file's arguments.
    pub fn folder(&self, settings: &Settings, arguments: Arguments) -> Result<Folder, Fail> {
        let folder = Folder::new(settings).with_arguments(self.name()?, arguments);
        Ok(match self {
            Self::Name(_) => folder,
            Self::File(file) => folder.with_file(file.clone()),
        })
    }

    /// Returns the path of its file, which may not exist.
    pub fn file(&self, settings: &Settings) -> Result<PathBuf, Fail> {
        match self {
            Self::Name(_) => Ok(Folder::new(settings).file(&self.name()?)),
            Self::File(file) => Ok(file.clone()),
        }
    }

    /// Returns the text of its file. A name may have no file (`None`); a file that does not exist is an error.
    pub fn text(&self, folder: &Folder) -> Result<Option<String>, Fail> {
        match (self, folder.text(&self.name()?)) {
            (Self::File(file), Ok(None)) => folder::text(file).map(Some),
            (_, text) => text,
        }
        .map_err(unusable)
    }

    /// Loads the spider from its `folder`, ready to work. A name without a file is an error, except for the default
    /// spider, or if `no_file` is set.
    pub fn load(&self, folder: &Folder, settings: &Settings, no_file: bool) -> Result<Spider, Fail> {
        let (name, text) = self.found(folder, no_file)?;
        folder.spider(&name, text.as_deref(), &settings.items).map_err(unusable)
    }

    /// Loads a spider that workers are to run. Values that its file takes from the environment need only be set on the
    /// workers' machines.
    pub fn load_for_workers(&self, folder: &Folder, settings: &Settings) -> Result<Spider, Fail> {
        let (name, text) = self.found(folder, false)?;
        folder.spider_elsewhere(&name, text.as_deref(), &settings.items).map_err(unusable)
    }

    fn found(&self, folder: &Folder, no_file: bool) -> Result<(SpiderName, Option<String>), Fail> {
        let (name, text) = (self.name()?, self.text(folder)?);
        match &text {
            None if !no_file && name != SpiderName::default() => return Err(without_file(&name, folder)),
            Some(_) if no_file => {
                let file = folder.file(&name);
                return Err(Fail::usage(format!("--no-file: there is a {}", file.display())));
            }
            _ => {}
        }
        Ok((name, text))
    }
}

fn without_file(name: &SpiderName, folder: &Folder) -> Fail {
    let known = folder.names().unwrap_or_default();
    let hint = nearest(name.as_str(), known.iter().map(SpiderName::as_str));
    let file = folder.file(name);
    Fail::usage(format!(
        "there is no {}{hint} (with --no-file the spider needs none: it extracts what [items] of the settings says)",
        file.display()
    ))
}

/// Prints all mistakes of a file that cannot be used, and returns the failure.
pub fn unusable(error: Unusable) -> Fail {
    match error {
        Unusable::Mistaken { path, text, mistakes } => {
            mistakes::print(&path, &text, &mistakes);
            Fail::usage(format!("{}: {}", path.display(), counted(mistakes.len() as u64, "mistake")))
        }
        other => Fail::usage(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_file_and_any_other_text_a_name() {
        let arg = |text: &str| text.parse::<SpiderArg>().unwrap();
        assert_eq!(arg("shop"), SpiderArg::Name("shop".to_owned()));
        assert_eq!(arg("shop.toml"), SpiderArg::File("shop.toml".into()));
        assert_eq!(arg("./shop.txt"), SpiderArg::File("./shop.txt".into()));
        assert_eq!(arg("spiders/shop.toml").name().unwrap().as_str(), "shop");
        assert!(arg("spiders/My Shop.toml").name().is_err() && arg("Shop!").name().is_err());
    }
}

//! Reads settings from their sources, and collects all mistakes in them.

use std::fmt;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, File, FileFormat};
use toml::de::DeTable;

use super::Settings;
use super::check::check;
use super::given::Given;
use super::tree::{self, Fault, Step, What};
use super::variables::Variables;
use crate::mistake::{Mistake, Places};
use crate::toml_value;

/// The file that is read when no other is named; it may be absent.
const DEFAULT_FILE: &str = "trawl.toml";

/// Maximum number of mistakes of a file that are listed.
const MAX_MISTAKES: usize = 100;

/// The sources of settings.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The defaults, used for settings that no other source has: a program may have its own.
    pub usual: Settings,
    /// The file to read, which must exist if named. Without one, `trawl.toml` in the working directory, if it
    /// exists.
    pub file: Option<PathBuf>,
    /// The environment; tests pass their own.
    pub env: Vec<(String, String)>,
    /// Keys set by flags: `("fetch.timeout", "5s")`. They override everything else.
    pub flags: Vec<(&'static str, String)>,
}

/// All mistakes in settings, each with the way to correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The file.
    pub path: PathBuf,
    /// The text of the file.
    pub text: String,
    /// The mistakes. Those in the file have their place; those from the environment name the variable.
    pub mistakes: Vec<Mistake>,
}

impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    /// Writes all mistakes on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.mistakes.iter().enumerate() {
            let gap = if number == 0 { "settings: " } else { "; " };
            match mistake.place {
                Some(place) => write!(f, "{gap}{}:{place}: {mistake}", self.path.display())?,
                None => write!(f, "{gap}{mistake}")?,
            }
        }
        Ok(())
    }
}

impl Source {
    /// Returns the process's own environment, and `file` if one is named.
    pub fn from_env(file: Option<PathBuf>) -> Self {
        // A variable that is not text cannot be one of trawl's.
        let env = std::env::vars_os()
            .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { file, env, ..Self::default() }
    }

    /// Sets a key, as a flag does.
    pub fn set(&mut self, key: &'static str, value: impl ToString) {
        self.flags.push((key, value.to_string()));
    }

    /// Reads the file, the environment and the flags, each overriding the one before, and checks the result.
    pub fn load(&self) -> Result<Settings, Invalid> {
        let path = self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE)).to_owned();
        let invalid = |text: &str, mistakes| Invalid { path: path.clone(), text: text.to_owned(), mistakes };
        let text = if self.file.is_some() || path.exists() {
            std::fs::read_to_string(&path).map_err(|error| {
                invalid("", vec![Mistake::nowhere(format_args!("cannot read {}: {error}", path.display()))])
            })?
        } else {
            String::new()
        };
        self.merge(&text).map_err(|mistakes| invalid(&text, mistakes))
    }

    fn merge(&self, text: &str) -> Result<Settings, Vec<Mistake>> {
        let usual = toml::to_string(&self.usual).map_err(|error| vec![Mistake::nowhere(error)])?;
        let (variables, unreadable) = Variables::new(&self.env);
        let given = self.given(&variables);
        let mut layers = Layers::new(&usual)?;
        layers.file(text);
        layers.mistakes.extend(unreadable);
        given.iter().for_each(|given| layers.add(given));
        let Layers { texts, mistakes, file, .. } = layers;
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut settings = layered(&self.usual, texts).map_err(|error| vec![Mistake::nowhere(error)])?;
        let short_names = variables.set_servers(&mut settings)?;
        let places = Places::from_text(text);
        let mistakes = check(&settings).into_iter().map(|(key, why)| {
            let by_short_name = short_names.iter().find(|(other, _)| *other == key).map(|(_, name)| *name);
            let by_given = given.iter().rfind(|given| given.key() == key).map(|given| given.name.as_str());
            let path: Vec<Step> = key.split('.').map(|key| Step::Key(key.to_owned())).collect();
            let place = tree::find(&file, &path).map(|(_, value)| places.place(&value.span()));
            match by_short_name.or(by_given) {
                Some(name) => Mistake::nowhere(format_args!("{name}: {key}: {why}")),
                None => Mistake { place, what: format!("{key}: {why}") },
            }
        });
        let mistakes: Vec<Mistake> = mistakes.collect();
        if mistakes.is_empty() { Ok(settings) } else { Err(mistakes) }
    }

    /// Returns the settings of variables and flags, in this order.
    fn given(&self, variables: &Variables) -> Vec<Given> {
        let flags = self.flags.iter().map(|(key, value)| Given::new("a flag", key.split('.'), value));
        variables.settings().chain(flags).collect()
    }
}

/// Returns the defaults, overridden by each of these texts in turn.
fn layered<'t>(usual: &Settings, texts: impl IntoIterator<Item = &'t str>) -> Result<Settings, ConfigError> {
    let mut layers = Config::builder().add_source(Config::try_from(usual)?);
    for text in texts {
        layers = layers.add_source(File::from_str(text, FileFormat::Toml));
    }
    layers.build()?.try_deserialize()
}

/// The sources, each checked for mistakes on top of those before. Mistaken settings are left out.
struct Layers<'a> {
    tree: DeTable<'a>,
    /// The sources without mistakes.
    texts: Vec<&'a str>,
    /// The valid part of the file.
    file: DeTable<'a>,
    mistakes: Vec<Mistake>,
}

impl<'a> Layers<'a> {
    fn new(usual: &'a str) -> Result<Self, Vec<Mistake>> {
        let tree = DeTable::parse(usual).map_err(|error| vec![Mistake::nowhere(error.message())])?;
        Ok(Self { tree: tree.into_inner(), texts: Vec::new(), file: DeTable::new(), mistakes: Vec::new() })
    }

    /// Collects every mistake in the file: each is removed, and the rest is checked again.
    fn file(&mut self, text: &'a str) {
        let places = Places::from_text(text);
        let mut layer = match toml_value::parse(text, &places) {
            Ok(layer) => layer,
            Err(mistake) => return self.mistakes.push(mistake),
        };
        while let Err(fault) = self.lay(&layer) {
            self.mistakes.push(Mistake { place: Some(places.place(&fault.span)), what: fault.to_string() });
            if self.mistakes.len() >= MAX_MISTAKES || !tree::remove(&mut layer, &fault.path) {
                return;
            }
        }
        self.file = layer;
        self.texts.push(text);
        self.mistakes.sort_by_key(|mistake| mistake.place);
    }

    /// Adds the first reading of the text that fits.
    fn add(&mut self, given: &'a Given) {
        let mut faults = Vec::new();
        for text in &given.texts {
            match DeTable::parse(text).map(|layer| self.lay(layer.get_ref())) {
                Ok(Ok(())) => return self.texts.push(text),
                Ok(Err(fault)) => faults.push(fault),
                Err(_) => {}
            }
        }
        // If there are several faults, report one that says more than a wrong type.
        let says_more = faults.iter().position(|fault| !matches!(fault.what, What::Type(_)));
        if let Some(fault) = faults.get(says_more.unwrap_or(0)) {
            self.mistakes.push(Mistake::nowhere(format_args!("{}: {fault}", given.name)));
        }
    }

    fn lay(&mut self, layer: &DeTable<'a>) -> Result<(), Fault> {
        let mut tree = self.tree.clone();
        tree::lay(&mut tree, layer);
        tree::read(&tree)?;
        self.tree = tree;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

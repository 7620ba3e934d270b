//! The file of a spider with all that is wrong in it, whoever finds it.

use trawl_common::names::SpiderName;
use trawl_common::politeness::robots::RobotsName;
use trawl_common::settings::Settings;
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::file::{self, Reading};
use trawl_common::spider::{Mistake, Origin, Spider, folder};

use crate::Ready;

/// What a file says, and what was found in it.
pub struct Examined {
    /// What it says, with the values of its arguments.
    pub text: String,
    /// What was read, with every mistake.
    pub reading: Reading,
    /// What the spider works with; nothing, where the file has mistakes.
    pub ready: Option<Ready>,
    /// Whose rules of a robots.txt it obeys.
    pub robots: Robots,
}

/// Whose rules of a robots.txt a spider obeys.
pub enum Robots {
    /// Nobody's.
    Ignored,
    /// Those for this name.
    For(RobotsName),
    /// Those for `trawl`: no name is set, and the user agent has none.
    ForTrawl,
}

impl Examined {
    /// Reads what the file of the spider `name` says, with these values for its arguments, as far as it can be read. What it may not
    /// have, coming from `origin`, is a mistake.
    pub fn of(
        name: SpiderName,
        written: &str,
        arguments: &Arguments,
        settings: &Settings,
        origin: Origin<'_>,
    ) -> Self {
        let (text, mistaken) = match file::with_arguments(written, arguments) {
            Ok(text) => (text, Vec::new()),
            Err(mistakes) => (written.to_owned(), mistakes),
        };
        let mut reading =
            file::read(Spider::of_settings(name, settings), &text, origin, &folder::environment);
        reading.mistakes.extend(mistaken);
        let ready = Ready::of(&reading.spider, &settings.fetch);
        if let Err(mistakes) = &ready {
            // Some are found by both.
            let is_new = |new: &&Mistake| reading.mistakes.iter().all(|known| known.place != new.place);
            let new: Vec<_> = mistakes.iter().filter(is_new).cloned().collect();
            reading.mistakes.extend(new);
        }
        reading.mistakes.sort_by_key(|mistake| mistake.place);
        let ready = ready.ok().filter(|_| reading.mistakes.is_empty());
        let robots = Robots::of(&reading.spider, settings);
        Self { text, reading, ready, robots }
    }
}

impl Robots {
    fn of(spider: &Spider, settings: &Settings) -> Self {
        if !spider.politeness.apply(&settings.politeness).robots {
            return Self::Ignored;
        }
        spider.request.apply(&settings.fetch).robots_name().map_or(Self::ForTrawl, Self::For)
    }

    /// The name that is obeyed.
    pub fn name(&self) -> Option<RobotsName> {
        match self {
            Self::Ignored => None,
            Self::For(name) => Some(name.clone()),
            Self::ForTrawl => Some(RobotsName::default()),
        }
    }
}

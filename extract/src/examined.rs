//! The file of a spider with all its mistakes.

use trawl_common::mistake::Mistake;
use trawl_common::names::SpiderName;
use trawl_common::politeness::robots::RobotsName;
use trawl_common::settings::Settings;
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::file::{self, Reading};
use trawl_common::spider::{Origin, Spider, folder};

use crate::Ready;

/// The text of a file, and the result of examining it.
pub struct Examined {
    /// The text with the values of its arguments.
    pub text: String,
    /// The result of reading the file, with every mistake.
    pub reading: Reading,
    /// The extractor, scope and bans of the spider; `None` if the file has mistakes.
    pub ready: Option<Ready>,
    /// The robots.txt rules that it obeys.
    pub robots: Robots,
}

/// The robots.txt rules that a spider obeys.
pub enum Robots {
    /// None.
    Ignored,
    /// The rules for this name.
    For(RobotsName),
    /// The rules for `trawl`: no name is set, and the user agent has none.
    ForTrawl,
}

impl Examined {
    /// Examines the text of the spider `name`, with these values for its arguments, as far as it can be read. Settings
    /// that a text from `origin` may not have are mistakes.
    pub fn new(
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
        let ready = Ready::new(&reading.spider, &settings.fetch);
        if let Err(mistakes) = &ready {
            // Some mistakes are found by both.
            let is_new = |new: &&Mistake| reading.mistakes.iter().all(|known| known.place != new.place);
            let new: Vec<_> = mistakes.iter().filter(is_new).cloned().collect();
            reading.mistakes.extend(new);
        }
        reading.mistakes.sort_by_key(|mistake| mistake.place);
        let ready = ready.ok().filter(|_| reading.mistakes.is_empty());
        let robots = Robots::new(&reading.spider, settings);
        Self { text, reading, ready, robots }
    }
}

impl Robots {
    fn new(spider: &Spider, settings: &Settings) -> Self {
        if !spider.politeness.apply(&settings.politeness).robots {
            return Self::Ignored;
        }
        spider.request.apply(&settings.fetch).robots_name().map_or(Self::ForTrawl, Self::For)
    }

    /// The name whose rules are obeyed.
    pub fn name(&self) -> Option<RobotsName> {
        match self {
            Self::Ignored => None,
            Self::For(name) => Some(name.clone()),
            Self::ForTrawl => Some(RobotsName::default()),
        }
    }
}

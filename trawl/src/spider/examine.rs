//! Reads spider files and reports all their mistakes.

use std::path::Path;

use trawl_browser::Chromium;
use trawl_cli::{Fail, SpiderArg, unusable};
use trawl_common::settings::Settings;
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::folder::{self, Folder, Unusable};
use trawl_common::spider::{Origin, Spider};
use trawl_extract::{Examined, Ready};
use trawl_worker::Unready;

/// Reads a file, with these values for its arguments, as far as it can be read: for this machine, or, with another
/// origin, for others.
pub(crate) fn examine(
    path: &Path,
    arguments: &Arguments,
    settings: &Settings,
    origin: Origin<'_>,
) -> Result<Examined, Unusable> {
    let name = folder::name_of(path)?;
    Ok(Examined::new(name, &folder::text(path)?, arguments, settings, origin))
}

/// Loads the selected spider from its `folder`. All mistakes in its file are shown.
pub(crate) fn load(
    arg: &SpiderArg,
    folder: &Folder,
    settings: &Settings,
    no_file: bool,
) -> Result<(Spider, Ready), Fail> {
    let spider = arg.load(folder, settings, no_file)?;
    if let Some(handler) = &spider.handler {
        let runnable = trawl_handlers::file_of(handler, &folder.program_folder(&spider.name));
        runnable.map_err(|error| Fail::usage(format!("[handler] run: {error}")))?;
    }
    if spider.render.needs_browser() {
        Chromium::find(&settings.browser).map_err(|error| Fail::usage(format!("render: {error}")))?;
    }
    match Ready::new(&spider, &settings.fetch) {
        Ok(ready) => Ok((spider, ready)),
        Err(mistakes) => Err(match arg.text(folder)? {
            Some(text) => unusable(folder.mistaken(&spider.name, &text, mistakes)),
            None => Fail::usage(Unready::Mistaken(mistakes)),
        }),
    }
}

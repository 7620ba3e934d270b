//! Check of the browser that renders pages.

use trawl_browser::Chromium;
use trawl_common::finding::Finding;
use trawl_common::names::SpiderName;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;

const SUBJECT: &str = "browser";

/// Returns whether pages can be rendered here: an error if a spider of this machine wants that and they cannot.
pub(super) fn examine(settings: &Settings) -> Finding {
    let error = match Chromium::find(&settings.browser) {
        Ok(chromium) => {
            return Finding::ok(SUBJECT, format_args!("{} renders pages", chromium.program().display()));
        }
        Err(error) => error,
    };
    match wants_one(settings) {
        Some(spider) => {
            Finding::error(SUBJECT, format_args!("the spider {spider} renders pages, but {error}"))
        }
        None => Finding::ok(SUBJECT, format_args!("no spider renders pages here; none could: {error}")),
    }
}

/// Returns the first spider of this machine whose pages are rendered.
fn wants_one(settings: &Settings) -> Option<SpiderName> {
    let folder = Folder::new(settings);
    let renders = |name: &SpiderName| {
        let text = folder.text(name).ok().flatten();
        text.is_some_and(|text| folder.reading(name, &text).spider.needs_browser())
    };
    folder.names().ok()?.into_iter().find(renders)
}

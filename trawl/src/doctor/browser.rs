//! Check of the browser that renders pages.

use trawl_browser::Chromium;
use trawl_common::finding::Finding;
use trawl_common::names::SpiderName;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;

const SUBJECT: &str = "browser";

/// Returns whether pages can be rendered here: an error if a spider of this machine wants that and they cannot.
pub(super) async fn examine(settings: &Settings) -> Finding {
    match (Chromium::find(&settings.browser), wants_one(settings)) {
        (Ok(chromium), Some(spider)) => match trawl_browser::examine(settings).await {
            Ok(()) => Finding::ok(SUBJECT, format_args!("{} renders pages", chromium.program().display())),
            Err(why) => lacking(&spider, &why),
        },
        (Ok(chromium), None) => {
            let program = chromium.program().display();
            Finding::ok(SUBJECT, format_args!("no spider renders pages here; {program} could"))
        }
        (Err(error), Some(spider)) => lacking(&spider, &error.to_string()),
        (Err(error), None) => {
            Finding::ok(SUBJECT, format_args!("no spider renders pages here; none could: {error}"))
        }
    }
}

fn lacking(spider: &SpiderName, why: &str) -> Finding {
    Finding::error(SUBJECT, format_args!("the spider {spider} renders pages, but {why}"))
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

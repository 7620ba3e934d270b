//! Requests that other programs publish to the queues of a fleet, checked by the spiders of the machine that takes them.

use crate::frontier::Work;
use crate::frontier::message::{Malformed, Message};
use crate::names::SpiderName;
use crate::settings::Urls;
use crate::text::printable;
use crate::web::url::MAX_URL_BYTES;

/// The spiders of a machine. Strangers choose the names that it is asked about.
pub trait LocalSpiders {
    /// Returns whether strangers may request pages as this spider: it has a file here, or is the default one.
    fn is_here(&self, name: &SpiderName) -> bool;

    /// Returns whether tasks of a spider without a file here are taken: they wait for a worker that has the file.
    fn accept_elsewhere(&self, name: &SpiderName) -> bool;

    /// Returns what counts as one URL for a spider that is here; `None` if its file cannot be used now.
    fn urls(&self, name: &SpiderName) -> Option<Urls>;
}

/// Returns a request as it is to be processed: for a page in the canonical form of its URL, if its spider is here and takes
/// URLs of that length; for a task as it is, unless it names one spider too many that is not here.
///
/// # Errors
/// Fails with the reason why the request is refused.
pub fn check(spiders: &impl LocalSpiders, request: Message) -> Result<Message, Malformed> {
    let name = &request.crawl.spider;
    let refused = |reason: String| Malformed { text: printable(text(&request.work), MAX_URL_BYTES), reason };
    // Checked first, so that arbitrary names do not cause a look-up.
    let is_taken = match &request.work {
        Work::Task(_) => spiders.is_here(name) || spiders.accept_elsewhere(name),
        Work::Url(_) | Work::Request(_) => spiders.is_here(name),
    };
    if !is_taken {
        return Err(refused(format!("there is no spider {name} here")));
    }
    let Some(url) = request.work.page().cloned() else { return Ok(request) };
    let Some(urls) = spiders.urls(name) else { return Ok(request) };
    let url = urls.canonical(url);
    if !urls.takes(&url) {
        return Err(refused(urls.too_long()));
    }
    let work = match &request.work {
        Work::Request(own) => Work::of_request(url, own.new.clone()),
        Work::Url(_) | Work::Task(_) => Ok(Work::Url(url)),
    };
    let work = work.map_err(|error| refused(error.to_string()))?;
    Ok(Message { work, ..request })
}

/// Returns the text of a request for people.
fn text(work: &Work) -> &str {
    match work {
        Work::Url(url) => url.as_str(),
        Work::Request(request) => request.url.as_str(),
        Work::Task(task) => task.new.recipe.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elsewhere::{Elsewhere, MAX_ELSEWHERE};
    use crate::frontier::Task;
    use crate::frontier::lane::Lane;
    use crate::names::CrawlRef;
    use crate::task::NewTask;
    use crate::web::url::CanonicalUrl;

    /// A machine with a file of the spider `shop`, and of `broken`, which cannot be used.
    #[derive(Default)]
    struct Machine(Elsewhere);

    impl LocalSpiders for Machine {
        fn is_here(&self, name: &SpiderName) -> bool {
            ["shop", "broken"].contains(&name.as_str()) || *name == SpiderName::default()
        }

        fn accept_elsewhere(&self, name: &SpiderName) -> bool {
            self.0.accept(name, None)
        }

        fn urls(&self, name: &SpiderName) -> Option<Urls> {
            (name.as_str() != "broken").then(Urls::default)
        }
    }

    fn published(machine: &Machine, work: Work, spider: &str) -> Result<Message, Malformed> {
        let crawl = CrawlRef::adhoc_of(spider.parse().unwrap());
        check(machine, Message { is_ours: false, ..Message::new(work, crawl, Lane::Bulk) })
    }

    fn task(spider: &str) -> Work {
        Task::new(&spider.parse().unwrap(), NewTask::from_recipe("do it".parse().unwrap())).into()
    }

    fn page(url: &str) -> Work {
        Work::Url(CanonicalUrl::parse(url).unwrap())
    }

    #[test]
    fn a_task_of_a_spider_that_is_not_here_waits_and_a_page_of_it_is_refused() {
        let machine = Machine::default();
        assert!(published(&machine, task("elsewhere"), "elsewhere").is_ok());
        let refused = published(&machine, page("http://a.example/"), "elsewhere").unwrap_err();
        assert_eq!(refused.reason, "there is no spider elsewhere here");
        assert_eq!(refused.text, "http://a.example/");
        let of = |spider: &str| published(&machine, task(spider), spider);
        let taken = (0..1_000).filter(|number| of(&format!("none-{number}")).is_ok()).count();
        assert_eq!(taken, MAX_ELSEWHERE - 1);
        assert!(of("elsewhere").is_ok() && of("shop").is_ok());
    }

    #[test]
    fn a_page_is_taken_in_its_canonical_form_unless_the_file_of_its_spider_cannot_be_used() {
        let machine = Machine::default();
        for spider in ["shop", "default"] {
            let taken = published(&machine, page("http://a.example/?utm_source=x"), spider).unwrap();
            let url =
                Urls::default().canonical(CanonicalUrl::parse("http://a.example/?utm_source=x").unwrap());
            assert_eq!(taken.work, Work::Url(url));
        }
        let as_it_is = published(&machine, page("http://a.example/?utm_source=x"), "broken").unwrap();
        assert_eq!(as_it_is.work, page("http://a.example/?utm_source=x"));
    }
}

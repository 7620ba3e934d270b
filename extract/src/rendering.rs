//! Whether a browser renders a page: the `render` of its kind decides, or else that of the spider.

use std::sync::Arc;

use trawl_common::frontier::Request;
use trawl_common::spider::{Carried, PageStep, Render};
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use crate::shell::is_shell;
use crate::{Extraction, Extractor};

/// A decision about an HTML page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// The rule that it is by.
    pub rule: RenderRule,
    /// Whether the page is to be rendered.
    pub is_wanted: bool,
}

/// A rule that says whether a page is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderRule {
    /// Whether it is.
    pub render: Render,
    /// The number of the kind of page that says so; `None` if the spider does.
    pub kind: Option<usize>,
    /// The number of the kind whose steps the browser takes; `None` for those of the spider.
    pub steps: Option<usize>,
}

impl Extractor {
    /// Returns the decision about the page that `url` answered with, if it can be made before the page is read.
    pub fn rendering(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        request: Option<&Request>,
    ) -> Option<Rendering> {
        let rule = self.render_rule(url, response, request)?;
        let is_wanted = match rule.render {
            Render::Never => false,
            Render::Always => true,
            Render::Auto => is_shell(&response.body).then_some(true)?,
        };
        Some(Rendering { rule, is_wanted })
    }

    /// Returns the decision about a page that was read as it was sent.
    pub fn rendering_once_read(&self, response: &Response, read: &Extraction) -> Rendering {
        let rule = self.rule_of_kind(read.kind);
        let is_wanted = match rule.render {
            Render::Never => false,
            Render::Always => true,
            Render::Auto => !read.missing.is_empty() || is_shell(&response.body),
        };
        Rendering { rule, is_wanted: is_wanted && !read.lapsed }
    }

    /// Returns the rule for the page that `url` answered with; `None` if its kind shows only when it is read.
    fn render_rule(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        request: Option<&Request>,
    ) -> Option<RenderRule> {
        let url = response.redirected_to.as_ref().unwrap_or(url);
        let came = request.and_then(|request| request.new.data.as_ref()).map(Carried::from_data);
        let mut rule = None;
        for (number, kind) in self.plan.pages.iter().enumerate() {
            if kind.unmet_unread(url, response, came.as_ref()).is_some() {
                continue;
            }
            let own = self.rule_of_kind(Some(number));
            if *rule.get_or_insert(own) != own {
                return None;
            }
            if kind.selector.is_none() {
                return rule;
            }
        }
        let own = self.rule_of_kind(None);
        (*rule.get_or_insert(own) == own).then_some(own)
    }

    /// Returns the steps that the browser takes in a page that it renders by this rule.
    pub fn steps(&self, rule: RenderRule) -> &Arc<[PageStep]> {
        let own = rule.steps.and_then(|number| self.plan.pages.get(number)?.steps.as_ref());
        own.unwrap_or(&self.plan.steps)
    }

    fn rule_of_kind(&self, kind: Option<usize>) -> RenderRule {
        let own = kind.and_then(|number| Some((number, self.plan.pages.get(number)?)));
        let steps = own.and_then(|(number, kind)| kind.steps.is_some().then_some(number));
        match own.and_then(|(number, kind)| Some((number, kind.render?))) {
            Some((number, render)) => RenderRule { render, kind: Some(number), steps },
            None => RenderRule { render: self.plan.render, kind: None, steps },
        }
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::request::NewRequest;
    use trawl_common::settings::Items;
    use trawl_common::spider::{Origin, Required, Spider, file};
    use trawl_common::time::UnixMs;

    use super::*;
    use crate::Missing;

    fn extractor(text: &str) -> Extractor {
        let usual = Spider::without_file("shop".parse().unwrap(), &Items::default());
        Extractor::new(&file::read(usual, text, Origin::Local, &|_| None).ready().unwrap()).unwrap()
    }

    fn url(path: &str) -> CanonicalUrl {
        format!("http://shop.example{path}").parse().unwrap()
    }

    const SHELL: &str = "<div id=app></div><script src=/app.js></script>";

    fn response(content_type: &str) -> Response {
        let headers = [("content-type", content_type)].into_iter().collect();
        let (redirected_to, address, body) = Default::default();
        Response { status: 200, headers, redirected_to, fetched_at: UnixMs(1), address, body }
    }

    fn from(url: &CanonicalUrl, kind: &str) -> Request {
        let carried = Carried { path: vec![kind.to_owned()], ..Carried::default() };
        let new = NewRequest { data: Some(carried.to_data()), ..NewRequest::get(url.as_str()) };
        Request::new(url.clone(), new).unwrap()
    }

    const KINDS: &str = "render = 'auto'
        [[page]]
        name = 'list'
        match.url = '/list'
        render = 'never'
        [[page]]
        name = 'feed'
        match.content_type = 'application/xhtml+xml'
        render = 'always'
        [[page]]
        name = 'led'
        match.from = 'list'
        render = 'always'
        [[page]]
        name = 'plain'
        match.url = '/plain'";

    #[test]
    fn the_first_kind_that_a_page_is_of_decides_and_the_spider_for_all_others() {
        let extractor = extractor(KINDS);
        let rule = |path, content_type, came: Option<&str>| {
            let url = url(path);
            let request = came.map(|kind| from(&url, kind));
            let rule = extractor.render_rule(&url, &response(content_type), request.as_ref()).unwrap();
            (rule.render, rule.kind)
        };
        assert_eq!(rule("/list", "text/html", None), (Render::Never, Some(0)));
        assert_eq!(rule("/x", "application/xhtml+xml; charset=utf-8", None), (Render::Always, Some(1)));
        assert_eq!(rule("/x", "text/html", Some("list")), (Render::Always, Some(2)));
        assert_eq!(rule("/plain", "text/html", None), (Render::Auto, None));
        assert_eq!(rule("/x", "text/html", None), (Render::Auto, None));
    }

    #[test]
    fn where_a_redirect_leads_counts() {
        let response = Response { redirected_to: Some(url("/list")), ..response("text/html") };
        let rule = extractor(KINDS).render_rule(&url("/plain"), &response, None).unwrap();
        assert_eq!((rule.render, rule.kind), (Render::Never, Some(0)));
    }

    #[test]
    fn a_kind_with_a_selector_decides_once_the_page_is_read() {
        let kinds = "[[page]]
            name = 'app'
            match = { url = '/app', selector = '#app' }
            render = 'always'
            [[page]]
            name = 'article'
            match.selector = 'article'";
        let extractor = extractor(kinds);
        let rule = |path| extractor.render_rule(&url(path), &response("text/html"), None);
        let of_spider = RenderRule { render: Render::Never, kind: None, steps: None };
        assert_eq!((rule("/app"), rule("/x")), (None, Some(of_spider)));
        let decision = |kind| {
            let read = Extraction { kind, ..Extraction::default() };
            extractor.rendering_once_read(&response("text/html"), &read)
        };
        let of_kind = RenderRule { render: Render::Always, kind: Some(0), steps: None };
        assert_eq!(decision(Some(0)), Rendering { rule: of_kind, is_wanted: true });
        assert_eq!([1, 2].map(|kind| decision(Some(kind)).rule), [of_spider; 2]);
    }

    #[test]
    fn a_browser_takes_the_steps_of_the_kind_or_else_those_of_the_spider() {
        let text = "render = 'always'
            steps = [{ scroll = 1 }]
            [[page]]
            name = 'own'
            match.url = '/own'
            steps = [{ press = 'Enter' }, { press = 'Tab' }]
            [[page]]
            name = 'usual'
            match.url = '/usual'";
        let extractor = extractor(text);
        let steps = |path| {
            let rule = extractor.render_rule(&url(path), &response("text/html"), None).unwrap();
            (rule.kind, extractor.steps(rule).len())
        };
        assert_eq!(["/own", "/usual", "/other"].map(steps), [(None, 2), (None, 1), (None, 1)]);
        assert!(!extractor.needs_tree(), "only a browser looks for elements of steps");
    }

    #[test]
    fn a_step_with_a_selector_that_is_none_is_a_mistake() {
        let text = "render = 'always'\nsteps = [{ click = 'a[' }, { wait = { xpath = '//a[' } }, { click = 'a::text' }]";
        let usual = Spider::without_file("shop".parse().unwrap(), &Items::default());
        let spider = file::read(usual, text, Origin::Local, &|_| None).ready().unwrap();
        let mistakes = Extractor::new(&spider).unwrap_err();
        let shown = mistakes.iter().map(|one| {
            let what = one.what.split(": ").next().unwrap();
            format!("{} {what}", one.place.unwrap())
        });
        let shown: Vec<_> = shown.collect();
        assert_eq!(shown, ["2:20 steps.click", "2:47 steps.wait", "2:69 steps.click"]);
    }

    #[test]
    fn by_auto_a_shell_is_rendered_at_once_and_other_pages_if_a_field_is_missing() {
        let extractor = extractor("render = 'auto'");
        let shell = Response { body: SHELL.into(), ..response("text/html") };
        let is_wanted = |response: &Response| {
            extractor.rendering(&url("/"), response, None).map(|rendering| rendering.is_wanted)
        };
        let whole = Response { body: "<p>Text".into(), ..response("text/html") };
        assert_eq!([&shell, &whole].map(is_wanted), [Some(true), None]);
        let missing = vec![Missing { field: "name".to_owned(), required: Required::Warn }];
        for (read, is) in [
            (Extraction::default(), false),
            (Extraction { missing: missing.clone(), ..Extraction::default() }, true),
            (Extraction { missing, lapsed: true, ..Extraction::default() }, false),
        ] {
            assert_eq!(extractor.rendering_once_read(&whole, &read).is_wanted, is);
        }
    }
}

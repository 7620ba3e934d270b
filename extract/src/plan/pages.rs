//! Plans the kinds of pages.

use std::sync::Arc;

use regex::RegexSet;
use trawl_common::mistake::{Mistake, Sited};
use trawl_common::spider::{self, PageStep, Spider};

use super::planner::{Inside, Planner};
use super::{Download, Each, Follow, Form, LinkRule, PageKind};

impl Planner {
    /// Plans the kinds of pages of a spider. A page of a kind with rules for its links needs `[follow]`, whose
    /// defaults hold without that section.
    pub(super) fn pages(&mut self, spider: &Spider) {
        self.plan.tracks = spider.tracks();
        self.plan.render = spider.render;
        self.plan.steps = self.steps("steps", &spider.steps);
        if self.plan.follow.is_none() && spider.pages.iter().any(|kind| kind.follow.is_some()) {
            self.wanted.follow = true;
            let usual = spider::Follow { links: false, ..spider::Follow::default() };
            self.plan.follow = Some(Follow::new(&usual));
        }
        self.plan.pages = spider.pages.iter().map(|kind| self.page(kind)).collect();
    }

    /// Plans the files of a spider. Without `[follow]` nothing but these is taken from pages.
    pub(super) fn downloads(&mut self, spider: &Spider) {
        if self.plan.follow.is_none() && !spider.downloads.is_empty() {
            self.wanted.follow = true;
            let usual =
                spider::Follow { links: false, noindex: false, refresh: false, ..spider::Follow::default() };
            self.plan.follow = Some(Follow::new(&usual));
        }
        let all = spider.downloads.iter().map(|download| self.download(spider, download)).collect();
        self.plan.downloads = all;
    }

    fn download(&mut self, spider: &Spider, download: &spider::Download) -> Download {
        let is_named =
            |kind: &spider::PageKind| download.page.iter().any(|name| name.value == kind.name.value);
        let kinds = spider.pages.iter().enumerate().filter(|(_, kind)| is_named(kind));
        let what = |key: &str| {
            format!("download.{}.{}", download.name.value, key.strip_prefix("follow.").unwrap_or(key))
        };
        let links = self.link_rule(&what, &download.links);
        Download { kinds: kinds.map(|(number, _)| number).collect(), links }
    }

    fn page(&mut self, kind: &spider::PageKind) -> PageKind {
        let what = |key: &str| format!("page.{}.{key}", kind.name.value);
        let when = &kind.when;
        let selector = when.selector.as_ref();
        let rules = kind.follow.as_ref().map(|rules| rules.iter().map(|rule| self.link_rule(&what, rule)));
        PageKind {
            follow: rules.map(Iterator::collect),
            name: kind.name.value.clone(),
            url: self.patterns(&what("match.url"), &when.url),
            content_type: when.content_type.clone(),
            from: when.from.iter().map(|from| from.value.clone()).collect(),
            selector: selector
                .and_then(|selector| self.each(&what("match.selector"), selector, Inside::Nothing)),
            carry: self.fields("", &kind.carry, Inside::Nothing),
            render: kind.render,
            steps: kind.steps.as_ref().map(|steps| self.steps(&what("steps"), steps)),
        }
    }

    /// Checks the selectors of steps, which a browser looks for.
    fn steps(&mut self, what: &str, steps: &Arc<[PageStep]>) -> Arc<[PageStep]> {
        let plan = std::mem::take(&mut self.plan);
        for action in steps.iter().map(|step| &step.action) {
            if let Some(target) = action.target() {
                self.elements(&format!("{what}.{}", action.key()), &target.into(), Inside::Nothing);
            }
        }
        // No page is searched for them here.
        self.plan = plan;
        Arc::clone(steps)
    }

    fn link_rule(&mut self, what: &dyn Fn(&str) -> String, rule: &spider::PageFollow) -> LinkRule {
        let each = rule.each.as_ref().and_then(|each| self.each(&what("follow.each"), each, Inside::Nothing));
        let inside = each.as_ref().map_or(Inside::Nothing, Inside::each);
        let makes = rule.form.is_some() || rule.request.as_ref().is_some_and(|request| request.has("url"));
        if let (Some(Each::Json(_) | Each::Script(..)), Some(written), true) =
            (&each, &rule.each, rule.link.is_empty() && !makes)
        {
            let complaint = format_args!(
                "{}: values of JSON have no links of their own: name the URLs in them by `link`",
                what("follow.each")
            );
            self.mistakes.push(Mistake::at(written.text(), complaint));
        }
        self.wanted.links |= !makes && each.is_none() && rule.link.is_empty() && rule.area.is_none();
        let key = what("follow.link");
        LinkRule {
            name: rule.name.as_ref().map(|name| name.value.clone()),
            link: rule.link.iter().filter_map(|link| self.next(&key, link, inside)).collect(),
            area: rule
                .area
                .as_ref()
                .and_then(|area| self.elements(&what("follow.area"), area, Inside::Nothing)),
            include: self.patterns(&what("follow.include"), &rule.include),
            exclude: self.patterns(&what("follow.exclude"), &rule.exclude),
            carry: self.fields("", &rule.carry, inside),
            request: rule.request.clone(),
            form: rule.form.as_ref().and_then(|form| self.form(&what("follow.form"), form)),
            each,
        }
    }

    fn form(&mut self, what: &str, form: &spider::PageForm) -> Option<Form> {
        let query = self.elements(what, &form.form, Inside::Nothing)?;
        Some(Form { selector: form.form.to_string(), query, fill: form.fill.clone() })
    }

    fn patterns(&mut self, what: &str, patterns: &[Sited<String>]) -> RegexSet {
        spider::pattern::all(what, patterns).unwrap_or_else(|mistakes| {
            self.mistakes.extend(mistakes);
            RegexSet::empty()
        })
    }
}

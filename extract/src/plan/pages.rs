//! Plans the kinds of pages.

use std::sync::Arc;

use regex::RegexSet;
use trawl_common::mistake::{Mistake, Sited};
use trawl_common::spider::{self, PageStep, Spider};

use super::planner::{Inside, Planner};
use super::{Download, Each, Follow, Form, HandOver, LinkRule, OnKinds, PageKind};

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

    /// Plans the files of a spider, and what it hands over. Without `[follow]` nothing but these is taken from pages.
    pub(super) fn side_links(&mut self, spider: &Spider) {
        let has_any = !spider.downloads.is_empty() || !spider.hand_overs.is_empty();
        if self.plan.follow.is_none() && has_any {
            self.wanted.follow = true;
            let usual =
                spider::Follow { links: false, noindex: false, refresh: false, ..spider::Follow::default() };
            self.plan.follow = Some(Follow::new(&usual));
        }
        let files = spider.downloads.iter().map(|download| {
            let what = |key: &str| format!("download.{}.{}", download.name.value, without_follow(key));
            let links = self.link_rule(&what, &download.links, false);
            Download { on: on_kinds(spider, &download.page), links }
        });
        self.plan.downloads = files.collect();
        let handed = spider.hand_overs.iter().map(|one| {
            let what = |key: &str| format!("hand_over.{}", without_follow(key));
            let links = self.link_rule(&what, &one.links, one.task.is_some());
            let (spider, on) = (one.spider.value.clone(), on_kinds(spider, &one.page));
            HandOver { spider, on, links, task: one.task.clone() }
        });
        self.plan.hand_overs = handed.collect();
    }

    fn page(&mut self, kind: &spider::PageKind) -> PageKind {
        let what = |key: &str| format!("page.{}.{key}", kind.name.value);
        let when = &kind.when;
        let selector = when.selector.as_ref();
        let rules =
            kind.follow.as_ref().map(|rules| rules.iter().map(|rule| self.link_rule(&what, rule, false)));
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

    /// Plans a rule for links. `makes_task`: whether it makes a task in place of them.
    fn link_rule(
        &mut self,
        what: &dyn Fn(&str) -> String,
        rule: &spider::PageFollow,
        makes_task: bool,
    ) -> LinkRule {
        let each = rule.each.as_ref().and_then(|each| self.each(&what("follow.each"), each, Inside::Nothing));
        let inside = each.as_ref().map_or(Inside::Nothing, Inside::each);
        let makes = makes_task || rule.form.is_some() || rule.makes_request();
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

/// Returns the numbers of the kinds of pages with these names.
fn on_kinds(spider: &Spider, names: &[Sited<String>]) -> OnKinds {
    let is_named = |kind: &spider::PageKind| names.iter().any(|name| name.value == kind.name.value);
    let kinds = spider.pages.iter().enumerate().filter(|(_, kind)| is_named(kind));
    OnKinds(kinds.map(|(number, _)| number).collect())
}

/// Returns the key of a rule that is no part of `follow`.
fn without_follow(key: &str) -> &str {
    key.strip_prefix("follow.").unwrap_or(key)
}

//! Summarizes a spider's kinds of pages.

use trawl_common::mistake::Sited;
use trawl_common::spider::{
    Download, Field, HandOver, PageFollow, PageKind, PageMatch, PageStep, Paginate, PaginateBy, Parameter,
    Render, Spider,
};
use trawl_common::text::printable;

/// `product: with `/product/` in its URL, from list; follows links in `.related`; carries brand`
pub(crate) fn page(kind: &PageKind) -> String {
    let mut parts = vec![format!("{}: {}", kind.name.value, when(&kind.when))];
    match kind.follow.as_deref() {
        None => {}
        Some([]) => parts.push("follows nothing".to_owned()),
        Some(rules) => parts.extend(rules.iter().map(|rule| format!("follows {}", follow(rule)))),
    }
    parts.extend(carries(&kind.carry));
    parts.extend(kind.render.map(|render| renders(render).to_owned()));
    let own = kind.steps.as_ref();
    parts.extend(own.map(|own| steps(own).unwrap_or_else(|| "takes no steps".to_owned())));
    parts.join("; ")
}

/// `click `button`, scroll`
pub(crate) fn steps(steps: &[PageStep]) -> Option<String> {
    let steps: Vec<String> = steps.iter().map(|step| printable(&step.action.to_string(), 100)).collect();
    (!steps.is_empty()).then(|| steps.join(", "))
}

fn renders(render: Render) -> &'static str {
    match render {
        Render::Never => "is never rendered",
        Render::Always => "is rendered in a browser",
        Render::Auto => "is rendered in a browser if it lacks a required field, or has scripts and no text",
    }
}

/// `pictures: `img::attr(src)` on product, image/*, 50 MB at most, as files/shop/{sha256}.{ext}`
pub(crate) fn download(
    spider: &Spider,
    Download { name, page, links, to, path, max_size, types, .. }: &Download,
) -> String {
    let mut what = follow(&PageFollow { name: None, ..links.clone() });
    what += &on(page);
    if !types.is_empty() {
        what += &format!(", {}", types.join(" or "));
    }
    let to = to.join(path.to_string()).to_string_lossy().replace("{spider}", spider.name.as_str());
    format!("{}: {what}, {} at most, as {to}", name.value, max_size.display().si())
}

/// `tenders: `a.tender::attr(href)` on contract, carries number`
pub(crate) fn hand_over(HandOver { spider, page, links, task }: &HandOver) -> String {
    let mut parts = Vec::new();
    match task {
        None => parts.push(follow(links)),
        Some(_) => {
            parts.push(match &links.each {
                None => "a task".to_owned(),
                Some(each) => format!("a task for each `{each}`"),
            });
            parts.extend(carries(&links.carry));
        }
    }
    format!("{}: {}{}", spider.value, parts.join(", "), on(page))
}

/// ` on contract or tender`
fn on(pages: &[Sited<String>]) -> String {
    let pages: Vec<&str> = pages.iter().map(|page| page.value.as_str()).collect();
    if pages.is_empty() { String::new() } else { format!(" on {}", pages.join(" or ")) }
}

/// `category: the next page by `a.next::attr(href)`, 1000 pages at most`
pub(crate) fn list(Paginate { page, by, most, .. }: &Paginate) -> String {
    let pages: Vec<&str> = page.iter().map(|page| page.value.as_str()).collect();
    let pages = if pages.is_empty() { "any page".to_owned() } else { pages.join(", ") };
    let parameter = |to: &Parameter| match to {
        Parameter::Named(name) => format!("`{name}`"),
        Parameter::Json(pointer) => format!("`{pointer}` of the body"),
    };
    let by = match by {
        PaginateBy::Next(next) => format!("`{next}`"),
        PaginateBy::Link(relation) => format!("the header Link, `{relation}`"),
        PaginateBy::Count { to, first, step } => {
            format!("{}, {step} more than the last from {first} on", parameter(to))
        }
        PaginateBy::Cursor { to, .. } => format!("a cursor in {}", parameter(to)),
    };
    format!("{pages}: the next page by {by}, {most} pages at most")
}

fn when(PageMatch { url, content_type, selector, from }: &PageMatch) -> String {
    let mut parts = Vec::new();
    if !url.is_empty() {
        parts.push(format!("with {} in its URL", either(url)));
    }
    if !content_type.is_empty() {
        parts.push(content_type.join(" or "));
    }
    if !from.is_empty() {
        let from: Vec<&str> = from.iter().map(|from| from.value.as_str()).collect();
        parts.push(format!("from {}", from.join(" or ")));
    }
    parts.extend(selector.as_ref().map(|selector| format!("with `{selector}`")));
    if parts.is_empty() { "any other page".to_owned() } else { parts.join(", ") }
}

fn follow(rule: &PageFollow) -> String {
    if let Some(form) = &rule.form {
        return format!("the form `{}`", form.form);
    }
    let makes = rule.request.as_ref().filter(|request| request.has("url"));
    let mut parts = vec![match (&rule.each, &rule.area, rule.link.is_empty()) {
        _ if makes.is_some() => makes.map(|request| format!("`{}`", request.url())).unwrap_or_default(),
        (_, _, false) => rule.link.iter().map(|link| format!("`{link}`")).collect::<Vec<_>>().join(" or "),
        (_, Some(area), _) => format!("links in `{area}`"),
        _ => "links".to_owned(),
    }];
    parts.extend(rule.each.as_ref().map(|each| format!("in each `{each}`")));
    for (patterns, word) in [(&rule.include, "with"), (&rule.exclude, "without")] {
        if !patterns.is_empty() {
            parts.push(format!("{word} {}", either(patterns)));
        }
    }
    parts.extend(rule.name.as_ref().map(|name| format!("as {}", name.value)));
    parts.extend(carries(&rule.carry));
    parts.join(", ")
}

fn carries(fields: &[(String, Field)]) -> Option<String> {
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| format!("carries {}", names.join(", ")))
}

/// `a` or `b`
pub(crate) fn either(texts: &[Sited<String>]) -> String {
    texts.iter().map(|text| format!("`{}`", text.value)).collect::<Vec<_>>().join(" or ")
}

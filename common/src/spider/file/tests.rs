use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::frontier::lane::Lane;
use crate::frontier::outcome::Class;
use crate::frontier::{DedupScope, Recrawl};
use crate::politeness::rate::Rate;
use crate::settings::{Compress, Items, Retry, SinkSettings, Spiders, Urls};
use crate::spider::{
    Ban, Field, FieldSource, Kind, PageField, Required, SpiderOverrides, Start, Then, Whitespace,
};
use crate::web::url::CanonicalUrl;

/// A file with every possible setting.
const WHOLE: &str = include_str!("whole.toml");

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("s3cret".to_owned()),
        "BROKEN" => Some("s3cret\r\nHost: evil".to_owned()),
        _ => None,
    }
}

fn reading(text: &str) -> Reading {
    read(Spider::without_file("shop".parse().unwrap(), &Items::default()), text, Origin::Local, &environment)
}

/// Each mistake as `line:column what`.
fn mistakes(text: &str) -> Vec<String> {
    let reading = reading(text);
    let message = |mistake: &Mistake| format!("{} {}", mistake.place.unwrap(), mistake.what);
    reading.mistakes.iter().chain(&reading.unset).map(message).collect()
}

#[track_caller]
fn one(text: &str, expected: &str) {
    let found = mistakes(text);
    assert!(found.len() == 1 && found[0].starts_with(expected), "{text}\n{found:#?}\nnot {expected}");
}

fn field<'a>(spider: &'a Spider, name: &str) -> &'a Field {
    let fields = spider.items.iter().flat_map(|rule| &rule.fields);
    fields.into_iter().find(|(other, _)| other == name).map(|(_, field)| field).unwrap()
}

#[test]
fn every_key_of_a_file_is_read() {
    assert_eq!(mistakes(WHOLE), [""; 0]);
    let spider = reading(WHOLE).ready().unwrap();
    assert_eq!(spider.allowed_domains, ["shop.example", "xn--bcher-kva.example"]);
    assert_eq!(spider.max_pages.unwrap().get(), 1000);
    assert_eq!(spider.dedup, Some(DedupScope::Recrawl(Recrawl::Age(Duration::from_secs(12 * 3600)))));
    assert_eq!(spider.start.urls, ["https://shop.example/"]);
    assert_eq!(spider.start.sitemaps, ["https://shop.example/sitemap.xml", "more/sitemap.xml"]);
    let strip_params = ["ref", "sess*"].map(|name| name.parse().unwrap()).to_vec();
    assert_eq!(spider.urls, Urls { strip_tracking: false, strip_params, sort_query: true, max_length: 500 });
    let follow = spider.follow.as_ref().unwrap();
    assert_eq!((follow.depth, follow.max_repeats, follow.links), (3, 2, false));
    assert_eq!(follow.area.as_ref().unwrap().text().place.unwrap().line, 22);
    assert!(follow.canonical && !follow.nofollow && !follow.noindex && !follow.refresh);
    assert_eq!((spider.route[0].lane, spider.route[0].ttl), (Lane::Priority, Some(Duration::from_secs(300))));
    assert_eq!(spider.render, Render::Always);
    assert_eq!(spider.politeness.rate, Some("5/s".parse::<Rate>().unwrap()));
    assert_eq!(spider.politeness.host[0].host, ["cdn.shop.example"]);
    let retry = spider.retry.apply(&Retry::default());
    assert_eq!(
        (retry.max, &*retry.errors, retry.backoff),
        (8, &[Class::Timeout][..], Duration::from_secs(60))
    );
    assert_eq!(retry.statuses, [403]);
    let sent: Vec<_> = spider.request.headers.iter().map(|(name, value)| (&**name, value.reveal())).collect();
    assert_eq!(sent, [("Accept-Language", "en"), ("Authorization", "s3cret")]);
    assert_eq!(spider.request.cookies[0].1.reveal(), "s3cret");
    let Ban { status, redirect, text, then } = &spider.ban;
    assert_eq!((&status[..], redirect.len(), text.len(), *then), (&[403, 418][..], 1, 2, Then::Retry));
    let kinds: Vec<_> = spider.items.iter().map(|rule| rule.name.as_deref().unwrap()).collect();
    assert_eq!(kinds, ["product", "page"]);
    assert_eq!(spider.sinks.as_ref().unwrap().len(), 6);
    assert_eq!(spider.webhooks[0].url.reveal(), "https://shop.example/hooks/trawl");
    assert_eq!(spider.webhooks[0].events.len(), 2);
}

#[test]
fn what_is_tried_over_http_has_no_variable_no_proxy_and_no_browser_of_this_machine() {
    let text = "allowed_domains = ['a.example']\nrender = 'auto'\n[request]\nproxy = 'http://proxy.example:3128'\n\
                headers = { X-Key = { env = 'TOKEN' }, X-Lang = 'en' }\ncookies = { id = { env = 'TOKEN' } }\n\
                [[sinks]]\nkind = 'postgres'\nurl = { env = 'TOKEN' }\n";
    let usual = Spider::without_file("shop".parse().unwrap(), &Items::default());
    let Reading { spider, mistakes, unset, .. } =
        read(usual, text, Origin::Tried(&Spiders::default()), &environment);
    let found: Vec<_> = mistakes.iter().map(|mistake| mistake.what.split(": ").next().unwrap()).collect();
    assert_eq!(
        found,
        ["render", "request.proxy", "request.headers.X-Key", "request.cookies.id"],
        "{mistakes:?}"
    );
    assert_eq!(unset.len(), 1, "that of the sink, which is not opened: {unset:?}");
    assert_eq!(
        (spider.request.headers.len(), spider.request.proxy, spider.request.cookies.len()),
        (1, None, 0)
    );
}

/// Returns the mistakes of a text that came with a crawl.
fn delivered(text: &str) -> (Spider, Vec<String>) {
    let usual = Spider::without_file("shop".parse().unwrap(), &Items::default());
    let limits = Spiders { variables: vec!["TOKEN".to_owned()], ..Spiders::default() };
    let Reading { spider, mistakes, .. } = read(usual, text, Origin::Delivered(&limits), &environment);
    (spider, mistakes.into_iter().map(|mistake| mistake.what).collect())
}

#[test]
fn a_text_that_came_with_a_crawl_names_no_file_of_the_machine_that_works_by_it() {
    for path in ["/etc/cron.d/x", "../spiders/other/run.sh", "items/../x", "-", "shop.jsonl", "items"] {
        let (_, wrong) = delivered(&format!("[[sinks]]\nkind = 'jsonl'\npath = '{path}'"));
        assert!(matches!(&wrong[..], [one] if one.contains("spiders.sinks_dir")), "{path}: {wrong:?}");
    }
    for to in ["/srv/files", "../files", "items/../x", "files"] {
        let (_, wrong) = delivered(&format!("[[download]]\nto = '{to}'"));
        assert!(matches!(&wrong[..], [one] if one.contains("spiders.sinks_dir")), "{to}: {wrong:?}");
    }
    let (spider, wrong) = delivered("[[download]]\nto = 'items/{spider}'");
    assert!(
        wrong.is_empty() && spider.downloads[0].below.as_deref() == Some(Path::new("items")),
        "{wrong:?}"
    );
    let (spider, wrong) = delivered(
        "[[sinks]]\nkind = 'csv'\npath = 'items/{spider}/{worker}.csv'\n[[sinks]]\nkind = 'warc'\npath = 'items'",
    );
    let sinks = spider.sinks.unwrap();
    let below = |below: &Option<PathBuf>| below.as_deref() == Some(Path::new("items"));
    assert!(wrong.is_empty() && matches!(&sinks[0], SinkSettings::Csv(lines) if below(&lines.below)));
    assert!(matches!(&sinks[1], SinkSettings::Warc(folder) if below(&folder.below)));
    for key in ["sitemaps", "robots"] {
        for file in ["/proc/self/environ", "list.txt", "-"] {
            let (spider, wrong) = delivered(&format!("[start]\n{key} = ['{file}']"));
            assert!(matches!(&wrong[..], [one] if one.contains("from URLs alone")), "{file}: {wrong:?}");
            assert_eq!(spider.start, Start::default());
        }
    }
}

#[test]
fn a_text_that_came_with_a_crawl_has_listed_variables_alone_and_its_servers_are_guarded() {
    let text = |name: &str| {
        format!(
            "allowed_domains = ['a.example']\n[request]\nproxy = 'http://proxy.example:3128'\n\
             headers = {{ X = {{ env = '{name}' }} }}\ncookies = {{ X = {{ env = '{name}' }} }}\n\
             [[sinks]]\nkind = 'postgres'\nurl = 'postgres://db/x'\n\
             [[webhooks]]\nurl = 'https://a.example/'\nsecret = {{ env = '{name}' }}\n"
        )
    };
    let (spider, wrong) = delivered(&text("TOKEN"));
    assert!(wrong.is_empty(), "{wrong:?}");
    let SinkSettings::Postgres { url, .. } = &spider.sinks.unwrap()[0] else { panic!("no database") };
    assert!(url.is_guarded() && spider.request.proxy.unwrap().is_guarded());
    let (_, wrong) = delivered(&text("BROKEN"));
    assert_eq!(wrong.iter().filter(|what| what.contains("spiders.variables")).count(), 3, "{wrong:?}");
    let own = reading(&text("TOKEN")).spider;
    assert!(!own.request.proxy.unwrap().is_guarded(), "whoever wrote a file of this machine has the machine");
    let argument = "[request]\nproxy = 'http://{arg.host}:3128'\n[arguments]\nhost = '10.0.0.1'";
    assert!(reading(argument).spider.request.proxy.unwrap().is_guarded(), "an argument chose it");
    let (spider, wrong) = delivered("[proxies]\nurls = ['http://10.0.0.1:3128']");
    assert!(wrong.is_empty() && spider.proxies.unwrap().urls[0].is_guarded(), "{wrong:?}");
    let sink = "[[sinks]]\nkind = 'webhook'\nurl = 'http://10.0.0.1/'\nsecret = { env = 'TOKEN' }";
    let (spider, wrong) = delivered(sink);
    let SinkSettings::Webhook { url, .. } = &spider.sinks.unwrap()[0] else { panic!("no webhook") };
    assert!(wrong.is_empty() && url.is_guarded(), "{wrong:?}");
    assert_eq!(delivered(&sink.replace("TOKEN", "OTHER")).1.len(), 1, "its secret is a listed variable");
    let listed = "[request]\nproxy = { env = 'TOKEN' }";
    let (_, wrong) = delivered(listed);
    assert!(wrong[0].contains("write http://"), "{wrong:?}");
}

#[test]
fn no_argument_chooses_a_file_that_is_read() {
    let text = |value: &str| format!("[start]\nsitemaps = ['{{arg.site}}']\n[arguments]\nsite = '{value}'\n");
    assert!(mistakes(&text("https://a.example/sitemap.xml")).is_empty());
    one(&text("trawl.toml"), "2:13 start.sitemaps: no argument may say which file is read");
}

#[test]
fn fields_are_read_in_order_with_all_their_options() {
    let spider = reading(WHOLE).spider;
    let names: Vec<_> = spider.items[0].fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["title", "price", "images", "when", "offers", "brand", "server"]);
    assert_eq!(field(&spider, "title").kind, Kind::Text);
    let price = field(&spider, "price");
    assert!(price.required == Required::Warn && price.kind == Kind::Number && price.regex.is_some());
    assert!(field(&spider, "images").list);
    assert_eq!(field(&spider, "when").default, Some("never".into()));
    let FieldSource::Each(each, inner) = &field(&spider, "offers").from else { panic!("not each") };
    assert_eq!((each.to_string().as_str(), inner[0].0.as_str()), ("li.offer", "seller"));
    let FieldSource::JsonLd(kind, path) = &field(&spider, "brand").from else { panic!("not JSON-LD") };
    assert_eq!((kind.value.as_str(), path.as_ref().unwrap().value.as_str()), ("Product", "/brand/name"));
    assert_eq!(
        field(&spider, "server").from,
        FieldSource::Header(crate::mistake::Sited {
            value: "server".to_owned(),
            place: Some(crate::mistake::Place { line: 81, column: 21 }),
        })
    );
    assert_eq!(field(&spider, "links").from, FieldSource::Page(PageField::Links));
}

#[test]
fn sinks_are_read_with_their_sizes() {
    let sinks = reading(WHOLE).spider.sinks.unwrap();
    let SinkSettings::Jsonl(lines) = &sinks[0] else { panic!("not JSON Lines") };
    assert_eq!((lines.rotate.unwrap().as_u64(), lines.compress), (100_000_000, Compress::Zstd));
    assert!(!format!("{sinks:?}").contains("s3cret"), "{sinks:?}");
}

#[test]
fn a_file_without_fields_has_those_of_the_settings_and_follows_nothing() {
    let spider = reading("").ready().unwrap();
    assert_eq!(spider, Spider::without_file("shop".parse().unwrap(), &Items::default()));
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let text = "max_page = 10\nallowed_domains = [\"https://shop.example/x\"]\n\n[follow]\ninclude = [\"(\"]\n\
                depth = -1\n[politeness]\nrate = \"often\"\n[fields]\ntitle = { type = \"text\" }\n\
                price = { css = \"b\", json = \"/x\" }\n";
    let found = mistakes(text);
    let places: Vec<_> = found.iter().map(|mistake| mistake.split(' ').next().unwrap()).collect();
    assert_eq!(places, ["1:1", "2:20", "5:12", "6:9", "8:8", "10:9", "11:29"], "{found:#?}");
    assert!(found[0].contains("did you mean `max_pages`?"), "{}", found[0]);
    assert!(found[1].ends_with("`https://shop.example/x` is a URL: write `shop.example`"), "{}", found[1]);
}

#[test]
fn what_is_no_toml_is_one_mistake_with_its_place() {
    one("max_pages = 10\nrecrawl = \n", "2:1");
    one("[fields]\na = 'x'\na = 'y'\n", "3:1 duplicate key");
    one("[fields\n", "1:8");
}

#[test]
fn a_column_counts_characters() {
    one(
        "allowed_domains = [\"büecher.example\", \"*.x.example\"]",
        "1:39 allowed_domains: write `x.example`",
    );
}

#[test]
fn a_value_of_a_wrong_type_is_reported() {
    one("max_pages = \"many\"", "1:13 max_pages: a whole number is wanted, not a text");
    one("max_pages = 0", "1:13 max_pages: must be 1 or more");
    one("max_pages = 99999999999999999999", "1:13 max_pages: ");
    one("[follow]\ndepth = 65536", "2:9 follow.depth: is too large");
    one("start = 1", "1:9 start: a table is wanted");
    one("[follow]\nnofollow = 1", "2:12 follow.nofollow: true or false is wanted, not a whole number");
    one("[follow]\ninclude = \"x\"", "2:11 follow.include: a list in brackets is wanted, not a text");
    one("[follow]\narea = 1979-05-27", "2:8 follow.area: a text in quotes is wanted, not a date");
    one("recrawl = \"sometimes\"", "1:11 recrawl: `sometimes` is no answer");
    one("dedup = \"host\"", "1:9 dedup: `host` is no answer");
    one("[expect]\nitems = 0", "2:9 expect.items: must be 1 or more");
    one(
        "[fields]\nprice = { css = 'b' }\n[expect]\nfields.prise = 0.5",
        "4:16 expect.fields.prise: no item has this field",
    );
    one("[expect]\nfields.title = 90", "2:16 expect.fields.title: a share is from 0 to 1");
    one("[quality]\nfailed = 20", "2:10 quality.failed: a share is from 0 to 1");
    one("[quality]\nfailed = 0.2\nwindow = 0", "3:10 quality.window: must be from 10 to 10000 pages");
    one("[quality]\nfailed = 0.2\nwindow = 10001", "3:10 quality.window: must be from 10 to 10000 pages");
    one("[quality]\nfailed = 0.2\nduplicate = 0.1", "3:1 there is no key `quality.duplicate`");
    one("[quality]\nwindow = 50", "1:1 quality: name a threshold");
    one("[quality]\nitems_per_page = -1", "2:18 quality.items_per_page: must be more than 0");
    one("[fields]\na = 'b'\n[quality]\nrequired = 1", "4:12 quality.required: no field is `required`");
    one("dedup = \"crawl\"\nrecrawl = \"changed\"", "1:9 dedup: `recrawl` says");
}

#[test]
fn a_start_outside_the_allowed_domains_is_reported() {
    let text = "allowed_domains = [\"a.example\"]\n[start]\nurls = [\"https://www.a.example/\", \"https://b.example/\"]";
    one(text, "3:35 start.urls: b.example is not among `allowed_domains`");
    one("[start]\nurls = [\"shop\"]", "2:9 start.urls: `shop`: ");
    one("[start]\nsitemaps = [\"ftp://a.example/\"]", "2:13 start.sitemaps: `ftp://a.example/`");
}

#[test]
fn a_domain_is_a_host_and_nothing_else() {
    for bad in [
        "a.example:8080",
        "a.example/x",
        "a.example#x",
        "a b",
        "u@a.example",
        "a.example?utm_x",
        ".a.example",
    ] {
        one(&format!("allowed_domains = ['{bad}']"), "1:20 allowed_domains:");
    }
    let spider = reading("allowed_domains = ['Shop.Example', '[::1]', '10.0.0.1']").ready().unwrap();
    assert_eq!(spider.allowed_domains, ["shop.example", "[::1]", "10.0.0.1"]);
}

fn is_home(text: &str, url: &str) -> bool {
    reading(text).ready().unwrap().home().has(&url.parse().unwrap())
}

#[test]
fn a_star_allows_every_domain_and_makes_none_of_them_home() {
    let text = "allowed_domains = ['*']\n[start]\nurls = ['http://a.example/']";
    let spider = reading(text).ready().unwrap();
    assert!(spider.allows(&"http://b.example/".parse::<CanonicalUrl>().unwrap().host()));
    assert!(!is_home(text, "http://b.example/") && is_home(text, "http://a.example/x"));
}

#[test]
fn a_spider_is_at_home_without_tls_only_if_it_starts_without_it() {
    let start =
        |scheme: &str| format!("allowed_domains = ['a.example']\n[start]\nurls = ['{scheme}://a.example/']");
    assert!(
        !is_home(&start("https"), "http://a.example/") && is_home(&start("https"), "https://www.a.example/")
    );
    assert!(is_home(&start("http"), "http://a.example/") && is_home(&start("http"), "https://a.example/"));
    let anywhere = "allowed_domains = ['a.example']";
    assert!(!is_home(anywhere, "http://a.example/") && is_home(anywhere, "https://a.example/"));
}

#[test]
fn a_spider_is_at_home_at_the_ports_that_it_starts_at() {
    let start = |url: &str| format!("allowed_domains = ['a.example']\n[start]\nurls = ['{url}']");
    let usual = start("https://a.example/");
    assert!(is_home(&usual, "https://b.a.example/") && !is_home(&usual, "https://a.example:8443/"));
    let other = start("http://a.example:8080/");
    assert!(is_home(&other, "http://a.example:8080/x"));
    for not in
        ["http://a.example/", "https://a.example/", "https://a.example:8080/", "http://a.example:8081/"]
    {
        assert!(!is_home(&other, not), "{not}");
    }
}

#[test]
fn a_field_has_one_source_and_what_fits_it() {
    one("[fields]\n", "1:1 fields: has no field");
    one("[fields]\na = {}", "2:5 fields.a: does not say where it comes from");
    one("[fields]\na = \"\"", "2:5 fields.a: must not be empty");
    one(
        "[fields]\na = { css = 'b', type = 'nmber' }",
        "2:25 fields.a.type: there is no `nmber`: did you mean `number`?",
    );
    one(
        "[fields]\na = { css = 'b', required = true, default = 1 }",
        "2:29 fields.a.required: a field with a `default`",
    );
    one(
        "[fields]\na = { css = 'b', regex = '(' }",
        "2:26 fields.a.regex: is not a regular expression: unclosed group",
    );
    one("[fields]\na = { css = 'b', path = '/x' }", "2:25 fields.a.path: is for `json_ld`");
    one("[fields]\na = { css = 'b', format = '%Y' }", "2:27 fields.a.format: is for `type = \"date\"`");
    one("[fields]\na = { json = 'price' }", "2:14 fields.a.json: is neither a JSON Pointer");
    one("[fields]\na = { json = '/a~2' }", "2:14 fields.a.json: is not a JSON Pointer");
    one("[fields]\na = { page = 'titel' }", "2:14 fields.a.page: there is no `titel`: did you mean `title`?");
    one("[fields]\na = { each = 'li' }", "2:5 fields.a: `fields` is missing");
    one("[fields]\na = { each = '', fields = { b = 'b' } }", "2:14 fields.a.each: must not be empty");
    one(
        "[fields]\na = { each = 'li', type = 'url', fields = { b = 'b' } }",
        "2:27 fields.a.type: is for values",
    );
    one("[fields]\n\"a b\" = 'b'", "2:1 fields.a b: a name has 1 to 63 bytes");
}

#[test]
fn what_a_page_is_without_a_field_has_four_names() {
    for (text, required) in [
        ("true", Required::Warn),
        ("false", Required::No),
        ("'warn'", Required::Warn),
        ("'retry'", Required::Retry),
        ("'fail'", Required::Fail),
    ] {
        let spider = reading(&format!("[fields]\na = {{ css = 'b', required = {text} }}")).ready().unwrap();
        assert_eq!(field(&spider, "a").required, required, "{text}");
    }
    one(
        "[fields]\na = { css = 'b', required = 'fial' }",
        "2:29 fields.a.required: there is no `fial`: did you mean `fail`?",
    );
    one("[fields]\na = { css = 'b', required = 1 }", "2:29 fields.a.required: true, false, \"warn\"");
}

#[test]
fn which_pages_are_rendered_has_three_names() {
    for (name, render) in [("never", Render::Never), ("always", Render::Always), ("auto", Render::Auto)] {
        assert_eq!(reading(&format!("render = '{name}'")).spider.render, render);
    }
    assert_eq!(reading("").spider.render, Render::Never);
    assert!(mistakes("render = 'allways'")[0].contains("did you mean `always`?"));
}

#[test]
fn a_kind_of_page_may_be_rendered_in_another_way_than_the_rest() {
    let text =
        "render = 'auto'\n[[page]]\nname = 'a'\nmatch.url = 'a'\nrender = 'never'\n[[page]]\nname = 'b'";
    let spider = reading(text).ready().unwrap();
    let kinds: Vec<_> = spider.pages.iter().map(|kind| kind.render).collect();
    assert_eq!((kinds, spider.needs_browser()), (vec![Some(Render::Never), None], true));
    one(
        "[[page]]\nname = 'a'\nrender = 'allways'",
        "3:10 page.render: there is no `allways`: did you mean `always`?",
    );
    let one_kind = reading("[[page]]\nname = 'a'\nrender = 'always'").ready().unwrap();
    assert!(one_kind.needs_browser());
    let overrides = SpiderOverrides { render: Some(Render::Never), ..SpiderOverrides::default() };
    assert!(!overrides.apply(one_kind).needs_browser());
}

#[test]
fn bans_are_checked() {
    one("[ban]\nstatus = [99]", "2:11 ban.status: must be 100 or more");
    one("[ban]\nstatus = [600]", "2:11 ban.status: is no status");
    one("[ban]\ntext = ['(']", "2:9 ban.text: is not a regular expression");
    one("[ban]\nthen = 'retyr'", "2:8 ban.then: there is no `retyr`: did you mean `retry`?");
}

#[test]
fn each_kind_of_item_has_a_name() {
    one("[[items]]\nname = 'a'", "1:1 items: `fields` is missing");
    one("[fields]\na = 'b'\n[[items]]\nfields = { a = 'b' }", "3:1 items: give either [fields]");
    let two =
        |a, b| format!("[[items]]\n{a}\nfields = {{ a = 'b' }}\n[[items]]\n{b}\nfields = {{ a = 'b' }}\n");
    one(&two("name = 'a'", ""), "4:1 items: of several kinds of item, each needs a `name`");
    one(&two("name = 'a'", "name = 'a'"), "5:8 items.name: there are two kinds of item with the name `a`");
    one("[[items]]\neach = ''\nfields = { a = 'b' }", "2:8 items.each: must not be empty");
}

#[test]
fn fields_of_the_head_that_are_trawls_own_are_refused() {
    let home = "allowed_domains = ['a.example']\n";
    let set = |name: &str| format!("{home}[request.headers]\n{name} = 'x'");
    one(&set("Host"), "3:8 request.headers.Host: may not be set");
    one(&set("user-agent"), "3:14 request.headers.user-agent: may not be set: use `request.user_agent`");
    one(&set("COOKIE"), "3:10 request.headers.COOKIE: may not be set: use `request.cookies`");
    one(&set("\"a b\""), "3:1 `request.headers.a b` cannot be a name here");
    one(&set("X-A = 'a'\nx-a"), "4:1 request.headers.x-a is there twice");
    one(&format!("{home}[request]\nproxy = 'proxy:3128'"), "3:9 request.proxy: write http://");
    one(&format!("{home}[request.cookies]\na = 'x; y'"), "3:5 request.cookies.a: its value cannot");
    one("[request.headers]\nX-A = 'x'", "1:1 request.headers: are sent to the spider's own hosts alone");
}

#[test]
fn a_variable_that_is_not_set_is_reported_where_it_is_named_and_no_other_mistake() {
    let text = "allowed_domains = ['a.example']\n[request]\nheaders = { A = { env = 'TOKEN' }, B = { env = 'NONE' } }";
    let reading = reading(text);
    assert_eq!(reading.mistakes, []);
    assert_eq!(reading.spider.request.headers.len(), 1);
    let unready = reading.ready().unwrap_err();
    assert_eq!(unready[0].to_string(), "the environment variable NONE is not set");
    assert_eq!(unready[0].place.unwrap().to_string(), "3:48");
}

#[test]
fn a_secret_shows_in_no_mistake_and_no_debug_output() {
    let text = "allowed_domains = ['a.example']\n[request]\nheaders = { A = { env = 'BROKEN' }, B = { env = 'TOKEN' } }\n\
                cookies = { c = { env = 'BROKEN' } }\nproxy = { env = 'TOKEN' }\n\
                [[sinks]]\nkind = 'postgres'\nurl = { env = 'TOKEN' }\n";
    let reading = reading(text);
    assert_eq!(reading.mistakes.len(), 4, "{:#?}", reading.mistakes);
    assert!(!format!("{reading:?}").contains("s3cret"), "{reading:?}");
}

#[test]
fn a_sink_that_lacks_a_setting_is_a_mistake() {
    one("[[sinks]]\npath = 'x'", "1:1 sinks: `kind` is missing");
    one("[[sinks]]\nkind = 'json'\npath = 'x'", "2:8 sinks.kind: there is no `json`: did you mean `jsonl`?");
    one("[[sinks]]\nkind = 'jsonl'", "1:1 sinks: `path` is missing");
    one("[[sinks]]\nkind = 'jsonl'\npath = 'x'\nrotate = 0", "4:10 sinks.rotate: must be 1 or more");
    one("[[sinks]]\nkind = 'csv'\npath = '{date}.csv'", "3:8 sinks.path: `{date}` stands for nothing");
    one("[[sinks]]\nkind = 'stream'\npath = 'x'", "3:1 there is no key `sinks.path`");
    one("[[sinks]]\nkind = 'postgres'\nurl = 'mysql://x'", "3:7 sinks.url: write postgres://");
}

#[test]
fn what_makes_urls_one_is_checked() {
    one("[urls]\nstrip_params = ['a=b']", "2:17 urls.strip_params: `a=b` is no name of a query parameter");
    one("[urls]\nstrip = ['a']", "2:1 there is no key `urls.strip`");
    one("[urls]\nsort_query = 'yes'", "2:14 urls.sort_query: true or false is wanted");
    let usual = Spider {
        urls: Urls { sort_query: true, ..Urls::default() },
        ..Spider::without_file("shop".parse().unwrap(), &Items::default())
    };
    let urls = read(usual, "[urls]\nstrip_tracking = false", Origin::Local, &environment).spider.urls;
    assert_eq!((urls.strip_tracking, urls.sort_query), (false, true), "what the file leaves out stays");
}

#[test]
fn rules_are_checked_as_those_of_the_settings_are() {
    one("[[route]]\nlane = 'fast'", "2:8 route.lane: there is no `fast`");
    one("[[route]]\nttl = '5m'", "1:1 route: `lane` is missing");
    one("[[route]]\nlane = 'bulk'\nttl = '5 apples'", "3:7 route.ttl: `5 apples` is not a duration");
    one("[[politeness.host]]\nrate = '1/s'", "1:1 politeness.host: `host` is missing");
    one("[politeness]\nburst = 0", "2:9 politeness.burst: must be 1 or more");
    one("[retry]\nerrors = ['tmeout']", "2:11 retry.errors: there is no `tmeout`: did you mean `timeout`?");
    one("[retry]\nstatuses = [77]", "2:13 retry.statuses: must be 100 or more");
}

#[test]
fn of_very_many_mistakes_a_thousand_are_reported() {
    let text: String = (0..5_000).map(|number| format!("key{number} = 1\n")).collect();
    assert_eq!(mistakes(&text).len(), 1000);
}

/// Returns the lines of a file that may be followed by another key of the same table.
fn places() -> Vec<usize> {
    let lines: Vec<&str> = WHOLE.lines().collect();
    let names_are_free = |line: &usize| {
        let table = lines[..=*line].iter().rfind(|line| line.starts_with('[')).copied().unwrap_or_default();
        !table.ends_with("fields]")
            && !table.ends_with("arguments]")
            && !table.ends_with("headers]")
            && !table.ends_with("cookies]")
    };
    (0..lines.len()).filter(|line| lines[*line].contains(" = ")).filter(names_are_free).collect()
}

proptest! {
    #[test]
    fn an_unknown_key_anywhere_is_reported_at_its_place(line in prop::sample::select(places()), key in "[a-z]{3,8}_zz") {
        let mut lines: Vec<&str> = WHOLE.lines().collect();
        let unknown = format!("{key} = 1");
        lines.insert(line + 1, &unknown);
        let found = mistakes(&lines.join("\n"));
        prop_assert_eq!(found.len(), 1, "{:#?}", found);
        prop_assert!(found[0].starts_with(&format!("{}:1 there is no key `", line + 2)), "{:#?}", found);
    }

    #[test]
    fn any_text_is_read_or_has_mistakes_at_places_within_it(text in "(\\PC|\n|[\\[\\]={}'\"]){0,80}") {
        let reading = reading(&text);
        for mistake in &reading.mistakes {
            let place = mistake.place.unwrap();
            let line = text.split('\n').nth(place.line as usize - 1);
            prop_assert!(line.is_some_and(|line| place.column as usize <= line.chars().count() + 1), "{:?}", mistake);
        }
    }

    #[test]
    fn what_is_cut_off_anywhere_is_read_or_has_mistakes(at in 0..WHOLE.len()) {
        let cut = String::from_utf8_lossy(&WHOLE.as_bytes()[..at]);
        let reading = reading(&cut);
        prop_assert!(reading.mistakes.len() < 10, "{:#?}", reading.mistakes);
    }
}

#[test]
fn a_field_says_how_its_values_are_written() {
    let text = "[fields]\n\
        price = { css = 'b', type = 'number', decimal = ',' }\n\
        stock = { css = 'b', type = 'boolean', true = 'auf Lager', false = ['weg', 'bald'] }\n\
        at = { css = 'b', type = 'date', timezone = 'Europe/Berlin' }\n\
        text = { css = 'b', whitespace = 'lines' }";
    let spider = reading(text).ready().unwrap();
    assert_eq!(field(&spider, "price").decimal, Some(','));
    assert_eq!(
        (&*field(&spider, "stock").truth, field(&spider, "stock").falsehood.len()),
        (&["auf Lager".to_owned()][..], 2)
    );
    assert_eq!(field(&spider, "at").timezone.as_ref().unwrap().iana_name(), Some("Europe/Berlin"));
    assert_eq!(field(&spider, "text").whitespace, Some(Whitespace::Lines));
    for (field, mistake) in [
        ("{ css = 'b', decimal = ',' }", "1:35 fields.x.decimal: is for `type = \"number\"`"),
        ("{ css = 'b', type = 'number', decimal = ';' }", "1:52 fields.x.decimal: "),
        ("{ css = 'b', true = 'x' }", "1:32 fields.x.true: is for `type = \"boolean\"` alone"),
        ("{ css = 'b', timezone = 'UTC' }", "1:36 fields.x.timezone: is for `type = \"date\"` alone"),
        (
            "{ css = 'b', type = 'date', timezone = 'Berlin' }",
            "1:51 fields.x.timezone: there is no time zone",
        ),
        (
            "{ css = 'b', type = 'date', whitespace = 'keep' }",
            "1:53 fields.x.whitespace: is for `type = \"text\"` alone",
        ),
    ] {
        one(&format!("fields.x = {field}"), mistake);
    }
}

#[test]
fn a_field_has_no_name_of_a_column_of_postgresqls_own() {
    let sink = "[[sinks]]\nkind = 'postgres'\nurl = 'postgres://db/x'\n[[sinks]]\nkind = 'stream'";
    let fields = "[fields]\nctid = 'a'\nxmin = 'b'\noid = 'c'\n";
    one(
        &format!("{fields}{sink}"),
        "5:1 sinks: PostgreSQL has columns of these names of its own, so a field needs another: `ctid` and `xmin`",
    );
    assert_eq!(mistakes(fields), [""; 0]);
}

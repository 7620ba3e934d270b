//! Pages: the default fields, and a spider with fields of every kind. The first line of the input is the content type,
//! none if it is empty; the rest is the body.
#![no_main]

use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use trawl_common::mistake::Sited;
use trawl_common::names::SpiderName;
use trawl_common::settings::Items;
use trawl_common::spider::{Field, FieldSource, Follow, ItemRule, Kind, PageField, Required, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extraction, Extractor};

const URL: &str = "https://example.com/dir/page?x=1";

/// Maximum size of an item as JSON, in bytes.
const MAX_ITEM: usize = 8 << 20;

static DEFAULT_FIELDS: LazyLock<Extractor> = LazyLock::new(|| {
    let items = Items { links: true, ..Items::default() };
    extractor(&Spider::without_file(SpiderName::default(), &items))
});
static EVERY_KIND: LazyLock<Extractor> = LazyLock::new(|| extractor(&every_kind()));

fn extractor(spider: &Spider) -> Extractor {
    Extractor::new(spider).expect("sound selectors")
}

fn sited(text: &str) -> Sited<String> {
    Sited::nowhere(text)
}

fn css(selector: &str) -> FieldSource {
    FieldSource::Css(sited(selector))
}

fn every_kind() -> Spider {
    let inner = || {
        vec![
            ("all".to_owned(), Field::new(css("::text"))),
            ("json".to_owned(), Field::new(css("b::attr(x)"))),
        ]
    };
    let sources = [
        css("h1"),
        css("p ::text, a::attr(href)"),
        css("a.next::attr(href)"),
        css("script::text"),
        FieldSource::Json(sited("$..x")),
        FieldSource::XPath(sited("//p[position() mod 2 = 1]/@* | //text()[contains(., 'x')]")),
        FieldSource::Script(sited("x"), Some(sited("$..a"))),
        FieldSource::Header(sited("content-type")),
        FieldSource::Meta(sited("og:title")),
        FieldSource::JsonLd(sited("Product"), None),
        FieldSource::JsonLd(sited("Product"), Some(sited("/offers"))),
        FieldSource::Microdata(sited("Product"), None),
        FieldSource::Table(sited("table").into()),
        FieldSource::Page(PageField::Links),
        FieldSource::Page(PageField::Text),
        FieldSource::Each(sited("div").into(), inner()),
        FieldSource::Each(
            sited("$.list").into(),
            vec![("x".to_owned(), Field::new(FieldSource::Json(sited("/x"))))],
        ),
    ];
    let kinds = [
        Kind::Text,
        Kind::Number,
        Kind::Integer,
        Kind::Boolean,
        Kind::Date,
        Kind::Url,
        Kind::Html,
        Kind::Json,
    ];
    let mut fields = Vec::new();
    for source in sources {
        for kind in kinds {
            for list in [false, true] {
                let field = Field { kind, list, required: Required::Warn, ..Field::new(source.clone()) };
                fields.push((fields.len().to_string(), field));
            }
        }
    }
    let rule = |name: &str, each: Option<&str>, fields| ItemRule {
        name: Some(name.to_owned()),
        each: each.map(|each| sited(each).into()),
        fields,
        page: None,
    };
    let follow = Follow {
        next: vec![sited("a::attr(rel)").into(), sited("$..next").into()],
        canonical: true,
        ..Follow::default()
    };
    Spider {
        items: vec![rule("page", None, fields), rule("each", Some("li"), inner())],
        follow: Some(follow),
        ..Spider::without_file(SpiderName::default(), &Items::default())
    }
}

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let content_type = String::from_utf8_lossy(&input[..end]).into_owned();
    let response = Response {
        status: 200,
        headers: [content_type]
            .into_iter()
            .filter(|text| !text.is_empty())
            .map(|text| ("content-type", text))
            .collect::<Headers>(),
        redirected_to: None,
        fetched_at: UnixMs(0),
        address: None,
        body: input.get(end + 1..).unwrap_or_default().to_vec().into(),
    };
    let url: CanonicalUrl = URL.parse().expect("a URL");
    for extractor in [&*DEFAULT_FIELDS, &*EVERY_KIND] {
        let _ = extractor.reads(&response);
        if let Ok(extraction) = extractor.extract(&url, &response, &AtomicBool::new(false)) {
            check(&extraction);
        }
    }
});

fn check(extraction: &Extraction) {
    let mut links: Vec<_> = extraction.links.iter().map(|link| &link.url).collect();
    links.sort();
    links.dedup();
    assert_eq!(links.len(), extraction.links.len(), "a link twice");
    for item in &extraction.items {
        let fields = Value::Object(item.fields.clone());
        assert!(fields.to_string().len() < MAX_ITEM);
        texts(&fields, &|text| {
            let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            assert!(!text.contains(is_harmful), "{text:?}");
        });
        if let Some(Value::Array(links)) = item.fields.get("links") {
            for link in links {
                let link = link.as_str().expect("links are text");
                assert_eq!(link.parse::<CanonicalUrl>().map(String::from).as_deref(), Ok(link));
            }
        }
    }
}

/// Checks every text in a value, including names.
fn texts(value: &Value, check: &impl Fn(&str)) {
    match value {
        Value::String(text) => check(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, check)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            check(name);
            texts(value, check);
        }),
        _ => {}
    }
}

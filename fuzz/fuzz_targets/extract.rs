//! Pages: the default fields, and fields by selector. The first line of the input is the content type, none if it is
//! empty; the rest is the body.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use libfuzzer_sys::fuzz_target;
use trawl_common::ports::Response;
use trawl_common::names::SpiderName;
use trawl_common::settings::Items;
use trawl_common::spider::Spider;
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;
use trawl_extract::Extractor;

const URL: &str = "https://example.com/dir/page?x=1";

static DEFAULT_FIELDS: LazyLock<Extractor> = LazyLock::new(|| extractor(&[]));
static WITH_SELECTORS: LazyLock<Extractor> = LazyLock::new(|| {
    extractor(&[("heading", "h1"), ("price", "span.price::text"), ("next", "p > a[href]::attr(href)")])
});

fn extractor(fields: &[(&str, &str)]) -> Extractor {
    let fields: BTreeMap<_, _> =
        fields.iter().map(|(name, css)| (name.to_string(), css.to_string())).collect();
    let items = Items { links: true, fields, ..Items::default() };
    Extractor::new(&Spider::without_file(SpiderName::default(), &items)).expect("sound selectors")
}

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let content_type = String::from_utf8_lossy(&input[..end]).into_owned();
    let response = Response {
        status: 200,
        headers: [content_type].into_iter().filter(|text| !text.is_empty()).map(|text| ("content-type", text)).collect(),
        redirected_to: None,
        fetched_at: UnixMs(0),
        address: None,
        body: input.get(end + 1..).unwrap_or_default().to_vec().into(),
    };
    let url: CanonicalUrl = URL.parse().expect("a URL");
    for extractor in [&*DEFAULT_FIELDS, &*WITH_SELECTORS] {
        let _ = extractor.reads(&response);
        let Ok(extraction) = extractor.extract(&url, &response, &AtomicBool::new(false)) else { continue };
        let fields = &extraction.items[0].fields;
        for text in fields.values().filter_map(|value| value.as_str()) {
            assert!(!text.is_empty() && !text.contains(char::is_control), "{text:?}");
        }
        for link in fields["links"].as_array().expect("links are asked for") {
            let link = link.as_str().expect("links are text");
            assert_eq!(link.parse::<CanonicalUrl>().map(String::from).as_deref(), Ok(link));
        }
    }
});

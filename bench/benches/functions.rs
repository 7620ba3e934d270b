//! The cost of a URL or a page in single functions: `cargo bench -p trawl-bench`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use std::hint::black_box;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use lapin::message::Delivery;
use trawl_backends::rabbitmq::codec::{self, Trust};
use trawl_backends::rabbitmq::seal::Seal;
use trawl_bench::samples;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::politeness::robots::{MAX_BYTES, Robots, RobotsName};
use trawl_common::settings::{FleetKey, Items, RabbitMq};
use trawl_common::spider::{Follow, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::Extractor;
use trawl_producer::sitemap::{self, Limits, Origin};

fn urls(criterion: &mut Criterion) {
    let texts = samples::urls(10_000);
    let canonical = canonical(&texts);
    let mut group = criterion.benchmark_group("url");
    group.throughput(Throughput::Elements(texts.len() as u64));
    group.bench_function("canonical form", |bencher| {
        bencher.iter(|| texts.iter().filter(|text| black_box(CanonicalUrl::parse(text)).is_ok()).count());
    });
    group.bench_function("fingerprint", |bencher| {
        bencher.iter(|| {
            for url in &canonical {
                black_box(url.fingerprint());
            }
        });
    });
}

fn sitemaps(criterion: &mut Criterion) {
    let plain = samples::sitemap(50_000).into_bytes();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&plain).unwrap();
    let gzip = encoder.finish().unwrap();
    let read = |bytes: &[u8]| {
        let emit = &mut |found| {
            black_box(found);
            ControlFlow::Continue(())
        };
        sitemap::read(bytes, &Origin::default(), &Limits::default(), emit).unwrap().urls
    };
    let mut group = criterion.benchmark_group("sitemap");
    // Unpacked, in both cases.
    group.throughput(Throughput::Bytes(plain.len() as u64));
    group.bench_function("plain", |bencher| bencher.iter(|| read(&plain)));
    group.bench_function("gzip", |bencher| bencher.iter(|| read(&gzip)));
}

fn pages(criterion: &mut Criterion) {
    let pages: Vec<Response> = samples::pages().into_iter().map(response).collect();
    let mut group = criterion.benchmark_group("page");
    group.throughput(Throughput::Bytes(pages.iter().map(|page| page.body.len() as u64).sum()));
    let default = Spider::without_file(SpiderName::default(), &Items::default());
    let follow = Some(Follow::default());
    let with_selector =
        Items { fields: [("text".to_owned(), ".docblock p::text".to_owned())].into(), ..Items::default() };
    extraction(&mut group, "default fields", &default, &pages);
    extraction(&mut group, "default fields and links", &Spider { follow, ..default.clone() }, &pages);
    let with_tree = Spider::without_file(SpiderName::default(), &with_selector);
    extraction(&mut group, "a class selector, by a tree", &with_tree, &pages);
}

fn extraction(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, spider: &Spider, pages: &[Response]) {
    let extractor = Extractor::new(spider).unwrap();
    let url = "https://manual.example/std/index.html".parse().unwrap();
    let never = AtomicBool::new(false);
    let extract = |page| black_box(extractor.extract(&url, page, &never)).is_ok();
    group.bench_function(name, |bencher| {
        bencher.iter(|| pages.iter().filter(|page| extract(page)).count());
    });
}

/// Measures how long a robots.txt of 500 KB takes to decide on one URL.
fn robots(criterion: &mut Criterion) {
    let honest = |number: usize| format!("disallow: /*/category-{number}/*?sort=\n");
    // All that the path has, in an order in which it has it not.
    let twisted = |number: usize| {
        let piece: String = (0..14).map(|bit| if number >> bit & 1 == 0 { 'a' } else { 'b' }).collect();
        format!("disallow: /*{piece}*{piece}*{piece}$\n")
    };
    let endless = |number: usize| format!("disallow: /{}\n", "*abab".repeat(2_001 + number));
    let path: String = (0..8_000_usize).map(|at| if at * at % 7_919 % 2 == 0 { 'a' } else { 'b' }).collect();
    let mut group = criterion.benchmark_group("robots.txt of 500 KB");
    let mut bench = |name: &str, rule: &dyn Fn(usize) -> String, path: &str| {
        let mut file = "user-agent: *\n".to_owned();
        for number in 0.. {
            let rule = rule(number);
            if file.len() + rule.len() > MAX_BYTES {
                break;
            }
            file += &rule;
        }
        let url = CanonicalUrl::parse(&format!("https://shop.example/{path}")).unwrap();
        let rules = Robots::parse(file.as_bytes(), &RobotsName::default());
        group.bench_function(name, |bencher| bencher.iter(|| black_box(rules.allows(&url))));
    };
    bench("honest rules, URL of 1 KB", &honest, &"list/page-7?sort=price&".repeat(43));
    bench("rules of all that a URL of 8 KB has", &twisted, &path);
    bench("rules of more pieces than a URL of 8 KB has", &endless, &"ab".repeat(4_000));
}

fn response(body: Vec<u8>) -> Response {
    Response {
        status: 200,
        headers: Headers::from_iter([("content-type", "text/html; charset=utf-8")]),
        redirected_to: None,
        fetched_at: UnixMs(0),
        address: None,
        body: body.into(),
    }
}

fn messages(criterion: &mut Criterion) {
    let crawl: CrawlRef = CrawlRef { id: "c-2026-11-21".parse().unwrap(), spider: SpiderName::default() };
    let messages: Vec<Message> = canonical(&samples::urls(1_000))
        .into_iter()
        .map(|url| Message {
            deadline: Some(UnixMs(1_795_253_834_355)),
            until: Some(UnixMs(1_795_250_234_355)),
            slot: Some(UnixMs(1_795_250_234_355)),
            ..Message::seed(url, crawl.clone(), Lane::Bulk)
        })
        .collect();
    let key = FleetKey::try_from("0123456789abcdef".repeat(4)).unwrap();
    let signed = Seal::new(&RabbitMq { key: Some(key), ..RabbitMq::default() });
    let mut group = criterion.benchmark_group("message");
    group.throughput(Throughput::Elements(messages.len() as u64));
    for (seal, how) in [(Seal::default(), ""), (signed, ", signed")] {
        let deliveries: Vec<Delivery> = messages.iter().map(|message| delivery(message, &seal)).collect();
        group.bench_function(format!("to properties and headers{how}"), |bencher| {
            bencher.iter(|| {
                for message in &messages {
                    black_box(codec::properties(message, &codec::body(&message.work), &seal));
                }
            });
        });
        let trust = Trust { seal, ..Trust::default() };
        group.bench_function(format!("from properties and headers{how}"), |bencher| {
            bencher.iter(|| {
                for delivery in &deliveries {
                    black_box(codec::content(delivery, SourceQueue::Bulk, &trust));
                }
            });
        });
    }
}

fn delivery(message: &Message, seal: &Seal) -> Delivery {
    let body = codec::body(&message.work).into_owned();
    let properties = codec::properties(message, &body, seal);
    let mut delivery = Delivery::mock(1, "".into(), "url_queue_ttl".into(), false, body);
    delivery.properties = properties;
    delivery
}

fn canonical(texts: &[String]) -> Vec<CanonicalUrl> {
    texts.iter().map(|text| CanonicalUrl::parse(text).unwrap()).collect()
}

criterion_group! {
    name = functions;
    // All of them in half a minute.
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20);
    targets = urls, sitemaps, pages, robots, messages
}
criterion_main!(functions);

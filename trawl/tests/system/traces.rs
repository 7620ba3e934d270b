//! Traces of URLs as a collector gets them from a producer and a worker.

#![cfg(feature = "otlp")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

/// A collector that keeps each span with the service that sent it.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<(String, Span)>>>);

impl Collector {
    /// Starts the collector, and returns its address.
    async fn serve(&self) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(take)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    /// Returns the spans of the trace in which a URL with this path was admitted.
    fn trace(&self, path: &str) -> Vec<(String, Span)> {
        let all = self.0.lock().unwrap();
        let is_its = |span: &Span| span.name == "admit" && text(&span.attributes, "url.full").ends_with(path);
        let root = all.iter().find(|(_, span)| is_its(span)).unwrap();
        all.iter().filter(|(_, span)| span.trace_id == root.1.trace_id).cloned().collect()
    }
}

async fn take(State(collector): State<Collector>, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    for of_process in request.resource_spans {
        let service = text(&of_process.resource.unwrap().attributes, "service.name");
        let spans = of_process.scope_spans.into_iter().flat_map(|scope| scope.spans);
        collector.0.lock().unwrap().extend(spans.map(|span| (service.clone(), span)));
    }
}

/// Returns the value of an attribute, or an empty text without it.
fn text(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|found| found.value.clone()).and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn named<'a>(spans: &'a [(String, Span)], name: &str) -> Vec<&'a Span> {
    spans.iter().map(|(_, span)| span).filter(|span| span.name == name).collect()
}

/// Tested in a fleet with a key, whose messages are signed.
#[tokio::test]
async fn a_url_has_one_trace_through_producer_broker_and_worker_and_its_retries_are_linked() {
    let (fleet, site, collector) = (Fleet::new().await, Site::serve(1).await, Collector::default());
    let key = "k".repeat(32);
    let address = collector.serve().await;
    let settings = [
        ("TRAWL__TRACING__OTLP", &*address),
        ("TRAWL__TRACING__SAMPLE", "1.0"),
        ("TRAWL__RABBITMQ__KEY", &*key),
        ("TRAWL__RETRY__BACKOFF", "100ms"),
    ];
    let worker = fleet.worker(&settings);
    let list = fleet.folder.path().join("list.txt");
    std::fs::write(&list, format!("{}?token=secret\n{}/broken\n", site.page(0), site.origin)).unwrap();
    let produced = fleet.producer(list.to_str().unwrap()).envs(settings).status();
    assert_eq!(timeout(LIMIT, produced).await.unwrap().unwrap().code(), Some(3), "one page is a dead letter");
    ends_well(worker).await;

    let spans = collector.trace("/page/0?token=REDACTED");
    let steps: BTreeMap<&str, BTreeSet<&str>> =
        spans.iter().fold(BTreeMap::new(), |mut steps, (service, span)| {
            steps.entry(service.as_str()).or_default().insert(span.name.as_str());
            steps
        });
    assert_eq!(steps["trawl-producer"], ["admit", "send url_queue_ttl"].into());
    let of_worker =
        ["GET", "extract", "process", "schedule", "settle", "store", "wait in url_queue_ttl"].into();
    assert_eq!(steps["trawl-worker"], of_worker);
    let (admit, process, get) =
        (named(&spans, "admit")[0], named(&spans, "process")[0], named(&spans, "GET")[0]);
    assert_eq!((&process.parent_span_id, &get.parent_span_id), (&admit.span_id, &process.span_id));
    assert_eq!(text(&get.attributes, "http.response.status_code"), "200");
    assert!(spans.iter().all(|(_, span)| span.start_time_unix_nano <= span.end_time_unix_nano));
    assert!(!format!("{spans:?}").contains("token=secret"));

    let attempts = collector.trace("/broken");
    let mut attempts = named(&attempts, "process");
    attempts.sort_by_key(|span| span.end_time_unix_nano);
    assert!(attempts.len() > 1, "{attempts:?}");
    for pair in attempts.windows(2) {
        assert_eq!(pair[0].parent_span_id, pair[1].parent_span_id, "both are part of the URL's way");
        assert_eq!(pair[1].links[0].span_id, pair[0].span_id);
        assert_eq!(text(&pair[0].attributes, "trawl.outcome"), "retried");
    }
}

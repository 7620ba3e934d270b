//! Traces of URLs, sent to a collector by OTLP over HTTP.

use trawl_common::settings::Tracing;

use crate::Fail;

/// Starts sending spans if the settings name a collector. `service` is the service's name in them. Dropping the result
/// sends the remaining spans. Must be called only once per process.
///
/// # Errors
/// If the collector's address cannot be used.
#[cfg(feature = "otlp")]
pub fn start(settings: &Tracing, service: &'static str) -> Result<Option<otlp::Exporting>, Fail> {
    let Some(collector) = &settings.otlp else { return Ok(None) };
    let exporting = otlp::Exporting::to(collector, service)
        .map_err(|error| Fail::run(format!("tracing.otlp: {collector}: {error}")))?;
    trawl_common::trace::start(settings.sample, Box::new(exporting.clone()));
    tracing::info!(%collector, sample = settings.sample, "sending traces");
    Ok(Some(exporting))
}

/// Sends nothing: this program was built without OpenTelemetry.
///
/// # Errors
/// If the settings name a collector.
#[cfg(not(feature = "otlp"))]
pub fn start(settings: &Tracing, _: &'static str) -> Result<Option<()>, Fail> {
    match settings.otlp {
        None => Ok(None),
        Some(_) => {
            Err(Fail::usage("settings: tracing.otlp: this trawl was built without the feature `otlp`"))
        }
    }
}

#[cfg(feature = "otlp")]
mod otlp {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, SystemTime};

    use async_trait::async_trait;
    use bytes::Bytes;
    use opentelemetry::trace::{
        Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
    };
    use opentelemetry::{InstrumentationScope, KeyValue};
    use opentelemetry_http::{HttpClient, HttpError, Request, Response};
    use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanLinks, SpanProcessor};
    use tokio::runtime::Handle;
    use tracing::warn;
    use trawl_common::names::WorkerId;
    use trawl_common::settings::ServerUrl;
    use trawl_common::time::UnixMs;
    use trawl_common::trace::{Exporter, Kind, Span, Value};

    /// Timeout of a request to the collector.
    const TIMEOUT: Duration = Duration::from_secs(10);
    /// Time within which the remaining spans are sent when the process ends; after that they are lost.
    const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

    /// Sends spans to a collector. At most 2048 wait; more are dropped.
    #[derive(Clone)]
    pub struct Exporting(Arc<Sending>);

    struct Sending {
        spans: BatchSpanProcessor,
        scope: InstrumentationScope,
    }

    impl Exporting {
        pub(super) fn to(collector: &ServerUrl, service: &'static str) -> Result<Self, String> {
            let endpoint = format!("{}/v1/traces", collector.reveal().trim_end_matches('/'));
            let exporter = SpanExporter::builder()
                .with_http()
                .with_http_client(Client::new()?)
                .with_endpoint(endpoint)
                .with_timeout(TIMEOUT)
                .build()
                .map_err(|error| error.to_string())?;
            let mut spans = BatchSpanProcessor::builder(exporter).build();
            let version = env!("CARGO_PKG_VERSION");
            let attributes = [
                KeyValue::new("service.version", version),
                KeyValue::new("service.instance.id", WorkerId::of_this_machine().to_string()),
            ];
            let resource = Resource::builder().with_service_name(service).with_attributes(attributes).build();
            spans.set_resource(&resource);
            let scope = InstrumentationScope::builder("trawl").with_version(version).build();
            Ok(Self(Arc::new(Sending { spans, scope })))
        }
    }

    impl Exporter for Exporting {
        fn export(&self, span: Span) {
            self.0.spans.on_end(data(span, self.0.scope.clone()));
        }
    }

    /// The instance in `main` is dropped first; the one that exports spans lives as long as the process.
    impl Drop for Exporting {
        fn drop(&mut self) {
            // If the collector is away, a warning was logged before.
            let _ = self.0.spans.shutdown_with_timeout(FLUSH_TIMEOUT);
        }
    }

    fn data(span: Span, instrumentation_scope: InstrumentationScope) -> SpanData {
        let mut links = SpanLinks::default();
        let link = |trace, span| Link::new(context(trace, span), Vec::new(), 0);
        links.links.extend(span.retry_of.map(|earlier| link(span.trace, earlier)));
        links.links.extend(span.follows.map(|(trace, span)| link(trace, span)));
        let error = span.error.clone().map(|error| KeyValue::new("error.type", error));
        SpanData {
            span_context: context(span.trace, span.id),
            parent_span_id: span.parent.map_or(SpanId::INVALID, |id| SpanId::from_bytes(id.to_be_bytes())),
            parent_span_is_remote: false,
            span_kind: match span.kind {
                Kind::Internal => SpanKind::Internal,
                Kind::Producer => SpanKind::Producer,
                Kind::Consumer => SpanKind::Consumer,
                Kind::Client => SpanKind::Client,
            },
            name: span.name,
            start_time: time(span.begun),
            end_time: time(span.ended),
            attributes: span.attributes.into_iter().map(attribute).chain(error).collect(),
            dropped_attributes_count: 0,
            events: Default::default(),
            links,
            status: span.error.map_or(Status::Unset, Status::error),
            instrumentation_scope,
        }
    }

    fn context(trace: u128, span: u64) -> SpanContext {
        let (trace, span) =
            (TraceId::from_bytes(trace.to_be_bytes()), SpanId::from_bytes(span.to_be_bytes()));
        SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE)
    }

    fn time(at: UnixMs) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(at.0)
    }

    fn attribute((name, value): (&'static str, Value)) -> KeyValue {
        match value {
            Value::Text(text) => KeyValue::new(name, text),
            Value::Number(number) => KeyValue::new(name, number),
        }
    }

    /// An HTTP client like the one for pages, without that one's guards. The exporter calls it on a thread of its own.
    #[derive(Debug)]
    struct Client {
        client: reqwest::Client,
        runtime: Handle,
        /// Whether the last call failed. Only the first failure in a row is logged.
        fails: AtomicBool,
    }

    impl Client {
        fn new() -> Result<Self, String> {
            let client = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build();
            let client = client.map_err(|error| error.to_string())?;
            Ok(Self { client, runtime: Handle::current(), fails: AtomicBool::default() })
        }

        async fn send(
            client: reqwest::Client,
            request: Request<Bytes>,
        ) -> Result<Response<Bytes>, HttpError> {
            let response = client.execute(request.try_into()?).await?;
            let mut answer = Response::builder().status(response.status());
            if let Some(headers) = answer.headers_mut() {
                headers.clone_from(response.headers());
            }
            Ok(answer.body(response.error_for_status()?.bytes().await?)?)
        }
    }

    #[async_trait]
    impl HttpClient for Client {
        async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
            let answer = self.runtime.spawn(Self::send(self.client.clone(), request)).await;
            let answer = answer.map_err(HttpError::from).flatten();
            let fails = answer.is_err();
            if let Err(error) = &answer
                && !self.fails.load(Ordering::Relaxed)
            {
                warn!(%error, "cannot send traces: those of the next minutes may be lost (tracing.otlp)");
            }
            self.fails.store(fails, Ordering::Relaxed);
            answer
        }
    }
}

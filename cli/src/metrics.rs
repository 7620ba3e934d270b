//! `/metrics`, `/healthz` and `/readyz` of a process, on a port of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;
use tracing::info;
use trawl_common::metrics::{self, BYTES, SECONDS};
use trawl_common::settings::Metrics;

use crate::Fail;

/// Prometheus' text format, version 0.0.4.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Time between aggregations of measured values, scraped or not: until then each value takes memory.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The running server. It stops when this is dropped.
pub struct Serving(#[expect(dead_code, reason = "dropping it stops the tasks")] [AbortOnDropHandle<()>; 2]);

struct Endpoints {
    recorder: PrometheusHandle,
    trouble: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

/// Records this process' metrics from now on, and serves them if the settings give an address. `trouble` returns why
/// the process cannot do its work, if it cannot. Must be called only once per process.
///
/// # Errors
/// If the address cannot be served.
pub async fn serve(
    settings: &Metrics,
    trouble: impl Fn() -> Option<String> + Send + Sync + 'static,
) -> Result<Option<Serving>, Fail> {
    let Some(listen) = settings.listen else { return Ok(None) };
    let refused = |error: &dyn std::fmt::Display| Fail::run(format!("metrics.listen: {listen}: {error}"));
    let listener = TcpListener::bind(listen).await.map_err(|error| refused(&error))?;
    let recorder = record().map_err(|error| refused(&error))?;
    announce(listener.local_addr().unwrap_or(listen));
    let endpoints = Arc::new(Endpoints { recorder, trouble: Box::new(trouble) });
    let routes = Router::new()
        .route("/metrics", get(show))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readiness))
        .with_state(Arc::clone(&endpoints));
    let serving = tokio::spawn(async move {
        // It never returns, even if connections fail.
        let _ = axum::serve(listener, routes).await;
    });
    Ok(Some(Serving([serving, tokio::spawn(run_upkeep(endpoints))].map(AbortOnDropHandle::new))))
}

fn announce(listen: SocketAddr) {
    info!(%listen, "serving /metrics, /healthz and /readyz");
}

fn record() -> Result<PrometheusHandle, metrics_exporter_prometheus::BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_bytes".to_owned()), BYTES)?
        .install_recorder()?;
    metrics::describe(env!("CARGO_PKG_VERSION"));
    Ok(handle)
}

async fn run_upkeep(endpoints: Arc<Endpoints>) {
    let mut ticks = interval(UPKEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        endpoints.recorder.run_upkeep();
    }
}

async fn show(State(endpoints): State<Arc<Endpoints>>) -> impl IntoResponse {
    #[cfg(target_os = "linux")]
    measure_process();
    metrics::failing((endpoints.trouble)().is_some());
    ([(header::CONTENT_TYPE, TEXT)], endpoints.recorder.render())
}

/// Measures CPU, memory, threads and open files, with the names that Prometheus' own clients use.
#[cfg(target_os = "linux")]
fn measure_process() {
    let process = metrics_process::Collector::default();
    process.describe();
    process.collect();
}

/// Whether the process can do its work now.
async fn readiness(State(endpoints): State<Arc<Endpoints>>) -> (StatusCode, String) {
    match (endpoints.trouble)() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(trouble) => (StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
    }
}

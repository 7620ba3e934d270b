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

/// How often what was measured is summed up, asked for or not: until then each single value takes memory.
const SUM_UP_EVERY: Duration = Duration::from_secs(5);

/// What is served, until this is dropped.
pub struct Serving(#[expect(dead_code, reason = "they end with it")] [AbortOnDropHandle<()>; 2]);

struct Told {
    measured: PrometheusHandle,
    trouble: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

/// Records what this process measures from now on, and serves it, if the settings say where. `trouble` says what keeps the process
/// from its work. Called once by a process.
///
/// # Errors
/// Nothing can be served there.
pub async fn serve(
    settings: &Metrics,
    trouble: impl Fn() -> Option<String> + Send + Sync + 'static,
) -> Result<Option<Serving>, Fail> {
    let Some(listen) = settings.listen else { return Ok(None) };
    let refused = |error: &dyn std::fmt::Display| Fail::run(format!("metrics.listen: {listen}: {error}"));
    let listener = TcpListener::bind(listen).await.map_err(|error| refused(&error))?;
    let measured = record().map_err(|error| refused(&error))?;
    announce(listener.local_addr().unwrap_or(listen));
    let told = Arc::new(Told { measured, trouble: Box::new(trouble) });
    let routes = Router::new()
        .route("/metrics", get(show))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readiness))
        .with_state(Arc::clone(&told));
    let serving = tokio::spawn(async move {
        // It goes on whatever happens on a connection.
        let _ = axum::serve(listener, routes).await;
    });
    Ok(Some(Serving([serving, tokio::spawn(sum_up(told))].map(AbortOnDropHandle::new))))
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

async fn sum_up(told: Arc<Told>) {
    let mut ticks = interval(SUM_UP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        told.measured.run_upkeep();
    }
}

async fn show(State(told): State<Arc<Told>>) -> impl IntoResponse {
    #[cfg(target_os = "linux")]
    measure_process();
    metrics::failing((told.trouble)().is_some());
    ([(header::CONTENT_TYPE, TEXT)], told.measured.render())
}

/// CPU, memory, threads and open files, as Prometheus' own clients name them.
#[cfg(target_os = "linux")]
fn measure_process() {
    let process = metrics_process::Collector::default();
    process.describe();
    process.collect();
}

/// Whether the process can do its work now.
async fn readiness(State(told): State<Arc<Told>>) -> (StatusCode, String) {
    match (told.trouble)() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(trouble) => (StatusCode::SERVICE_UNAVAILABLE, format!("{trouble}\n")),
    }
}

//! `trawl api`: the HTTP API. `trawl console`: the API with pages for people.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use futures::FutureExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use trawl_api::Access;
use trawl_cli::{Fail, Global, Outcome, Signals};
use trawl_common::exit::Exit;
use trawl_worker::Trials;

use crate::backend::{Backend, Where};

/// The services to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// The API alone.
    Api,
    /// The console and the API.
    Console,
}

/// The command-line arguments of `trawl api`, and of `trawl console`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Listen on ADDRESS [default: api.listen of the settings, 127.0.0.1:8080]; other machines' callers need tokens
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    place: Where,
}

impl Args {
    pub(crate) async fn run(self, served: Served, global: Global) -> Outcome {
        let backend = Backend::open(&global, &self.place).await?;
        let listen = self.listen.unwrap_or(backend.settings.api.listen);
        let access = Access::new(&backend.settings.api, listen).map_err(Fail::usage)?;
        let signals = Signals::listen().map_err(Fail::run)?;
        let stop = signals.stop().clone();
        let router = router(served, &backend, access, stop.clone()).await?;
        let listener = TcpListener::bind(listen).await;
        let listener = listener.map_err(|error| Fail::run(format!("cannot listen on {listen}: {error}")))?;
        let address = listener.local_addr().map_err(Fail::run)?;
        backend.say(match served {
            Served::Api => {
                format!("serving http://{address}/api/v1: see http://{address}/api/v1/openapi.json")
            }
            Served::Console => format!("serving http://{address}/, and the API below /api/v1"),
        });
        trawl_api::serve(listener, router, backend.settings.api.trusted_proxies.clone(), stop).await;
        Ok(signals.exit().unwrap_or(Exit::Ok))
    }
}

async fn router(
    served: Served,
    backend: &Backend,
    access: Access,
    stop: CancellationToken,
) -> Result<Router, Fail> {
    let settings = Arc::new(backend.settings.clone());
    let trials = Trials::start(Arc::clone(&settings), Arc::clone(&backend.schedules_of_hosts));
    let trials = Arc::new(trials.map_err(Fail::run)?);
    let ports = trawl_api::Backend {
        engine: backend.engine().await?,
        stats: Arc::clone(&backend.stats),
        control: Arc::clone(&backend.control),
        jobs: Arc::clone(&backend.jobs),
        spider_store: Arc::clone(&backend.spider_store),
        schedules: Arc::clone(&backend.schedules),
        pages: backend.pages(),
        items: backend.items()?,
        logs: Arc::clone(&backend.logs),
        ended_tasks: Arc::clone(&backend.ended_tasks),
        hosts: Arc::clone(&backend.hosts),
        try_page: Arc::new(move |spider, ready, url| Arc::clone(&trials).attempt(spider, ready, url).boxed()),
        runners: backend.runners(),
        projects: backend.projects(),
        tip: backend.tip(),
        for_runners: backend.for_runners(),
        settings,
    };
    Ok(match served {
        Served::Api => trawl_api::router(ports, Arc::new(access), stop),
        Served::Console => trawl_console::router(ports, access, stop),
    })
}

//! A site of pages that scripts make, with a log of all requests.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use data_encoding::BASE64;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A running site. Ends with the test's runtime.
pub struct ScriptSite {
    /// `http://127.0.0.1:port` or `https://localhost:port`
    pub origin: String,
    shared: Arc<Shared>,
    certificate: Option<TempDir>,
}

#[derive(Default)]
struct Shared {
    files: Mutex<HashMap<String, File>>,
    log: Mutex<Vec<Arrival>>,
}

/// The answer to a path.
#[derive(Clone)]
struct File {
    status: StatusCode,
    fields: Vec<(String, String)>,
    body: String,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When it arrived.
    pub at: Instant,
    /// The path and query.
    pub path: String,
    /// Its header fields.
    pub fields: HeaderMap,
}

impl Arrival {
    /// Returns the purpose that a browser gives; empty for other programs.
    pub fn purpose(&self) -> &str {
        self.fields.get("sec-fetch-dest").and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl ScriptSite {
    /// Serves a site without a page. It has no robots.txt.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn serve() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let origin = format!("http://{}", listener.local_addr().expect("it is bound"));
        Self::begin(origin, listener, None)
    }

    /// Serves a site over HTTPS, as `localhost`.
    ///
    /// # Panics
    /// If no port is free, or no certificate can be written.
    pub async fn serve_https() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate is made");
        let folder = tempfile::tempdir().expect("there is a folder");
        let encoded = BASE64.encode(made.cert.der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{encoded}\n-----END CERTIFICATE-----\n");
        std::fs::write(folder.path().join("ca.pem"), pem).expect("it is written");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("it is a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(vec![made.cert.into()], key));
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("the key is the certificate's")));
        Self::begin(format!("https://localhost:{port}"), Tls { listener, acceptor }, Some(folder))
    }

    fn begin<L: Listener<Addr: std::fmt::Debug>>(
        origin: String,
        listener: L,
        certificate: Option<TempDir>,
    ) -> Self {
        let shared = Arc::<Shared>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, shared, certificate }
    }

    /// Returns the file with the certificate of a site over HTTPS.
    pub fn certificate(&self) -> Option<PathBuf> {
        self.certificate.as_ref().map(|folder| folder.path().join("ca.pem"))
    }

    /// Adds a page of HTML.
    pub fn page(&self, path: &str, html: impl Into<String>) {
        self.file(path, 200, &[("content-type", "text/html; charset=utf-8")], html);
    }

    /// Adds a script.
    pub fn script(&self, path: &str, script: impl Into<String>) {
        self.file(path, 200, &[("content-type", "text/javascript")], script);
    }

    /// Adds data.
    pub fn json(&self, path: &str, json: impl Into<String>) {
        self.file(path, 200, &[("content-type", "application/json")], json);
    }

    /// Adds an answer to a path, whatever its query if it has none.
    ///
    /// # Panics
    /// If the status is none.
    pub fn file(&self, path: &str, status: u16, fields: &[(&str, &str)], body: impl Into<String>) {
        let status = StatusCode::from_u16(status).expect("it is a status");
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.shared.files.lock().insert(path.to_owned(), File { status, fields, body: body.into() });
    }

    /// Returns the requests so far, without those for robots.txt.
    pub fn log(&self) -> Vec<Arrival> {
        let log = self.shared.log.lock();
        log.iter().filter(|arrival| arrival.path != "/robots.txt").cloned().collect()
    }

    /// Returns the paths of the requests so far, likewise.
    pub fn paths(&self) -> Vec<String> {
        self.log().into_iter().map(|arrival| arrival.path).collect()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let arrival = Arrival { at: Instant::now(), path: path.clone(), fields: request.headers().clone() };
    shared.log.lock().push(arrival);
    let file = {
        let files = shared.files.lock();
        files.get(&path).or_else(|| files.get(request.uri().path())).cloned()
    };
    let Some(File { status, fields, body }) = file else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response = (status, [(header::CACHE_CONTROL, "no-store")], body).into_response();
    response.headers_mut().remove(header::CONTENT_TYPE);
    for (name, value) in fields {
        let field = name.parse::<header::HeaderName>().ok().zip(value.parse().ok());
        response.headers_mut().extend(field);
    }
    response
}

/// Accepts connections over TLS; those that fail are left out.
struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, from) = Listener::accept(&mut self.listener).await;
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

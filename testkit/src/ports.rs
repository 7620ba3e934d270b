//! One host with many ports: each is an origin of its own, with a large robots.txt of its own.

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use tokio::net::TcpListener;

/// A running host. Ends with the test's runtime.
pub struct Ports {
    origins: Vec<String>,
    robots_asked: Arc<AtomicUsize>,
}

impl Ports {
    /// Serves at `count` ports the pages `/page`, which links to the pages of every port, and `/private`, which each
    /// robots.txt forbids. A robots.txt has about `robots_bytes` bytes, and compresses to half.
    ///
    /// # Panics
    /// If there are not enough free ports.
    pub async fn serve(count: usize, robots_bytes: usize) -> Self {
        let mut listeners = Vec::with_capacity(count);
        for _ in 0..count {
            listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free"));
        }
        let origin =
            |listener: &TcpListener| format!("http://{}", listener.local_addr().expect("it is bound"));
        let origins: Vec<String> = listeners.iter().map(origin).collect();
        let link = |origin: &String| format!("<a href=\"{origin}/page\"><a href=\"{origin}/private\">\n");
        let links: String = origins.iter().map(link).collect();
        let robots_asked = Arc::new(AtomicUsize::new(0));
        for listener in listeners {
            let (links, asked, robots) = (links.clone(), Arc::clone(&robots_asked), robots(robots_bytes));
            let count_asked = move || {
                asked.fetch_add(1, Ordering::Relaxed);
                async { robots }
            };
            let router = Router::new()
                .route("/page", get(|| async { Html(links) }))
                .route("/robots.txt", get(count_asked));
            tokio::spawn(async move { axum::serve(listener, router).await });
        }
        Self { origins, robots_asked }
    }

    /// Returns the URL of a path at port `number`, counted from 0.
    pub fn url(&self, number: usize, path: &str) -> String {
        format!("{}{path}", self.origins[number])
    }

    /// Returns the number of requests for a robots.txt, at all ports together.
    pub fn robots_asked(&self) -> usize {
        self.robots_asked.load(Ordering::Relaxed)
    }
}

fn robots(bytes: usize) -> String {
    let mut text = "User-agent: *\nDisallow: /private\n".to_owned();
    while text.len() < bytes {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Disallow: /{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>());
    }
    text
}

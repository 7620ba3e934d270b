//! Real servers: the RabbitMQ, the Redis and the PostgreSQL that `scripts/test` starts, or that the environment names.

use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use trawl_common::settings::ServerUrl;
use url::Url;

/// Returns the Redis that all tests share: every name in a test must be its own.
///
/// # Panics
/// If no server is named: a test must not pass because it could not run.
pub fn redis() -> ServerUrl {
    ServerUrl::new(var("REDIS_URL"))
}

/// Returns the PostgreSQL whose database all tests share: every table of a test must be its own.
///
/// # Panics
/// As [`redis()`].
pub fn postgres() -> ServerUrl {
    ServerUrl::new(var("POSTGRES_URL"))
}

/// Returns an empty database of that Redis, for one test alone: sweeps concern all crawls in their database. Each test
/// gets the next one; scripts/servers makes enough of them.
///
/// # Panics
/// As [`redis()`], and if it does not answer.
pub async fn own_database() -> ServerUrl {
    let mut url = Url::parse(&var("REDIS_URL")).expect("REDIS_URL is a URL");
    let shared = redis::Client::open(url.clone()).expect("REDIS_URL is a URL");
    let mut shared = shared.get_multiplexed_async_connection().await.expect("Redis answers");
    let number: u64 =
        redis::cmd("INCR").arg("test-databases").query_async(&mut shared).await.expect("Redis counts");
    let (_, count): (String, u64) = redis::cmd("CONFIG")
        .arg("GET")
        .arg("databases")
        .query_async(&mut shared)
        .await
        .expect("Redis answers");
    url.set_path(&(number % (count - 1) + 1).to_string());
    let own = redis::Client::open(url.clone()).expect("REDIS_URL is a URL");
    let mut own = own.get_multiplexed_async_connection().await.expect("Redis answers");
    let () = redis::cmd("FLUSHDB").query_async(&mut own).await.expect("Redis empties a database");
    ServerUrl::new(url)
}

/// A virtual host on the RabbitMQ of the tests, for one test alone. It and its queues are deleted some time after it is
/// dropped.
pub struct VirtualHost {
    name: String,
    /// The URL to connect to.
    pub url: ServerUrl,
}

impl VirtualHost {
    /// Creates one, over the management API.
    ///
    /// # Panics
    /// If no server is named, or it refuses.
    pub async fn new() -> Self {
        let name = format!("test-{:016x}", rand::random::<u64>());
        call(Method::PUT, &format!("/api/vhosts/{name}")).await;
        let mut url = Url::parse(&var("RABBITMQ_URL")).expect("RABBITMQ_URL is a URL");
        url.set_path(&name);
        Self { name, url: ServerUrl::new(url) }
    }

    /// Deletes all its contents and closes its connections, like a broker that has lost its data.
    ///
    /// # Panics
    /// If the server refuses.
    pub async fn empty(&self) {
        for method in [Method::DELETE, Method::PUT] {
            call(method, &format!("/api/vhosts/{}", self.name)).await;
        }
    }

    /// Declares a queue as another program does.
    ///
    /// # Panics
    /// If there is one with other arguments.
    pub async fn declare(&self, queue: &str, durable: bool, arguments: Value) {
        let body = json!({"durable": durable, "arguments": arguments});
        send(Method::PUT, &format!("/api/queues/{}/{queue}", self.name), body.to_string()).await;
    }

    /// Deletes a queue under its consumers.
    ///
    /// # Panics
    /// If there is no such queue.
    pub async fn delete(&self, queue: &str) {
        call(Method::DELETE, &format!("/api/queues/{}/{queue}", self.name)).await;
    }

    /// Publishes a message to a queue, as any program may, with properties as JSON text, which is passed on unparsed
    /// however deep it is.
    ///
    /// # Panics
    /// If no queue takes it.
    pub async fn publish(&self, queue: &str, body: &str, properties: &str) {
        self.publish_to("amq.default", queue, body, properties).await;
    }

    /// Publishes a message to an exchange, like [`publish`](Self::publish).
    ///
    /// # Panics
    /// If no queue takes it.
    pub async fn publish_to(&self, exchange: &str, key: &str, body: &str, properties: &str) {
        let [key, body] = [key, body].map(|text| Value::from(text).to_string());
        let message = format!(
            r#"{{"routing_key": {key}, "payload": {body}, "payload_encoding": "string", "properties": {properties}}}"#
        );
        let path = format!("/api/exchanges/{}/{exchange}/publish", self.name);
        let answer = send(Method::POST, &path, message).await;
        assert_eq!(answer, r#"{"routed":true}"#);
    }

    /// Creates a user of this virtual host alone, with the permission to write to names that match the pattern `write`,
    /// and no other. Returns the URL to connect to as this user, which lasts as long as the server.
    ///
    /// # Panics
    /// If the server refuses.
    pub async fn writer(&self, write: &str) -> ServerUrl {
        let body = json!({"password": self.name, "tags": ""});
        send(Method::PUT, &format!("/api/users/{}", self.name), body.to_string()).await;
        let body = json!({"configure": "^$", "write": write, "read": "^$"});
        send(Method::PUT, &format!("/api/permissions/{0}/{0}", self.name), body.to_string()).await;
        let mut url = Url::parse(self.url.reveal()).expect("it is a URL");
        url.set_username(&self.name)
            .and_then(|()| url.set_password(Some(&self.name)))
            .expect("it has a host");
        ServerUrl::new(url)
    }

    /// Limits the number of queues.
    ///
    /// # Panics
    /// If the server refuses.
    pub async fn limit_queues(&self, most: usize) {
        let body = json!({"value": most});
        send(Method::PUT, &format!("/api/vhost-limits/{}/max-queues", self.name), body.to_string()).await;
    }

    /// Sets a policy for every queue.
    ///
    /// # Panics
    /// If the policy is not valid.
    pub async fn set_policy(&self, definition: Value) {
        let body = json!({"pattern": ".*", "definition": definition, "apply-to": "queues"});
        send(Method::PUT, &format!("/api/policies/{}/test", self.name), body.to_string()).await;
    }

    /// Returns the management API's description of a queue.
    ///
    /// # Panics
    /// If there is no such queue.
    pub async fn queue(&self, queue: &str) -> Value {
        let answer = call(Method::GET, &format!("/api/queues/{}/{queue}", self.name)).await;
        serde_json::from_str(&answer).expect("the answer is JSON")
    }

    /// Returns the leader of a quorum queue, and all nodes with a copy of it.
    ///
    /// # Panics
    /// If there is no such queue.
    pub async fn members(&self, queue: &str) -> (String, Vec<String>) {
        let described = self.queue(queue).await;
        let name = |value: &Value| value.as_str().expect("a node has a name").to_owned();
        let members = described["members"].as_array().expect("a quorum queue has members");
        (name(&described["leader"]), members.iter().map(name).collect())
    }
}

/// The time between a test's end and the deletion of its virtual host. RabbitMQ 3.10 dead-letters nothing more on the
/// whole node once a queue is deleted while its dead-letter worker starts, which takes the worker a moment after the
/// queue's declaration.
const SETTLING: Duration = Duration::from_secs(10);

/// The description of a virtual host whose test has ended, followed by the time in Unix seconds.
const ENDED: &str = "ended at ";

impl Drop for VirtualHost {
    fn drop(&mut self) {
        let name = self.name.clone();
        // A drop cannot wait, and the test's runtime is ending: a runtime of its own can.
        let deleting = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(end(&name));
        });
        // Anything left behind goes with the server.
        let _ = deleting.join();
    }
}

/// Marks a virtual host as ended, and deletes those that ended [`SETTLING`] ago.
async fn end(name: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    let body = json!({"description": format!("{ENDED}{}", now.as_secs())});
    send(Method::PUT, &format!("/api/vhosts/{name}"), body.to_string()).await;
    let hosts = call(Method::GET, "/api/vhosts?columns=name,description").await;
    let hosts: Vec<Value> = serde_json::from_str(&hosts).expect("the answer is JSON");
    for host in hosts {
        let ended = host["description"].as_str().and_then(|text| text.strip_prefix(ENDED)?.parse().ok());
        if let (Some(name), Some(ended)) = (host["name"].as_str(), ended)
            && now.saturating_sub(Duration::from_secs(ended)) >= SETTLING
        {
            // Another test may have deleted it.
            let _ = request(Method::DELETE, &format!("/api/vhosts/{name}"), String::new()).await;
        }
    }
}

async fn call(method: Method, path: &str) -> String {
    send(method, path, json!({}).to_string()).await
}

async fn send(method: Method, path: &str, body: String) -> String {
    let answer = request(method, path, body).await.expect("the management API answers");
    answer.text().await.expect("the management API answers to the end")
}

async fn request(method: Method, path: &str, body: String) -> reqwest::Result<reqwest::Response> {
    // Every test of the process installs it; only the first succeeds.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let base = Url::parse(&var("RABBITMQ_MANAGEMENT_URL")).expect("RABBITMQ_MANAGEMENT_URL is a URL");
    let url = base.join(path).expect("a path joins");
    let client = Client::builder().no_proxy().build().expect("a client can be built");
    // The client takes user and password from the URL.
    let request = client.request(method, url);
    let answer = request.header("content-type", "application/json").body(body).send().await;
    answer.and_then(reqwest::Response::error_for_status)
}

fn var(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run the tests with scripts/test, which starts servers")
    })
}

//! The fields that a spider sends, and the hosts that get them.

use trawl_common::settings::Items;
use trawl_common::spider::Secret;

use super::*;

/// A site on its own loopback address that answers with the header fields of the request, and redirects `/to/…`.
async fn site(address: &str) -> String {
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let echo = |headers: HeaderMap| async move {
        let fields = headers.iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()));
        fields.collect::<String>()
    };
    let away = |axum::extract::Path(to): axum::extract::Path<String>| async move {
        Redirect::to(&format!("http://{to}"))
    };
    let router = Router::new().route("/", get(echo)).route("/to/{*to}", get(away));
    tokio::spawn(async move { axum::serve(listener, router).await });
    origin
}

fn spider() -> Spider {
    let mut spider = Spider::without_file("shop".parse().unwrap(), &Items::default());
    spider.request.user_agent = Some("shop-watch/2".to_owned());
    let field = |name: &str, value| (name.to_owned(), Secret::new(value));
    spider.request.headers = vec![field("Authorization", "Bearer s3cret"), field("Accept-Language", "de")];
    spider.request.cookies = vec![field("a", "1"), field("b", "2")];
    spider
}

async fn sent(spider: &Spider, url: &str) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let fetcher = Fetcher::from_spider(spider, &settings()).unwrap();
    let page = fetcher.fetch(&url.parse().unwrap()).await.unwrap();
    String::from_utf8(page.body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_spiders_own_hosts_get_its_header_fields_and_cookies() {
    let site = site("127.0.0.1").await;
    let mut spider = Spider { allowed_domains: vec!["127.0.0.1".to_owned()], ..spider() };
    spider.start.urls = vec![site.clone()];
    let sent = sent(&spider, &site).await;
    for field in [
        "user-agent: shop-watch/2 (+https://example.com/bot)\n",
        "authorization: Bearer s3cret\n",
        "cookie: a=1; b=2\n",
        "accept-language: de\n",
    ] {
        assert!(sent.contains(field), "{sent}");
    }
    assert_eq!(sent.matches("accept-language").count(), 1, "{sent}");
}

#[tokio::test]
async fn no_other_host_gets_them_not_even_by_a_redirect() {
    let (ours, other) = (site("127.0.0.1").await, site("127.0.0.2").await);
    let mut spider = spider();
    spider.start.urls = vec![ours.clone()];
    let elsewhere = other.replace("http://", "");
    let there_and_back = format!("{ours}/to/{elsewhere}/to/{}", ours.replace("http://", ""));
    for (url, is_ours) in [
        (ours.clone(), true),
        (other, false),
        (format!("{ours}/to/{elsewhere}"), false),
        (there_and_back, true),
    ] {
        let sent = sent(&spider, &url).await;
        assert!(sent.contains("shop-watch/2"), "{sent}");
        assert_eq!(sent.contains("s3cret"), is_ours, "{url}: {sent}");
        assert_eq!(sent.contains("cookie"), is_ours, "{url}: {sent}");
    }
}

#[test]
fn a_secret_shows_in_no_debug_output_of_a_fetcher() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let fetcher = Fetcher::from_spider(&spider(), &settings()).unwrap();
    assert!(!format!("{fetcher:?}").contains("s3cret"));
}

#[test]
fn what_cannot_be_sent_is_an_error_that_names_the_field_and_not_its_value() {
    let mut spider = spider();
    spider.request.headers = vec![("X-Key".to_owned(), Secret::new("s3cret\n"))];
    let error = Fetcher::from_spider(&spider, &settings()).unwrap_err().to_string();
    assert!(error.contains("X-Key") && !error.contains("s3cret"), "{error}");
}

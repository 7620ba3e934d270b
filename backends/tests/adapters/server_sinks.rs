//! The sinks on servers: the stream of RabbitMQ, and PostgreSQL.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use trawl_common::names::CrawlRef;
use trawl_common::ports::Page;
use trawl_common::spider::item::{Item, item_id};

/// A page with items of one kind.
fn page(crawl: &CrawlRef, path: &str, kind: Option<&str>, fields: &[Value]) -> Page {
    let url: trawl_common::web::url::CanonicalUrl = format!("https://example.com/{path}").parse().unwrap();
    let item = |(number, fields): (usize, &Value)| Item {
        id: item_id(&crawl.spider, url.as_str(), kind, number),
        url: url.to_string(),
        crawl: crawl.id.clone(),
        spider: crawl.spider.clone(),
        fetched_at: "2026-01-01T00:00:00.000Z".to_owned(),
        status: 200,
        depth: 1,
        item: kind.map(str::to_owned),
        change: None,
        final_url: None,
        referrer: None,
        path: None,
        fields: fields.as_object().cloned().unwrap_or_else(Map::new),
    };
    let items = fields.iter().enumerate().map(item).collect();
    Page { key: url.into(), crawl: crawl.clone(), referrer: None, items, exchange: None }
}

mod stream {
    use trawl_backends::rabbitmq::{ItemStream, RabbitMq, StreamReader, StreamStart};
    use trawl_backends::sinks::Stream;
    use trawl_common::ports::{ErrorKind, Sink};
    use trawl_common::settings::{self, Items, Queues, Topology};
    use trawl_testkit::servers::VirtualHost;

    use super::*;

    async fn fixture() -> (VirtualHost, Stream, ItemStream) {
        let vhost = VirtualHost::new().await;
        let (sink, stream) = open(&vhost, &Items::default()).await;
        (vhost, sink, stream)
    }

    async fn open(vhost: &VirtualHost, items: &Items) -> (Stream, ItemStream) {
        let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
        let queue = RabbitMq::connect(&broker, &Queues::default(), items).await.unwrap();
        let stream = ItemStream::new(&broker, items, Topology::Declare).unwrap();
        (Stream::new(Arc::new(queue)), stream)
    }

    #[tokio::test]
    async fn a_stream_that_may_have_so_many_bytes_lets_the_oldest_go() {
        let vhost = VirtualHost::new().await;
        let most = 4_000_000;
        let items = Items { max_size: Some(bytesize::ByteSize(most)), ..Items::default() };
        let (sink, stream) = open(&vhost, &items).await;
        let fields = json!({"text": "x".repeat(100_000)});
        for number in 0..120 {
            let path = number.to_string();
            let page = page(&CrawlRef::adhoc(), &path, None, std::slice::from_ref(&fields));
            sink.put(&[page]).await.unwrap();
        }
        let kept = rest(stream.read(StreamStart::First).await.unwrap()).await.len() as u64;
        assert!((20..=60).contains(&kept), "{kept} items of 100 KB are kept, and {most} bytes may be");
    }

    /// Returns the items up to the end of the stream, without readers' marks.
    async fn rest(mut reader: StreamReader) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            let entry = reader.next().await.unwrap();
            reader.done(&entry).await.unwrap();
            if let Some(body) = &entry.body {
                items.push(serde_json::from_slice(body).unwrap());
            }
            if entry.offset >= reader.end() {
                return items;
            }
        }
    }

    #[tokio::test]
    async fn every_item_is_in_the_stream_in_order_when_put_returns() {
        let (_vhost, sink, stream) = fixture().await;
        let pages: Vec<Page> = (0..2000)
            .map(|number| page(&CrawlRef::adhoc(), &number.to_string(), None, &[json!({"n": number})]))
            .collect();
        sink.put(&pages).await.unwrap();
        let stored = rest(stream.read(StreamStart::First).await.unwrap()).await;
        let put: Vec<Item> = pages.into_iter().flat_map(|page| page.items).collect();
        assert!(stored == put, "{} of {}", stored.len(), put.len());
    }

    #[tokio::test]
    async fn an_item_of_eight_megabytes_fits() {
        let (_vhost, sink, stream) = fixture().await;
        let fields = json!({"text": "x".repeat(8_000_000)});
        let pages = ["a", "b", "c", "d", "e", "f"]
            .map(|path| page(&CrawlRef::adhoc(), path, None, std::slice::from_ref(&fields)));
        sink.put(&pages).await.unwrap();
        assert_eq!(rest(stream.read(StreamStart::First).await.unwrap()).await.len(), 6);
    }

    #[tokio::test]
    async fn an_empty_stream_ends_at_once_and_two_readers_do_not_disturb_each_other() {
        let (_vhost, sink, stream) = fixture().await;
        assert_eq!(rest(stream.read(StreamStart::First).await.unwrap()).await, []);
        let late = stream.read(StreamStart::Next).await.unwrap();
        sink.put(&[page(&CrawlRef::adhoc(), "a", None, &[json!({})])]).await.unwrap();
        for from in [
            StreamStart::First,
            StreamStart::Offset(late.end()),
            StreamStart::Time(trawl_common::time::UnixMs(0)),
        ] {
            assert_eq!(rest(stream.read(from).await.unwrap()).await.len(), 1, "{from:?}");
        }
        assert_eq!(rest(late).await, [], "what comes later is not before its end");
    }

    #[tokio::test]
    async fn a_stream_with_another_retention_is_named_with_both_values() {
        let (vhost, ..) = fixture().await;
        let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
        let retention = Some(std::time::Duration::from_secs(7 * 24 * 3600));
        let items = Items { retention, ..Items::default() };
        let error = RabbitMq::connect(&broker, &Queues::default(), &items).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Refused);
        for part in ["stream items", "604800s", "none", "[items]"] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }
}

mod postgres {
    use tokio_postgres::{Client, NoTls};
    use trawl_backends::sinks::Postgres;
    use trawl_common::names::SpiderName;
    use trawl_common::ports::{ErrorKind, Sink};
    use trawl_common::settings::{self, ServerUrl};
    use trawl_common::spider::{Field, FieldSource, ItemRule, Kind, PageField, Spider};
    use trawl_testkit::faults::database::Database;
    use trawl_testkit::faults::private::PrivateServers;
    use trawl_testkit::servers;

    use super::*;

    /// The name of a kind of item, and the types of its fields.
    type Rule<'a> = (Option<&'a str>, &'a [(&'a str, Kind)]);

    /// A spider whose name, and so whose table, no other test has.
    fn spider(kinds: &[Rule<'_>]) -> Spider {
        let name: SpiderName = format!("test-{:016x}", rand::random::<u64>()).parse().unwrap();
        let field = |(name, kind): &(&str, Kind)| {
            (name.to_string(), Field { kind: *kind, ..Field::new(FieldSource::Page(PageField::Title)) })
        };
        let rule = |(kind, fields): &(Option<&str>, &[(&str, Kind)])| ItemRule {
            name: kind.map(str::to_owned),
            each: None,
            page: None,
            fields: fields.iter().map(field).collect(),
        };
        Spider {
            items: kinds.iter().map(rule).collect(),
            ..Spider::without_file(name, &settings::Items::default())
        }
    }

    fn crawl(spider: &Spider) -> CrawlRef {
        CrawlRef { id: "c1".parse().unwrap(), spider: spider.name.clone() }
    }

    async fn client(url: &ServerUrl) -> Client {
        let (client, connection) = tokio_postgres::connect(url.reveal(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// The rows of a table as JSON, by URL.
    async fn rows(url: &ServerUrl, table: &str) -> Vec<Value> {
        let query = format!("SELECT to_jsonb(t)::text FROM \"{table}\" t ORDER BY url, id");
        let rows = client(url).await.query(&query, &[]).await.unwrap();
        rows.iter().map(|row| serde_json::from_str(row.get(0)).unwrap()).collect()
    }

    #[tokio::test]
    async fn a_table_is_made_from_the_spider_and_each_type_has_its_column() {
        let fields = [
            ("title", Kind::Text),
            ("price", Kind::Number),
            ("stock", Kind::Integer),
            ("new", Kind::Boolean),
            ("since", Kind::Date),
            ("url", Kind::Url),
            ("more \"x\"", Kind::Json),
        ];
        let spider = spider(&[(None, &fields)]);
        let sink = Postgres::new(&servers::postgres(), None, &spider).unwrap();
        let values = json!({
            "title": "a\0b'); --", "price": 1234.5, "stock": 7, "new": true, "since": "2026-01-31T12:00:00+02:00",
            "url": "https://example.com/x", "more \"x\"": {"a": ["\0", 1e300]},
        });
        sink.put(&[page(&crawl(&spider), "a", None, &[values])]).await.unwrap();
        let rows = rows(&servers::postgres(), spider.name.as_str()).await;
        let row = &rows[0];
        assert_eq!(
            (&row["title"], &row["price"], &row["stock"]),
            (&"ab'); --".into(), &1234.5.into(), &7.into())
        );
        assert_eq!((&row["new"], &row["item_url"]), (&true.into(), &"https://example.com/x".into()));
        assert_eq!(row["since"], "2026-01-31T10:00:00+00:00");
        assert_eq!(row["more \"x\""]["a"][0], "");
        assert_eq!((&row["url"], &row["crawl"]), (&"https://example.com/a".into(), &"c1".into()));
        assert_eq!((&row["status"], &row["depth"]), (&200.into(), &1.into()));
        assert_eq!(row["fetched_at"], "2026-01-01T00:00:00+00:00");
    }

    #[tokio::test]
    async fn an_item_that_comes_again_is_replaced_and_one_twice_in_a_batch_is_stored_once() {
        let spider = spider(&[(None, &[("n", Kind::Integer)])]);
        let sink = Postgres::new(&servers::postgres(), None, &spider).unwrap();
        let pages = |n: u64| (0..1200).map(move |number| (number.to_string(), n));
        let put = async |n: u64| {
            let pages: Vec<Page> = pages(n)
                .chain(pages(n + 1))
                .map(|(path, n)| page(&crawl(&spider), &path, None, &[json!({"n": n})]))
                .collect();
            sink.put(&pages).await.unwrap();
        };
        put(1).await;
        put(3).await;
        let rows = rows(&servers::postgres(), spider.name.as_str()).await;
        assert_eq!(rows.len(), 1200);
        assert!(rows.iter().all(|row| row["n"] == 4));
    }

    #[tokio::test]
    async fn a_row_is_never_replaced_by_what_was_fetched_before_it() {
        let spider = spider(&[(None, &[("n", Kind::Integer)])]);
        let fetched = |day: u64, n: u64| {
            let mut page = page(&crawl(&spider), "a", None, &[json!({"n": n})]);
            page.items[0].fetched_at =
                trawl_common::time::UnixMs(1_700_000_000_000 + day * 86_400_000).to_string();
            page
        };
        let sink = Postgres::new(&servers::postgres(), None, &spider).unwrap();
        let stored = async |pages: &[Page]| {
            sink.put(pages).await.unwrap();
            rows(&servers::postgres(), spider.name.as_str()).await[0]["n"].clone()
        };
        assert_eq!(stored(&[fetched(2, 2)]).await, 2);
        assert_eq!(stored(&[fetched(1, 1)]).await, 2, "of a worker that was stopped, and woke");
        assert_eq!(stored(&[fetched(4, 4), fetched(3, 3)]).await, 4);
        assert_eq!(stored(&[fetched(4, 5)]).await, 5, "what is stored again may be stored");
    }

    #[tokio::test]
    async fn a_row_says_when_its_fields_last_changed_whatever_the_crawl() {
        let spider = spider(&[(None, &[("n", Kind::Integer), ("more", Kind::Json)])]);
        let (url, table) = (servers::postgres(), spider.name.as_str());
        let stored = async |day: u64, fields: Value| {
            let mut page = page(&crawl(&spider), "a", None, &[fields]);
            page.items[0].fetched_at = format!("2026-01-0{day}T00:00:00.000Z");
            Postgres::new(&url, None, &spider).unwrap().put(&[page]).await.unwrap();
            let row = rows(&url, table).await.remove(0);
            assert_eq!(row["fetched_at"], format!("2026-01-0{day}T00:00:00+00:00"));
            row["changed_at"].clone()
        };
        let day = |day: u64| format!("2026-01-0{day}T00:00:00+00:00");
        let first = json!({"n": 1, "more": {"a": [1, 2]}});
        assert_eq!(stored(1, first.clone()).await, day(1));
        assert_eq!(stored(2, first.clone()).await, day(1), "unchanged");
        assert_eq!(stored(3, json!({"n": 1, "more": {"a": [2]}})).await, day(3));
        assert_eq!(stored(3, json!({"n": 1, "more": {"a": [2]}})).await, day(3), "stored again");
        assert_eq!(stored(4, json!({})).await, day(4), "gone");
        let drop = format!("ALTER TABLE \"{table}\" DROP COLUMN changed_at");
        client(&url).await.batch_execute(&drop).await.unwrap();
        assert_eq!(stored(5, json!({})).await, Value::Null, "of an older version, and unchanged since");
        assert_eq!(stored(6, first).await, day(6));
    }

    #[tokio::test]
    async fn a_field_of_the_name_of_that_time_keeps_its_column() {
        let spider = spider(&[(None, &[("changed_at", Kind::Text)])]);
        let sink = Postgres::new(&servers::postgres(), None, &spider).unwrap();
        for text in ["yesterday", "today"] {
            sink.put(&[page(&crawl(&spider), "a", None, &[json!({"changed_at": text})])]).await.unwrap();
            assert_eq!(rows(&servers::postgres(), spider.name.as_str()).await[0]["changed_at"], text);
        }
    }

    #[tokio::test]
    async fn a_spider_that_has_changed_has_its_new_columns_and_another_type_is_refused_by_name() {
        let before = spider(&[(None, &[("price", Kind::Number)])]);
        let table = before.name.as_str();
        let url = servers::postgres();
        let old = [page(&crawl(&before), "a", None, &[json!({"price": 1})])];
        Postgres::new(&url, None, &before).unwrap().put(&old).await.unwrap();

        let more = spider(&[(None, &[("price", Kind::Number), ("stock", Kind::Integer)])]);
        let new = [page(&crawl(&more), "b", None, &[json!({"price": 2, "stock": 3})])];
        Postgres::new(&url, Some(table), &more).unwrap().put(&new).await.unwrap();
        let rows = rows(&url, table).await;
        assert_eq!((rows.len(), &rows[0]["stock"], &rows[1]["stock"]), (2, &Value::Null, &3.into()));

        let other = spider(&[(None, &[("price", Kind::Text)])]);
        let sink = Postgres::new(&url, Some(table), &other).unwrap();
        let error = sink.put(&[page(&crawl(&other), "c", None, &[json!({})])]).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
        for part in [table, "price", "double precision", "text"] {
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
    }

    #[tokio::test]
    async fn each_kind_of_item_has_a_table() {
        let kind = format!("kind{:016x}", rand::random::<u64>());
        let spider = spider(&[(None, &[("title", Kind::Text)]), (Some(&kind), &[("price", Kind::Number)])]);
        let sink = Postgres::new(&servers::postgres(), None, &spider).unwrap();
        let prices = [json!({"price": 1}), json!({"price": 2})];
        let pages = [
            page(&crawl(&spider), "a", None, &[json!({"title": "A"})]),
            page(&crawl(&spider), "a", Some(&kind), &prices),
        ];
        sink.put(&pages).await.unwrap();
        assert_eq!(rows(&servers::postgres(), spider.name.as_str()).await.len(), 1);
        let rows = rows(&servers::postgres(), &kind).await;
        assert_eq!((rows.len(), &rows[0]["item"]), (2, &kind.as_str().into()));
    }

    #[tokio::test]
    async fn sinks_that_begin_together_make_one_table() {
        let spider = spider(&[(None, &[("n", Kind::Integer)])]);
        let puts = (0..8).map(|number| {
            let sink = Postgres::new(&servers::postgres(), None, &spider).unwrap();
            let pages: Vec<Page> = (0..100)
                .rev()
                .map(|path| page(&crawl(&spider), &path.to_string(), None, &[json!({"n": number})]))
                .collect();
            async move { sink.put(&pages).await }
        });
        for done in futures::future::join_all(puts).await {
            done.unwrap();
        }
        assert_eq!(rows(&servers::postgres(), spider.name.as_str()).await.len(), 100);
    }

    #[tokio::test]
    async fn a_server_that_refuses_is_reported_with_the_way_out_and_without_the_password() {
        let spider = spider(&[(None, &[])]);
        let right = servers::postgres();
        let pages = [page(&crawl(&spider), "a", None, &[json!({})])];
        let refused = async |url: String| {
            let error =
                Postgres::new(&ServerUrl::new(url), None, &spider).unwrap().put(&pages).await.unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
            (error.kind, error.to_string())
        };
        let (kind, reported) = refused(right.reveal().replace(":trawl@", ":s3cret@")).await;
        assert!(kind == ErrorKind::Refused && reported.contains("are user and password right"), "{reported}");
        let (kind, reported) = refused(format!("{}-nowhere", right.reveal())).await;
        assert!(kind == ErrorKind::Refused && reported.contains("create the database"), "{reported}");
        let (kind, reported) = refused("postgres://u:s3cret@127.0.0.1:9/x".into()).await;
        assert!(kind == ErrorKind::Unavailable && reported.contains("is it running there?"), "{reported}");
        let wrong = ServerUrl::new("postgres://u:s3cret@h:port/x");
        let reported = Postgres::new(&wrong, None, &spider).err().unwrap().to_string();
        assert!(
            reported.contains("postgres://user:password@host") && !reported.contains("s3cret"),
            "{reported}"
        );
    }

    #[tokio::test]
    async fn nothing_is_lost_when_the_server_is_killed_between_and_during_puts() {
        let folder = tempfile::tempdir().unwrap();
        let mut database =
            Database::start(Arc::new(PrivateServers::prepare(folder.path()).await.unwrap())).await.unwrap();
        let spider = spider(&[(None, &[("n", Kind::Integer)])]);
        let url = database.url();
        let sink = Arc::new(Postgres::new(&url, None, &spider).unwrap());
        let health = Arc::new(trawl_common::health::Health::default());
        let (started, mut puts) = tokio::sync::watch::channel(0);
        let storing = tokio::spawn({
            let (spider, health) = (spider.clone(), Arc::clone(&health));
            async move {
                for number in 0..40 {
                    let pages: Vec<Page> = (0..50)
                        .map(|part| {
                            page(&crawl(&spider), &format!("{number}-{part}"), None, &[json!({"n": number})])
                        })
                        .collect();
                    started.send_replace(number);
                    health.insist("storing items", || sink.put(&pages)).await.unwrap();
                }
            }
        });
        for number in [5, 15, 25] {
            puts.wait_for(|put| *put >= number).await.unwrap();
            database.kill().await.unwrap();
            database.launch().await.unwrap();
        }
        storing.await.unwrap();
        assert_eq!(rows(&url, spider.name.as_str()).await.len(), 40 * 50);
        assert_eq!(health.trouble(), None);
    }
}

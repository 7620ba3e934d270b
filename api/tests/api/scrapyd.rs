//! Jobs that clients of Scrapyd submit.

use reqwest::Method;
use serde_json::{Value, json};

use crate::fixture::Fixture;

promises! {
    settings_of_scrapy_are_given_to_a_spider_that_takes_them_and_otherwise_named_as_ignored
}

const PLAIN: &str = "[start]\nurls = ['http://a.example/']\n";
const PROJECT: &str = "[arguments]\ntag = {}\nscrapy_settings = '{}'\n[handler]\nrun = ['trawl-scrapy', 'run']\n\
    [start]\ntasks = ['{\"spider\": \"quotes\", \"args\": \"{arg.tag}\", \"settings\": {arg.scrapy_settings}}']\n";

async fn schedule(fixture: &Fixture, spider: &str, settings: &[&str]) -> Value {
    let settings = settings.iter().map(|setting| format!("&setting={}", setting.replace('=', "%3D")));
    let body = format!("project=shop&spider={spider}{}", settings.collect::<String>());
    let request = fixture.operator(Method::POST, "/schedule.json");
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
    let answer = request.send().await.unwrap().bytes().await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

async fn settings_of_scrapy_are_given_to_a_spider_that_takes_them_and_otherwise_named_as_ignored(
    fixture: &Fixture,
) {
    // The task with which a project starts is no page.
    for (spider, text, max_pages) in [("plain", PLAIN, 5), ("quotes", PROJECT, 6)] {
        let version = format!("/api/v1/projects/shop/versions?version={spider}&spider={spider}");
        let added = fixture.send(fixture.operator(Method::POST, &version).body(text)).await;
        assert_eq!(added.status, 201, "{}", added.body);
        let settings = ["DOWNLOAD_DELAY=2", "CLOSESPIDER_PAGECOUNT=5", "dedup=12h", "X=\"a\\b\""];
        let named = if spider == "plain" { "plain" } else { "quotes&tag=love" };
        let answer = schedule(fixture, named, &settings).await;
        assert_eq!(answer["status"], "ok", "{answer}");
        let job = answer["jobid"].as_str().unwrap().parse().unwrap();
        let new = fixture.backend.jobs.job(&job).await.unwrap().unwrap().new;
        let own = json!({ "dedup": "12h", "max_pages": max_pages });
        assert_eq!(serde_json::to_value(new.settings).unwrap(), own, "{spider}");
        let given: Vec<_> =
            new.arguments.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        if spider == "plain" {
            assert_eq!((given.len(), &answer["ignored_settings"]), (0, &json!(["DOWNLOAD_DELAY", "X"])));
        } else {
            let [(name, value), (_, _)] = &given[..] else { panic!("{given:?}") };
            let all = json!({ "DOWNLOAD_DELAY": "2", "CLOSESPIDER_PAGECOUNT": "5", "X": "\"a\\b\"" });
            assert_eq!((name.as_str(), serde_json::from_str(value).ok()), ("scrapy_settings", Some(all)));
            assert_eq!(answer["ignored_settings"], Value::Null, "{answer}");
        }
    }
}

//! Programs of several versions on one Redis.

use trawl_common::ports::ErrorKind;

use super::*;
use crate::redis::check_schema;

impl Fixture {
    async fn schema(&self) -> Option<String> {
        self.ask(redis::cmd("GET").arg("trawl:schema")).await
    }

    async fn set_schema(&self, version: &str) {
        let () = self.ask(redis::cmd("SET").arg("trawl:schema").arg(version)).await;
    }
}

#[tokio::test]
async fn a_redis_without_a_version_gets_this_programs() {
    let fixture = Fixture::new().await;
    for _ in 0..2 {
        check_schema(&fixture.link).await.unwrap();
        assert_eq!(fixture.schema().await.as_deref(), Some("1.3"));
    }
}

#[tokio::test]
async fn what_older_programs_left_is_taken_over() {
    let fixture = Fixture::new().await;
    fixture.set_schema("0").await;
    check_schema(&fixture.link).await.unwrap();
    assert_eq!(fixture.schema().await.as_deref(), Some("1.3"));
}

#[tokio::test]
async fn beside_programs_of_a_newer_format_one_of_the_same_major_version_works() {
    let fixture = Fixture::new().await;
    fixture.set_schema("1.7").await;
    check_schema(&fixture.link).await.unwrap();
    assert_eq!(fixture.schema().await.as_deref(), Some("1.7"), "it says what is there");
}

#[tokio::test]
async fn what_a_program_of_a_newer_major_version_wrote_is_refused_and_left_as_it_is() {
    let fixture = Fixture::new().await;
    for newer in ["2", "2.1", "1.x", "later"] {
        fixture.set_schema(newer).await;
        let refused = check_schema(&fixture.link).await.unwrap_err();
        assert!(refused.kind == ErrorKind::Refused && refused.to_string().contains(newer), "{refused}");
        assert_eq!(fixture.schema().await.as_deref(), Some(newer));
    }
}

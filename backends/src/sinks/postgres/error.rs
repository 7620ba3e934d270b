//! PostgreSQL's errors, for people, and whether another try may help.

use tokio_postgres::error::SqlState;
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::settings::ServerUrl;
use trawl_common::text::with_causes;

use crate::tls;

/// Returns the error for a failure of the server at `url`, or of the connection to it.
pub(super) fn failed(url: &ServerUrl, error: &tokio_postgres::Error) -> Error {
    let problem = match error.as_db_error() {
        Some(problem) => format!("{} ({})", problem.message(), problem.code().code()),
        None => with_causes(error),
    };
    let hint = hint(error);
    Error::new(kind(error), format!("postgres at {url}: {problem}{hint}"))
}

fn kind(error: &tokio_postgres::Error) -> ErrorKind {
    match error.code() {
        // Classes: connection, rollback (deadlock), resources, intervention (restart), system.
        Some(code) if ["08", "40", "53", "55", "57", "58"].contains(&&code.code()[..2]) => {
            ErrorKind::Unavailable
        }
        Some(_) => ErrorKind::Refused,
        None if tls::is_refusal(error) => ErrorKind::Refused,
        None => ErrorKind::Unavailable,
    }
}

fn hint(error: &tokio_postgres::Error) -> &'static str {
    match error.code() {
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            ": are user and password right? (url of the sink, PGPASSWORD)"
        }
        Some(code) if *code == SqlState::INVALID_CATALOG_NAME => ": create the database",
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            ": the user needs to create tables and write to them"
        }
        Some(code) if *code == SqlState::INVALID_COLUMN_REFERENCE => {
            ": the column id of the table needs to be its key"
        }
        Some(_) => "",
        None if tls::is_refusal(error) => {
            ": is its certificate from whom this machine trusts, and for this name? (SSL_CERT_FILE; `?sslmode=disable` goes without)"
        }
        None if error.is_closed() => "",
        None => ": is it running there?",
    }
}

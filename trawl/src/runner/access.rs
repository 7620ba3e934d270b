//! The access of runners, as people give it.

use anstream::println;
use serde_json::json;
use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::names::RunnerName;
use trawl_common::ports::{Access, Runner};

use super::Command;
use crate::backend::{Backend, Where};

impl Command {
    pub(super) async fn run(self, global: &Global, place: &Where) -> Outcome {
        let backend = match &self {
            Self::List { .. } => Backend::look(global, place).await?,
            _ => Backend::open(global, place).await?,
        };
        let runners = backend.runners();
        match self {
            Self::List { json } => list(&backend, runners.runners().await?, json),
            Self::Approve { runner, project, assign: _, submit, json } => {
                let (project, access) =
                    (project.unwrap_or_default(), if submit { Access::Submit } else { Access::Assign });
                if !runners.allow(&runner, &project, access).await? {
                    return Err(unknown(&runner));
                }
                let known = runners.runner(&runner).await?.ok_or_else(|| unknown(&runner))?;
                let what = match access {
                    Access::Assign => "does the work of",
                    Access::Submit => "may hand work to",
                };
                let fingerprint = known.key.fingerprint();
                match json {
                    true => print_json(&as_json(&known)),
                    false => backend.say(format_args!(
                        "the runner {runner} ({fingerprint}) {what} the project {project}"
                    )),
                }
            }
            Self::Revoke { runner, project, json } => {
                if !runners.revoke(&runner, project.as_ref()).await? {
                    return Err(Fail::run(format!(
                        "the runner {runner} has no such access: trawl runner list"
                    )));
                }
                match json {
                    true => {
                        let known = runners.runner(&runner).await?.ok_or_else(|| unknown(&runner))?;
                        print_json(&as_json(&known));
                    }
                    false => backend.say(format_args!(
                        "the runner {runner} has that access no more; what it holds is handed out again"
                    )),
                }
            }
            Self::Forget { runner, json } => {
                if !runners.forget(&runner).await? {
                    return Err(unknown(&runner));
                }
                match json {
                    true => print_json(&json!({ "forgotten": runner })),
                    false => backend.say(format_args!("the runner {runner} is forgotten")),
                }
            }
        }
        Ok(Exit::Ok)
    }
}

fn unknown(runner: &RunnerName) -> Fail {
    Fail::usage(format!("no runner {runner} has asked for access: trawl runner list"))
}

fn list(backend: &Backend, runners: Vec<Runner>, json: bool) {
    if json {
        return runners.iter().for_each(|runner| print_json(&as_json(runner)));
    }
    if runners.is_empty() {
        return backend.say("no runner has asked for access");
    }
    println!("{:<32} {:<10} {:<26} access", "runner", "fingerprint", "asked");
    for Runner { name, key, asked, access, .. } in runners {
        let access: Vec<String> =
            access.iter().map(|(project, access)| format!("{project}: {access}")).collect();
        let access = if access.is_empty() { "requested".to_owned() } else { access.join(", ") };
        println!("{:<32} {:<11} {:<26} {access}", name.as_str(), key.fingerprint(), asked.to_string());
    }
}

fn as_json(Runner { name, key, since, asked, access }: &Runner) -> serde_json::Value {
    json!({
        "runner": name,
        "fingerprint": key.fingerprint(),
        "since": since.to_string(),
        "asked": asked.to_string(),
        "access": access,
    })
}

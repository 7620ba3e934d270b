//! `trawl spider push`, `versions` and `remove`: spiders that all workers find without a local file.

use std::collections::{BTreeMap, BTreeSet};

use anstream::println;
use serde_json::json;
use trawl_cli::{Fail, Global, Outcome, SpiderArg, counted, mistakes, print_json};
use trawl_common::exit::Exit;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::ports::Deployed;
use trawl_common::spider::arguments::Arguments;
use trawl_common::spider::{Origin, SpiderFiles, Version};
use trawl_common::time::UnixMs;

use super::examine::examine;
use crate::backend::{Backend, Where};
use crate::confirm::confirm;

/// The command-line arguments of `trawl spider push`.
#[derive(clap::Args)]
pub(super) struct Push {
    /// The spiders: their files, or their names
    #[arg(required = true, value_name = "FILE|NAME")]
    spiders: Vec<SpiderArg>,
    /// The project
    #[arg(long, value_name = "NAME", default_value_t)]
    project: ProjectName,
    /// The version, which is the project's latest from now on [default: named by the time]
    #[arg(long, value_name = "VERSION")]
    version: Option<Version>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

/// The command-line arguments of `trawl spider versions`.
#[derive(clap::Args)]
pub(super) struct Versions {
    /// Only those of this project
    #[arg(long, value_name = "NAME")]
    project: Option<ProjectName>,
    /// Print one JSON object a version
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

/// The command-line arguments of `trawl spider remove`.
#[derive(clap::Args)]
pub(super) struct Remove {
    /// The project
    #[arg(value_name = "PROJECT")]
    project: ProjectName,
    /// Only this version [default: all]
    #[arg(long, value_name = "VERSION")]
    version: Option<Version>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print what is removed as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

impl Push {
    /// Deploys the spiders. If any of the files has a mistake, nothing is deployed.
    pub(super) async fn run(self, global: &Global) -> Outcome {
        let backend = Backend::open(global, &self.place).await?;
        let (mut files, mut wrong) = (BTreeMap::new(), 0);
        for spider in &self.spiders {
            let file = spider.file(&backend.settings)?;
            let origin = Origin::Delivered(&backend.settings.spiders);
            let examined =
                examine(&file, &Arguments::default(), &backend.settings, origin).map_err(Fail::usage)?;
            mistakes::print(&file, &examined.text, &examined.reading.mistakes);
            wrong += examined.reading.mistakes.len();
            if files.insert(spider.name()?, examined.text).is_some() {
                return Err(Fail::usage(format!("there are two files of spider {}", spider.name()?)));
            }
        }
        if wrong > 0 {
            let mistakes = counted(wrong as u64, "mistake");
            return Err(Fail::usage(format!("{mistakes}: nothing is deployed")));
        }
        let names: Vec<SpiderName> = files.keys().cloned().collect();
        let files = SpiderFiles::new(files).map_err(Fail::usage)?;
        let (project, version) =
            (self.project, self.version.unwrap_or_else(|| Version::of_time(UnixMs::now())));
        let before = backend.spider_store.versions(&project).await?.pop();
        backend.spider_store.add(&project, &version, &files).await?;
        let before = before.into_iter().flat_map(|before| before.spiders);
        let left: Vec<SpiderName> = before.filter(|spider| !names.contains(spider)).collect();
        if !left.is_empty() {
            anstream::eprintln!(
                "warning: {} of project {project} is no longer deployed: a version is all that its project has. Push its spiders together, or \
                 give each a --project of its own",
                listed(&left)
            );
        }
        let spiders = listed(&names);
        backend.say(format_args!("version {version} of project {project} is deployed, with {spiders}"));
        match self.json {
            true => print_json(&json!({ "project": project, "version": version, "spiders": names })),
            false => println!("{version}"),
        }
        Ok(Exit::Ok)
    }
}

impl Versions {
    pub(super) async fn run(self, global: &Global) -> Outcome {
        let backend = Backend::look(global, &self.place).await?;
        let projects = match &self.project {
            Some(project) => vec![project.clone()],
            None => backend.spider_store.projects().await?,
        };
        let mut is_empty = true;
        for project in projects {
            for Deployed { version, added, spiders } in backend.spider_store.versions(&project).await? {
                is_empty = false;
                let added = added.to_string();
                match self.json {
                    true => print_json(
                        &json!({ "project": project, "version": version, "added": added, "spiders": spiders }),
                    ),
                    false => println!("{project:<16} {version:<24} {added:<24}  {}", listed(&spiders)),
                }
            }
        }
        if is_empty && !self.json {
            backend.say("nothing is deployed: `trawl spider push FILE` does it");
        }
        Ok(Exit::Ok)
    }
}

impl Remove {
    pub(super) async fn run(self, global: &Global) -> Outcome {
        let backend = Backend::open(global, &self.place).await?;
        let what = match &self.version {
            Some(version) => format!("version {version} of project {}", self.project),
            None => format!("project {}", self.project),
        };
        let missing = || Fail::usage(format!("there is no {what}: `trawl spider versions` lists them"));
        let mut deployed = backend.spider_store.versions(&self.project).await?;
        deployed.retain(|one| self.version.as_ref().is_none_or(|version| one.version == *version));
        if deployed.is_empty() {
            return Err(missing());
        }
        let spiders: BTreeSet<SpiderName> = deployed.into_iter().flat_map(|one| one.spiders).collect();
        let spiders = listed(&spiders.into_iter().collect::<Vec<_>>());
        confirm(&format!("Remove {what}, with {spiders}?"), self.yes)?;
        if !backend.spider_store.remove(&self.project, self.version.as_ref()).await? {
            return Err(missing());
        }
        backend.say(format_args!("{what} is removed; crawls that began with it go on"));
        if self.json {
            print_json(&json!({ "project": self.project, "version": self.version }));
        }
        Ok(Exit::Ok)
    }
}

fn listed(spiders: &[SpiderName]) -> String {
    spiders.iter().map(SpiderName::as_str).collect::<Vec<_>>().join(", ")
}

//! `trawl project`: projects, their spiders, and the secrets of their programs.

mod work;

use std::io::Read;

use anstream::println;
use clap::Subcommand;
use serde_json::json;
use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::project::{
    Branch, CloneUrl, HookSecret, MAX_SECRET_BYTES, Project, ProjectSecret, Source, VersionReport,
    VersionResult,
};
use trawl_common::projects;

use crate::backend::{Backend, Subcommands};

/// The command-line arguments of `trawl project`.
pub(crate) type Args = Subcommands<Command>;

/// The subcommands of `trawl project`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a project, whose work is given only to runners with access
    Create {
        /// The project
        project: ProjectName,
        /// A spider of the project; may be given several times
        #[arg(long = "spider", value_name = "NAME")]
        spiders: Vec<SpiderName>,
        /// Print the project as JSON
        #[arg(long)]
        json: bool,
    },
    /// List projects with their spiders
    List {
        /// Print one JSON object a project
        #[arg(long)]
        json: bool,
    },
    /// Show a project, and which machines run its commit
    Show {
        /// The project
        project: ProjectName,
        /// Print the project as JSON
        #[arg(long)]
        json: bool,
    },
    /// Change which spiders a project has, and where its code comes from
    Set {
        /// The project
        project: ProjectName,
        /// Add a spider of no other project; may be given several times
        #[arg(long = "spider", value_name = "NAME")]
        spiders: Vec<SpiderName>,
        /// Take a spider out; may be given several times
        #[arg(long = "no-spider", value_name = "NAME")]
        no_spiders: Vec<SpiderName>,
        /// Take its code from this Git repository: https://…, ssh://… or file:///…
        #[arg(long, value_name = "URL", requires = "branch")]
        clone_url: Option<CloneUrl>,
        /// Take its code from this branch
        #[arg(long, value_name = "BRANCH", requires = "clone_url")]
        branch: Option<Branch>,
        /// Take its code from no repository any more
        #[arg(long, conflicts_with = "clone_url")]
        no_git: bool,
        /// Print the project as JSON
        #[arg(long)]
        json: bool,
    },
    /// Have workers run the commit at the end of the project's branch
    Pull {
        /// The project
        project: ProjectName,
        /// Print the project as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print path and secret of the webhook for a Git server (GitHub, Gitea, Gogs)
    Hook {
        /// The project
        project: ProjectName,
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Pause the crawls of the project's spiders; later ones run
    Pause {
        /// The project
        project: ProjectName,
        /// Print how many there were as JSON
        #[arg(long)]
        json: bool,
    },
    /// Resume the crawls that were paused with it
    Resume {
        /// The project
        project: ProjectName,
        /// Print how many there were as JSON
        #[arg(long)]
        json: bool,
    },
    /// Send its failed pages and tasks again
    Reset {
        /// The project
        project: ProjectName,
        /// Print how many there were as JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget a project, its spiders and secret, and runners' access to it; deployed versions stay
    Forget {
        /// The project
        project: ProjectName,
        /// Print its name as JSON
        #[arg(long)]
        json: bool,
    },
    /// Set or remove the secret that only the programs of a project's spiders are given
    #[command(subcommand)]
    Secret(Secret),
}

/// The subcommands of `trawl project secret`.
#[derive(Subcommand)]
pub(crate) enum Secret {
    /// Read a secret from standard input, a JSON object of at most 128 KB, and store it sealed (secrets.key_file)
    Set {
        /// The project
        project: ProjectName,
        /// Print the project as JSON, without the secret
        #[arg(long)]
        json: bool,
    },
    /// Remove the secret
    Remove {
        /// The project
        project: ProjectName,
        /// Print the project as JSON
        #[arg(long)]
        json: bool,
    },
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let Subcommands { command, place } = self;
        let backend = match &command {
            Command::List { .. } | Command::Show { .. } | Command::Hook { .. } => {
                Backend::look(&global, &place).await?
            }
            _ => Backend::open(&global, &place).await?,
        };
        match command {
            Command::Create { project, spiders, json } => create(&backend, &project, &spiders, json).await?,
            Command::List { json } => list(&backend, backend.projects().made().await?, json),
            Command::Show { project, json } => {
                let made = known(&backend, &project).await?;
                show(&made, &backend.projects().reports(&project).await?, json);
            }
            Command::Set { project, spiders, no_spiders, clone_url, branch, no_git, json } => {
                for spider in &no_spiders {
                    backend.projects().remove_spider(&project, spider).await?;
                }
                add(&backend, &project, &spiders).await?;
                let source = clone_url.zip(branch).map(|(clone_url, branch)| Source { clone_url, branch });
                if (source.is_some() || no_git)
                    && !backend.projects().set_source(&project, source.as_ref()).await?
                {
                    return Err(not_made(&project));
                }
                say(&backend, &project, json, "is changed; workers notice within seconds").await?;
            }
            Command::Pull { project, json } => pull(&backend, &project, json).await?,
            Command::Hook { project, json } => hook(&backend, &known(&backend, &project).await?, json)?,
            Command::Pause { project, json } => {
                work::pause(&backend, &known(&backend, &project).await?, json).await?;
            }
            Command::Resume { project, json } => {
                work::resume(&backend, &known(&backend, &project).await?, json).await?;
            }
            Command::Reset { project, json } => {
                work::reset(&backend, &known(&backend, &project).await?, json).await?;
            }
            Command::Forget { project, json } => {
                let (made, runners) = (backend.projects(), backend.runners());
                if !projects::forget(&*made, &*runners, &project).await? {
                    return Err(not_made(&project));
                }
                match json {
                    true => print_json(&json!({ "forgotten": project })),
                    false => backend.say(format_args!("the project {project} is forgotten")),
                }
            }
            Command::Secret(Secret::Set { project, json }) => {
                let (made, secret) = (backend.projects(), read_secret(std::io::stdin().lock())?);
                if !projects::set_secret(&*made, &backend.settings.secrets, &project, &secret).await? {
                    return Err(not_made(&project));
                }
                say(&backend, &project, json, "has the secret; workers notice within seconds").await?;
            }
            Command::Secret(Secret::Remove { project, json }) => {
                if !backend.projects().set_secret(&project, None).await? {
                    return Err(not_made(&project));
                }
                say(&backend, &project, json, "has no secret").await?;
            }
        }
        Ok(Exit::Ok)
    }
}

async fn create(
    backend: &Backend,
    project: &ProjectName,
    spiders: &[SpiderName],
    json: bool,
) -> Result<(), Fail> {
    if !backend.projects().create(project).await? {
        return Err(Fail::usage(format!("there is a project {project}: trawl project show {project}")));
    }
    add(backend, project, spiders).await?;
    say(backend, project, json, "is made").await
}

async fn add(backend: &Backend, project: &ProjectName, spiders: &[SpiderName]) -> Result<(), Fail> {
    for spider in spiders {
        if !backend.projects().add_spider(project, spider).await? {
            return Err(not_made(project));
        }
    }
    Ok(())
}

async fn pull(backend: &Backend, project: &ProjectName, json: bool) -> Result<(), Fail> {
    let source = known(backend, project).await?.source.ok_or_else(|| {
        let way_out = format!("trawl project set {project} --clone-url URL --branch BRANCH");
        Fail::usage(format!("the code of {project} does not come from Git: {way_out}"))
    })?;
    let tip = (backend.tip())(source).await;
    let wanted = projects::pull(&*backend.projects(), project, tip).await?;
    say(backend, project, json, &format!("is to run {}; workers take it within seconds", wanted.commit)).await
}

/// Prints how a Git server tells of pushes.
fn hook(backend: &Backend, Project { name, created, .. }: &Project, json: bool) -> Result<(), Fail> {
    let key = backend.settings.secrets.key().map_err(Fail::usage)?;
    let key = key.ok_or_else(|| Fail::usage("no key makes secrets here: name a file in secrets.key_file"))?;
    let (secret, path) = (HookSecret::new(&key, name, *created), format!("/api/v1/projects/{name}/hook"));
    match json {
        true => print_json(&json!({ "path": path, "secret": secret.reveal() })),
        false => {
            println!("path          {path}");
            println!("content type  application/json");
            println!("secret        {}", secret.reveal());
            println!("events        push");
        }
    }
    Ok(())
}

/// Reads a secret, which no error shows.
fn read_secret(from: impl Read) -> Result<ProjectSecret, Fail> {
    let mut text = Vec::new();
    let read = from.take(MAX_SECRET_BYTES as u64 + 1).read_to_end(&mut text);
    read.map_err(|error| Fail::run(format!("cannot read the secret: {error}")))?;
    // The end of a line that a shell adds is none of it.
    ProjectSecret::from_json(text.trim_ascii_end())
        .map_err(|why| Fail::usage(format!("standard input: {why}")))
}

async fn known(backend: &Backend, project: &ProjectName) -> Result<Project, Fail> {
    backend.projects().project(project).await?.ok_or_else(|| not_made(project))
}

fn not_made(project: &ProjectName) -> Fail {
    Fail::usage(format!("nobody has made a project {project}: trawl project create {project}"))
}

/// Says what became of a project.
async fn say(backend: &Backend, project: &ProjectName, json: bool, what: &str) -> Result<(), Fail> {
    match json {
        true => print_json(&as_json(&known(backend, project).await?)),
        false => {
            known(backend, project).await?;
            backend.say(format_args!("the project {project} {what}"));
        }
    }
    Ok(())
}

fn list(backend: &Backend, projects: Vec<Project>, json: bool) {
    if json {
        return projects.iter().for_each(|project| print_json(&as_json(project)));
    }
    if projects.is_empty() {
        return backend.say("nobody has made a project");
    }
    println!("{:<32} {:<8} spiders", "project", "secret");
    for Project { name, spiders, has_secret, .. } in projects {
        println!("{:<32} {:<8} {}", name.as_str(), shown(has_secret), listed(&spiders));
    }
}

fn show(project: &Project, reports: &[VersionReport], json: bool) {
    if json {
        let mut shown = as_json(project);
        shown["machines"] = reports.iter().map(report_as_json).collect();
        return print_json(&shown);
    }
    let Project { name, created, spiders, has_secret, source, wanted } = project;
    println!("project  {name}");
    println!("created  {created}");
    println!("spiders  {}", listed(spiders));
    println!("secret   {}", shown(*has_secret));
    if let Some(Source { clone_url, branch }) = source {
        println!("code     {clone_url}, branch {branch}");
        let commit = wanted.as_ref().map_or("none: trawl project pull", |wanted| wanted.commit.as_str());
        println!("commit   {commit}");
    }
    for VersionReport { machine, at, result, .. } in reports {
        match result {
            VersionResult::Taken => println!("taken    {machine}, {at}"),
            VersionResult::Failed(failure) => {
                println!("failed   {machine}, {at}");
                failure.as_str().lines().for_each(|line| println!("         {line}"));
            }
        }
    }
}

fn report_as_json(VersionReport { machine, at, result, .. }: &VersionReport) -> serde_json::Value {
    let error = match result {
        VersionResult::Taken => None,
        VersionResult::Failed(failure) => Some(failure),
    };
    json!({ "machine": machine, "at": at.to_string(), "taken": error.is_none(), "error": error })
}

fn shown(has_secret: bool) -> &'static str {
    if has_secret { "set" } else { "none" }
}

fn listed<'a>(spiders: impl IntoIterator<Item = &'a SpiderName>) -> String {
    let names: Vec<&str> = spiders.into_iter().map(SpiderName::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn as_json(Project { name, created, spiders, has_secret, source, wanted }: &Project) -> serde_json::Value {
    json!({
        "project": name,
        "created": created.to_string(),
        "spiders": spiders,
        "secret": has_secret,
        "clone_url": source.as_ref().map(|source| &source.clone_url),
        "branch": source.as_ref().map(|source| &source.branch),
        "commit": wanted.as_ref().map(|wanted| &wanted.commit),
    })
}

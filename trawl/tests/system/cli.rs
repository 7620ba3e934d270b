//! Properties of every command: its output, the names of crawls, and its exit code.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::site::Site;

/// Longer than any step of a test.
const LIMIT: Duration = Duration::from_secs(60);

/// Nothing listens at these addresses.
const AWAY: [(&str, &str); 2] =
    [("REDIS_URL", "redis://127.0.0.1:1/0"), ("RABBITMQ_URL", "amqp://127.0.0.1:1/%2f")];

fn trawl(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    command.args(words).current_dir(folder).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn run(folder: &Path, words: &[&str]) -> Output {
    timeout(LIMIT, trawl(folder, words).output()).await.unwrap().unwrap()
}

fn crawl(folder: &Path, source: &str, more: &[&str]) -> Command {
    let words = ["crawl", source, "--allow-private", "--rate", "unlimited", "--concurrency", "8"];
    trawl(folder, &[&words, more].concat())
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the single JSON object that a command prints.
fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Creates a state file with a crawl that was killed half-way.
async fn unfinished(folder: &Path) -> Site {
    let site = Site::serve(30).await;
    site.hold_after(5);
    let mut killed = crawl(folder, &format!("{}/sitemap.xml", site.origin), &["-q"]).spawn().unwrap();
    timeout(LIMIT, site.asked_for(13)).await.unwrap();
    killed.kill().await.unwrap();
    site.answer_all();
    site
}

#[tokio::test]
async fn with_q_what_goes_well_is_silent() {
    let (site, folder) = (Site::serve(5).await, tempfile::tempdir().unwrap());
    let sitemap = format!("{}/sitemap.xml", site.origin);
    let silent =
        |output: Output| assert!(output.status.success() && printed(&output).is_empty(), "{output:?}");
    silent(crawl(folder.path(), &sitemap, &["-q"]).output().await.unwrap());
    // The second time there is nothing new, which is no error.
    silent(crawl(folder.path(), &sitemap, &["-q"]).output().await.unwrap());
    for words in [
        &["demo", "-q"][..],
        &["wait", "latest", "--state", "crawl.db", "-q"],
        &["dlq", "list", "--state", "crawl.db", "-q"],
        &["dlq", "replay", "--yes", "--state", "crawl.db", "-q"],
        &["dlq", "purge", "--yes", "--state", "crawl.db", "-q"],
        &["hosts", "block", "example.com", "--state", "crawl.db", "-q"],
        &["hosts", "unblock", "example.com", "--state", "crawl.db", "-q"],
        &["spider", "new", "mine", "-q"],
        &["config", "check", "-q"],
    ] {
        silent(run(folder.path(), words).await);
    }
}

/// Returns the whole output of a command.
fn printed(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

#[tokio::test]
async fn with_q_only_problems_are_printed() {
    let (site, folder) = (Site::serve(1).await, tempfile::tempdir().unwrap());
    fs::write(folder.path().join("list.txt"), site.page(7)).unwrap();
    let sources = ["none.xml", "-q"];
    let output = crawl(folder.path(), "list.txt", &sources).output().await.unwrap();
    let printed = stderr(&output);
    assert!(printed.contains("problem: none.xml: cannot be opened"), "{printed}");
    assert!(printed.contains("1 failed: `trawl dlq list --state crawl.db`"), "{printed}");
    assert!(printed.contains("fails: 1 of 1 URL (http)"), "{printed}");
    assert_eq!((printed.lines().count(), output.status.code()), (3, Some(1)), "{printed}");
}

#[tokio::test]
async fn the_log_level_comes_from_the_file_or_the_environment_and_only_then_from_a_default() {
    let site = Site::serve(1).await;
    let logged = async |file: &str, environment: &[(&str, &str)], more: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("trawl.toml"), file).unwrap();
        let mut command = crawl(folder.path(), &site.page(7), more);
        let output = command.envs(environment.iter().copied()).output().await.unwrap();
        stderr(&output).contains("DEBUG")
    };
    let (debug, error) = ("[log]\nlevel = \"debug\"", "[log]\nlevel = \"error\"");
    let environment = [("TRAWL__LOG__LEVEL", "debug")];
    assert!(!logged("", &[], &[]).await);
    assert!(logged(debug, &[], &[]).await);
    assert!(logged(error, &environment, &[]).await);
    assert!(logged(error, &[], &["-v"]).await, "a flag wins over both");
    assert!(!logged(debug, &environment, &["-q"]).await);
}

#[tokio::test]
async fn a_crawl_is_named_by_its_id_by_how_that_begins_or_as_the_latest() {
    let (site, folder) = (Site::serve(3).await, tempfile::tempdir().unwrap());
    let mut ids = Vec::new();
    for _ in 0..2 {
        let output = crawl(folder.path(), &format!("{}/sitemap.xml", site.origin), &["--json"]).output();
        ids.push(object(&output.await.unwrap())["crawl"].as_str().unwrap().to_owned());
    }
    let named = async |name: &str| {
        let output = run(folder.path(), &["status", name, "--state", "crawl.db", "--json"]).await;
        object(&output)["crawl"].as_str().unwrap().to_owned()
    };
    assert_eq!(named("latest").await, ids[1]);
    assert_eq!(named(&ids[0]).await, ids[0]);
    assert_eq!(named(&ids[0][..ids[0].len() - 1]).await, ids[0]);

    let both = run(folder.path(), &["status", "2", "--state", "crawl.db"]).await;
    let printed = stderr(&both);
    assert_eq!(both.status.code(), Some(2), "{printed}");
    assert!(ids.iter().all(|id| printed.contains(id)) && printed.lines().count() == 1, "{printed}");
    let none = run(folder.path(), &["wait", "x", "--state", "crawl.db"]).await;
    assert_eq!(none.status.code(), Some(2));
    assert!(
        stderr(&none).contains("no crawl x: `trawl status --state crawl.db` lists them"),
        "{}",
        stderr(&none)
    );
    let waited = run(folder.path(), &["wait", "latest", "--state", "crawl.db", "--json"]).await;
    assert_eq!((waited.status.code(), &object(&waited)["crawl"]), (Some(0), &json!(ids[1])));
    let dead_letters = run(folder.path(), &["dlq", "list", "--crawl", "latest", "--state", "crawl.db"]).await;
    assert!(
        dead_letters.status.success() && stderr(&dead_letters).contains("0 dead letters"),
        "{dead_letters:?}"
    );
}

#[tokio::test]
async fn what_is_done_to_a_crawl_and_its_hosts_is_reported_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let _site = unfinished(folder.path()).await;
    let done = async |words: &[&str]| {
        let output = run(folder.path(), &[words, &["--state", "crawl.db", "--json"]].concat()).await;
        assert!(output.status.success(), "{output:?}");
        object(&output)
    };
    assert_eq!(done(&["pause", "latest"]).await["status"], "paused");
    assert_eq!(done(&["resume", "latest"]).await["status"], "running");
    let cancelled = done(&["cancel", "latest"]).await;
    assert_eq!((&cancelled["status"], &cancelled["pending"]), (&json!("cancelled"), &json!(0)));
    let waited = run(folder.path(), &["wait", "latest", "--state", "crawl.db", "-q"]).await;
    assert_eq!(waited.status.code(), Some(4));
    assert_eq!(done(&["hosts", "block", "a.example"]).await, json!({"host": "a.example", "blocked": true}));
    let lifted = json!({"host": "a.example", "blocked": false, "lifted": true});
    assert_eq!(done(&["hosts", "unblock", "a.example"]).await, lifted);
}

#[tokio::test]
async fn dead_letters_that_are_sent_again_or_purged_are_counted_as_json() {
    let (site, folder) = (Site::serve(1).await, tempfile::tempdir().unwrap());
    fs::write(folder.path().join("list.txt"), [1, 2].map(|page| site.page(page) + "\n").concat()).unwrap();
    let crawled = object(&crawl(folder.path(), "list.txt", &["--json"]).output().await.unwrap());
    let done = async |words: &[&str]| {
        object(&run(folder.path(), &[words, &["--yes", "--state", "crawl.db", "--json"]].concat()).await)
    };
    let sent = done(&["dlq", "replay", "--limit", "1"]).await;
    assert_eq!(sent, json!({"sent": 1, "crawls": [format!("{}.r1", crawled["crawl"].as_str().unwrap())]}));
    assert_eq!(done(&["dlq", "purge"]).await, json!({"purged": 1}));
}

#[tokio::test]
async fn a_webhook_is_named_where_it_is_posted_nothing_or_cannot_be() {
    let (site, folder) = (Site::serve(1).await, tempfile::tempdir().unwrap());
    let webhook = "[[webhooks]]\nurl = 'http://127.0.0.1:9/hook'\nsecret = { env = 'NOBODY_SETS_THIS' }\n";
    fs::write(folder.path().join("trawl.toml"), webhook).unwrap();
    let output = run(folder.path(), &["config", "check"]).await;
    let printed = stderr(&output);
    assert!(output.status.success() && printed.lines().count() == 1, "{printed}");
    assert!(printed.contains("warning: webhooks: http://127.0.0.1:9/hook: secret: there is no"), "{printed}");
    let output = crawl(folder.path(), &site.page(7), &[]).output().await.unwrap();
    let printed = stderr(&output);
    assert_eq!(printed.matches("posts nothing to [[webhooks]]").count(), 1, "{printed}");
}

#[tokio::test]
async fn the_demo_spiders_and_settings_are_reported_as_json() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(object(&run(folder.path(), &["demo", "--json"]).await)["done"], 199);
    let new = object(&run(folder.path(), &["spider", "new", "mine", "--json"]).await);
    assert_eq!(new, json!({"file": "spiders/mine.toml"}));
    let listed = object(&run(folder.path(), &["spider", "list", "--json"]).await);
    assert_eq!((&listed["spider"], &listed["mistakes"]), (&json!("mine"), &json!([])));
    let shown = object(&run(folder.path(), &["config", "show", "--json"]).await);
    assert_eq!((&shown["worker"]["concurrency"], &shown["log"]["level"]), (&json!(64), &json!("info")));
    assert_eq!(object(&run(folder.path(), &["config", "check", "--json"]).await), json!({"mistakes": []}));

    fs::write(folder.path().join("trawl.toml"), "[fetch]\ntimout = 1\n").unwrap();
    let output = run(folder.path(), &["config", "check", "--json"]).await;
    assert_eq!(output.status.code(), Some(2));
    let printed = object(&output);
    assert_eq!(
        (&printed["file"], &printed["mistakes"][0]["line"]),
        (&json!("trawl.toml"), &json!(2)),
        "{printed}"
    );
}

#[tokio::test]
async fn a_server_that_is_away_is_exit_code_5_and_bad_usage_is_2() {
    let folder = tempfile::tempdir().unwrap();
    let code = async |words: &[&str]| {
        let output = timeout(LIMIT, trawl(folder.path(), words).envs(AWAY).output()).await.unwrap().unwrap();
        assert!(stderr(&output).contains("127.0.0.1:1") || words.contains(&"--nonsense"), "{output:?}");
        output.status.code()
    };
    for words in [
        &["status"][..],
        &["wait", "latest"],
        &["cancel", "latest"],
        &["dlq", "list"],
        &["hosts", "list"],
        &["items"],
        &["items", "--crawl", "latest"],
        &["pack"],
    ] {
        assert_eq!(code(words).await, Some(5), "{words:?}");
        assert_eq!(code(&[words, &["--nonsense"]].concat()).await, Some(2), "{words:?}");
    }
}

#[tokio::test]
async fn the_flag_decides_whether_output_has_colours() {
    let (site, folder) = (Site::serve(1).await, tempfile::tempdir().unwrap());
    fs::write(folder.path().join("list.txt"), format!("{}\n{}\n", site.page(0), site.page(9))).unwrap();
    crawl(folder.path(), "list.txt", &[]).output().await.unwrap();
    let coloured = async |color: &str, words: &[&str], environment: &[(&str, &str)]| {
        let words = [&["--color", color], words].concat();
        let output = trawl(folder.path(), &words).envs(environment.iter().copied()).output().await.unwrap();
        assert!(!printed(&output).is_empty(), "{output:?}");
        printed(&output).contains('\u{1b}')
    };
    let log = ["crawl", "list.txt", "--allow-private", "-v"];
    for words in [&["status", "--state", "crawl.db"][..], &["status", "nowhere", "--state", "crawl.db"], &log]
    {
        assert!(!coloured("auto", words, &[]).await, "{words:?}: nobody reads a pipe in colours");
        assert!(coloured("auto", words, &[("CLICOLOR_FORCE", "1")]).await, "{words:?}");
        assert!(coloured("always", words, &[("NO_COLOR", "1")]).await, "{words:?}");
        assert!(!coloured("never", words, &[("CLICOLOR_FORCE", "1")]).await, "{words:?}");
    }
}

#[tokio::test]
async fn shells_complete_every_command_and_every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&run(folder.path(), &["completions", shell]).await);
        assert!(script.contains("TRAWL_COMPLETE"), "{script}");
    }
    fs::create_dir(folder.path().join("spiders")).unwrap();
    fs::write(folder.path().join("spiders/shop.toml"), "").unwrap();
    for (words, expected) in
        [("dlq re", "replay"), ("producer --if-r", "--if-running"), ("spider check sh", "shop")]
    {
        let line = ["--", "trawl"].into_iter().chain(words.split(' ')).collect::<Vec<_>>();
        let completed = trawl(folder.path(), &line).env("TRAWL_COMPLETE", "fish").output().await.unwrap();
        assert!(stdout(&completed).contains(expected), "{words}: {completed:?}");
    }
    assert!(stdout(&run(folder.path(), &["man"]).await).contains(".TH trawl 1"));
    assert!(run(folder.path(), &["man", "share/man1"]).await.status.success());
    for name in ["trawl", "trawl-crawl", "trawl-dlq-replay", "trawl-producer", "trawl-worker"] {
        let page = fs::read_to_string(folder.path().join(format!("share/man1/{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name}")), "{page}");
    }
}

/// Returns the owner of a process's environment: root if other processes of the user may not read it (proc(5)).
fn environment_owner(pid: u32) -> u32 {
    fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid()
}

#[tokio::test]
async fn other_programs_of_its_user_look_into_neither_its_environment_nor_its_memory() {
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The command reads its sources from standard input, and waits there.
    let mut command = trawl(folder.path(), &["crawl", "-", "-q"]);
    command.stdin(Stdio::piped()).env("SECRET", "s3cret");
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut running = command.spawn().unwrap();
    let pid = running.id().unwrap();
    let hidden = async {
        while environment_owner(pid) != 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, hidden).await.expect("it hides them");
    if is_root {
        let look = format!("cat /proc/{pid}/environ /proc/{pid}/maps");
        let seen = Command::new("sh").args(["-c", &look]).uid(NOBODY).gid(NOBODY).output().await.unwrap();
        assert!(seen.stdout.is_empty() && !seen.status.success(), "{}", stdout(&seen));
    }
    drop(running.stdin.take());
    timeout(LIMIT, running.wait()).await.unwrap().unwrap();
}

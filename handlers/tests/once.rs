//! Programs that are started for each task: good ones, and all kinds of others.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use support::{failure, program, task};
use tokio::task::JoinSet;
use trawl_common::handler::{Answer, Verdict};
use trawl_common::spider::{Handler, Mode, ProxyUse, Secret};
use trawl_common::task::TaskView;
use trawl_handlers::{
    Admission, Ended, FilePosition, ItemsFile, Program, ProxyAccess, Supervisor, exec, once,
};

/// Runs a script of the shell for one task, in a folder that is there until the test ends.
async fn shell(script: &str) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    once(&program(folder.path(), Mode::Once, &["sh", "-c", script, "run"]), &task("x")).await
}

async fn python(script: &str, handler: impl FnOnce(Handler) -> Handler) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), Mode::Once, &["python3", "-c", script]);
    let handler = handler(program.handler);
    once(&Program { handler, ..program }, &task("x")).await
}

#[track_caller]
fn answer(ended: Ended) -> Answer {
    match ended {
        Ended::Answered(answer, _) => answer,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_done(ended: Ended) {
    assert_eq!(answer(ended).verdict, Verdict::Done);
}

/// Says in an item what it was given.
const GIVEN: &str = r#"
import json, os, sys
given = {"arguments": sys.argv[1:], "stdin": sys.stdin.read(), "variables": sorted(os.environ), "folder": os.getcwd(),
         "tmp": sorted(os.listdir(os.environ["TRAWL_TMP"])), "task": os.environ["TRAWL_TASK"]}
print("reading", file=sys.stderr)
print(json.dumps({"result": 0, "items": [given], "tasks": ["y"], "urls": ["http://a.example/"]}))
"#;

/// A proxy that counts the runs that it has let in, and those that may still use it.
#[derive(Debug, Default)]
struct Counting(Arc<AtomicUsize>, AtomicUsize);

impl ProxyAccess for Counting {
    fn admit(&self, task: Option<&TaskView>) -> io::Result<Admission> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let (url, held) = (format!("http://{}:secret@proxy", task.unwrap().id), Arc::clone(&self.0));
        Ok(Admission { url, held: Box::new(held) })
    }
}

#[tokio::test]
async fn a_run_is_given_a_proxy_as_its_spider_says_and_only_as_long_as_it_lasts() {
    let names = ["HTTPS_PROXY", "HTTP_PROXY", "TRAWL_PROXY", "http_proxy", "https_proxy"];
    for (to_be, given, runs) in
        [(ProxyUse::None, &[][..], 0), (ProxyUse::Offer, &names[2..3], 1), (ProxyUse::All, &names[..], 1)]
    {
        let (proxy, folder) = (Arc::new(Counting::default()), tempfile::tempdir().unwrap());
        let script = "import json, os\nurl = f\"http://{os.environ['TRAWL_TASK']}:secret@proxy\"\n\
            print(json.dumps({'result': 0, 'items': [{'names': sorted(n for n, v in os.environ.items() if v == url)}]}))";
        let program = program(folder.path(), Mode::Once, &["python3", "-c", script]);
        let handler = Handler { proxy: to_be, ..program.handler };
        let access: Arc<dyn ProxyAccess> = Arc::clone(&proxy) as _;
        let ended = once(&Program { handler, proxy: Some(access), ..program }, &task("x")).await;
        assert_eq!(answer(ended).items[0]["names"], serde_json::json!(given));
        assert_eq!((proxy.1.load(Ordering::Relaxed), Arc::strong_count(&proxy.0)), (runs, 1), "{to_be}");
    }
}

#[tokio::test]
async fn a_program_is_given_its_task_and_its_secret_and_nothing_of_the_workers_environment() {
    let secret = |handler| Handler { secret: Secret::new(r#"{"K":"v"}"#), ..handler };
    let answer = answer(python(GIVEN, secret).await);
    let task = task("x");
    let given = &answer.items[0];
    assert_eq!(given["arguments"], serde_json::json!([task.to_json(), r#"{"K":"v"}"#]));
    assert_eq!(given["stdin"], format!("{}\n", task.to_json()));
    assert_eq!(given["task"], task.id.to_string());
    let variables: Vec<_> =
        given["variables"].as_array().unwrap().iter().filter_map(|name| name.as_str()).collect();
    for name in
        ["HOME", "LANG", "PATH", "TMPDIR", "TRAWL_ATTEMPT", "TRAWL_CRAWL", "TRAWL_HANDLER_ID", "TRAWL_SPIDER"]
    {
        assert!(variables.contains(&name), "{name}");
    }
    // Those of the test are there by cargo.
    assert!(
        !variables.iter().any(|name| name.starts_with("CARGO") || name.starts_with("NEXTEST")),
        "{variables:?}"
    );
    assert_eq!((answer.tasks.len(), answer.urls.len()), (1, 1));
}

#[tokio::test]
async fn a_task_that_is_too_long_for_an_argument_comes_on_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let long = task(&"x".repeat(1_000_000));
    let ended = once(&program(folder.path(), Mode::Once, &["python3", "-c", GIVEN]), &long).await;
    let given = answer(ended).items.remove(0);
    assert_eq!(given["arguments"], serde_json::json!(["-", "{}"]));
    assert_eq!(given["stdin"], format!("{}\n", long.to_json()));
}

#[tokio::test]
async fn what_a_program_says_of_its_task_holds_if_it_ends_well() {
    assert_done(shell(r#"echo working; echo '{"result": 0}'"#).await);
    let failed =
        answer(shell(r#"echo '{"result": 1, "logs": [{"message": "no"}]}'; echo trace >&2; exit 2"#).await);
    assert_eq!((failed.verdict, failed.logs.len()), (Verdict::Failed, 2));
    assert_eq!(answer(shell(r#"echo '{"result": 2}'"#).await).verdict, Verdict::Skip);
    for status in [1, 2, 77, 126, 127, 128, 137, 143, 255] {
        let script = format!(
            r#"echo '{{"result": 0}}'; echo 'Traceback' >&2; echo 'ValueError: x' >&2; exit {status}"#
        );
        let (what, logs) = failure(shell(&script).await);
        assert_eq!(what, format!("handler: exited with status {status}: ValueError: x"));
        assert_eq!(logs, "Traceback\nValueError: x");
    }
    for signal in ["SEGV", "KILL", "TERM"] {
        let (what, _) = failure(shell(&format!("kill -{signal} $$; sleep 60")).await);
        assert!(what.contains("was killed by signal"), "{what}");
    }
}

#[tokio::test]
async fn what_is_no_answer_is_a_failed_task_that_says_so() {
    for (script, expected) in [
        ("true", "wrote no JSON object"),
        ("echo done", "wrote no JSON object"),
        (r"printf '\377\376\000\001\033['", "wrote no JSON object"),
        ("echo '{}'", "has no `result`"),
        (r#"echo '{"result": 7}'"#, "`result` is 0 (done)"),
        ("exec 0<&- 1<&-", "wrote no JSON object"),
    ] {
        let (what, _) = failure(shell(script).await);
        assert!(what.starts_with("handler: ") && what.contains(expected), "{script}: {what}");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), "#!/no/such/interpreter").unwrap();
    let missing = once(&program(folder.path(), Mode::Once, &["./none"]), &task("x")).await;
    assert!(matches!(&missing, Ended::NotRun(why) if why.contains("there is no program")), "{missing:?}");
    let plain = once(&program(folder.path(), Mode::Once, &["./run"]), &task("x")).await;
    assert!(matches!(&plain, Ended::NotRun(why) if why.contains("chmod +x")), "{plain:?}");
    Command::new("chmod").arg("+x").arg(folder.path().join("run")).status().unwrap();
    let (what, _) = failure(once(&program(folder.path(), Mode::Once, &["./run"]), &task("x")).await);
    assert!(what.contains("status 127") && what.contains("an interpreter that is not there"), "{what}");
}

#[tokio::test]
async fn a_program_that_the_machine_cannot_start_is_not_at_fault() {
    let folder = tempfile::tempdir().unwrap();
    let starved = folder.path().join("starved");
    let supervisor = env!("CARGO_BIN_EXE_trawl-handler-exec");
    fs::write(&starved, format!("#!/bin/sh\nulimit -n 5\nexec {supervisor} \"$@\"\n")).unwrap();
    Command::new("chmod").arg("+x").arg(&starved).status().unwrap();
    let program = program(folder.path(), Mode::Once, &["true"]);
    let program = Program { supervisor: Supervisor::at(&starved), ..program };
    let ended = once(&program, &task("x")).await;
    let expected = "could not be started: Too many open files";
    assert!(matches!(&ended, Ended::NotRun(why) if why.starts_with(expected)), "{ended:?}");
}

/// The most memory that this process has used so far, in KB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// All items of a file, and how many batches they were read in.
async fn read(file: &ItemsFile) -> (Vec<serde_json::Map<String, serde_json::Value>>, usize) {
    let (mut place, mut items, mut batches) = (FilePosition::default(), Vec::new(), 0);
    loop {
        let batch = file.read(place).await.unwrap();
        if batch.items.is_empty() {
            return (items, batches);
        }
        items.extend(batch.items);
        (place, batches) = (batch.next, batches + 1);
    }
}

#[tokio::test]
async fn a_file_of_items_that_no_answer_could_hold_is_taken_and_takes_no_memory() {
    let before = peak();
    let script = r#"yes "{\"a\": \"$(head -c 2000 /dev/zero | tr '\0' x)\"}" | head -n 16000 > $TRAWL_TMP/items
        echo $TRAWL_TMP >&2; echo '{"result": 0, "items_file": "items"}'"#;
    let Ended::Answered(answer, Some(file)) = shell(script).await else { panic!("it failed") };
    assert_eq!((answer.verdict, file.items()), (Verdict::Done, 16_000));
    let grown = peak() - before;
    assert!(grown < 16 * 1024, "{grown} KB");
    let (items, batches) = read(&file).await;
    assert_eq!((items.len(), items[15_999]["a"].as_str().unwrap().len()), (16_000, 2000));
    assert!(batches > 16, "{batches}");
}

#[tokio::test]
async fn a_file_of_items_counts_with_the_answer_or_is_a_failed_task_that_says_why() {
    for (script, expected) in [
        (r#"echo '{"result": 0, "items_file": "none"}'"#, "`items_file` none: there is no such file"),
        (
            r#"mkfifo $TRAWL_TMP/pipe; echo '{"result": 0, "items_file": "pipe"}'"#,
            "`items_file` pipe: it is no regular file",
        ),
        (
            r#"printf '{}\n\n[' > $TRAWL_TMP/x; echo '{"result": 0, "items_file": "x"}'"#,
            "the items_file, line 3: not JSON",
        ),
        (
            r#"chmod 0 $TRAWL_TMP; echo '{"result": 0, "items_file": 1}'"#,
            "`items_file` is text, not a number",
        ),
    ] {
        let (what, _) = failure(shell(script).await);
        assert!(what.starts_with("handler: ") && what.contains(expected), "{script}: {what}");
    }
    for (result, verdict) in [(1, Verdict::Failed), (2, Verdict::Skip)] {
        let ended = shell(&format!(r#"echo '{{"result": {result}, "items_file": "none"}}'"#)).await;
        assert!(matches!(ended, Ended::Answered(answer, None) if answer.verdict == verdict));
    }
    let folder = tempfile::tempdir().unwrap();
    let script = r#"echo $TRAWL_TMP > folder; echo '{"a": 1}' > $TRAWL_TMP/x; echo "{\"result\": 0, \"items_file\": \"$TRAWL_TMP/x\"}""#;
    let ended = once(&program(folder.path(), Mode::Once, &["sh", "-c", script]), &task("x")).await;
    assert!(matches!(ended, Ended::Answered(_, Some(file)) if file.items() == 1));
    let own = fs::read_to_string(folder.path().join("folder")).unwrap();
    assert!(!fs::exists(own.trim()).unwrap(), "its folder goes with it");
}

#[tokio::test]
async fn a_gigabyte_of_output_is_a_failed_task_and_takes_no_memory() {
    let before = peak();
    for script in ["head -c 1000000000 /dev/zero", "yes", "yes >&2 & yes '{' | tr -d '\\n'"] {
        let (what, logs) = failure(shell(script).await);
        assert!(what.contains("more than 16 MB"), "{script}: {what}");
        assert!(logs.len() <= 16 * 1024);
    }
    // What is read of an answer, and as much again while its buffer grows.
    assert!(peak() - before < 64 * 1024, "{} KB", peak() - before);
}

#[tokio::test]
async fn a_program_that_hangs_ends_at_its_deadline_however_it_hangs() {
    let second = |handler| Handler { timeout: Duration::from_secs(1), ..handler };
    let scripts = [
        "import time; time.sleep(60)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.close(1); time.sleep(60)",
        // Where it may, its supervisor can do nothing then.
        "import os, signal, time\ntry: os.kill(os.getppid(), signal.SIGSTOP)\nexcept PermissionError: pass\ntime.sleep(60)",
    ];
    let begun = Instant::now();
    let mut running =
        JoinSet::from_iter(scripts.map(|script| async move { (script, python(script, second).await) }));
    while let Some(ended) = running.join_next().await {
        let (script, ended) = ended.unwrap();
        assert_eq!(failure(ended).0, "handler: took longer than 1s", "{script}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn all_that_a_program_starts_ends_with_it_wherever_it_went() {
    let folder = tempfile::tempdir().unwrap();
    // A daemon: of another session, deaf, and no child of the program any more.
    let script = r#"(setsid sh -c 'trap "" TERM HUP; echo $$ > daemon; sleep 1000' > /dev/null 2>&1 &)
        while [ ! -s daemon ]; do sleep 0.01; done; echo '{"result": 0}'"#;
    assert_done(once(&program(folder.path(), Mode::Once, &["sh", "-c", script]), &task("x")).await);
    let daemon = fs::read_to_string(folder.path().join("daemon")).unwrap();
    assert!(!is_there(&daemon), "{daemon}");
}

#[tokio::test]
async fn zombies_are_no_harm() {
    let script =
        "import os, sys\nfor _ in range(100):\n  if os.fork() == 0: os._exit(0)\nprint('{\"result\": 0}')";
    assert_done(python(script, |handler| handler).await);
}

#[tokio::test]
async fn a_fork_bomb_is_one_failed_task_and_nothing_of_it_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo $TRAWL_HANDLER_ID > id; f() { f | f & }; f; sleep 60";
    let ended = once(&program(folder.path(), Mode::Once, &["sh", "-c", script]), &task("x")).await;
    let (what, _) = failure(ended);
    assert!(what.contains("processes"), "{what}");
    let id = fs::read_to_string(folder.path().join("id")).unwrap();
    assert!(!runs_with(&format!("TRAWL_HANDLER_ID={}", id.trim())));
    assert_done(shell(r#"echo '{"result": 0}'"#).await);
}

#[tokio::test]
async fn memory_is_bounded_for_one_process_and_for_all_together() {
    let small = |handler| Handler { memory: ByteSize::mb(48), ..handler };
    let (what, _) = failure(python("x = bytearray(500_000_000)", small).await);
    for part in
        ["exited with status 1, without the memory that it asked for", "twice [handler] memory): MemoryError"]
    {
        assert!(what.contains(part), "{what}");
    }
    let (what, _) = failure(python("import os; os.kill(os.getpid(), 9)", small).await);
    assert!(
        what.contains("signal 9 (SIGKILL, as by a system or container that is short of memory)"),
        "{what}"
    );
    let (what, _) = failure(python("import time; x = bytearray(60_000_000); time.sleep(60)", small).await);
    assert!(what.contains("took more memory than it may"), "{what}");
}

#[tokio::test]
async fn a_program_whose_supervisor_is_killed_dies_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"echo $$ > program; (setsid sh -c 'echo $$ > daemon; sleep 1000' > /dev/null 2>&1 &)
        while [ ! -s daemon ]; do sleep 0.01; done; echo $PPID > supervisor; sleep 1000"#;
    let (program, task) = (program(folder.path(), Mode::Once, &["sh", "-c", script]), task("x"));
    let supervisor = folder.path().join("supervisor");
    let kill = async {
        let pid = content(&supervisor).await.trim().parse().ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    };
    let (ended, ()) = tokio::join!(once(&program, &task), kill);
    let (what, _) = failure(ended);
    assert!(what.contains("lost its supervisor"), "{what}");
    for file in ["program", "daemon"] {
        let pid = fs::read_to_string(folder.path().join(file)).unwrap();
        // Dead; whoever adopted it may not have noticed yet.
        let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{file}: {state}");
    }
}

#[tokio::test]
async fn a_program_can_neither_signal_nor_look_into_what_bounds_it() {
    if !exec::can_confine() {
        return;
    }
    // What root's programs may read of any process (CAP_PERFMON: environ, maps) is not looked at: trawl's tests do, as
    // another user. In the place of a worker is a process of this test's own: it has a secret, and is no descendant of
    // the program either.
    let mut worker = Command::new("sleep").arg("60").env("SECRET", "s3cret").spawn().unwrap();
    let script = format!(
        r#"
import json, os, signal
def tries(what):
    try: return "refused" if what() == b"" else "done"
    except PermissionError: return "refused"
    except OSError as error: return str(error)
outside = {{"supervisor": os.getppid(), "worker": {}}}
got = {{}}
for name, pid in outside.items():
    for sent in ("SIGSTOP", "SIGTERM", "SIGKILL"):
        got[name + " " + sent] = tries(lambda: os.kill(pid, getattr(signal, sent)))
    got[name + " group"] = tries(lambda: os.killpg(os.getpgid(pid), signal.SIGTERM))
    got[name + " pidfd"] = tries(lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGTERM))
    for file in ("mem", "fd/0"):
        got[name + " " + file] = tries(lambda: open("/proc/%d/%s" % (pid, file), "rb").read(1))
child = os.fork()
if child == 0:
    signal.pause()
os.kill(child, signal.SIGKILL)
print(json.dumps({{"result": 0, "items": [got]}}))
"#,
        worker.id()
    );
    let answer = answer(python(&script, |handler| handler).await);
    let is_there = worker.try_wait().unwrap().is_none();
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert!(is_there && answer.items[0].len() == 14, "{:?}", answer.items);
    assert!(answer.items[0].values().all(|got| got == "refused"), "{:?}", answer.items);
}

#[tokio::test]
async fn a_folder_that_fills_ends_its_program() {
    let small = |handler| Handler { disk: ByteSize::mb(16), ..handler };
    // No more than shows: endless writing would hold up the disks of other tests.
    let kept = "import os, time\nfile = open(os.environ['TRAWL_TMP'] + '/x', 'wb', 0)\nfile.write(b'x' * (32 << 20))\ntime.sleep(1000)";
    let deleted = kept.replace("time.sleep", "os.remove(file.name)\ntime.sleep");
    for full in [kept, &deleted] {
        let (what, _) = failure(python(full, small).await);
        assert!(what.contains("had more in TRAWL_TMP than it may ([handler] disk"), "{what}");
    }
    let sparse = "import os\nos.truncate(os.open(os.environ['TRAWL_TMP'] + '/x', os.O_CREAT | os.O_RDWR), 1 << 40)\nprint('{\"result\": 0}')";
    assert_done(python(sparse, small).await);
}

#[tokio::test]
async fn a_program_that_is_no_longer_wanted_ends() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo $$ > program; sleep 1000";
    let program = program(folder.path(), Mode::Once, &["sh", "-c", script]);
    let file = folder.path().join("program");
    let task = task("x");
    let pid = tokio::select! {
        _ = once(&program, &task) => panic!("it has ended"),
        pid = content(&file) => pid,
    };
    until(|| !is_there(&pid)).await;
}

#[tokio::test]
async fn a_worker_that_is_killed_leaves_no_program_behind() {
    let folder = tempfile::tempdir().unwrap();
    // Takes the place of a worker, which starts a supervisor and is killed.
    let worker = r#"
import os, signal, subprocess, sys, time
exe, tmp = sys.argv[1:]
script = "(setsid sh -c 'echo $$ > daemon; sleep 1000' &) ; while [ ! -s daemon ]; do sleep 0.01; done; echo $$ > program; sleep 1000"
subprocess.Popen([exe, "handler-exec", "supervise", "token", str(os.getpid()), "1000000000", "1000000000", tmp, "/bin/sh", "-c", script],
                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0)
while not (os.path.exists("program") and os.path.getsize("program")): time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"#;
    let (status, tmp) = run_in_place_of_a_worker(folder.path(), worker);
    assert!(!status.success());
    for file in ["program", "daemon"] {
        let pid = fs::read_to_string(folder.path().join(file)).unwrap();
        until(|| !is_there(&pid)).await;
    }
    until(|| !tmp.exists()).await;
}

#[tokio::test]
async fn a_worker_that_is_killed_when_its_program_has_ended_leaves_no_folder_behind() {
    let folder = tempfile::tempdir().unwrap();
    // Takes the place of a worker, which waits for how the program ended and is killed then.
    let worker = r#"
import os, signal, subprocess, sys
exe, tmp = sys.argv[1:]
supervisor = subprocess.Popen([exe, "handler-exec", "supervise", "token", str(os.getpid()), "1000000000", "1000000000", tmp, "/bin/true"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0)
said = supervisor.stderr.read()
assert said == b"\ntoken exited 0\n" and os.path.exists(tmp) and supervisor.poll() is None, said
os.kill(os.getpid(), signal.SIGKILL)
"#;
    let (status, tmp) = run_in_place_of_a_worker(folder.path(), worker);
    assert_eq!(status.signal(), Some(9));
    until(|| !tmp.exists()).await;
}

/// Runs a program in Python that starts a supervisor as a worker does. Returns how it ended, and the folder that it
/// gave.
fn run_in_place_of_a_worker(folder: &Path, worker: &str) -> (ExitStatus, PathBuf) {
    let tmp = folder.join("tmp");
    fs::create_dir(&tmp).unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", worker, env!("CARGO_BIN_EXE_trawl-handler-exec")]).arg(&tmp).current_dir(folder);
    (command.status().unwrap(), tmp)
}

/// Waits until a file has a whole line, and returns its content.
async fn content(file: &std::path::Path) -> String {
    loop {
        match fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Waits for a condition that nothing announces; half a minute at most.
async fn until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "it did not come true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process is there, be it as a zombie.
fn is_there(pid: &str) -> bool {
    let pid = pid.trim().parse().ok().and_then(Pid::from_raw).unwrap();
    test_kill_process(pid).is_ok()
}

/// Whether a process runs whose environment has this variable.
fn runs_with(variable: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut environments = processes.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    environments.any(|all| all.split(|byte| *byte == 0).any(|one| one == variable.as_bytes()))
}

use trawl_common::format::parse_entry;
use trawl_common::jobs::Hold;

use super::*;

const AT: UnixMs = UnixMs(1_700_000_000_000);

fn logged(records: impl IntoIterator<Item = Record>) -> Logged {
    let mut logged = Logged::default();
    for record in records {
        // As read from the stream.
        let text = serde_json::to_vec(&JournalEntry { at: AT, record }).unwrap();
        logged.apply(parse_entry::<JournalEntry>(&text).unwrap().unwrap());
    }
    logged
}

fn id(text: &str) -> CrawlId {
    text.parse().unwrap()
}

fn submitted(job: &str, number: u64) -> Record {
    let new = Box::new(NewJob::new(id(job), "docs".parse().unwrap()));
    Record::Submitted { new, number, asked: AT }
}

fn taken(job: &str, runner: &str) -> Record {
    Record::Taken { job: id(job), runner: runner.parse().unwrap(), started: AT, lease: 60_000 }
}

fn ended(job: &str) -> Record {
    Record::ended(&id(job), &JobOutcome::Finished { problem: None }, AT)
}

fn status(logged: &Logged, job: &str) -> JobStatus {
    logged.jobs[&id(job)].job.status()
}

#[test]
fn a_job_is_as_its_records_say_whatever_is_written_again() {
    let fed = Record::Fed { job: id("a"), problem: None };
    let all = [submitted("a", 1), taken("a", "w"), fed, ended("a")];
    let expected = [JobStatus::Pending, JobStatus::Running, JobStatus::Running, JobStatus::Finished];
    for (count, expected) in expected.into_iter().enumerate() {
        let first = &all[..=count];
        assert_eq!(status(&logged(first.to_vec()), "a"), expected);
        let twice = logged([first, first].concat());
        assert_eq!(status(&twice, "a"), expected);
        let job = &twice.jobs[&id("a")].job;
        let again = logged(Record::of_job(job, AT));
        assert_eq!(again.jobs[&id("a")].job, *job, "it is written again as it was");
    }
}

#[test]
fn what_is_over_stays_so_and_may_be_told_before_the_job_is() {
    let early = logged([ended("a"), submitted("a", 1), taken("a", "w")]);
    assert_eq!(status(&early, "a"), JobStatus::Finished);
    let cancelled = logged([submitted("a", 1), Record::Cancelled { job: id("a") }, taken("a", "w")]);
    assert_eq!(status(&cancelled, "a"), JobStatus::Cancelled);
    let mut running = logged([submitted("a", 1), taken("a", "w"), Record::Cancelled { job: id("a") }]);
    let job = &mut running.jobs.get_mut(&id("a")).unwrap().job;
    assert_eq!(job.extend(&"w".parse().unwrap(), Duration::from_secs(1), AT), Hold::Cancelled);
}

#[test]
fn of_a_spider_one_job_is_being_fed() {
    let two = logged([submitted("a", 1), submitted("b", 2), taken("a", "w"), taken("b", "w")]);
    assert_eq!((status(&two, "a"), status(&two, "b")), (JobStatus::Pending, JobStatus::Running));
}

#[test]
fn a_version_that_was_removed_is_not_deployed_by_what_is_written_again() {
    let (project, version): (ProjectName, Version) = ("shop".parse().unwrap(), "one".parse().unwrap());
    let deployed = |number| {
        let spiders = [("books".parse().unwrap(), "follow = {}".to_owned())].into();
        let (project, version) = (project.clone(), version.clone());
        Record::Deployed { project, version, number, added: AT, spiders }
    };
    let removed = |version: Option<&Version>, number| Record::Removed {
        project: project.clone(),
        version: version.cloned(),
        number,
    };
    let versions = |records: Vec<Record>| logged(records).projects[&project].versions.len();
    assert_eq!(versions(vec![deployed(1), deployed(1)]), 1);
    for all in [None, Some(&version)] {
        assert_eq!(versions(vec![deployed(1), removed(all, 2), deployed(1)]), 0);
        assert_eq!(versions(vec![deployed(1), removed(all, 2), deployed(3)]), 1);
    }
}

#[test]
fn an_entry_of_a_newer_format_is_left_out() {
    let read = |text: &str| parse_entry::<JournalEntry>(text.as_bytes());
    assert!(read("{\"at\":1,\"record\":\"sealed\"}").unwrap().is_some());
    assert!(read("{\"at\":1,\"record\":\"sealed\",\"v\":4}").unwrap().is_none());
    assert!(read("{\"record\":\"renamed\",\"v\":4}").unwrap().is_none());
    assert!(read("{\"at\":1,\"record\":\"renamed\"}").is_err());
}

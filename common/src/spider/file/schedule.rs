//! `schedule`: the times as a text, or a table with more details.

use super::given::Given;
use super::notes::Notes;
use super::section::Section;
use crate::schedule::{Cron, Schedule, timezone};
use crate::spider::Start;

pub(super) const KEY: &str = "schedule";

pub(super) fn schedule(given: &Given<'_>) -> Option<Schedule> {
    if !given.is_table() {
        return given.parsed::<Cron>().map(Schedule::from);
    }
    let mut section = Section::from_given(given)?;
    let cron = section.need("cron", Given::parsed::<Cron>).map(Schedule::from);
    let zone = section.read("timezone", |given| {
        timezone(&given.words()?.value).map_or_else(|error| given.wrong(error), Some)
    });
    let missed = section.read("missed", Given::variant);
    let overlap = section.read("overlap", Given::variant);
    section.end();
    let schedule = cron?;
    Some(Schedule {
        timezone: zone.unwrap_or_else(|| schedule.timezone.clone()),
        missed: missed.unwrap_or_default(),
        overlap: overlap.unwrap_or_default(),
        ..schedule
    })
}

/// Notes what a spider with a schedule lacks to start by itself.
pub(super) fn note_lacking(given: &Given<'_>, notes: &Notes<'_>, start: &Start) {
    if notes.lacks_arguments() {
        notes.each_argument(|name, declared| {
            if declared.value.is_none() {
                given.wrong::<()>(format_args!(
                    "nobody gives the argument `{name}`: declare it with a default"
                ));
            }
        });
    } else if *start == Start::default() {
        given.wrong::<()>("there is nothing to start from: name it in [start]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Missed, Overlap};
    use crate::settings::Items;
    use crate::spider::file::{Reading, read};
    use crate::spider::{Origin, Spider};

    const START: &str = "[start]\nurls = ['https://a.example/']\n";

    fn reading(text: &str) -> Reading {
        read(Spider::without_file("shop".parse().unwrap(), &Items::default()), text, Origin::Local, &|_| None)
    }

    #[test]
    fn a_text_is_a_schedule_in_utc_and_a_table_has_more_options() {
        let cron = || Schedule::from("*/15 * * * *".parse::<Cron>().unwrap());
        let plain = reading(&format!("schedule = '*/15 * * * *'\n{START}")).ready().unwrap();
        assert_eq!(plain.schedule, Some(cron()));
        let table = format!(
            "{START}[schedule]\ncron = '*/15 * * * *'\ntimezone = 'Europe/Berlin'\nmissed = 'run'\noverlap = 'queue'"
        );
        let expected = Schedule {
            timezone: timezone("Europe/Berlin").unwrap(),
            missed: Missed::Run,
            overlap: Overlap::Queue,
            ..cron()
        };
        assert_eq!(reading(&table).ready().unwrap().schedule, Some(expected));
        assert_eq!(reading(START).ready().unwrap().schedule, None);
    }

    #[test]
    fn mistakes_are_reported_with_their_places() {
        for (text, expected) in [
            ("schedule = '60 * * * *'", "1:12 schedule: minute: `60` is no number from 0 to 59"),
            ("schedule = 5", "1:12 schedule: a text in quotes is wanted"),
            ("schedule = { timezone = 'UTC' }", "1:12 schedule: `cron` is missing"),
            ("schedule = { cron = '* * * *' }", "1:21 schedule.cron: five fields are wanted"),
            (
                "schedule = { cron = '* * * * *', timezone = 'Berlin' }",
                "1:45 schedule.timezone: there is no time zone `Berlin`",
            ),
            (
                "schedule = { cron = '* * * * *', missed = 'runs' }",
                "1:43 schedule.missed: there is no `runs`",
            ),
            (
                "schedule = { cron = '* * * * *', overlaps = 'skip' }",
                "1:34 there is no key `schedule.overlaps`",
            ),
        ] {
            let Reading { mistakes, .. } = reading(&format!("{text}\n{START}"));
            let found: Vec<String> =
                mistakes.iter().map(|mistake| format!("{} {mistake}", mistake.place.unwrap())).collect();
            assert!(found.len() == 1 && found[0].starts_with(expected), "{text}: {found:#?}");
        }
    }

    #[test]
    fn a_spider_with_a_schedule_has_its_start_and_all_arguments_in_its_file() {
        let mistakes = |text: &str| {
            let found = reading(text).mistakes;
            found.iter().map(|mistake| format!("{} {mistake}", mistake.place.unwrap())).collect::<Vec<_>>()
        };
        let expected = "1:12 schedule: there is nothing to start from: name it in [start]";
        assert_eq!(mistakes("schedule = '* * * * *'"), [expected]);
        let start = "[start]\nurls = ['https://a.example/{arg.page}']\n[arguments]\n";
        let expected = "1:12 schedule: nobody gives the argument `page`: declare it with a default";
        assert_eq!(mistakes(&format!("schedule = '* * * * *'\n{start}page = {{}}")), [expected]);
        assert_eq!(mistakes(&format!("schedule = '* * * * *'\n{start}page = '1'")), [""; 0]);
    }
}

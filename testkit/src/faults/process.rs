//! The processes of a server, as listed in `/proc`.

use std::fs;

/// The fields of a process in `/proc/<process>/stat`.
struct Stat {
    state: char,
    parent: u32,
    threads: u32,
}

impl Stat {
    fn read(process: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// The fields follow the last bracket: the name of the program, in brackets, may contain any character.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
        })
    }
}

/// Whether a process or one of its threads is running. A zombie is not.
pub(super) fn is_alive(process: u32) -> bool {
    Stat::read(process).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X') || stat.threads > 1)
}

/// Returns a process and all its descendants, parents first. Processes that have outlived their parent are not found.
pub(super) fn with_descendants(process: u32) -> Vec<u32> {
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> =
        numbers.filter_map(|number| Some((number, Stat::read(number)?.parent))).collect();
    let mut family = vec![process];
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_name_of_a_program_may_hold_anything() {
        let stat =
            Stat::parse("7 (a) R 1 (b) Z 5 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 3 0 1 0 0\n").unwrap();
        assert_eq!((stat.state, stat.parent, stat.threads), ('Z', 5, 3));
    }

    #[test]
    fn what_a_server_started_in_groups_of_its_own_is_found_and_what_ended_is_gone() {
        let mut shell = Command::new("sh")
            .args(["-c", "setsid sleep 1000 & echo started; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = [0; 8];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut printed).unwrap();
        let family = with_descendants(shell.id());
        assert_eq!((family.len(), family[0]), (2, shell.id()));
        assert!(family.iter().all(|process| is_alive(*process)));
        let numbers = family.iter().map(u32::to_string);
        assert!(Command::new("kill").arg("-KILL").args(numbers).status().unwrap().success());
        // The process is not waited for until here.
        while is_alive(family[0]) {
            std::thread::yield_now();
        }
        shell.wait().unwrap();
        assert!(!is_alive(family[0]));
    }
}

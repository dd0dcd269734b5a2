//! A daemon killed at a record of one operation, and the next one at another, which may be one that
//! only a second daemon writes: every pair of them.

use super::*;

#[test]
fn a_command_whose_daemon_is_killed_twice_runs_once() {
    die_twice(1, "effects", "ran\n");
}

#[test]
fn a_file_is_edited_once_where_the_daemon_is_killed_twice() {
    die_twice(3, "edited", "y and z");
}

#[test]
fn a_file_is_uploaded_where_the_daemon_is_killed_twice() {
    die_twice(5, "uploaded", "all of it");
}

#[test]
fn a_file_is_moved_once_where_the_daemon_is_killed_twice() {
    die_twice(12, "moved", "all of it");
}

#[test]
fn an_archive_is_unpacked_where_the_daemon_is_killed_twice() {
    die_twice(14, "unpacked/link", "all of it");
}

/// The operation is done, and its file has this content, wherever the first two daemons die.
fn die_twice(number: u128, file: &str, content: &str) {
    let (_, mut kinds) = written_with_only(Some(number));
    kinds.retain(|kind| *kind != Kind::Boot);
    let points = |kinds: &[Kind]| -> Vec<_> {
        let fault = |(kind, after)| Fault {
            kind,
            nth: 0,
            after,
        };
        let both = kinds
            .iter()
            .flat_map(|kind| [(*kind, false), (*kind, true)]);
        both.map(fault).collect()
    };
    let mut died = Vec::new();
    // Before the first record there is nothing to go on from.
    for first in &points(&kinds)[1..] {
        for second in points(&[kinds.as_slice(), &[Kind::Released]].concat()) {
            let place = place();
            let go_on = |fault| run_only(Some(number), place.path(), fault);
            assert!(go_on(Some(*first)), "no death {first}");
            if go_on(Some(second)) {
                died.push(second.kind);
                assert!(!go_on(None), "a death without a fault");
            }
            let found = std::fs::read_to_string(place.path().join("workspace").join(file));
            assert_eq!(found.expect("a file"), content, "{first}, {second}");
        }
    }
    for kind in kinds.iter().chain(&[Kind::Released]) {
        assert!(died.contains(kind), "no second death at {kind:?}");
    }
}

use std::convert::Infallible;

use shared_sandbox::{Exec, MakeDirectory, Move, Pack, Stat, Unpack, examples};
use shared_types::{Digest, DigestAlgorithm, FileDigest};

use super::*;

const ROOT: &str = "/home/me/work";

/// The deeds of a request, each in one word for its kind and its text.
fn deeds(request: &Request) -> Vec<String> {
    let mut told = Vec::new();
    let judged = each(request, &[Path::new(ROOT)], |deed, folder| {
        told.push(match deed {
            Deed::Shell(script) => format!("shell {script}"),
            Deed::Argv(words) if folder.is_empty() => format!("argv {}", words.join(" ")),
            Deed::Argv(words) => format!("argv {} in {folder}", words.join(" ")),
            Deed::Read(path) => format!("read {path}"),
            Deed::Write(path) => format!("write {path}"),
            Deed::Search(_) | Deed::Fetch(_) | Deed::Tool(_) => "other".to_owned(),
        });
        Ok::<_, Infallible>(())
    });
    judged.expect("nothing is refused");
    told
}

fn stat(path: &str) -> Request {
    Request::Stat(Stat {
        path: path.to_owned(),
        follow: false,
    })
}

fn moved(from: &str, to: &str) -> Request {
    Request::Move(Move {
        from: from.to_owned(),
        to: to.to_owned(),
        replace: false,
    })
}

fn remove(path: &str, tree: bool) -> Request {
    let path = path.to_owned();
    Request::Remove(Remove { path, tree })
}

#[test]
fn each_kind_of_request_has_a_deed_and_only_what_reads_is_a_read() {
    for request in examples::requests() {
        let deeds = deeds(&request);
        let is_empty_pack = matches!(&request, Request::Pack(pack) if pack.entries.is_empty());
        assert!(!deeds.is_empty() || is_empty_pack, "{request:?}");
        let reads = deeds.iter().all(|deed| deed.starts_with("read "));
        assert_eq!(reads, request.only_reads(), "{request:?}");
    }
}

#[test]
fn a_file_has_one_name_however_it_is_asked_for() {
    for asked in [
        "src/a",
        "./src//a",
        "b/../src/a",
        "/home/me/work/src/a",
        "/home/me/work/./b/../src/a",
    ] {
        assert_eq!(deeds(&stat(asked)), ["read src/a"], "{asked}");
    }
    // Another folder that only begins alike.
    assert_eq!(
        deeds(&stat("/home/me/workshop")),
        ["read /home/me/workshop"]
    );
}

#[test]
fn a_move_and_an_archive_have_a_deed_for_each_path() {
    assert_eq!(deeds(&moved("a", "b/c")), ["write a", "write b/c"]);
    let pack = Request::Pack(Pack {
        path: "src".to_owned(),
        entries: vec!["a".to_owned(), "b/../../.env".to_owned()],
        algorithm: DigestAlgorithm::default(),
    });
    assert_eq!(deeds(&pack), ["read src/a", "read .env"]);
    let argv = Request::Exec(Exec::new(Command::Argv(vec!["git".into(), "push".into()])));
    assert_eq!(deeds(&argv), ["argv git push"]);
}

#[test]
fn a_change_of_a_whole_folder_meets_the_rules_for_what_may_lie_there() {
    let unpack = |path: &str| {
        Request::Unpack(Unpack {
            path: path.to_owned(),
            bytes: 1,
            digest: FileDigest::from(Digest::of(b"")),
        })
    };
    let cases = [
        (unpack("src"), "Write(**/.env)", true),
        (unpack("src"), "Write(src/secret/**)", true),
        (unpack("src"), "Write(docs/**)", false),
        (unpack(""), "Write(docs/**)", true),
        (unpack("src"), "Read(src/**)", false),
        (remove("config", true), "Write(config/prod/**)", true),
        (
            remove("/home/me/work/config", true),
            "Write(config/prod/**)",
            true,
        ),
        (remove("config", false), "Write(config/prod/**)", false),
        (moved("config", "old"), "Write(config/prod/**)", true),
        (moved("a", "config"), "Write(config/prod/**)", true),
        (moved("a", "b"), "Write(**/.env)", false),
        (
            Request::MakeDirectory(MakeDirectory {
                path: "src".to_owned(),
            }),
            "Write(src/**)",
            false,
        ),
    ];
    for (request, rule, meets) in cases {
        let rule = rule.parse().expect("a rule");
        let told = may_change_beneath(&request, &[Path::new(ROOT)], &rule);
        assert_eq!(told, meets, "{request:?} {rule}");
    }
}

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    time::{Duration, SystemTime},
};

use shared_sandbox::{FileFailure, Glob, Globbed, Grep, GrepMatch, Outcome, Skipped};

use crate::testing::Scene;

fn glob(path: &str, pattern: &str) -> Glob {
    Glob {
        path: path.to_owned(),
        pattern: pattern.to_owned(),
        max_paths: 100,
    }
}

fn grep(path: &str, pattern: &str) -> Grep {
    Grep {
        path: path.to_owned(),
        pattern: pattern.to_owned(),
        files: String::new(),
        ignore_case: false,
        max_matches: 100,
    }
}

impl Scene {
    async fn glob(&self, glob: Glob) -> Globbed {
        match self.outcome(glob).await {
            Outcome::Globbed(globbed) => globbed,
            other => panic!("expected paths, not {other:?}"),
        }
    }

    /// The paths that fit, by name.
    async fn paths(&self, glob: Glob) -> Vec<String> {
        let mut paths = self.glob(glob).await.paths;
        paths.sort();
        paths
    }

    /// What a search of everything left out.
    async fn skipped(&self, pattern: &str) -> Vec<String> {
        match self.outcome(grep("", pattern)).await {
            Outcome::Grepped(grepped) => {
                let words = |skipped: &Skipped| skipped.failure.to_string();
                grepped.skipped.iter().map(words).collect()
            }
            other => panic!("expected lines, not {other:?}"),
        }
    }

    /// The lines that fit as `path:line:text`, and whether there are more.
    async fn grep(&self, grep: Grep) -> (Vec<String>, bool) {
        match self.outcome(grep).await {
            Outcome::Grepped(grepped) => {
                let shown = |GrepMatch { path, line, text }| format!("{path}:{line}:{text}");
                (
                    grepped.matches.into_iter().map(shown).collect(),
                    grepped.more,
                )
            }
            other => panic!("expected lines, not {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_glob_finds_files_newest_first() {
    let scene = Scene::new();
    for (age, name) in [
        (30, "old.rs"),
        (10, "src/new.rs"),
        (20, "src/deep/middle.rs"),
    ] {
        scene.put(name, "");
        let file = File::options()
            .write(true)
            .open(scene.path(name))
            .expect("a file");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - age))
            .expect("a time");
    }
    scene.put("src/other.txt", "");
    let all = ["src/new.rs", "src/deep/middle.rs", "old.rs"];
    assert_eq!(scene.glob(glob("", "**/*.rs")).await.paths, all);
    let few = scene
        .glob(Glob {
            max_paths: 2,
            ..glob("", "**/*.rs")
        })
        .await;
    assert_eq!(
        (few.paths.as_slice(), few.more),
        (&all.map(str::to_owned)[..2], true)
    );
    assert_eq!(scene.paths(glob("", "./*.rs")).await, ["old.rs"]);
    assert_eq!(
        scene.paths(glob("", "*.rs")).await,
        ["old.rs", "src/deep/middle.rs", "src/new.rs"],
        "a name fits at any depth"
    );
    assert_eq!(
        scene.paths(glob("src", "*.{rs,txt}")).await,
        ["src/deep/middle.rs", "src/new.rs", "src/other.txt"]
    );
    assert_eq!(
        scene.paths(glob("", "./src/*/*.rs")).await,
        ["src/deep/middle.rs"]
    );
}

#[tokio::test]
async fn what_gitignore_names_is_left_out() {
    let scene = Scene::new();
    scene.put(".gitignore", "/target\n*.log\n!keep.log\n# comment\n[\n");
    scene.put("sub/.gitignore", "private/\n!loud.log\n");
    for name in [
        "target/x",
        "a.log",
        "keep.log",
        "sub/b.log",
        "sub/loud.log",
        "sub/private/y",
        "sub/target/z",
        ".git/config",
        ".hidden",
    ] {
        scene.put(name, "needle\n");
    }
    let all = scene.paths(glob("", "**")).await;
    assert_eq!(
        all,
        [
            ".gitignore",
            ".hidden",
            "keep.log",
            "sub/.gitignore",
            "sub/loud.log",
            "sub/target/z"
        ]
    );
    assert_eq!(
        scene.paths(glob("sub", "**/*")).await,
        ["sub/.gitignore", "sub/loud.log", "sub/target/z"]
    );
    assert_eq!(
        scene.paths(glob("target", "**")).await,
        ["target/x"],
        "it was asked for by name"
    );
    let (lines, _) = scene.grep(grep("", "needle")).await;
    assert_eq!(
        lines,
        [
            ".hidden:1:needle",
            "keep.log:1:needle",
            "sub/loud.log:1:needle",
            "sub/target/z:1:needle"
        ]
    );
}

#[tokio::test]
async fn a_walk_follows_links_within_the_workspace_and_never_in_circles_and_waits_for_no_pipe() {
    let scene = Scene::new();
    fs::write(scene.outside().join("secret"), "needle").expect("a secret");
    scene.put("a/file", "needle\n");
    symlink(scene.outside(), scene.path("out")).expect("a link");
    symlink(".", scene.path("a/circle")).expect("a link");
    symlink(scene.outside().join("secret"), scene.path("secret")).expect("a link");
    scene.pipe("pipe");
    scene.pipe("a/.gitignore");
    assert_eq!(scene.paths(glob("", "**")).await, ["a/file"]);
    assert_eq!(scene.grep(grep("", "needle")).await.0, ["a/file:1:needle"]);
    symlink("a", scene.path("alias")).expect("a link");
    assert_eq!(
        scene.paths(glob("alias", "*")).await,
        ["a/file"],
        "a start may be a link"
    );
    scene.put("b/other", "needle\n");
    symlink("../a", scene.path("b/to-a")).expect("a link");
    symlink("../b", scene.path("a/to-b")).expect("a link");
    symlink("a/file", scene.path("link")).expect("a link");
    symlink("nowhere", scene.path("dangling")).expect("a link");
    scene.put(".git/config", "needle\n");
    symlink(".git", scene.path("git")).expect("a link");
    let found = scene.paths(glob("", "**")).await;
    assert_eq!(
        found,
        ["a/file", "a/to-b/other", "alias/file", "b/other", "link",]
    );
    assert_eq!(
        scene.grep(grep("", "needle")).await.0,
        found
            .iter()
            .map(|path| format!("{path}:1:needle"))
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_pattern_that_cannot_be_used_is_told_in_one_line() {
    let scene = Scene::new();
    for pattern in [
        "(",
        "a{2,1}",
        "\\p{Nothing}",
        "a\\nb",
        "(?P<x",
        "x{9999999}",
    ] {
        match scene.failure(grep("", pattern)).await {
            FileFailure::Pattern { reason } => {
                assert!(
                    !reason.is_empty() && !reason.contains('\n'),
                    "{pattern}: {reason}"
                );
            }
            other => panic!("{pattern}: {other:?}"),
        }
    }
    for pattern in ["", "[", "/etc/*", "{a"] {
        for failure in [
            scene.failure(glob("", pattern)).await,
            if pattern.is_empty() {
                continue;
            } else {
                scene
                    .failure(Grep {
                        files: pattern.to_owned(),
                        ..grep("", "x")
                    })
                    .await
            },
        ] {
            assert!(
                matches!(failure, FileFailure::Pattern { .. }),
                "{pattern}: {failure:?}"
            );
        }
    }
}

#[tokio::test]
async fn lines_are_found_by_path_and_number() {
    let scene = Scene::new();
    scene.put("b.rs", "fn One\nfn two\r\nfn one\n");
    scene.put("a/z.txt", "one");
    scene.put("a.rs", "one\n");
    scene.put("binary", b"one\none\0");
    assert_eq!(scene.skipped("one").await, ["\"binary\" is a binary file"]);
    let all = ["a/z.txt:1:one", "a.rs:1:one", "b.rs:3:fn one"].map(str::to_owned);
    assert_eq!(scene.grep(grep("", "one")).await, (all.to_vec(), false));
    let (lines, _) = scene
        .grep(Grep {
            ignore_case: true,
            ..grep("b.rs", "^FN (one|two)$")
        })
        .await;
    assert_eq!(lines, ["b.rs:1:fn One", "b.rs:2:fn two", "b.rs:3:fn one"]);
    let (lines, _) = scene
        .grep(Grep {
            files: "**/*.txt".to_owned(),
            ..grep("", "one")
        })
        .await;
    assert_eq!(lines, ["a/z.txt:1:one"]);
    let few = scene
        .grep(Grep {
            max_matches: 2,
            ..grep("", "one")
        })
        .await;
    assert_eq!(few, (all[..2].to_vec(), true));
    let exact = scene
        .grep(Grep {
            max_matches: 3,
            ..grep("", "one")
        })
        .await;
    assert_eq!(exact, (all.to_vec(), false));
    assert!(matches!(
        scene.failure(grep("binary", "one")).await,
        FileFailure::Binary { .. }
    ));
    assert!(matches!(
        scene.failure(grep("missing", "one")).await,
        FileFailure::NotFound { .. }
    ));
}

#[tokio::test]
async fn a_long_line_is_shown_cut_between_characters() {
    let scene = Scene::new();
    scene.put("file", format!("x{}", "ä".repeat(1000)));
    let (lines, _) = scene.grep(grep("", "ä")).await;
    assert_eq!(lines, [format!("file:1:x{}", "ä".repeat(249))]);
}

#[tokio::test]
async fn text_is_found_beside_nul_bytes_in_long_lines_and_in_utf_16() {
    let scene = Scene::new();
    scene.put(
        "late",
        [&b"x\n".repeat(10_000)[..], b"\0one\nlast one\n"].concat(),
    );
    let long = [&[b'x'; 2 * 1024 * 1024][..], b"one\n"].concat();
    scene.put("long", &long);
    let wide = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    };
    scene.put("utf-16", wide("\u{feff}no\r\none\r\n", u16::to_le_bytes));
    scene.put("utf-16-be", wide("\u{feff}one\n", u16::to_be_bytes));
    let (lines, _) = scene.grep(grep("", "one")).await;
    assert_eq!(lines.len(), 5, "{lines:?}");
    assert_eq!(lines[0], "late:10001:\u{fffd}one");
    assert_eq!(lines[1], "late:10002:last one");
    assert!(lines[2].starts_with("long:1:xxx"), "{}", lines[2]);
    assert_eq!(lines[3..], ["utf-16:2:one", "utf-16-be:1:one"]);
    assert!(scene.skipped("one").await.is_empty());
}

#[tokio::test]
async fn a_search_names_what_it_left_out() {
    let scene = Scene::new();
    let long = [&b"one\n"[..], &[b'x'; 9 * 1024 * 1024], b"\none\n"].concat();
    scene.put("long", &long);
    for name in 10..22 {
        scene.put(&format!("{name}.bin"), b"one\0");
    }
    let Outcome::Grepped(found) = scene.outcome(grep("", "one")).await else {
        panic!("lines");
    };
    assert_eq!(found.matches.len(), 1, "what stands before the long line");
    assert_eq!((found.skipped.len(), found.more_skipped), (10, 3));
    assert_eq!(found.skipped[0].path, "10.bin");
    let Outcome::Grepped(alone) = scene.outcome(grep("long", "one")).await else {
        panic!("lines");
    };
    let said = alone.skipped[0].failure.to_string();
    assert!(said.contains("a line has more than"), "{said}");
}

#[tokio::test]
async fn gitignore_files_that_are_too_large_are_not_read_and_counted() {
    let scene = Scene::new();
    let rules = |bytes: usize| format!("*.log\n{}", "#".repeat(bytes - 6));
    scene.put("small/.gitignore", rules(64 * 1024));
    scene.put("large/.gitignore", rules(64 * 1024 + 1));
    for folder in ["small", "large"] {
        scene.put(&format!("{folder}/a.log"), "needle");
    }
    let found = scene.glob(glob("", "**/*.log")).await;
    assert_eq!(
        (found.paths, found.unread_rules),
        (vec!["large/a.log".to_owned()], 1)
    );
    let Outcome::Grepped(found) = scene.outcome(grep("large", "needle")).await else {
        panic!("lines");
    };
    assert_eq!((found.matches.len(), found.unread_rules), (1, 1));
}

#[tokio::test]
async fn the_rules_of_nested_folders_have_one_bound_together() {
    let scene = Scene::new();
    let mut folder = String::new();
    for _ in 0..12 {
        scene.put(&format!("{folder}.gitignore"), "x".repeat(60 * 1024));
        folder += "d/";
    }
    assert_eq!(scene.glob(glob("", "**")).await.unread_rules, 8);
    assert_eq!(scene.glob(glob(&folder[..6], "**")).await.unread_rules, 8);
}

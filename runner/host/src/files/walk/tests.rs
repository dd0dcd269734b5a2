use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    time::{Duration, SystemTime},
};

use shared_sandbox::{FileFailure, Glob, Globbed, Grep, GrepMatch, Outcome};

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
    assert_eq!(scene.paths(glob("", "*.rs")).await, ["old.rs"]);
    assert_eq!(
        scene.paths(glob("src", "*.{rs,txt}")).await,
        ["src/new.rs", "src/other.txt"]
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
async fn a_walk_follows_no_link_and_waits_for_no_pipe() {
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
async fn a_file_that_turns_out_to_be_binary_has_no_lines() {
    let scene = Scene::new();
    scene.put(
        "late",
        [b"one\n".repeat(20).as_slice(), &[b'x'; 100_000], b"\0"].concat(),
    );
    assert_eq!(scene.grep(grep("", "one")).await, (Vec::new(), false));
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

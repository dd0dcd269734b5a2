use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
};

use shared_sandbox::{
    FileFailure, Instructions, MAX_PROJECT_FILE_BYTES, Outcome, Survey, Surveyed,
};

use crate::testing::Scene;

const KIB: usize = 1024;

async fn survey(scene: &Scene, path: &str) -> Surveyed {
    let asked = Survey {
        path: path.to_owned(),
        max_bytes: 32 * 1024,
        of_user: true,
        extension_bytes: 192 * 1024,
    };
    match scene.outcome(asked).await {
        Outcome::Surveyed(mut surveyed) => {
            // Those of whoever runs the tests.
            surveyed
                .instructions
                .retain(|file| !file.path.starts_with("~/"));
            surveyed
        }
        other => panic!("expected a survey, not {other:?}"),
    }
}

fn paths(surveyed: &Surveyed) -> Vec<&str> {
    surveyed
        .instructions
        .iter()
        .map(|file| file.path.as_str())
        .collect()
}

#[tokio::test]
async fn the_instructions_of_each_directory_down_to_the_work_are_read_and_the_nearest_is_last() {
    let scene = Scene::new();
    scene.put("AGENTS.md", "of the root");
    scene.put("CLAUDE.md", "not read, because the other one is there");
    scene.put("src/CLAUDE.md", "of src");
    scene.put("src/deep/AGENTS.md", "of deep");
    scene.put("other/AGENTS.md", "of another directory");
    scene.put(".git/HEAD", "ref: refs/heads/topic/one\n");
    let surveyed = survey(&scene, "src/deep").await;
    assert_eq!(
        paths(&surveyed),
        ["AGENTS.md", "src/CLAUDE.md", "src/deep/AGENTS.md"]
    );
    assert_eq!(surveyed.instructions[0].text, "of the root");
    assert_eq!(surveyed.branch.as_deref(), Some("topic/one"));
    assert!(
        surveyed.folder.ends_with("/src/deep"),
        "{}",
        surveyed.folder
    );
    assert!(
        surveyed.system.ends_with(std::env::consts::ARCH),
        "{}",
        surveyed.system
    );
    assert_eq!(surveyed.unread, []);
    assert_eq!(paths(&survey(&scene, "").await), ["AGENTS.md"]);
}

#[tokio::test]
async fn of_more_than_fits_the_nearest_stays_whole_and_the_farther_ones_are_cut() {
    let scene = Scene::new();
    scene.put("AGENTS.md", "a".repeat(30 * KIB));
    scene.put("src/AGENTS.md", "b".repeat(20 * KIB));
    let surveyed = survey(&scene, "src").await;
    let lengths = surveyed
        .instructions
        .iter()
        .map(|file| (file.text.len(), file.bytes, file.cut));
    let whole = (20 * KIB, 20 * KIB as u64, false);
    assert_eq!(
        lengths.collect::<Vec<_>>(),
        [(12 * KIB, 30 * KIB as u64, true), whole]
    );

    let sparse = fs::File::create(scene.path("src/AGENTS.md")).expect("a file is made");
    sparse.set_len(1 << 30).expect("it has a gigabyte");
    let surveyed = survey(&scene, "src").await;
    let Some(Instructions {
        text, bytes, cut, ..
    }) = surveyed.instructions.last()
    else {
        panic!("it is read");
    };
    assert_eq!((text.len(), *bytes, *cut), (32 * KIB, 1 << 30, true));
}

#[tokio::test]
async fn what_is_no_file_or_lies_outside_is_named_and_not_read() {
    let scene = Scene::new();
    let _socket = UnixListener::bind(scene.path("AGENTS.md")).expect("a socket is made");
    scene.put("CLAUDE.md", "hidden by the socket");
    fs::create_dir(scene.path("src")).expect("a directory is made");
    let secret = scene.outside().join("secret");
    fs::write(&secret, "secret").expect("a file is made");
    symlink(&secret, scene.path("src/AGENTS.md")).expect("a link is made");
    let surveyed = survey(&scene, "src").await;
    assert_eq!(surveyed.instructions, []);
    let unread: Vec<_> = surveyed
        .unread
        .iter()
        .map(|one| (one.path.as_str(), &one.failure))
        .collect();
    let outside = FileFailure::OutsideWorkspace {
        path: "src/AGENTS.md".to_owned(),
    };
    let socket = FileFailure::NotAFile {
        path: "AGENTS.md".to_owned(),
    };
    assert_eq!(
        unread,
        [("src/AGENTS.md", &outside), ("AGENTS.md", &socket)]
    );

    let missing = Survey {
        path: "no/such".to_owned(),
        max_bytes: 1,
        of_user: false,
        extension_bytes: 0,
    };
    let failed = scene.outcome(missing).await;
    assert!(
        matches!(failed, Outcome::Failed(FileFailure::NotFound { .. })),
        "{failed:?}"
    );
}

/// The path and the text of the project's rules.
fn rules(surveyed: &Surveyed) -> Option<(&str, &str)> {
    let project = surveyed.project.as_ref()?;
    Some((&project.path, &project.text))
}

#[tokio::test]
async fn the_nearest_file_with_rules_is_read_whole_and_hides_those_above_it() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("src/deep")).expect("a directory is made");
    assert_eq!(rules(&survey(&scene, "src/deep").await), None);
    let file = ".gantry/permissions.toml";
    scene.put(file, "deny = []");
    let near = format!("src/{file}");
    assert_eq!(
        rules(&survey(&scene, "src/deep").await),
        Some((file, "deny = []"))
    );
    let full = "#".repeat(MAX_PROJECT_FILE_BYTES as usize);
    scene.put(&near, &full);
    assert_eq!(
        rules(&survey(&scene, "src/deep").await),
        Some((&*near, &*full))
    );
    assert_eq!(rules(&survey(&scene, "").await), Some((file, "deny = []")));
}

#[tokio::test]
async fn a_file_with_rules_that_is_too_long_no_text_or_outside_is_named_and_none_is_read_instead() {
    let scene = Scene::new();
    scene.put(".gantry/permissions.toml", "allow = []");
    fs::create_dir(scene.path("src")).expect("a directory is made");
    let path = "src/.gantry/permissions.toml".to_owned();
    let unread = async || {
        let surveyed = survey(&scene, "src").await;
        assert_eq!(surveyed.project, None);
        let mut unread = surveyed.unread.iter();
        let unread = unread.find(|unread| unread.path == path);
        let unread = unread.expect("it is named");
        unread.failure.clone()
    };
    let limit = MAX_PROJECT_FILE_BYTES;
    scene.put(&path, "#".repeat(limit as usize + 1));
    let too_large = FileFailure::TooLarge {
        path: path.clone(),
        bytes: limit + 1,
        limit,
    };
    assert_eq!(unread().await, too_large);
    scene.put(&path, b"deny = [\xff]");
    assert_eq!(unread().await, FileFailure::Binary { path: path.clone() });
    fs::remove_dir_all(scene.path("src/.gantry")).expect("it is removed");
    let elsewhere = scene.outside().join("rules");
    fs::create_dir(&elsewhere).expect("a directory is made");
    fs::write(elsewhere.join("permissions.toml"), "allow = []").expect("a file is made");
    symlink(&elsewhere, scene.path("src/.gantry")).expect("a link is made");
    let outside = FileFailure::OutsideWorkspace { path: path.clone() };
    assert_eq!(unread().await, outside);
}

#[tokio::test]
async fn files_with_extensions_are_found_from_the_work_up() {
    let scene = Scene::new();
    for path in [
        ".mcp.json",
        ".claude/settings.json",
        ".claude/skills/pdf/SKILL.md",
        ".claude/skills/pdf/forms.md",
        ".claude/agents/reviewer.md",
        ".claude/agents/notes.txt",
        "src/.gantry/plugins/weather/plugin.json",
        "other/.mcp.json",
    ] {
        scene.put(path, path);
    }
    let surveyed = survey(&scene, "src").await;
    let found: Vec<_> = surveyed
        .extensions
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(
        found,
        [
            "src/.gantry/plugins/weather/plugin.json",
            ".claude/settings.json",
            ".mcp.json",
            ".claude/skills/pdf/SKILL.md",
            ".claude/agents/reviewer.md",
        ]
    );
    assert_eq!(surveyed.extensions[2].text, ".mcp.json");
}

#[tokio::test]
async fn a_skill_that_leads_out_of_the_workspace_is_not_read() {
    let scene = Scene::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("SKILL.md"), "secret").unwrap();
    fs::create_dir_all(scene.path(".claude/skills")).unwrap();
    symlink(outside.path(), scene.path(".claude/skills/evil")).unwrap();
    let surveyed = survey(&scene, "").await;
    assert!(surveyed.extensions.is_empty());
    assert_eq!(surveyed.unread[0].path, ".claude/skills/evil/SKILL.md");
}

#[tokio::test]
async fn the_beginning_of_a_skill_is_enough_and_another_file_counts_as_a_whole_or_not_at_all() {
    let scene = Scene::new();
    scene.put(".claude/skills/long/SKILL.md", "s".repeat(100 * KIB));
    scene.put(".mcp.json", "m".repeat(100 * KIB));
    let surveyed = survey(&scene, "").await;
    let [skill] = &surveyed.extensions[..] else {
        panic!("{surveyed:?}")
    };
    assert!(skill.cut && skill.text.len() == 4 * KIB);
    assert!(matches!(
        surveyed.unread[0].failure,
        FileFailure::TooLarge { .. }
    ));
}

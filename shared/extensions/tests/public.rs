//! Skills and agents of the forms that people publish, written anew.

use std::{fs, path::PathBuf, process::Command};

use shared_extensions::{SkillFile, read_role, read_skill};
use shared_types::{
    Digest,
    event::{Layer, Provenance, Role},
};

fn folder(kind: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(kind)
}

fn fixtures(kind: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder(kind)).expect("the folder is there") {
        let path = entry.expect("it is read").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let file = match path.is_dir() {
            true => path.join("SKILL.md"),
            false => path,
        };
        files.push((name, fs::read_to_string(file).expect("a text")));
    }
    files.sort();
    files
}

fn skill((name, text): &(String, String)) -> SkillFile {
    read_skill(text, name).unwrap_or_else(|why| panic!("{name}: {why}"))
}

fn role((name, text): &(String, String)) -> Role {
    let from = Provenance {
        layer: Layer::Project,
        at: format!(".claude/agents/{name}.md"),
        digest: Digest::of(text.as_bytes()),
        trusted: true,
    };
    read_role(text, name, from).unwrap_or_else(|why| panic!("{name}: {why}"))
}

#[test]
fn skills_of_all_forms_are_read() {
    let skills: Vec<_> = fixtures("skills").iter().map(skill).collect();
    assert_eq!(skills.len(), 10);
    let found = |name: &str| {
        let mut all = skills.iter();
        all.find(|skill| skill.name == name).expect("it is there")
    };
    assert!(found("only-people").only_people);
    assert_eq!(skills.iter().filter(|skill| skill.only_people).count(), 1);
    for (name, description) in [
        (
            "release-notes",
            "Writes the notes of a release from the commits since the last tag. Use it when a version is about to be published.",
        ),
        (
            "colon-words",
            r#"Use it when: a table has to be read. Examples: "sum the column", "find the gap""#,
        ),
        (
            "quoted",
            "Mends what a linter says: #1 rule, 100 % of the time — \"quotes\" and all.",
        ),
        (
            "größe-prüfen",
            "Prüft, ob Bilder in die Vorlage passen. Benutze es für Drucksachen.",
        ),
    ] {
        assert_eq!(found(name).description, description);
    }
    assert!(found("long-words").description.len() > 1000);
    assert!(found("two-documents").body.contains("---\n\nSecond."));
}

#[test]
fn agents_of_all_forms_are_read() {
    let roles: Vec<_> = fixtures("agents").iter().map(role).collect();
    let tools = roles.iter().map(|role| {
        let tools = role.tools.as_ref().map_or(0, Vec::len);
        (role.name.as_str(), tools, role.denied_tools.len())
    });
    let expected = [
        ("careful-runner", 0, 2),
        ("code-reviewer", 4, 0),
        ("inheritor", 0, 0),
        ("issue_triager", 3, 0),
        ("planner", 2, 0),
    ];
    assert_eq!(tools.collect::<Vec<_>>(), expected);
    let [careful, reviewer, inheritor, ..] = &roles[..] else {
        panic!("{roles:?}")
    };
    assert_eq!((careful.steps, careful.worktree), (Some(8), true));
    assert_eq!(reviewer.model.as_deref(), Some("sonnet"));
    assert_eq!(inheritor.model, None);
}

#[test]
fn line_ends_of_windows_and_a_mark_at_the_beginning_change_nothing() {
    for file in fixtures("skills") {
        let plain = skill(&file);
        let windows = (
            file.0.clone(),
            format!("\u{feff}{}", file.1.replace('\n', "\r\n")),
        );
        let read = skill(&windows);
        assert_eq!(read.body.replace("\r\n", "\n"), plain.body);
        assert_eq!(
            (read.name, read.description),
            (plain.name, plain.description)
        );
    }
    for file in fixtures("agents") {
        let windows = (
            file.0.clone(),
            format!("\u{feff}{}", file.1.replace('\n', "\r\n")),
        );
        let (plain, read) = (role(&file), role(&windows));
        assert_eq!(
            (read.name, read.description),
            (plain.name, plain.description)
        );
        assert_eq!((read.tools, read.model), (plain.tools, plain.model));
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the environment says where tests/run has installed it"
)]
fn the_reference_of_agent_skills_takes_nothing_that_is_refused_here() {
    let judge = std::env::var("GANTRY_SKILLS_REF").expect("run it by: tests/run");
    let mut taken = 0;
    for file in fixtures("skills") {
        let folder = folder("skills").join(&file.0);
        let judged = Command::new(&judge).arg("validate").arg(folder).output();
        if judged.expect("it runs").status.success() {
            skill(&file);
            taken += 1;
        }
    }
    assert_eq!(taken, 7, "so many have the form of the specification");
}

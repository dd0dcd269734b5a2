use shared_types::RunnerId;

use super::*;
use crate::key::ServerIdentity;

fn enrolled(workspaces: &[(&str, &str)]) -> EnrolledHome {
    let workspace = |(name, folder): &(&str, &str)| WorkspaceFolder {
        name: (*name).to_owned(),
        folder: folder.into(),
    };
    EnrolledHome {
        servers: vec!["https://gantry.example".to_owned()],
        allow_plain_text: false,
        runner: RunnerId::from_u128(1),
        name: "laptop".to_owned(),
        server_identity: ServerIdentity([7; 32]),
        certificate: None,
        workspace: "/work".into(),
        workspaces: workspaces.iter().map(workspace).collect(),
    }
}

fn added(enrolled: &mut EnrolledHome, name: &str, folder: &str) -> Result<(), WorkspaceError> {
    let (name, folder) = (name.to_owned(), folder.into());
    include(enrolled, WorkspaceFolder { name, folder })
}

fn names(workspaces: &[WorkspaceFolder]) -> Vec<&str> {
    workspaces.iter().map(|one| one.name.as_str()).collect()
}

#[test]
fn a_name_and_a_folder_are_there_once() {
    let mut home = enrolled(&[]);
    added(&mut home, "api", "/api").expect("both are new");
    let refused = [
        added(&mut home, "api", "/other"),
        added(&mut home, "workspace", "/other"),
        added(&mut home, "again", "/api"),
        added(&mut home, "again", "/work"),
    ];
    for refused in refused {
        let refused = refused.expect_err("one of them is there").to_string();
        assert!(refused.contains("already"), "{refused}");
    }
    assert_eq!(home.workspaces.len(), 1);
}

#[test]
fn a_home_has_at_most_as_many_as_a_hello_can_name() {
    let mut home = enrolled(&[]);
    for number in 1..MAX_WORKSPACES {
        let name = format!("w{number}");
        added(&mut home, &name, &format!("/{name}")).expect("there is room");
    }
    let full = added(&mut home, "more", "/more");
    assert!(matches!(full, Err(WorkspaceError::Full)));
}

#[test]
fn what_was_added_is_removed_and_the_first_one_stays() {
    let mut home = enrolled(&[("api", "/api")]);
    let unknown = leave_out(&mut home, "apo").expect_err("there is none");
    assert!(unknown.to_string().contains("workspace, api"), "{unknown}");
    assert!(matches!(
        leave_out(&mut home, "workspace"),
        Err(WorkspaceError::First)
    ));
    leave_out(&mut home, "api").expect("it was added");
    assert_eq!(home, enrolled(&[]));
}

#[test]
fn what_makes_no_sense_in_the_file_is_left_out_and_the_rest_is_served() {
    let home = enrolled(&[
        ("api", "/api"),
        ("a/b", "/slash"),
        ("api", "/twice"),
        ("workspace", "/first"),
        ("docs", "relative"),
        ("last", "/last"),
    ]);
    assert_eq!(names(&usable_of(&home)), ["workspace", "api", "last"]);
}

#[test]
fn a_home_is_changed_whole_and_one_of_an_earlier_runner_has_one_workspace() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = Home::within(folder.path());
    drop(home.lock().expect("nobody uses it"));
    home.save(&enrolled(&[])).expect("it is written");
    let file = folder.path().join("runner/runner.toml");
    let before = std::fs::read_to_string(&file).expect("it is there");
    assert!(!before.contains("workspaces"), "{before}");
    let api = folder.path().join("My Api");
    std::fs::create_dir(&api).expect("a folder");
    let report = add(&home, &api, None).expect("it is added").to_string();
    assert!(report.starts_with("workspace my-api is /"), "{report}");
    assert!(report.contains("no daemon runs"), "{report}");
    let listed = list(&home).expect("it is enrolled").to_string();
    assert_eq!(listed.lines().count(), 2, "{listed}");
    remove(&home, "my-api").expect("it was added");
    let after = std::fs::read_to_string(&file).expect("it is there");
    assert_eq!(before, after);
    for (folder, name) in [("/no/such", "x"), ("/dev/null", "x"), ("/", "No name")] {
        let refused = add(&home, folder.as_ref(), Some(name.to_owned()));
        refused.expect_err("it cannot be one");
    }
}

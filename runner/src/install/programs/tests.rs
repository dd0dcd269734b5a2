use super::*;

fn archive(folder: &Path, content: &str) {
    for name in ["gantry-runner", "gantry-supervisor"] {
        fs::write(folder.join(name), content).expect("a file");
    }
}

fn programs(home: &Path) -> Programs {
    Programs::of_a_user(home)
}

#[test]
fn a_version_is_installed_whole_and_the_links_lead_to_it() {
    let (home, from) = (
        tempfile::tempdir().expect("a home"),
        tempfile::tempdir().expect("one"),
    );
    let programs = programs(home.path());
    archive(from.path(), "first");
    let first = programs
        .add(from.path(), "0.1.0", None)
        .expect("it is added");
    let link = programs.select(&first).expect("it is selected");
    assert_eq!(fs::read_to_string(&link).expect("a program"), "first");
    assert_eq!(programs.current(), Some(first.clone()));
    assert_eq!(
        programs.add(from.path(), "0.1.0", None).expect("once more"),
        first
    );

    archive(from.path(), "second");
    let archived = Digest::of(b"archive");
    let second = programs
        .add(from.path(), "0.2.0", Some(archived))
        .expect("it is added");
    assert_eq!(
        fs::read_to_string(&link).expect("a program"),
        "first",
        "it does not count yet"
    );
    programs.select(&second).expect("it is selected");
    assert_eq!(fs::read_to_string(&link).expect("a program"), "second");
    assert_eq!(programs.archive_of(&second), Some(archived));

    programs.prune(&[&second]);
    assert!(!first.exists() && second.exists());
    programs.remove().expect("it is removed");
    assert!(!link.exists() && !second.exists());
}

#[test]
fn a_program_of_that_name_that_is_not_ours_is_neither_replaced_nor_removed() {
    let (home, from) = (
        tempfile::tempdir().expect("a home"),
        tempfile::tempdir().expect("one"),
    );
    let programs = programs(home.path());
    archive(from.path(), "ours");
    let folder = programs
        .add(from.path(), "0.1.0", None)
        .expect("it is added");
    let theirs = home.path().join(".local/bin/gantry-runner");
    fs::create_dir_all(home.path().join(".local/bin")).expect("a folder");
    fs::write(&theirs, "theirs").expect("a file");
    let refused = programs.select(&folder).expect_err("a refusal").to_string();
    assert!(refused.contains("is another program"), "{refused}");
    programs.remove().expect("it is removed");
    assert_eq!(fs::read_to_string(theirs).expect("it is there"), "theirs");
}

#[test]
fn an_archive_without_its_supervisor_is_refused_by_the_missing_name() {
    let (home, from) = (
        tempfile::tempdir().expect("a home"),
        tempfile::tempdir().expect("one"),
    );
    fs::write(from.path().join("gantry-runner"), "alone").expect("a file");
    let refused = programs(home.path()).add(from.path(), "0.1.0", None);
    let refused = refused.expect_err("a refusal").to_string();
    assert!(
        refused.contains("gantry-supervisor is not there"),
        "{refused}"
    );
}

#[test]
fn a_version_cannot_be_a_path() {
    assert!(is_version("0.1.0") && is_version("1.2.3-rc.1"));
    for wrong in ["", "..", "../0", "0/1", "v1", &"1".repeat(65)] {
        assert!(!is_version(wrong), "{wrong}");
    }
}

use std::os::unix::fs::symlink;

use super::*;

fn state(bytes: u64, modified: i64) -> State {
    State {
        bytes,
        modified: (modified, 0),
    }
}

#[test]
fn a_file_that_only_grew_counts_as_far_as_it_was_and_one_that_was_rewritten_does_not() {
    assert_eq!(settled(state(5, 1), state(5, 1), 5), Some(5));
    assert_eq!(settled(state(0, 1), state(0, 1), 2642), Some(2642), "/proc");
    assert_eq!(settled(state(4096, 1), state(4096, 1), 2), Some(2), "/sys");
    assert_eq!(settled(state(5, 1), state(9, 2), 7), Some(5), "it grew");
    for (after, read) in [(state(5, 2), 5), (state(3, 2), 3), (state(9, 2), 4)] {
        assert_eq!(settled(state(5, 1), after, read), None, "{after:?}");
    }
}

#[test]
fn only_a_file_that_ends_elsewhere_than_it_says_lies_about_its_size() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, size) in [("empty", 0), ("small", 3), ("page", 4096)] {
        let path = folder.path().join(name);
        fs::write(&path, vec![1; size]).expect("it is written");
        let file = File::open(&path).expect("it is there");
        let said = State::from(&file.metadata().expect("it is there"));
        assert!(
            !lies_about_its_size(&file, said).expect("it is read"),
            "{name}"
        );
    }
    for path in [
        "/proc/cpuinfo",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        let Ok(file) = File::open(path) else { continue };
        let said = State::from(&file.metadata().expect("it is there"));
        assert!(
            lies_about_its_size(&file, said).expect("it is read"),
            "{path}"
        );
    }
}

#[test]
fn what_is_replaced_is_what_links_lead_to_and_never_anything_but_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("d")).expect("a folder");
    fs::write(path("d/file"), "").expect("a file");
    symlink("../link", path("d/again")).expect("a link");
    symlink("d/file", path("link")).expect("a link");
    symlink("d/new", path("dangling")).expect("a link");
    symlink("round", path("round")).expect("a link");
    symlink("/dev/null", path("null")).expect("a link");
    let found = |name: &str| replaced(&path(name)).ok();
    assert_eq!(found("d/file"), Some(path("d/file")));
    assert_eq!(found("link"), Some(path("d/file")));
    assert_eq!(found("dangling"), Some(path("d/new")));
    assert_eq!(found("missing"), Some(path("missing")));
    let again = found("d/again").expect("it leads to the file");
    assert_eq!(
        again.canonicalize().ok(),
        path("d/file").canonicalize().ok()
    );
    for other in ["d", "null", "round"] {
        assert_eq!(found(other), None, "{other}");
    }
    assert!(replaced(Path::new("/dev/null")).is_err());
}

#[test]
fn whole_blocks_of_zeros_become_holes_and_the_content_is_the_same() {
    let mut content = vec![0; 1 << 20];
    content[70_000] = 1;
    content.extend([2; 5000]);
    content.extend([0; 300_000]);
    let mut file = tempfile::tempfile().expect("a file");
    for piece in content.chunks(65_000) {
        write_with_holes(&mut file, piece).expect("there is room");
    }
    file.set_len(content.len() as u64).expect("there is room");
    let mut read = vec![0; content.len()];
    file.read_exact_at(&mut read, 0).expect("it is there");
    assert!(read == content);
    let taken = file.metadata().expect("it is there").blocks() * 512;
    assert!(
        taken < content.len() as u64 / 2,
        "{taken} bytes on the disk"
    );
}

#[test]
fn attributes_that_people_gave_are_kept() {
    let file = || tempfile::tempfile().expect("a file");
    let (from, to) = (file(), file());
    match rustix::fs::fsetxattr(&from, "user.note", b"mine", XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) => return,
        set => set.expect("it is ours"),
    }
    keep_attributes(&from, &to).expect("there is room");
    let mut value = Vec::with_capacity(16);
    rustix::fs::fgetxattr(&to, "user.note", spare_capacity(&mut value)).expect("it is kept");
    assert_eq!(value, b"mine");
}

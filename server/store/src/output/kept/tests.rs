use super::*;

fn found(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let all = in_folder(folder).map(|found| found.expect("it is there"));
    let files = all.filter_map(|found| match found {
        KeptFiles::Files(files) => Some(files),
        KeptFiles::Folder(_) => None,
    });
    files
        .flatten()
        .map(|(path, content)| (path.display().to_string(), content))
        .collect()
}

#[test]
fn every_file_is_found_once_with_the_parts_of_a_stream_together() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let names = [
        "a/op.stderr.head",
        "a/op.stdout.head",
        "a/op.stdout.tail1",
        "a/x.all/0",
        "key.pem",
    ];
    for name in names {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        fs::write(path, name).expect("it is written");
    }
    std::os::unix::fs::symlink("/etc", folder.path().join("elsewhere")).expect("it is made");
    let mut files = found(folder.path());
    files.sort();
    let expected: Vec<_> = names
        .iter()
        .map(|name| ((*name).to_owned(), name.as_bytes().to_vec()))
        .collect();
    assert_eq!(files, expected);
    assert_eq!(found(&folder.path().join("none")), []);
}

#[test]
fn tails_of_which_one_is_begun_anew_meanwhile_are_read_again() {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let tail = |number: u32, first: u64, rest: &[u8]| {
        let path = folder.path().join(format!("op.stdout.tail{number}"));
        fs::write(path, [&first.to_le_bytes(), rest].concat()).expect("it is written");
    };
    tail(0, 0, b"old");
    tail(1, 10, b"newer");
    let group = parts(Path::new(""), "op.stdout");
    let mut reads = 0;
    let files = read_together(folder.path(), &group, |root, path| {
        reads += 1;
        let content = read(&root.join(path));
        if reads == 3 {
            // The newer one became full, and the older one is begun anew.
            tail(1, 10, b"newer and full");
            tail(0, 30, b"newest");
        }
        content
    });
    let files = files.expect("they are there");
    assert!(files[0].1.ends_with(b"newest") && files[1].1.ends_with(b"newer and full"));
    assert_eq!(reads, 6);
}

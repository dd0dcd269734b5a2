use super::*;

#[test]
fn only_archives_with_known_names_are_handed_out_and_only_by_their_checksum() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(
        Archives::in_folder(&folder.path().join("none"))
            .expect("no folder")
            .list()
            .is_empty()
    );
    for (name, content) in [
        (name("x86_64"), "the archive"),
        ("secret".to_owned(), "a secret"),
    ] {
        std::fs::write(folder.path().join(name), content).expect("a file");
    }
    let archives = Archives::in_folder(folder.path()).expect("a folder");
    let list = archives.list();
    assert_eq!(list.len(), 1, "{list:?}");
    let sha256 = Digest::of(b"the archive").to_string();
    assert_eq!(
        (list[0].sha256.as_str(), list[0].bytes),
        (sha256.as_str(), 11)
    );
    assert!(archives.named(&sha256, &name("x86_64")).is_some());
    let secret = Digest::of(b"a secret").to_string();
    for (sha256, asked) in [
        (&sha256, name("aarch64")),
        (&sha256, "../secret".to_owned()),
        (&secret, "secret".to_owned()),
        (&secret, name("x86_64")),
    ] {
        assert!(archives.named(sha256, &asked).is_none(), "{asked}");
    }
}

#[test]
fn an_archive_is_sent_as_it_was_when_the_server_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name("x86_64"));
    std::fs::write(&path, "the first archive").expect("a file");
    let archives = Archives::in_folder(folder.path()).expect("a folder");
    let next = folder.path().join("next");
    std::fs::write(&next, "another").expect("a file");
    std::fs::rename(&next, &path).expect("it takes its place");
    let archive = archives.of("x86_64").expect("there is one");
    let sent = piece(&archive.file, 0, archive.bytes).expect("a piece");
    assert_eq!(Digest::of(&sent), archive.sha256);
}

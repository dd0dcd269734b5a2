use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tests::{gantry::Gantry, proxy::Proxy};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

const MIB: usize = 1024 * 1024;

/// A file of so many bytes, of which no two pieces are the same.
fn file(folder: &Path, name: &str, bytes: usize) -> (PathBuf, Vec<u8>) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let content: Vec<u8> = words.flatten().take(bytes).collect();
    let path = folder.join(name);
    std::fs::write(&path, &content).expect("it is written");
    (path, content)
}

fn is_same(path: &Path, content: &[u8]) -> bool {
    std::fs::read(path).expect("it is there") == content
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("it is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("text"))
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_copied_both_ways_and_into_a_folder() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let here = tempfile::tempdir().expect("a folder");
    let (path, content) = file(here.path(), "data.bin", 3 * MIB + 7);
    let path = path.to_str().expect("text");
    for target in ["laptop:sub/other.bin", "laptop:", "laptop:sub/"] {
        let copied = gantry.cli(&["cp", path, target]).await;
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
        assert_eq!(
            (text(&copied.stdout), text(&copied.stderr)),
            Default::default()
        );
    }
    for there in ["sub/other.bin", "data.bin", "sub/data.bin"] {
        assert!(
            is_same(&runner.workspace().join(there), &content),
            "{there}"
        );
    }
    let back = tempfile::tempdir().expect("a folder");
    let folder = back.path().to_str().expect("text");
    let named = back.path().join("named.bin");
    for target in [folder, named.to_str().expect("text")] {
        let copied = gantry.cli(&["cp", "laptop:sub/other.bin", target]).await;
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
    }
    assert_eq!(names(back.path()), ["named.bin", "other.bin"]);
    assert!(is_same(&named, &content));
    let (empty, _) = file(here.path(), "empty", 0);
    let copied = gantry
        .cli(&["cp", empty.to_str().expect("text"), "laptop:"])
        .await;
    assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
    assert_eq!(runner.file("empty").as_deref(), Some(""));
}

/// A file where programs run that the tests start, removed in the end.
struct OwnFile(&'static str);

impl OwnFile {
    fn here(name: &'static str) -> Self {
        std::fs::write(name, "").expect("it is written");
        Self(name)
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_copied_is_said_and_leaves_nothing_behind() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let here = tempfile::tempdir().expect("a folder");
    let folder = here.path().to_str().expect("text");
    // A file whose name looks like a path on a runner; it is looked for where the program runs.
    let own = "log:1.txt";
    let _own = OwnFile::here(own);
    for (words, said) in [
        (["laptop:missing", folder], "missing"),
        (["a", "b"], "NAME:PATH"),
        (["laptop:a", "laptop:b"], "has to be here"),
        (["laptop:../outside", folder], "outside"),
        ([own, "laptop:in/"], "write ./"),
        ([own, folder], "./"),
    ] {
        let copied = gantry.cli(&["cp", words[0], words[1]]).await;
        let told = text(&copied.stderr);
        assert_eq!(copied.status.code(), Some(1), "{words:?}: {told}");
        assert!(told.contains(said), "{words:?}: {told}");
    }
    assert!(names(here.path()).is_empty());
    assert!(names(&runner.workspace()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_is_copied_both_ways_while_the_server_is_killed() {
    let mut gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let here = tempfile::tempdir().expect("a folder");
    let (path, content) = file(here.path(), "large.bin", 64 * MIB);
    let back = here.path().join("back.bin");
    let [path, back] = [path, back].map(|path| path.to_str().expect("text").to_owned());
    for words in [
        ["cp", &path, "laptop:large.bin"],
        ["cp", "laptop:large.bin", &back],
    ] {
        let proxy = Proxy::before(gantry.url()).await;
        let mut command = gantry.terminal_by_way_of(proxy.url(), &words);
        let copying = command.stderr(Stdio::piped()).spawn().expect("it starts");
        proxy.until_bytes(8 * MIB as u64).await;
        gantry.kill_server().await;
        gantry.start_server().await;
        let copied = copying.wait_with_output().await.expect("it ends");
        let said = text(&copied.stderr);
        assert_eq!(copied.status.code(), Some(0), "{said}");
        assert!(
            said.contains("connection lost") && said.contains("connected again"),
            "{said}"
        );
    }
    assert!(is_same(&runner.workspace().join("large.bin"), &content));
    assert!(is_same(Path::new(&back), &content));
    assert_eq!(names(here.path()), ["back.bin", "large.bin"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_when_a_copy_begins_is_waited_for() {
    let mut gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let here = tempfile::tempdir().expect("a folder");
    let (path, content) = file(here.path(), "data.bin", 2 * MIB);
    gantry.kill_server().await;
    let words = ["cp", path.to_str().expect("text"), "laptop:"];
    let mut screen = gantry.screen(&words);
    screen.until_written("reading data.bin").await;
    screen.until_written("; trying again").await;
    gantry.start_server().await;
    assert_eq!(screen.ended().await, Some(0));
    assert!(is_same(&runner.workspace().join("data.bin"), &content));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_says_a_wrong_size_is_read_to_its_end() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let copied = gantry.cli(&["cp", "/proc/self/limits", "laptop:"]).await;
    assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
    let there = runner.file("limits").expect("it is there");
    assert!(there.contains("Max open files"), "{there}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_grows_meanwhile_is_copied_as_far_as_it_was() {
    let mut gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let here = tempfile::tempdir().expect("a folder");
    let (log, content) = file(here.path(), "log", 16 * MIB);
    let back = here.path().join("back");
    let [path, back] = [&log, &back].map(|path| path.to_str().expect("text").to_owned());
    for (words, grows) in [
        (["cp", &path, "laptop:log"], log.clone()),
        (["cp", "laptop:log", &back], runner.workspace().join("log")),
    ] {
        let proxy = Proxy::before(gantry.url()).await;
        let mut command = gantry.terminal_by_way_of(proxy.url(), &words);
        let copying = command.stderr(Stdio::piped()).spawn().expect("it starts");
        proxy.until_bytes(4 * MIB as u64).await;
        // The transfer stands still while the file grows.
        gantry.kill_server().await;
        let mut grown = std::fs::OpenOptions::new()
            .append(true)
            .open(&grows)
            .expect("a file");
        std::io::Write::write_all(&mut grown, b"one more line\n").expect("there is room");
        gantry.start_server().await;
        let copied = copying.wait_with_output().await.expect("it ends");
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
        if words[1] == path {
            assert!(is_same(&runner.workspace().join("log"), &content));
        }
    }
    let came = std::fs::read(&back).expect("it is there");
    assert!(came.starts_with(&content), "{} bytes", came.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_written_through_both_ways_alone_and_in_folders() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let here = tempfile::tempdir().expect("a folder");
    let there = runner.workspace();
    for (folder, content) in [(here.path(), "here"), (there.as_path(), "there")] {
        std::fs::create_dir(folder.join("d")).expect("a folder");
        std::fs::write(folder.join("new"), content).expect("a file");
        std::fs::write(folder.join("d/entry"), content).expect("a file");
    }
    let link = |folder: &Path, name: &str| {
        std::fs::write(folder.join(name).with_file_name("real"), "old").expect("a file");
        std::os::unix::fs::symlink("real", folder.join(name)).expect("a link");
    };
    let up = here.path().join("up");
    std::fs::create_dir_all(up.join("d")).expect("a folder");
    std::fs::write(up.join("d/entry"), "up").expect("a file");
    std::fs::remove_file(there.join("d/entry")).expect("it is there");
    link(&there, "link");
    link(&there, "d/entry");
    link(here.path(), "link");
    let path = |below: &str| here.path().join(below).to_str().expect("text").to_owned();
    for (source, target) in [
        (path("new"), "laptop:link".to_owned()),
        (path("up/d/."), "laptop:d".to_owned()),
        ("laptop:new".to_owned(), path("link")),
    ] {
        let copied = gantry.cli(&["cp", &source, &target]).await;
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
    }
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("it is there");
    assert_eq!(read(there.join("real")), "here");
    assert_eq!(read(there.join("d/real")), "up");
    assert_eq!(read(here.path().join("real")), "there");
    for kept in [
        there.join("link"),
        there.join("d/entry"),
        here.path().join("link"),
    ] {
        assert!(kept.is_symlink(), "{}", kept.display());
    }
    // Down into a folder with a link in it, and one that leads out of the folder.
    let down = here.path().join("down");
    std::fs::create_dir(&down).expect("a folder");
    link(&down, "link");
    std::os::unix::fs::symlink("../new", down.join("new")).expect("a link");
    std::fs::create_dir(there.join("f")).expect("a folder");
    for name in ["link", "new"] {
        std::fs::write(there.join("f").join(name), "down").expect("a file");
    }
    let copied = gantry.cli(&["cp", "laptop:f/.", &path("down")]).await;
    assert_eq!(copied.status.code(), Some(1));
    let said = text(&copied.stderr);
    assert!(
        said.contains("new: there is a link here that leads out of the folder"),
        "{said}"
    );
    assert_eq!(read(down.join("real")), "down");
    assert_eq!(read(here.path().join("new")), "here");
}

//! `gantry cp` of folders, as a person does it.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _, fs::symlink},
    path::Path,
    process::Stdio,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tests::{gantry::Gantry, proxy::Proxy};

/// Everything in a folder: of a file its permissions and content, of a link where it leads to.
fn everything(folder: &Path) -> BTreeMap<String, String> {
    fn add(root: &Path, folder: &Path, all: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let found = fs::symlink_metadata(&path).expect("it is there");
            let mode = found.permissions().mode() & 0o777;
            let shown = if found.is_symlink() {
                format!("link {}", fs::read_link(&path).expect("a link").display())
            } else if found.is_dir() {
                add(root, &path, all);
                format!("folder {mode:o}")
            } else {
                let content = fs::read(&path).expect("a file");
                format!("file {mode:o} {} {:?}", content.len(), content.get(..9))
            };
            let below = path.strip_prefix(root).expect("it is beneath");
            all.insert(below.to_string_lossy().into_owned(), shown);
        }
    }
    let mut all = BTreeMap::new();
    add(folder, folder, &mut all);
    all
}

fn put(path: &Path, content: &[u8], mode: u32) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
    fs::write(path, content).expect("it is written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its own file");
}

/// A folder with something of everything that can be copied.
fn project(folder: &Path) {
    put(&folder.join("run.sh"), b"#!/bin/sh\n", 0o755);
    put(
        &folder.join("a name with spaces\nand two lines"),
        b"",
        0o644,
    );
    put(&folder.join("deep/er/file"), b"deep", 0o600);
    put(&folder.join("large"), &vec![7; 3 << 20], 0o644);
    put(
        &folder.join(format!("long/{}", "n".repeat(200))),
        b"long",
        0o644,
    );
    for number in 0..600 {
        put(
            &folder.join(format!("many/{number}")),
            format!("{number}").as_bytes(),
            0o644,
        );
    }
    fs::create_dir(folder.join("empty")).expect("it is made");
    symlink("../run.sh", folder.join("deep/link")).expect("it is made");
}

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_comes_back_as_it_went() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let here = tempfile::tempdir().expect("a folder");
    let source = here.path().join("project");
    project(&source);
    let copy = async |from: &str, to: &str| {
        let copied = gantry.cli(&["cp", from, to]).await;
        assert_eq!(
            copied.status.code(),
            Some(0),
            "{from} {to}: {}",
            said(&copied)
        );
        assert_eq!((copied.stdout.len(), said(&copied)), (0, String::new()));
    };
    let path = |path: &Path| path.to_str().expect("text").to_owned();
    let expected = everything(&source);
    // A target that is not there becomes the copy; one that is a folder gets it.
    copy(&path(&source), "laptop:new/copy").await;
    copy(&path(&source), "laptop:new").await;
    copy(&path(&source), "laptop:new").await;
    copy(&format!("{}/.", path(&source)), "laptop:new/content").await;
    for there in ["new/copy", "new/project", "new/content"] {
        assert!(
            everything(&runner.workspace().join(there)) == expected,
            "{there}"
        );
    }
    let back = here.path().join("back");
    copy("laptop:new/copy", &path(&back)).await;
    copy("laptop:new/copy/", &path(&back)).await;
    assert!(everything(&back.join("copy")) == expected);
    fs::remove_dir_all(back.join("copy")).expect("it is there");
    assert!(everything(&back) == expected);
}

/// When each of these files was modified, and its permissions.
fn kept(folder: &Path, names: &[&str]) -> Vec<(SystemTime, u32)> {
    let kept = names.iter().map(|name| {
        let found = fs::metadata(folder.join(name)).expect("it is there");
        let modified = found.modified().expect("the host knows it");
        (modified, found.permissions().mode() & 0o777)
    });
    kept.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn times_and_permissions_are_preserved_both_ways_where_that_is_asked_for() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let here = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| here.path().join(name).to_string_lossy().into_owned();
    let (was, names) = (
        UNIX_EPOCH + Duration::from_secs(1_000_000_000),
        ["small", "large"],
    );
    let set = |name: &Path, mode| {
        let file = fs::File::options()
            .append(true)
            .open(name)
            .expect("it is there");
        file.set_modified(was).expect("its own file");
        fs::set_permissions(name, fs::Permissions::from_mode(mode)).expect("its own file");
    };
    put(&here.path().join("from/small"), b"small", 0o644);
    put(&here.path().join("from/large"), &vec![7; 3 << 20], 0o644);
    set(&here.path().join("from/small"), 0o666);
    set(&here.path().join("from/large"), 0o600);
    let expected = vec![(was, 0o666), (was, 0o600)];
    // What is replaced has other permissions.
    put(&runner.workspace().join("single"), b"old", 0o600);
    put(&here.path().join("back"), b"old", 0o600);
    for (from, to) in [
        (path("from"), "laptop:to".to_owned()),
        (path("from/small"), "laptop:single".to_owned()),
        ("laptop:to".to_owned(), path("to")),
        ("laptop:single".to_owned(), path("back")),
    ] {
        let copied = gantry.cli(&["cp", "-p", &from, &to]).await;
        assert!(copied.status.success(), "{}", said(&copied));
    }
    assert_eq!(kept(&runner.workspace().join("to"), &names), expected);
    assert_eq!(kept(&here.path().join("to"), &names), expected);
    assert_eq!(kept(&runner.workspace(), &["single"]), expected[..1]);
    assert_eq!(kept(here.path(), &["back"]), expected[..1]);
    let copied = gantry.cli(&["cp", &path("from/small"), "laptop:now"]).await;
    assert!(copied.status.success(), "{}", said(&copied));
    assert_ne!(kept(&runner.workspace(), &["now"])[0].0, was);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_of_a_folder_cannot_be_copied_is_named_and_the_rest_is_copied() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    let outside = tempfile::tempdir().expect("a folder");
    put(&outside.path().join("secret"), b"secret", 0o644);
    let odd = |folder: &Path| {
        put(&folder.join("good"), b"good", 0o644);
        put(
            &folder.join(OsStr::from_bytes(b"no\xfftext")),
            b"odd",
            0o644,
        );
        symlink(outside.path(), folder.join("out")).expect("it is made");
        symlink("../../up", folder.join("up")).expect("it is made");
    };
    let here = tempfile::tempdir().expect("a folder");
    let [source, back] = ["source", "back"].map(|name| here.path().join(name));
    fs::create_dir(&source).expect("it is made");
    odd(&source);
    let there = runner.workspace().join("odd");
    fs::create_dir(&there).expect("it is made");
    odd(&there);
    let path = |path: &Path| path.to_str().expect("text").to_owned();
    for [from, to] in [
        [path(&source), "laptop:copy".to_owned()],
        ["laptop:odd".to_owned(), path(&back)],
    ] {
        let copied = gantry.cli(&["cp", &from, &to]).await;
        let told = said(&copied);
        assert_eq!(copied.status.code(), Some(1), "{told}");
        for words in [
            "UTF-8",
            "out: it is a link that leads out",
            "up: it is a link that",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert!(
            told.contains("3 entries were not copied; 1 file was"),
            "{told}"
        );
    }
    for copy in [runner.workspace().join("copy"), back] {
        let names: Vec<_> = everything(&copy).into_keys().collect();
        assert_eq!(names, ["good"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_place_is_one_clear_sentence() {
    let gantry = Gantry::practice().await;
    let runner = gantry.runner("laptop").await;
    put(&runner.workspace().join("file"), b"there", 0o644);
    let here = tempfile::tempdir().expect("a folder");
    let source = here.path().join("folder");
    put(&source.join("file"), b"here", 0o644);
    let [folder, file] = [source.clone(), source.join("file")];
    let [folder, file] = [folder, file].map(|path| path.to_str().expect("text").to_owned());
    fs::create_dir(runner.workspace().join("folder")).expect("it is made");
    for (from, to, words) in [
        (
            "laptop:missing",
            folder.as_str(),
            "laptop:missing does not exist",
        ),
        ("laptop:..", folder.as_str(), "leads out of the workspace"),
        ("nowhere:file", folder.as_str(), "nowhere"),
        (
            "laptop:folder",
            file.as_str(),
            "is a file, and a folder does not take its place",
        ),
        (
            folder.as_str(),
            "laptop:file",
            "is a file, and a folder does not take its place",
        ),
        (
            folder.as_str(),
            "laptop:../out",
            "leads out of the workspace",
        ),
    ] {
        let copied = gantry.cli(&["cp", from, to]).await;
        let told = said(&copied);
        assert_eq!(copied.status.code(), Some(1), "{from} {to}: {told}");
        assert!(
            told.contains(words) && told.lines().count() == 1,
            "{from} {to}: {told}"
        );
    }
    assert_eq!(runner.file("file").as_deref(), Some("there"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_copied_both_ways_while_the_server_and_the_runner_are_killed() {
    let mut gantry = Gantry::practice().await;
    let mut runner = gantry.runner("laptop").await;
    let here = tempfile::tempdir().expect("a folder");
    let source = here.path().join("source");
    for number in 0..60 {
        put(
            &source.join(format!("small/{number}")),
            &vec![number; 700_000],
            0o644,
        );
    }
    put(&source.join("large"), &vec![9; 24 << 20], 0o644);
    let back = here.path().join("back");
    let [from, to] = [&source, &back].map(|path| path.to_str().expect("text").to_owned());
    for words in [["cp", &from, "laptop:copy"], ["cp", "laptop:copy", &to]] {
        let proxy = Proxy::before(gantry.url()).await;
        let mut command = gantry.terminal_by_way_of(proxy.url(), &words);
        let copying = command.stderr(Stdio::piped()).spawn().expect("it starts");
        proxy.until_bytes(6 << 20).await;
        gantry.kill_server().await;
        gantry.start_server().await;
        runner.kill().await;
        runner.start();
        let copied = copying.wait_with_output().await.expect("it ends");
        assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
    }
    assert!(everything(&back) == everything(&source));
}

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use shared_types::OperationId;

use super::{
    fixture::{Fixture, at},
    history,
};
use crate::{Backup, BackupContent, BackupError, BackupMade, CopyError, write_backup};

on_every_backend!(
    a_backup_is_restored_with_every_row_and_file_to_either_kind,
    a_backup_of_an_earlier_schema_is_brought_up_to_date,
    a_database_with_rows_is_not_restored_into,
);

/// A server's folder with keys and output, and a place for a backup.
struct Folders {
    folder: tempfile::TempDir,
}

impl Folders {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        for (path, content) in FILES {
            let path = folder.path().join("server").join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            fs::write(path, content).expect("it is written");
        }
        fs::create_dir_all(folder.path().join("server/output/ten_1/op_2.stdout.all"))
            .expect("it is made");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn back_up(&self, fixture: &Fixture) -> (PathBuf, BackupContent) {
        let path = self.path("backup.tar.gz");
        let made = BackupMade {
            version: "1.2.3".to_owned(),
            at: at(1),
        };
        let content = write_backup(&fixture.db, &self.path("server"), &path, made).await;
        (path, content.expect("it is written"))
    }
}

const FILES: [(&str, &[u8]); 5] = [
    ("keys/identity.pem", b"a key"),
    (
        "output/ten_1/op_00000000000000000000000007.stdout.head",
        b"known",
    ),
    ("output/ten_1/op_1.stdout.head", b"head"),
    ("output/ten_1/op_1.stdout.tail0", b"tail"),
    ("output/ten_1/op_3.stderr.all/0000000000000000", b"all"),
];

async fn a_backup_is_restored_with_every_row_and_file_to_either_kind(fixture: Fixture) {
    let (folders, newest) = (Folders::new(), fixture.newest_schema().await);
    history::fill(&fixture.db, newest).await;
    // Placed after the rows were read, as far as the backup knows.
    let later = format!("output/ten_1/{}.stdout.head", OperationId::from_u128(99));
    fs::write(folders.path("server").join(&later), "of another").expect("it is written");
    for left_out in ["keys/master", "keys/master.new"] {
        fs::write(folders.path("server").join(left_out), "the master key").expect("it is written");
    }
    let (path, written) = folders.back_up(&fixture).await;
    let mode = |path: &Path| {
        let about = fs::metadata(path).expect("it is there");
        about.permissions().mode() & 0o777
    };
    assert_eq!((mode(&path), written.files), (0o600, FILES.len()));
    let backup = Backup::open(&path, newest).expect("it is whole");
    assert_eq!(backup.made().version, "1.2.3");
    for (name, target) in [
        ("one", Fixture::sqlite().await),
        ("two", Fixture::postgres().await),
    ] {
        let into = folders.path(name);
        let restored = backup.restore(&target.db, &into, || Ok(())).await;
        assert_eq!(restored.expect("it is empty"), written);
        history::is_used_on(&target.db).await;
        for (path, content) in FILES {
            let path = into.join(path);
            assert_eq!(fs::read(&path).expect("it is there"), content);
            assert_eq!(mode(&path), 0o600);
        }
        assert_eq!(mode(&into.join("output/ten_1/op_2.stdout.all")), 0o700);
        assert!(!into.join(&later).exists(), "no row tells of it");
        assert!(!into.join("keys/master").exists());
    }
}

async fn a_backup_of_an_earlier_schema_is_brought_up_to_date(fixture: Fixture) {
    let (folders, newest) = (Folders::new(), fixture.newest_schema().await);
    let before = fixture.another(Some(9)).await;
    history::fill(&before.db, 9).await;
    let (path, _) = folders.back_up(&before).await;
    let backup = Backup::open(&path, newest).expect("it is whole");
    assert_eq!(backup.schema(), 9);
    let refused = backup
        .restore(&fixture.db, &folders.path("newest"), || Ok(()))
        .await;
    let refused = refused.expect_err("the rows lack columns");
    assert!(
        refused.to_string().contains("not the same in both"),
        "{refused}"
    );
    let target = fixture.another(Some(9)).await;
    let restored = backup
        .restore(&target.db, &folders.path("same"), || Ok(()))
        .await;
    restored.expect("it has the same columns");
    history::is_used_on(&target.reopened().await.db).await;
}

async fn a_database_with_rows_is_not_restored_into(fixture: Fixture) {
    let folders = Folders::new();
    fixture.tenant().await;
    let (path, _) = folders.back_up(&fixture).await;
    let backup = Backup::open(&path, i64::MAX).expect("it is whole");
    let into = folders.path("into");
    let refused = backup.restore(&fixture.db, &into, || Ok(())).await;
    let refused = refused.expect_err("it has rows");
    assert!(
        matches!(refused, BackupError::Copy(CopyError::NotEmpty { .. })),
        "{refused}"
    );
    assert!(!into.exists());
}

#[tokio::test]
async fn a_file_that_is_there_is_not_overwritten_and_nothing_is_left_of_a_failure() {
    let (folders, fixture) = (Folders::new(), Fixture::sqlite().await);
    let path = folders.path("backup.tar.gz");
    fs::write(&path, "a diary").expect("it is written");
    let made = BackupMade {
        version: "1".to_owned(),
        at: at(1),
    };
    let server = folders.path("server");
    let refused = write_backup(&fixture.db, &server, &path, made.clone()).await;
    assert!(
        matches!(refused, Err(BackupError::Exists(_))),
        "{refused:?}"
    );
    assert_eq!(fs::read(&path).expect("it is there"), b"a diary");
    // No file of a server's is so large.
    let large = fs::File::create(server.join("output/large")).expect("it is made");
    large.set_len(64 * 1024 * 1024 + 1).expect("it has holes");
    let other = folders.path("other.tar.gz");
    let refused = write_backup(&fixture.db, &server, &other, made).await;
    assert!(
        matches!(refused, Err(BackupError::File { .. })),
        "{refused:?}"
    );
    let names = fs::read_dir(folders.path("")).expect("it is there");
    let mut names: Vec<_> = names
        .map(|entry| entry.expect("it is there").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["backup.tar.gz", "server"]);
}

#[tokio::test]
async fn a_backup_that_is_damaged_or_cut_off_anywhere_is_refused() {
    let (folders, fixture) = (Folders::new(), Fixture::sqlite().await);
    history::fill(&fixture.db, i64::MAX).await;
    let (path, _) = folders.back_up(&fixture).await;
    let whole = fs::read(&path).expect("it is there");
    let refused = |content: &[u8]| {
        fs::write(&path, content).expect("it is written");
        Backup::open(&path, i64::MAX).err()
    };
    assert!(refused(&whole).is_none());
    for cut in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        let error = refused(&whole[..cut]).expect("it was cut off");
        let told = error.to_string();
        assert!(
            told.contains("cut off") || cut < 600 && told.contains("no backup"),
            "{cut}: {told}"
        );
    }
    for at in (0..whole.len()).step_by(61) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        // Of gzip's own format some bits say nothing.
        let is_harmless =
            || unpacked(&damaged).is_ok_and(|it| it == unpacked(&whole).expect("it is whole"));
        assert!(refused(&damaged).is_some() || is_harmless(), "byte {at}");
    }
}

fn unpacked(compressed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    GzDecoder::new(compressed).read_to_end(&mut content)?;
    Ok(content)
}

/// Makes an archive anew, with other entries.
fn changed(whole: &[u8], change: impl Fn(&str, Vec<u8>) -> Option<(String, Vec<u8>)>) -> Vec<u8> {
    let mut before = tar::Archive::new(GzDecoder::new(whole));
    let mut after = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for entry in before.entries().expect("it is an archive") {
        let mut entry = entry.expect("it is whole");
        let name = entry
            .path()
            .expect("a name")
            .to_str()
            .expect("text")
            .to_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).expect("it is whole");
        let mut header = entry.header().clone();
        if let Some((name, content)) = change(&name, content) {
            header.set_size(content.len() as u64);
            // What a tar program would refuse to write.
            header.as_mut_bytes()[..100].fill(0);
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            after
                .append(&header, content.as_slice())
                .expect("a vector takes everything");
        }
    }
    let compressed = after.into_inner().expect("a vector takes everything");
    compressed.finish().expect("a vector takes everything")
}

fn replaced(content: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    String::from_utf8(content)
        .expect("text")
        .replace(from, to)
        .into_bytes()
}

#[tokio::test]
async fn an_archive_that_was_made_up_or_is_newer_is_refused_with_a_sentence() {
    let (folders, fixture) = (Folders::new(), Fixture::sqlite().await);
    history::fill(&fixture.db, i64::MAX).await;
    let (path, written) = folders.back_up(&fixture).await;
    let whole = fs::read(&path).expect("it is there");
    let refusal = |content: &[u8]| {
        fs::write(&path, content).expect("it is written");
        let refused = Backup::open(&path, written.schema);
        refused.expect_err("it is refused").to_string()
    };
    let renamed = |from: &'static str, to: &'static str| {
        changed(&whole, move |name, content| match name == from {
            true => Some((to.to_owned(), content)),
            false => Some((name.to_owned(), content)),
        })
    };
    for name in [
        "keys/../../../etc/passwd",
        "/etc/passwd",
        "keys",
        "keys/./identity.pem",
        "elsewhere/identity.pem",
    ] {
        let told = refusal(&renamed("keys/identity.pem", name));
        assert!(told.contains("is no entry of a backup"), "{name}: {told}");
    }
    let told = refusal(&renamed("keys/identity.pem", "keys/other.pem"));
    assert!(
        told.contains("keys/identity.pem is not that of its manifest"),
        "{told}"
    );
    let told = refusal(&changed(&whole, |name, content| {
        let content = match name.starts_with("rows/users/") {
            true => replaced(content, "owner", "admin"),
            false => content,
        };
        Some((name.to_owned(), content))
    }));
    assert!(told.contains("the rows of users are not those"), "{told}");
    let told = refusal(&changed(&whole, |name, content| {
        (name != "manifest.json").then(|| (name.to_owned(), content))
    }));
    assert!(told.contains("it has no manifest"), "{told}");
    for (from, to) in [
        ("\"format\":1", "\"format\":2,\"more\":[]"),
        (
            &format!("\"schema\":{}", written.schema)[..],
            "\"schema\":9999",
        ),
    ] {
        let told = refusal(&changed(&whole, |name, content| {
            let content = match name {
                "backup.json" => replaced(content, from, to),
                _ => content,
            };
            Some((name.to_owned(), content))
        }));
        assert!(
            told.contains("version 1.2.3 made it, which is newer"),
            "{told}"
        );
    }
    let told = refusal(b"Dear diary");
    assert!(told.contains("is no backup"), "{told}");
    let mut of_other = GzEncoder::new(Vec::new(), Compression::fast());
    of_other
        .write_all(b"Dear diary")
        .expect("a vector takes everything");
    let told = refusal(&of_other.finish().expect("a vector takes everything"));
    assert!(
        told.contains("no backup") || told.contains("damaged"),
        "{told}"
    );
}

#[tokio::test]
async fn a_link_in_an_archive_is_refused() {
    let (folders, fixture) = (Folders::new(), Fixture::sqlite().await);
    let (path, _) = folders.back_up(&fixture).await;
    let whole = fs::read(&path).expect("it is there");
    let mut before = tar::Archive::new(GzDecoder::new(&whole[..]));
    let mut after = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for entry in before.entries().expect("it is an archive") {
        let entry = entry.expect("it is whole");
        let mut header = entry.header().clone();
        let name = entry.path().expect("a name").into_owned();
        if name == Path::new("keys/identity.pem") {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            after
                .append_link(&mut header, name, "/etc/passwd")
                .expect("a vector takes everything");
        } else {
            after
                .append_data(&mut header, name, entry)
                .expect("a vector takes everything");
        }
    }
    let compressed = after.into_inner().expect("a vector takes everything");
    fs::write(&path, compressed.finish().expect("all of it")).expect("it is written");
    let refused = Backup::open(&path, i64::MAX).expect_err("it is refused");
    assert!(
        refused.to_string().contains("is no entry of a backup"),
        "{refused}"
    );
}

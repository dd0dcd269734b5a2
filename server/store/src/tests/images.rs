//! The images of sessions.

use shared_types::Digest;
use shared_types::limits::MAX_IMAGE_BYTES;

use super::fixture::{Fixture, at};
use crate::{BackupMade, IMAGES_OF_SESSION_AT_MOST, ImageRow, StoreError, copy, write_backup};

on_every_backend!(
    an_image_is_stored_once_and_found_by_its_digest,
    a_session_has_so_many_images_and_bytes,
    images_go_with_their_session,
    images_of_another_tenant_are_not_found,
    the_largest_images_are_backed_up_and_moved,
);

fn image(media_type: &str, bytes: &[u8]) -> ImageRow {
    ImageRow {
        digest: Digest::of(bytes),
        media_type: media_type.to_owned(),
        bytes: bytes.to_vec(),
    }
}

async fn an_image_is_stored_once_and_found_by_its_digest(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    for (media_type, bytes) in [
        ("image/png", &b"\x00one\xff"[..]),
        ("image/jpeg", b"two"),
        ("image/webp", b"two"),
    ] {
        let put = db.put_image(ours.id, session, (media_type, bytes), at(5));
        assert_eq!(put.await.expect("there is room"), Digest::of(bytes));
    }
    let (one, two) = (
        image("image/png", b"\x00one\xff"),
        image("image/jpeg", b"two"),
    );
    let asked = [two.digest, Digest::of(b"three"), one.digest];
    let found = db.images(ours.id, session, &asked).await;
    assert_eq!(found.expect("it answers"), [two, one]);
}

async fn a_session_has_so_many_images_and_bytes(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let (many, large) = (ours.session().await, ours.session().await);
    for number in 0..IMAGES_OF_SESSION_AT_MOST {
        let bytes = number.to_be_bytes();
        let put = db.put_image(ours.id, many, ("image/png", &bytes), at(5));
        put.await.expect("there is room");
    }
    let bytes = 0_u64.to_be_bytes();
    let known = db.put_image(ours.id, many, ("image/png", &bytes), at(5));
    known.await.expect("it is there already");
    let full = db.put_image(ours.id, many, ("image/png", b"more"), at(5));
    let full = full.await.expect_err("it is full").to_string();
    assert!(full.contains("201 of 200 images; start"), "{full}");
    let mut bytes = vec![0; MAX_IMAGE_BYTES + 1];
    let put = db.put_image(ours.id, large, ("image/png", &bytes), at(5));
    assert!(matches!(put.await, Err(StoreError::TooLarge { .. })));
    bytes.pop();
    for number in 0..=51 {
        bytes[0] = number;
        let put = db.put_image(ours.id, large, ("image/png", &bytes), at(5));
        match (number, put.await) {
            (..51, Ok(_)) => {}
            (51, Err(StoreError::Full(full))) => {
                assert_eq!((full.used, full.at_most), (260, 256));
            }
            (_, other) => panic!("image {number}: {other:?}"),
        }
    }
}

async fn images_go_with_their_session(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let put = db.put_image(ours.id, session, ("image/png", b"one"), at(5));
    let digest = put.await.expect("there is room");
    let by = ours.owner.into();
    let deleted = db.delete_session(ours.id, session, &by, at(6)).await;
    deleted.expect("it is there");
    let late = db.put_image(ours.id, session, ("image/png", b"two"), at(7));
    assert!(matches!(late.await, Err(StoreError::NotFound)));
    let purged = db.purge_session(ours.id, session).await;
    assert!(purged.expect("nothing of it runs"));
    let found = db.images(ours.id, session, &[digest]).await;
    assert_eq!(found.expect("it answers"), []);
}

async fn images_of_another_tenant_are_not_found(fixture: Fixture) {
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let (db, session) = (&fixture.db, theirs.session().await);
    let put = db.put_image(theirs.id, session, ("image/png", b"one"), at(5));
    let digest = put.await.expect("there is room");
    let found = db.images(ours.id, session, &[digest]).await;
    assert_eq!(found.expect("it answers"), []);
    let put = db.put_image(ours.id, session, ("image/png", b"two"), at(5));
    assert!(matches!(put.await, Err(StoreError::NotFound)));
}

async fn the_largest_images_are_backed_up_and_moved(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let session = ours.session().await;
    let mut digests = Vec::new();
    let mut bytes = vec![0xfe; MAX_IMAGE_BYTES];
    for number in 0..3 {
        bytes[0] = number;
        let put = db.put_image(ours.id, session, ("image/png", &bytes), at(5));
        digests.push(put.await.expect("there is room"));
    }
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let path = folder.path().join("backup.tar.gz");
    let made = BackupMade {
        version: "1.2.3".to_owned(),
        at: at(6),
    };
    let written = write_backup(db, &folder.path().join("server"), &path, made).await;
    written.expect("it is written");
    let backup = crate::Backup::open(&path, i64::MAX).expect("it is whole");
    let (restored, moved) = (fixture.another(None).await, fixture.another(None).await);
    let into = folder.path().join("into");
    let done = backup.restore(&restored.db, &into, || Ok(())).await;
    done.expect("it is empty");
    copy(db, &moved.db).await.expect("it is empty");
    for copied in [restored.db, moved.db] {
        let images = copied.images(ours.id, session, &digests).await;
        let images = images.expect("it answers");
        let found: Vec<_> = images
            .iter()
            .map(|image| Digest::of(&image.bytes))
            .collect();
        assert_eq!(found, digests);
    }
}

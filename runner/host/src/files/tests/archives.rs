//! Archives that are unpacked.

use shared_sandbox::{FileFailure, Input, Outcome, Unpack};
use shared_types::Digest;

use crate::{
    HostEvent,
    testing::{LONG, Scene},
};

/// Links at these paths, to these targets.
fn archive(links: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o777);
    header.set_size(0);
    header.set_entry_type(tar::EntryType::Symlink);
    for (path, to) in links {
        let added = archive.append_link(&mut header, path, to);
        added.expect("there is room");
    }
    archive.into_inner().expect("it is in memory")
}

/// Unpacks it in a folder.
async fn unpack(scene: &Scene, folder: &str, archive: Vec<u8>) -> Outcome {
    let asked = Unpack {
        path: folder.to_owned(),
        bytes: archive.len() as u64,
        digest: Digest::of(&archive).into(),
    };
    let uploading = scene.host.unpack(asked, LONG);
    let piece = Input {
        offset: 0,
        data: archive.into(),
        end: true,
    };
    uploading.pieces.send(piece).await.expect("it is taken");
    let mut performing = uploading.performing;
    loop {
        match performing.events.recv().await.expect("an end") {
            HostEvent::Changing(announced) => announced.go_ahead(),
            HostEvent::Ended(outcome, _) => return outcome,
            HostEvent::Opened(_) | HostEvent::InputTaken(_) => {}
        }
    }
}

#[tokio::test]
async fn a_link_that_may_lead_out_of_its_folder_is_left_out_also_where_it_stays_in_the_workspace() {
    let scene = Scene::new();
    scene.put("folder/file", "text");
    scene.put("beside", "text");
    let links = [
        ("in/good", "../file"),
        ("out", "../beside"),
        ("through", "in/../../beside"),
        ("root", "/etc/passwd"),
    ];
    let outcome = unpack(&scene, "folder", archive(&links)).await;
    let Outcome::Unpacked(unpacked) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(unpacked.entries, 1);
    assert_eq!(scene.text("folder/in/good"), "text");
    let skipped: Vec<_> = unpacked
        .skipped
        .iter()
        .map(|one| (one.path.as_str(), &one.failure))
        .collect();
    assert_eq!(skipped.len(), 3, "{skipped:?}");
    for (path, failure) in skipped {
        assert!(["out", "through", "root"].contains(&path));
        assert!(
            matches!(failure, FileFailure::OutsideWorkspace { .. }),
            "{failure:?}"
        );
        let there = std::fs::symlink_metadata(scene.path("folder").join(path));
        assert!(there.is_err(), "{path}");
    }
}

//! Edits that do not fit, by what the caller is told, and by what lands after that.

use super::*;

/// The words on an edit of a file with this content that does not land. The file stays as it is.
async fn told(content: &str, old: &str) -> String {
    let scene = Scene::new();
    scene.put("file", content);
    let failure = scene.failure(edit(old, "new", false)).await;
    assert_eq!(scene.text("file"), content);
    failure.to_string()
}

#[tokio::test]
async fn a_text_that_stands_in_many_places_is_told_with_their_lines() {
    let told = told(&"same\nother\n".repeat(7), "same").await;
    assert_eq!(
        told,
        "the text to be replaced stands 7 times in \"file\", at lines 1, 3, 5, 7, 9 and further ones; add lines \
         around it until it is unique, or set replace_all to replace every occurrence"
    );
}

#[tokio::test]
async fn an_edit_of_what_was_read_lands_and_one_of_what_was_changed_since_then_does_not() {
    let scene = Scene::new();
    scene.put("file", "one\ntwo\n");
    let seen = scene.read(read("file", 2, 1, 100)).await.digest;
    assert_eq!(seen, Some(Digest::of(b"one\ntwo\n").into()));
    let expecting = |expected| Edit {
        expected,
        ..edit("two", "2", false)
    };
    scene.put("file", "zero\none\ntwo\n");
    let failure = scene.failure(expecting(seen)).await;
    assert_eq!(
        failure.to_string(),
        "\"file\" was changed since it was read: read it again"
    );
    assert_eq!(scene.text("file"), "zero\none\ntwo\n");
    let seen = scene.read(whole("file")).await.digest;
    let blake3 = shared_types::DigestAlgorithm::Blake3.of(b"zero\none\n2\n");
    let outcome = scene.outcome(expecting(seen)).await;
    assert!(matches!(outcome, Outcome::Edited(_)), "{outcome:?}");
    let again = Edit {
        expected: Some(blake3),
        ..edit("2", "3", false)
    };
    let outcome = scene.outcome(again).await;
    assert!(matches!(outcome, Outcome::Edited(_)), "{outcome:?}");
}

#[tokio::test]
async fn a_file_that_is_too_large_to_be_edited_is_read_without_a_digest() {
    let scene = Scene::new();
    scene.put("file", vec![b'\n'; MAX_INLINE_FILE_BYTES]);
    assert!(scene.read(read("file", 1, 1, 9)).await.digest.is_some());
    scene.put("file", vec![b'\n'; MAX_INLINE_FILE_BYTES + 1]);
    let found = scene
        .read(read("file", MAX_INLINE_FILE_BYTES as u64, 9, 9))
        .await;
    assert_eq!((found.digest, found.lines, found.more), (None, 2, false));
}

use std::{cell::RefCell, collections::BTreeSet};

use super::*;

#[global_allocator]
static MEMORY: Measured = Measured;

fn corpus() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, input) in [("a", "some words"), ("b", "")] {
        fs::write(folder.path().join(name), input).expect("an input");
    }
    folder
}

fn inputs(corpus: &Path, seeds: u64) -> Vec<Vec<u8>> {
    let seen = RefCell::new(Vec::new());
    fuzz(corpus, seeds, |input, _| {
        seen.borrow_mut().push(input.to_vec())
    });
    seen.into_inner()
}

#[test]
fn every_stored_input_comes_first_and_the_same_seeds_give_the_same_others() {
    let corpus = corpus();
    let seen = inputs(corpus.path(), 500);
    assert_eq!(seen[..2], [b"some words".to_vec(), Vec::new()]);
    assert_eq!(seen, inputs(corpus.path(), 500));
    let different: BTreeSet<_> = seen.iter().collect();
    assert!(different.len() > 250, "{} different ones", different.len());
}

#[test]
fn an_input_that_fails_is_kept_and_tried_first_from_then_on() {
    let corpus = corpus();
    let check = |input: &[u8], _: &mut Dice| assert!(input.len() < 30);
    let tried = catch_unwind(|| fuzz(corpus.path(), 500, check));
    tried.expect_err("some input is as long");
    let kept: Vec<_> = stored(corpus.path())
        .into_iter()
        .filter(|(name, _)| name.starts_with("failed-"))
        .collect();
    assert_eq!(kept.len(), 1);
    assert!(kept[0].1.len() >= 30);
    let again = catch_unwind(|| fuzz(corpus.path(), 0, check));
    again.expect_err("it is tried although no seed is");
}

#[test]
fn the_peak_is_what_was_held_at_the_same_time() {
    let ((), peak) = peak_of(|| {
        for _ in 0..10 {
            drop(std::hint::black_box(vec![0_u8; 100_000]));
        }
    });
    assert!((100_000..200_000).contains(&peak), "{peak} bytes");
}

//! Fuzzing on stored corpora, for tests only: no engine, no instrumentation, stable Rust.
//!
//! A corpus is a folder of inputs that mean something. [`fuzz`] tries each as it is, then one
//! changed input for each seed; the same seed always gives the same input. An input that fails is
//! kept in the corpus as `failed-SEED`, so that it is tried first from then on, and the command
//! that repeats it is printed. A test runs a few seeds; `make soak` sets [`SEEDS`] and [`FIRST`].

mod allocated;
mod dice;
mod mutate;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
};

pub use allocated::{Measured, peak_of};
pub use dice::Dice;
pub use mutate::mutate;

/// The variable that says how many seeds are tried.
pub const SEEDS: &str = "GANTRY_FUZZ_SEEDS";

/// The variable that says which one is the first.
pub const FIRST: &str = "GANTRY_FUZZ_FIRST";

/// Tries every input of the corpus, and one changed input for each of `seeds` seeds unless the
/// environment says otherwise. `check` panics where something is wrong; it has dice of its own,
/// which fall the same way for the same seed.
///
/// # Panics
/// When `check` does, or the corpus is empty or cannot be read.
pub fn fuzz(corpus: &Path, seeds: u64, check: impl Fn(&[u8], &mut Dice)) {
    let stored = stored(corpus);
    for (name, input) in &stored {
        let tried = catch_unwind(AssertUnwindSafe(|| check(input, &mut Dice::new(0))));
        tried.unwrap_or_else(|panic| {
            eprintln!("{} fails as it is", corpus.join(name).display());
            resume_unwind(panic);
        });
    }
    each_seed(seeds, |seed| {
        let mut dice = Dice::new(seed);
        let input = changed(&stored, &mut dice);
        let tried = catch_unwind(AssertUnwindSafe(|| check(&input, &mut dice)));
        tried.unwrap_or_else(|panic| {
            let kept = corpus.join(format!("failed-{seed}"));
            match fs::write(&kept, &input) {
                Ok(()) => eprintln!("the input is kept as {}", kept.display()),
                Err(error) => eprintln!("the input cannot be kept: {error}"),
            }
            resume_unwind(panic);
        });
    });
}

/// Tries each seed, for inputs that are more than bytes.
///
/// # Panics
/// Panics when `check` does, and then prints how to repeat it.
pub fn each_seed(seeds: u64, check: impl Fn(u64)) {
    let first = number(FIRST).unwrap_or(0);
    let seeds = number(SEEDS).unwrap_or(seeds);
    for seed in first..first + seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(seed))) {
            eprintln!("seed {seed} failed; repeat it with: {FIRST}={seed} {SEEDS}=1");
            resume_unwind(panic);
        }
    }
}

/// The inputs of a corpus with their names, in the order of the names.
///
/// # Panics
/// When there is none, or it cannot be read.
pub fn stored(corpus: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(corpus)
        .unwrap_or_else(|error| panic!("no corpus at {}: {error}", corpus.display()));
    let mut stored: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("a readable corpus").path();
            let name = path.file_name().expect("a file has a name");
            let name = name.to_string_lossy().into_owned();
            (name, fs::read(&path).expect("a readable input"))
        })
        .collect();
    stored.sort();
    assert!(!stored.is_empty(), "no input in {}", corpus.display());
    stored
}

fn changed(stored: &[(String, Vec<u8>)], dice: &mut Dice) -> Vec<u8> {
    let mut pick = || {
        stored[dice.below(stored.len() as u64) as usize]
            .1
            .as_slice()
    };
    let (one, other) = (pick(), pick());
    let mut input = one.to_vec();
    mutate(&mut input, other, dice);
    input
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test has no main that could pass it down"
)]
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

#[cfg(test)]
mod tests;

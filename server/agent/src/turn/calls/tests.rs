use proptest::prelude::*;

use super::batches;

#[test]
fn neighbours_that_read_are_together_and_every_other_call_is_alone() {
    let is_read = |call: &char| *call == 'r';
    let split = batches("rrwwrwrr".chars().collect(), is_read);
    let split: Vec<String> = split.into_iter().map(String::from_iter).collect();
    assert_eq!(split, ["rr", "w", "w", "r", "w", "rr"]);
}

proptest! {
    #[test]
    fn batches_keep_every_call_and_the_order(calls in proptest::collection::vec(any::<bool>(), 0..20)) {
        let split = batches(calls.clone(), |reads| *reads);
        prop_assert!(split.iter().all(|batch| batch.len() == 1 || batch.iter().all(|reads| *reads)));
        prop_assert_eq!(split.concat(), calls);
    }
}

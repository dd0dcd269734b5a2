//! The resizes and signals that were carried out, by their ids: each once, and in the order of the
//! ids.
//!
//! Two readers of one command may each ask again where they got no answer. A request that is older
//! than the last one carried out gets the stored answer; a request that did not come before is not
//! carried out.
//! come before.

use std::collections::VecDeque;

/// Answers that are kept, far more than one reader may wait for.
const REMEMBERED: usize = 64;

/// The result of one.
type OrderResult = Result<(), NotDone>;

/// One was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotDone {
    /// The reason.
    pub(crate) reason: String,
    /// Only because it came behind a later one: under a new id it may be.
    pub(crate) overtaken: bool,
}

impl From<String> for NotDone {
    fn from(reason: String) -> Self {
        let overtaken = false;
        Self { reason, overtaken }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// Oldest first, so by growing ids.
    answers: VecDeque<(u64, OrderResult)>,
    /// The largest id whose answer is not kept any more.
    forgotten: u64,
}

impl Carried {
    /// The largest id that was carried out, or could not be.
    pub(crate) fn last_id(&self) -> u64 {
        self.answers.back().map_or(0, |(id, _)| *id)
    }

    /// The stored answer, so that nothing is carried out again; nothing where this id is new.
    pub(crate) fn answer(&self, id: u64) -> Option<OrderResult> {
        if id > self.last_id() {
            return None;
        }
        let known = self.answers.iter().find(|(known, _)| *known == id);
        Some(match known {
            Some((_, answer)) => answer.clone(),
            None if id > self.forgotten => Err(NotDone {
                reason: "what another reader asked for later was done first; ask again".to_owned(),
                overtaken: true,
            }),
            None => {
                let reason = "too much was done since; whether this was done is not known";
                Err(reason.to_owned().into())
            }
        })
    }

    /// It was carried out, or cannot be.
    pub(crate) fn keep(&mut self, id: u64, answer: OrderResult) {
        self.answers.push_back((id, answer));
        if self.answers.len() > REMEMBERED
            && let Some((forgotten, _)) = self.answers.pop_front()
        {
            self.forgotten = forgotten;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_overtaken_is_not_said_to_be_done_nor_is_what_nobody_remembers() {
        let mut carried = Carried::default();
        assert_eq!(carried.answer(2), None);
        for id in (2..=200).step_by(2) {
            carried.keep(
                id,
                if id == 180 {
                    Err("no".to_owned().into())
                } else {
                    Ok(())
                },
            );
        }
        assert_eq!((carried.last_id(), carried.answer(201)), (200, None));
        assert_eq!(carried.answer(198), Some(Ok(())));
        assert_eq!(carried.answer(180), Some(Err("no".to_owned().into())));
        let overtaken = carried
            .answer(199)
            .expect("an answer")
            .expect_err("why not");
        assert!(overtaken.overtaken, "{overtaken:?}");
        for old in [2, 3, 72] {
            let unknown = carried
                .answer(old)
                .expect("an answer")
                .expect_err("why not");
            assert!(!unknown.overtaken, "{unknown:?}");
            assert!(unknown.reason.contains("not known"), "{unknown:?}");
        }
    }
}

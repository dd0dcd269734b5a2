//! What the server's store keeps over every crash: the same rules as the real one's, in memory.

use std::collections::BTreeMap;

use shared_link::server::{
    HelloFacts, Seen, Settled, StoredIntent, Verdict, forgotten, never_started,
};
use shared_sandbox::{Operation, Outcome};
use shared_types::{Epoch, Generation, OperationId};

use super::keeping::Kept;

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) generation: u64,
    /// How often another process has taken the work over.
    pub(crate) epoch: Epoch,
    /// Of the newest link.
    pub(crate) seen: Option<Seen>,
    pub(crate) rows: BTreeMap<OperationId, Row>,
    /// What is kept of output; unlike the rest it is not stored at once.
    pub(crate) outputs: BTreeMap<OperationId, Kept>,
    /// Whether a runner that links is told what is durable of them.
    pub(crate) tells: bool,
}

pub(crate) struct Row {
    pub(crate) operation: Operation,
    pub(crate) intent: StoredIntent,
    /// The call has ended: nobody will want the output any more.
    pub(crate) closed: bool,
}

impl Store {
    /// Makes a link the newest one. What the runner has forgotten can never be started any more,
    /// whichever journal links next.
    pub(crate) fn claim(&mut self, facts: &HelloFacts) -> Generation {
        let lost = Outcome::Refused(forgotten());
        for (id, row) in &mut self.rows {
            let listed = facts.inventory.iter().any(|entry| entry.operation == *id);
            if row.intent.incarnation != facts.incarnation && !listed {
                row.intent.outcome.get_or_insert_with(|| lost.clone());
            }
        }
        self.generation += 1;
        self.seen = Some(Seen {
            incarnation: facts.incarnation.clone(),
            journal_sequence: facts.journal_sequence,
            accepted_sequence: facts.journal_sequence,
        });
        Generation(self.generation)
    }

    /// Settles what the runner of the newest link never had, and nobody will send any more.
    pub(crate) fn settle_unheard(&mut self, facts: &HelloFacts, generation: Generation) {
        if generation.0 != self.generation {
            return;
        }
        for (id, row) in &mut self.rows {
            let listed = facts.inventory.iter().any(|entry| entry.operation == *id);
            if !listed && (row.closed || row.intent.cancel_requested) {
                let outcome = || Outcome::Refused(never_started());
                row.intent.outcome.get_or_insert_with(outcome);
            }
        }
    }

    /// What the runner has accepted over the link of this generation; an older one changes nothing.
    pub(crate) fn heard(&mut self, generation: Generation, accepted: u64) {
        if generation.0 == self.generation
            && let Some(seen) = &mut self.seen
        {
            seen.accepted_sequence = seen.accepted_sequence.max(accepted);
        }
    }

    pub(crate) fn verdicts(&self, facts: &HelloFacts) -> Vec<(OperationId, Verdict)> {
        let remembered = facts.inventory.iter();
        remembered
            .map(|entry| (entry.operation, self.verdict(entry.operation)))
            .collect()
    }

    pub(crate) fn verdict(&self, id: OperationId) -> Verdict {
        let Some(row) = self.rows.get(&id) else {
            return Verdict::Forget;
        };
        let (owner, epoch) = (row.operation.owner, self.epoch);
        match (&row.intent.outcome, row.closed) {
            (Some(_), true) => Verdict::Forget,
            (Some(_), false) => Verdict::Keep { committed: [0, 0] },
            (None, _) if row.intent.cancel_requested => Verdict::Cancel { owner, epoch },
            (None, true) => Verdict::Collect,
            (None, false) => Verdict::Keep {
                committed: self.committed(id),
            },
        }
    }

    /// What is read of an operation.
    pub(crate) fn intent(&self, id: OperationId) -> StoredIntent {
        let row = &self.rows[&id];
        StoredIntent {
            epoch: self.epoch,
            closed: row.closed,
            ..row.intent.clone()
        }
    }

    fn committed(&self, id: OperationId) -> [u64; 2] {
        let kept = self.outputs.get(&id).filter(|_| self.tells);
        kept.map_or([0, 0], Kept::synced)
    }

    /// The first outcome stays.
    pub(crate) fn settle(&mut self, id: OperationId, outcome: &Outcome) -> Settled {
        let row = self.rows.get_mut(&id).expect("it was placed");
        match &row.intent.outcome {
            Some(stored) => Settled::Already(stored.clone()),
            None => {
                row.intent.outcome = Some(outcome.clone());
                Settled::First
            }
        }
    }
}

//! What is passed on to operations: whoever calls one that takes input writes all of it, and
//! resizes its terminal now and then.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use shared_link::runner::Act;
use shared_sandbox::{Control, Input, OutputStream, TerminalSize};
use shared_types::OperationId;

use super::{dice::Dice, host::bytes_at, world::World};

/// How long the input of an operation is.
pub(crate) fn input_length(id: OperationId) -> u64 {
    id.as_u128() as u64 * 7_919_777 % 2_500_000
}

/// A process's supervisor, as far as things are passed on to it.
#[derive(Clone, Default)]
pub(crate) struct Given {
    /// What the daemon has and its supervisor does not: lost with the daemon.
    on_the_way: VecDeque<Input>,
    resizes_on_the_way: VecDeque<(u64, TerminalSize)>,
    input: u64,
    ended: bool,
    last_id: u64,
    /// The resizes that were carried out.
    done: BTreeSet<u64>,
    /// Nobody will write the rest.
    pub(crate) abandoned: bool,
}

/// What the supervisors did, for the oracle; survives everything.
#[derive(Default)]
pub(crate) struct Passed {
    inputs: BTreeMap<OperationId, u64>,
    sizes: BTreeSet<(OperationId, TerminalSizeKey)>,
}

type TerminalSizeKey = (u16, u16);

/// What a supervisor tells its daemon.
pub(crate) enum Took {
    Input(u64),
    /// Whether it was carried out, now or before.
    Resize(u64, bool),
}

impl Passed {
    /// Whether all of an operation's input arrived.
    pub(crate) fn took_all(&self, id: OperationId) -> bool {
        self.inputs.get(&id) == Some(&input_length(id))
    }
}

impl Given {
    /// Whether the process has all that it waits for.
    pub(crate) fn is_complete(&self, id: OperationId) -> bool {
        self.abandoned || self.is_fed(id)
    }

    /// Whether all of the input came.
    pub(crate) fn is_fed(&self, id: OperationId) -> bool {
        self.ended && self.input == input_length(id)
    }

    pub(crate) fn taken(&self) -> u64 {
        self.input
    }

    pub(crate) fn lose_daemon(&mut self) {
        self.on_the_way.clear();
        self.resizes_on_the_way.clear();
    }

    /// The supervisor takes some of what is on its way.
    pub(crate) fn take(
        &mut self,
        id: OperationId,
        passed: &mut Passed,
        dice: &mut Dice,
    ) -> Option<Took> {
        if let Some((control, size)) = self.resizes_on_the_way.pop_front() {
            if control > self.last_id {
                self.last_id = control;
                self.done.insert(control);
                let new = passed.sizes.insert((id, (size.rows, size.columns)));
                assert!(new, "{id} was resized twice for one wish");
            }
            return Some(Took::Resize(control, self.done.contains(&control)));
        }
        let piece = self.on_the_way.front_mut()?;
        assert_eq!(piece.offset, self.input, "{id}: input leaves something out");
        let expected = bytes_at(id, OutputStream::Stderr, piece.offset, piece.data.len());
        assert!(piece.data == expected, "{id}: other input arrived");
        assert!(!self.ended, "{id}: input arrived after its end");
        let some = dice.below(piece.data.len() as u64 + 1);
        self.input += some;
        piece.offset += some;
        piece.data = piece.data.slice(some as usize..);
        if piece.data.is_empty() {
            self.ended |= piece.end;
            self.on_the_way.pop_front();
        }
        assert!(self.input <= input_length(id));
        // What was taken of a file that never got its name is taken anew.
        let most = passed.inputs.entry(id).or_default();
        *most = self.input.max(*most);
        Some(Took::Input(self.input))
    }
}

impl World {
    /// The daemon passes something on.
    pub(crate) fn pass_to_host(&mut self, act: Act) {
        let (Act::Input(id, _) | Act::Control { operation: id, .. }) = &act else {
            return;
        };
        let Some(process) = self.runner.host.running.get_mut(id) else {
            return;
        };
        match act {
            Act::Input(_, input) => process.given.on_the_way.push_back(input),
            Act::Control { id, control, .. } => {
                let Control::Resize(size) = control else {
                    panic!("nobody sent a signal");
                };
                process.given.resizes_on_the_way.push_back((id, size));
            }
            _ => {}
        }
    }

    /// A reader was told that its terminal has this size.
    pub(crate) fn check_resized(&mut self, id: OperationId, size: TerminalSize) {
        let sizes = &self.runner.host.passed.sizes;
        let done = sizes.contains(&(id, (size.rows, size.columns)));
        assert!(done, "{id} was not resized, and is said to be");
        self.checks.tally.count("resized");
    }

    /// Whether somebody will write the rest of the operation's input.
    pub(crate) fn is_written_to(&self, id: OperationId) -> bool {
        let intent = self.store.rows().intent(id);
        let is_open = intent.is_some_and(|intent| !intent.closed && intent.outcome.is_none());
        is_open && (self.faults || self.is_called(id))
    }

    /// What a reader is told of its input is true.
    pub(crate) fn check_taken(&self, id: OperationId, up_to: u64) {
        let really = self.runner.host.passed.inputs.get(&id).copied();
        assert!(up_to <= really.unwrap_or(0), "{id} has not taken so much");
    }
}

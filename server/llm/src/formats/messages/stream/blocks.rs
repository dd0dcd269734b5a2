//! The blocks of an answer, in the order in which they began.
//!
//! The vendor sends one block after the other. A delta belongs to the last block with its index, because some servers
//! give each block the index 0. A delta of a block that has stopped is an error, and the answer is asked for again.

use serde_json::{Map, Value};
use shared_types::event::Part;

use super::{super::Messages, block::GrowingBlock};
use crate::{
    ModelError, Piece,
    formats::{
        Format as _, MAX_ANSWER_BYTES, MAX_CALLS, conversation::meant, malformed, too_large,
        too_many_calls,
    },
};

/// The approximate bytes that a block takes beside its content.
const BLOCK_BYTES: usize = 128;

/// The blocks of an answer.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<PlacedBlock>,
    /// The parts of text and of thoughts that have begun.
    begun: u32,
    calls: usize,
    weight: usize,
    /// The names of the tools that it may ask for.
    tools: Vec<String>,
}

/// A block at its place.
#[derive(Debug)]
struct PlacedBlock {
    index: Option<u64>,
    block: GrowingBlock,
    is_open: bool,
    /// Its place among the parts of text and of thoughts, once it has begun.
    place: Option<u32>,
}

impl Blocks {
    /// The blocks of an answer that may ask for these tools.
    pub(super) fn of(tools: impl IntoIterator<Item = String>) -> Self {
        Self {
            tools: tools.into_iter().collect(),
            ..Self::default()
        }
    }

    /// True if nothing was said.
    pub(super) fn are_empty(&self) -> bool {
        self.blocks.iter().all(|placed| placed.block.is_empty())
    }

    /// True if the arguments of all calls are complete.
    pub(super) fn are_whole(&self) -> bool {
        self.blocks.iter().all(|placed| placed.block.is_whole())
    }

    /// Begins a block, with the content that it already has.
    ///
    /// # Errors
    /// Fails if the block has not the form of its kind, or if the answer outgrows its bounds.
    pub(super) fn start(
        &mut self,
        index: Option<u64>,
        content: Map<String, Value>,
    ) -> Result<Option<Piece>, ModelError> {
        let block = GrowingBlock::of(content)?;
        self.calls += usize::from(block.is_call());
        if self.calls > MAX_CALLS {
            return Err(too_many_calls());
        }
        self.add_weight(BLOCK_BYTES + block.weight())?;
        let said = block.said().map(str::to_owned);
        self.blocks.push(PlacedBlock {
            index,
            block,
            is_open: true,
            place: None,
        });
        Ok(self.piece(self.blocks.len() - 1, said))
    }

    /// Takes more of a block. Text and thoughts may come without the beginning of their block.
    ///
    /// # Errors
    /// Fails if the block has stopped, if it is of another kind, or if the answer outgrows its bounds.
    pub(super) fn grow(
        &mut self,
        index: Option<u64>,
        delta: Map<String, Value>,
    ) -> Result<Option<Piece>, ModelError> {
        let place = match index {
            Some(_) => self.blocks.iter().rposition(|placed| placed.index == index),
            None => self.blocks.len().checked_sub(1),
        };
        let Some(place) = place else {
            let begun = GrowingBlock::begun_by(&delta).ok_or_else(|| out_of_place("no block"))?;
            self.start(index, begun)?;
            return self.grow(index, delta);
        };
        let placed = &mut self.blocks[place];
        if !placed.is_open {
            return Err(out_of_place("a block that has ended"));
        }
        let grown = placed.block.grow(delta)?;
        self.add_weight(grown.weight)?;
        Ok(self.piece(place, grown.said))
    }

    /// Ends a block. One that is not there, or has ended, changes nothing.
    pub(super) fn stop(&mut self, index: Option<u64>) {
        let mut last = self.blocks.iter_mut().rev();
        if let Some(placed) = last.find(|placed| index.is_none() || placed.index == index) {
            placed.is_open = false;
        }
    }

    /// The parts of the answer, and what was not said before. `is_torn` is true if half a character is missing.
    ///
    /// # Errors
    /// Fails if a call has no name.
    pub(super) fn conclude(
        mut self,
        is_torn: bool,
    ) -> Result<(Vec<Part>, Option<Piece>), ModelError> {
        let text = self
            .blocks
            .iter_mut()
            .rev()
            .find_map(|placed| match &mut placed.block {
                GrowingBlock::Text(text) if is_torn && !text.is_empty() => {
                    Some((text, placed.place))
                }
                _ => None,
            });
        let rest = text.and_then(|(text, place)| {
            text.push(char::REPLACEMENT_CHARACTER);
            Some(Piece {
                part: place?,
                voice: crate::Voice::Text,
                text: char::REPLACEMENT_CHARACTER.to_string(),
            })
        });
        let (mut parts, mut calls) = (Vec::new(), 0);
        for PlacedBlock { block, .. } in self.blocks {
            let mut part = block.into_part(calls)?;
            if let Some(Part::ToolCall(call)) = &mut part {
                calls += 1;
                call.name = meant(&self.tools, std::mem::take(&mut call.name));
            }
            parts.extend(part);
        }
        Ok((parts, rest))
    }

    /// The piece that is shown of a block which has grown. A block begins with its first content, and stands behind
    /// those that began before it.
    fn piece(&mut self, place: usize, said: Option<String>) -> Option<Piece> {
        let placed = &mut self.blocks[place];
        let voice = placed.block.voice()?;
        if placed.block.is_empty() {
            return None;
        }
        let part = *placed.place.get_or_insert_with(|| {
            self.begun += 1;
            self.begun - 1
        });
        if part + 1 == self.begun && place + 1 < self.blocks.len() {
            let begun = self.blocks.remove(place);
            self.blocks.push(begun);
        }
        let text = said.filter(|said| !said.is_empty())?;
        Some(Piece { part, voice, text })
    }

    fn add_weight(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.weight += bytes;
        match self.weight > MAX_ANSWER_BYTES {
            true => Err(too_large()),
            false => Ok(()),
        }
    }
}

/// The error for a delta that belongs to this.
fn out_of_place(block: &str) -> ModelError {
    malformed(Messages::NAME, &format_args!("a piece of {block}"))
}

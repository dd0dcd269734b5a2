//! Binary messages of an operation's WebSocket: a piece of its input or of its output.
//!
//! Byte 0 is the channel. Bytes 1 to 8 are the offset of the first data byte (big endian). The data
//! follows.

use bytes::{BufMut as _, Bytes, BytesMut};
use shared_types::limits::{INPUT_CHUNK_BYTES, MAX_NUMBER, OUTPUT_CHUNK_BYTES};

use crate::StreamName;

/// Bytes before the data.
const HEAD_BYTES: usize = 9;

/// Most data in one message, in bytes.
const MAX_DATA_BYTES: usize = 64 * 1024;
const _: () = assert!(MAX_DATA_BYTES == INPUT_CHUNK_BYTES && MAX_DATA_BYTES == OUTPUT_CHUNK_BYTES);

/// Largest binary message, in bytes.
pub const MAX_BINARY_FRAME_BYTES: usize = HEAD_BYTES + MAX_DATA_BYTES;

/// A piece of input (from the client) or of output (from the server).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryFrame {
    /// The stream of the bytes.
    pub channel: Channel,
    /// The offset of the first byte, from 0.
    pub offset: u64,
    /// The bytes, at most 64 KiB.
    pub data: Bytes,
}

/// The stream of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// The operation's input; only a client sends it.
    Input,
    /// An output stream of the operation; only the server sends it.
    Output(StreamName),
}

/// An error in a binary message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// It ends before its data begins.
    #[error("a binary message has {HEAD_BYTES} bytes or more: a channel, an offset and the data")]
    Short,
    /// It has more data than one message may have.
    #[error("a binary message carries at most {MAX_DATA_BYTES} bytes of data; send it in pieces")]
    Long,
    /// Its first byte names no channel.
    #[error("a binary message begins with 0 (input), 1 (stdout) or 2 (stderr)")]
    Channel,
    /// Its offset is larger than any input or output.
    #[error("the offset of a binary message is larger than {MAX_NUMBER}")]
    Offset,
}

impl BinaryFrame {
    /// The message.
    pub fn encode(&self) -> Bytes {
        let mut message = BytesMut::with_capacity(HEAD_BYTES + self.data.len());
        message.put_u8(match self.channel {
            Channel::Input => 0,
            Channel::Output(StreamName::Stdout) => 1,
            Channel::Output(StreamName::Stderr) => 2,
        });
        message.put_u64(self.offset);
        message.put_slice(&self.data);
        message.freeze()
    }

    /// Reads a message; the data shares its memory.
    ///
    /// # Errors
    /// Fails on a message that is no frame; the text gives the reason.
    pub fn decode(message: Bytes) -> Result<Self, BadFrame> {
        let Some((&[channel, ref offset @ ..], _)) = message.split_first_chunk::<HEAD_BYTES>()
        else {
            return Err(BadFrame::Short);
        };
        let channel = match channel {
            0 => Channel::Input,
            1 => Channel::Output(StreamName::Stdout),
            2 => Channel::Output(StreamName::Stderr),
            _ => return Err(BadFrame::Channel),
        };
        let offset = u64::from_be_bytes(*offset);
        let data = message.slice(HEAD_BYTES..);
        if data.len() > MAX_DATA_BYTES {
            return Err(BadFrame::Long);
        }
        if offset.saturating_add(data.len() as u64) > MAX_NUMBER {
            return Err(BadFrame::Offset);
        }
        Ok(Self {
            channel,
            offset,
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(channel: Channel, offset: u64, data: Vec<u8>) -> BinaryFrame {
        BinaryFrame {
            channel,
            offset,
            data: data.into(),
        }
    }

    #[test]
    fn a_piece_comes_back_as_it_was_and_stands_on_the_wire_as_documented() {
        let stdout = Channel::Output(StreamName::Stdout);
        let piece = frame(stdout, 0x0102, b"hi".to_vec());
        assert_eq!(&piece.encode()[..], b"\x01\0\0\0\0\0\0\x01\x02hi");
        for channel in [Channel::Input, stdout, Channel::Output(StreamName::Stderr)] {
            for data in [vec![], vec![7; MAX_DATA_BYTES]] {
                let piece = frame(channel, MAX_NUMBER - data.len() as u64, data);
                assert_eq!(BinaryFrame::decode(piece.encode()), Ok(piece));
            }
        }
    }

    #[test]
    fn a_message_that_is_no_piece_is_refused_by_what_is_wrong_with_it() {
        let decode = |message: Vec<u8>| BinaryFrame::decode(message.into());
        assert_eq!(decode(vec![0; HEAD_BYTES - 1]), Err(BadFrame::Short));
        assert_eq!(decode(vec![3; HEAD_BYTES]), Err(BadFrame::Channel));
        assert_eq!(
            decode(vec![0; MAX_BINARY_FRAME_BYTES + 1]),
            Err(BadFrame::Long)
        );
        let far = frame(Channel::Input, MAX_NUMBER, vec![1]);
        assert_eq!(BinaryFrame::decode(far.encode()), Err(BadFrame::Offset));
    }
}

//! The coding of frames: protobuf, in buffers that begin small.
//!
//! A link is idle most of its life, and a server holds thousands. The library's own codec gives
//! each direction of each call 8 KiB at once; these grow with what is sent.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Bytes that a direction holds before anything was sent: enough for every frame of an idle link.
const FIRST_BYTES: usize = 512;
/// Bytes of encoded frames that are gathered before they are handed on, as in the library.
const HANDED_ON_FROM_BYTES: usize = 32 * 1024;

/// Encodes `T` and decodes `U`.
#[derive(Debug, Clone)]
pub struct FrameCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for FrameCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for FrameCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(buffers())
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(buffers())
    }
}

fn buffers() -> BufferSettings {
    BufferSettings::new(FIRST_BYTES, HANDED_ON_FROM_BYTES)
}

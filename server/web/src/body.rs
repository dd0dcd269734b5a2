//! The bytes of an answer, unpacked and bounded.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use reqwest::{Response, header::CONTENT_ENCODING};

use crate::{WebError, http::broken};

/// The whole body of an answer of at most so many bytes. The bound counts before and after it is unpacked, so an
/// answer that unpacks to more ends as soon as it does.
///
/// # Errors
/// Fails if it is larger, packed in a way that was not asked for, or breaks off.
pub(crate) async fn read(mut response: Response, at_most: usize) -> Result<Vec<u8>, WebError> {
    let url = response.url().clone();
    let broken = |cause: &str| broken(&url, cause);
    let mut body = PageBody::of(&response, at_most)
        .ok_or_else(|| broken("it is packed in a way that was not asked for"))?;
    let (mut came, length) = (0, response.content_length());
    if length.is_some_and(|length| length > at_most as u64) {
        return Err(WebError::TooLarge(at_most));
    }
    loop {
        let chunk = response.chunk().await;
        let Some(chunk) = chunk.map_err(|_| broken("the connection broke off"))? else {
            break;
        };
        came += chunk.len();
        let written = body.write(&chunk);
        if came > at_most || body.is_full() {
            return Err(WebError::TooLarge(at_most));
        }
        written.map_err(|_| broken("its gzip is damaged"))?;
    }
    let finished = body.finish();
    if body.is_full() {
        return Err(WebError::TooLarge(at_most));
    }
    finished.map_err(|_| broken("its gzip is damaged"))?;
    Ok(body.into_bytes())
}

enum PageBody {
    Plain(Bounded),
    Packed(Box<MultiGzDecoder<Bounded>>),
}

impl PageBody {
    fn of(response: &Response, at_most: usize) -> Option<Self> {
        let bounded = Bounded {
            at_most,
            ..Bounded::default()
        };
        let packing = response.headers().get(CONTENT_ENCODING);
        let packing = packing.map(|value| value.as_bytes().trim_ascii().to_ascii_lowercase());
        match packing.as_deref() {
            None | Some(b"" | b"identity") => Some(Self::Plain(bounded)),
            Some(b"gzip" | b"x-gzip") => Some(Self::Packed(Box::new(MultiGzDecoder::new(bounded)))),
            Some(_) => None,
        }
    }

    fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(bounded) => bounded.write_all(chunk),
            Self::Packed(decoder) => decoder.write_all(chunk),
        }
    }

    fn is_full(&self) -> bool {
        match self {
            Self::Plain(bounded) => bounded.is_full,
            Self::Packed(decoder) => decoder.get_ref().is_full,
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Packed(decoder) => decoder.try_finish(),
        }
    }

    fn into_bytes(mut self) -> Vec<u8> {
        let bounded = match &mut self {
            Self::Plain(bounded) => bounded,
            Self::Packed(decoder) => decoder.get_mut(),
        };
        std::mem::take(&mut bounded.bytes)
    }
}

/// Bytes up to a bound. Writing more fails.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    at_most: usize,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.at_most {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

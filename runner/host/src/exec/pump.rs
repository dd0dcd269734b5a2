//! Moves a process's output from its pipe to the reader, and counts it.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use shared_sandbox::{OutputStream, StreamEnd};
use shared_types::limits::OUTPUT_CHUNK_BYTES;
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    sync::{mpsc, watch},
};

use crate::HostEvent;

/// With the leader gone, output that pauses for this long is taken to be over.
const SILENCE: Duration = Duration::from_millis(250);

/// The largest pipe that Linux makes unless root allows more; read at most this much from one
/// that a process outside the group keeps filling.
const PIPE_AT_MOST: usize = 1024 * 1024;

/// Held by a pump while it expects more; nothing is ever sent.
pub(crate) type Busy = Infallible;

/// What the process is doing, as far as its output is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It runs.
    Flow,
    /// Its leader is gone; others may still write.
    Drain,
    /// Everybody who can be killed is gone: what lies in the pipe is the rest.
    Stop,
}

/// One output stream.
#[derive(Debug)]
pub(crate) struct Pump {
    pipe: pipe::Receiver,
    stream: OutputStream,
    /// `None` once the reader is gone: the output is drained all the same.
    events: Option<mpsc::Sender<HostEvent>>,
    offset: u64,
    checksum: crc32fast::Hasher,
    closed: bool,
}

/// The whole of one output stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pumped {
    /// How much it was.
    pub(crate) end: StreamEnd,
    /// Whether nobody holds the pipe any more.
    pub(crate) closed: bool,
}

impl Pumped {
    /// The end of a stream that does not exist.
    pub(crate) fn nothing() -> Self {
        Self {
            end: StreamEnd::default(),
            closed: true,
        }
    }
}

impl Pump {
    pub(crate) fn new(
        pipe: pipe::Receiver,
        stream: OutputStream,
        events: mpsc::Sender<HostEvent>,
    ) -> Self {
        Self {
            pipe,
            stream,
            events: Some(events),
            offset: 0,
            checksum: crc32fast::Hasher::new(),
            closed: false,
        }
    }

    /// Pumps to the end of the stream, and says by dropping `busy` when it expects no more.
    pub(crate) async fn run(
        mut self,
        mut phase: watch::Receiver<Phase>,
        busy: mpsc::Sender<Busy>,
    ) -> Pumped {
        let mut chunk = vec![0; OUTPUT_CHUNK_BYTES];
        self.flow(&mut phase, &mut chunk).await;
        drop(busy);
        // An error means that nobody speaks of phases any more, which is a stop as well.
        let _ = phase.wait_for(|phase| *phase == Phase::Stop).await;
        self.take_rest(&mut chunk).await;
        Pumped {
            end: StreamEnd {
                offset: self.offset,
                checksum: Some(self.checksum.finalize()),
            },
            closed: self.closed,
        }
    }

    /// Until the pipe is closed, or is silent while it drains, or is to stop.
    async fn flow(&mut self, phase: &mut watch::Receiver<Phase>, chunk: &mut [u8]) {
        while !self.closed {
            let now = *phase.borrow_and_update();
            if now == Phase::Stop {
                return;
            }
            tokio::select! {
                changed = phase.changed() => if changed.is_err() { return },
                read = self.pipe.read(chunk) => match read {
                    Ok(0) => self.closed = true,
                    Ok(length) => self.deliver(&chunk[..length]).await,
                    Err(error) => {
                        tracing::warn!(%error, stream = %self.stream, "failed to read a command's output");
                        return;
                    }
                },
                () = tokio::time::sleep(SILENCE), if now == Phase::Drain => return,
            }
        }
    }

    /// What lies in the pipe now. Read directly: the runtime may not have heard of it yet.
    async fn take_rest(&mut self, chunk: &mut [u8]) {
        let mut taken = 0;
        while !self.closed && taken <= PIPE_AT_MOST {
            match rustix::io::read(&self.pipe, &mut *chunk) {
                Ok(0) => self.closed = true,
                Ok(length) => {
                    taken += length;
                    self.deliver(&chunk[..length]).await;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    async fn deliver(&mut self, data: &[u8]) {
        self.offset += data.len() as u64;
        self.checksum.update(data);
        if let Some(events) = &self.events {
            let event = HostEvent::Output {
                stream: self.stream,
                data: Bytes::copy_from_slice(data),
            };
            if events.send(event).await.is_err() {
                self.events = None;
            }
        }
    }
}

use futures_util::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;

/// What rustls asks for.
const ASKED: usize = 4096;

/// Counts how often it is read.
struct Counting {
    inner: DuplexStream,
    reads: usize,
}

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.reads += 1;
        Pin::new(&mut self.inner).poll_read(context, room)
    }
}

fn scene() -> (DuplexStream, TlsSocket<Counting>) {
    let (far, inner) = tokio::io::duplex(1 << 20);
    (far, TlsSocket::new(Counting { inner, reads: 0 }))
}

#[tokio::test]
async fn all_that_is_read_ahead_comes_in_order_and_takes_few_reads() {
    let (mut far, mut socket) = scene();
    let sent: Vec<u8> = (0..500_000_u32).map(|at| (at / 3) as u8).collect();
    far.write_all(&sent).await.expect("there is room");
    let mut came = Vec::new();
    while came.len() < sent.len() {
        let mut piece = [0; ASKED];
        let length = socket.read(&mut piece).await.expect("it is open");
        came.extend_from_slice(&piece[..length]);
    }
    assert!(came == sent, "every byte at its place");
    let reads = socket.inner.reads;
    assert!(reads < sent.len() / ASKED / 8, "{reads} reads");
    drop(far);
    assert_eq!(socket.read(&mut [0; ASKED]).await.expect("an end"), 0);
}

#[tokio::test]
async fn a_socket_that_waits_holds_no_memory() {
    let (mut far, mut socket) = scene();
    let mut piece = [0; ASKED];
    far.write_all(&[1; 100]).await.expect("there is room");
    assert_eq!(socket.read(&mut piece).await.expect("it came"), 100);
    far.write_all(&[1; 3 * ASKED]).await.expect("there is room");
    for _ in 0..3 {
        socket.read_exact(&mut piece).await.expect("it came");
    }
    assert!(socket.read(&mut piece).now_or_never().is_none());
    assert_eq!(socket.ahead.capacity(), 0, "it is given back");
    far.write_all(b"more").await.expect("there is room");
    assert_eq!(socket.read(&mut piece).await.expect("it came"), 4);
    assert_eq!(socket.ahead.capacity(), 0, "little needs none");
}

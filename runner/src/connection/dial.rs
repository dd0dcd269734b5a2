//! Dials the addresses of one name so that a silent one does not keep the others from being tried (RFC 8305).

use std::{io, net::SocketAddr, time::Duration};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::{net::TcpStream, time::sleep};

/// The wait for an address before the next one is dialled beside it.
const NEXT_AFTER: Duration = Duration::from_millis(300);

/// The first connection that comes about. An address is dialled once the one before has failed, or has not
/// answered for a while.
///
/// # Errors
/// The last failure, once every address has failed. An address that never answers is waited for as long as
/// the host does; bound it.
pub(super) async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut dialled = FuturesUnordered::new();
    let mut left = addresses.iter();
    let mut failure = io::ErrorKind::NotFound.into();
    loop {
        dialled.extend(left.next().map(TcpStream::connect));
        tokio::select! {
            answer = dialled.next() => match answer {
                Some(Ok(socket)) => return Ok(socket),
                Some(Err(error)) => failure = error,
                None => return Err(failure),
            },
            () = sleep(NEXT_AFTER), if left.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        net::{TcpListener, TcpSocket},
        time::timeout,
    };

    use super::*;
    use crate::testing::SOON;

    #[tokio::test]
    async fn addresses_that_are_silent_or_refuse_do_not_keep_another_from_being_dialled() {
        let silent = TcpSocket::new_v4().expect("a socket");
        silent.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        // There is room for one connection, and it is never accepted.
        let silent = silent.listen(0).expect("a listener");
        let silent = silent.local_addr().expect("an address");
        let _waits = TcpStream::connect(silent).await.expect("room for one");
        let listener = || TcpListener::bind("127.0.0.1:0");
        let closed = listener().await.and_then(|closed| closed.local_addr());
        let closed = closed.expect("an address");
        let open = listener().await.expect("a port");
        let open = open.local_addr().expect("an address");

        let addresses = [silent, closed, silent, open];
        let dialled = timeout(SOON, dial(&addresses)).await;
        let socket = dialled.expect("in time").expect("a connection");
        assert_eq!(socket.peer_addr().expect("an address"), open);
        let refused = dial(&[closed, closed]).await.map(|_| ());
        let refused = refused.expect_err("nobody listens");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}

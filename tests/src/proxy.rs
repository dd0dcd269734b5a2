//! A bad network in one process: a TCP proxy that cuts, half-closes, stalls, delays and slices on
//! cue. It does not look into what it passes on, so TLS goes through it as it is.
//!
//! What it does is a [`Weather`] that every connection heeds at once; what happens once (a cut, a
//! half-close) is a number in it that has grown. Nothing is left to chance.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use crate::before::Before;

/// The most that is passed on at once, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From whoever connected to the proxy.
    ToServer,
    /// Back to it.
    ToRunner,
}

/// What the network is like.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// The most that is passed on at once, in bytes.
    pub slice: usize,
    /// How long each piece is held back.
    pub delay: Duration,
    /// Whether nothing is passed on to the server, though the connections stay.
    pub stalled_to_server: bool,
    /// Whether nothing is passed on to the runner, though the connections stay.
    pub stalled_to_runner: bool,
    /// Whether new connections are reset at once.
    pub refuses: bool,
    /// A connection is cut once this many bytes went to the server over it.
    pub cut_after: u64,
    /// Each connection may send this many bytes more than the one before it.
    pub cut_later_by: u64,
    /// Connections older than this number are cut.
    cut_before: u64,
    /// Connections older than this number get the end of the stream towards the server, and
    /// nothing more.
    closed_to_server_before: u64,
    /// The same towards the runner.
    closed_to_runner_before: u64,
}

impl Default for Weather {
    fn default() -> Self {
        Self {
            slice: PIECE_BYTES,
            delay: Duration::ZERO,
            stalled_to_server: false,
            stalled_to_runner: false,
            refuses: false,
            cut_after: u64::MAX,
            cut_later_by: 0,
            cut_before: 0,
            closed_to_server_before: 0,
            closed_to_runner_before: 0,
        }
    }
}

/// What went through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed {
    /// Connections that were made, refused ones included.
    pub connections: u64,
    /// Bytes that went to the server.
    pub to_server: u64,
    /// Bytes that went to the runner.
    pub to_runner: u64,
}

/// The proxy; it listens until it is dropped, and then everything over it is cut.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    target: watch::Sender<SocketAddr>,
    weather: watch::Sender<Weather>,
    passed: watch::Sender<Passed>,
    serving: AbortHandle,
}

impl Proxy {
    /// A proxy on loopback before a server at this address.
    ///
    /// # Panics
    /// If loopback has no free port.
    pub async fn before(url: &str) -> Self {
        let Before {
            listener,
            url,
            target,
        } = Before::server(url).await;
        let weather = watch::Sender::new(Weather::default());
        let passed = watch::Sender::new(Passed::default());
        let target = watch::Sender::new(target);
        let serving = serve(
            listener,
            target.subscribe(),
            weather.subscribe(),
            passed.clone(),
        );
        let serving = tokio::spawn(serving);
        Self {
            url,
            target,
            weather,
            passed,
            serving: serving.abort_handle(),
        }
    }

    /// Where a runner finds the server behind it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// New connections go to another server at this address.
    ///
    /// # Panics
    /// If it is no address with a port.
    pub fn leads_to(&self, url: &str) {
        let address = url.rsplit("://").next().unwrap_or_default();
        let address = address.parse().expect("an address and a port");
        self.target.send_replace(address);
    }

    /// Changes what the network is like.
    pub fn set(&self, change: impl FnOnce(&mut Weather)) {
        self.weather.send_modify(change);
    }

    /// Resets every connection that there is.
    pub fn cut(&self) {
        let made = self.passed().connections;
        self.set(|weather| weather.cut_before = made);
    }

    /// Ends the stream one way on every connection that there is; the other way goes on. What is
    /// still sent that way is taken and thrown away.
    pub fn half_close(&self, way: Way) {
        let made = self.passed().connections;
        self.set(|weather| match way {
            Way::ToServer => weather.closed_to_server_before = made,
            Way::ToRunner => weather.closed_to_runner_before = made,
        });
    }

    /// Lets nothing through one way; the connections stay.
    pub fn stall(&self, way: Way) {
        self.set(|weather| match way {
            Way::ToServer => weather.stalled_to_server = true,
            Way::ToRunner => weather.stalled_to_runner = true,
        });
    }

    /// A good network again.
    pub fn clear(&self) {
        self.set(|weather| {
            *weather = Weather {
                cut_before: weather.cut_before,
                closed_to_server_before: weather.closed_to_server_before,
                closed_to_runner_before: weather.closed_to_runner_before,
                ..Weather::default()
            }
        });
    }

    /// What has gone through so far.
    pub fn passed(&self) -> Passed {
        *self.passed.borrow()
    }

    /// Waits until that much has gone through.
    pub async fn until(&self, is_it: impl FnMut(&Passed) -> bool) {
        let mut passed = self.passed.subscribe();
        let waited = tokio::time::timeout(crate::gantry::PATIENCE, passed.wait_for(is_it)).await;
        waited
            .expect("so much goes through in time")
            .expect("the proxy serves");
    }

    /// Waits until so many bytes have gone through in both directions, however slow the machine is,
    /// as long as some go through.
    pub async fn until_bytes(&self, enough: u64) {
        let mut passed = self.passed.subscribe();
        loop {
            let now = *passed.borrow_and_update();
            if now.to_server + now.to_runner >= enough {
                return;
            }
            tokio::time::timeout(crate::gantry::PATIENCE, passed.changed())
                .await
                .expect("something goes through in time")
                .expect("the proxy serves");
        }
    }

    /// Waits for a connection that is newer than all that there are.
    pub async fn until_new_connection(&self) {
        let made = self.passed().connections;
        self.until(|passed| passed.connections > made).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    listener: TcpListener,
    target: watch::Receiver<SocketAddr>,
    weather: watch::Receiver<Weather>,
    passed: watch::Sender<Passed>,
) {
    // Dropped with this task, and every connection with it.
    let mut connections = JoinSet::new();
    loop {
        let Ok((runner, _)) = listener.accept().await else {
            return;
        };
        while connections.try_join_next().is_some() {}
        let mut number = 0;
        passed.send_modify(|passed| {
            number = passed.connections;
            passed.connections += 1;
        });
        let refused = weather.borrow().refuses;
        let server = *target.borrow();
        match TcpStream::connect(server).await {
            Ok(server) if !refused => {
                connections.spawn(connection(
                    number,
                    runner,
                    server,
                    weather.clone(),
                    passed.clone(),
                ));
            }
            _ => reset(&runner),
        }
    }
}

/// The next end of this socket is a reset.
fn reset(socket: &TcpStream) {
    // A socket that is gone already needs none.
    let _ = socket.set_zero_linger();
}

async fn connection(
    number: u64,
    runner: TcpStream,
    server: TcpStream,
    weather: watch::Receiver<Weather>,
    passed: watch::Sender<Passed>,
) {
    for socket in [&runner, &server] {
        let _ = socket.set_nodelay(true);
        reset(socket);
    }
    let (from_runner, to_runner) = runner.into_split();
    let (from_server, to_server) = server.into_split();
    let pump = |way, from, to| Pump {
        number,
        way,
        from,
        to,
        weather: weather.clone(),
        passed: passed.clone(),
    };
    // Where one way breaks or is cut, the connection is over; where it ends in order, the other
    // way goes on.
    let _ = tokio::try_join!(
        pump(Way::ToServer, from_runner, to_server).run(),
        pump(Way::ToRunner, from_server, to_runner).run()
    );
}

/// One way of one connection.
struct Pump {
    number: u64,
    way: Way,
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    weather: watch::Receiver<Weather>,
    passed: watch::Sender<Passed>,
}

/// The connection is over, both ways.
struct Over;

impl Pump {
    async fn run(mut self) -> Result<(), Over> {
        let mut buffer = vec![0; PIECE_BYTES];
        let (mut open, mut passed) = (true, 0);
        loop {
            open = open && self.heeds_half_close().await;
            let most = self.most(passed)?;
            let read = tokio::select! {
                read = self.from.read(&mut buffer[..most]) => read.map_err(|_| Over)?,
                changed = self.weather.changed() => {
                    changed.map_err(|_| Over)?;
                    continue;
                }
            };
            if read == 0 {
                // It ended, or it does now as the sender wishes.
                let _ = self.to.shutdown().await;
                return Ok(());
            }
            self.held_back().await?;
            if open {
                self.pass_on(&buffer[..read]).await?;
                passed += read as u64;
            }
        }
    }

    /// Whether this way is still open; ends the stream where it was told to.
    async fn heeds_half_close(&mut self) -> bool {
        let weather = *self.weather.borrow_and_update();
        let before = match self.way {
            Way::ToServer => weather.closed_to_server_before,
            Way::ToRunner => weather.closed_to_runner_before,
        };
        if self.number < before {
            let _ = self.to.shutdown().await;
            return false;
        }
        true
    }

    /// How much may be read at once, after so much.
    fn most(&self, passed: u64) -> Result<usize, Over> {
        let weather = *self.weather.borrow();
        let left = match self.way {
            Way::ToServer => {
                let longer = self.number.saturating_mul(weather.cut_later_by);
                let until = weather.cut_after.saturating_add(longer);
                until.saturating_sub(passed)
            }
            Way::ToRunner => u64::MAX,
        };
        if self.number < weather.cut_before || left == 0 {
            return Err(Over);
        }
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        Ok(weather.slice.clamp(1, PIECE_BYTES).min(left))
    }

    /// Holds a piece back for as long as the weather says.
    async fn held_back(&mut self) -> Result<(), Over> {
        let (number, way) = (self.number, self.way);
        let delay = self.weather.borrow().delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        let goes_on = |weather: &Weather| {
            let stalled = match way {
                Way::ToServer => weather.stalled_to_server,
                Way::ToRunner => weather.stalled_to_runner,
            };
            !stalled || number < weather.cut_before
        };
        let weather = *self.weather.wait_for(goes_on).await.map_err(|_| Over)?;
        if number < weather.cut_before {
            return Err(Over);
        }
        Ok(())
    }

    async fn pass_on(&mut self, piece: &[u8]) -> Result<(), Over> {
        let number = self.number;
        // Whoever takes nothing is cut all the same.
        tokio::select! {
            written = self.to.write_all(piece) => written.map_err(|_| Over)?,
            _ = self.weather.wait_for(|weather| number < weather.cut_before) => return Err(Over),
        }
        let bytes = piece.len() as u64;
        self.passed.send_modify(|passed| match self.way {
            Way::ToServer => passed.to_server += bytes,
            Way::ToRunner => passed.to_runner += bytes,
        });
        Ok(())
    }
}

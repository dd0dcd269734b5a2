//! Time is passed in: below `main` no code asks the system.

use std::{fmt, time::Duration};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use crate::Entropy as _;

/// A source of time. Durations are measured with [`Clock::monotonic`], never by subtracting two
/// wall-clock times.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The wall clock, for records that people read and for expiry dates.
    fn now(&self) -> Timestamp;

    /// Time since an arbitrary fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;

    /// Time since some moment that does not change, which goes on while the host is suspended.
    fn boot_time(&self) -> Duration;

    /// The host's present boot: another one after every start of it, and on every other host.
    fn boot(&self) -> &str;

    /// Now, for deadlines that outlive this process.
    fn boot_moment(&self) -> BootMoment {
        BootMoment {
            boot: self.boot().to_owned(),
            at: self.boot_time(),
        }
    }
}

/// A moment that no change of the wall clock moves. It has a meaning only in its own boot of its
/// own host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootMoment {
    /// The id of the boot, which differs between boots and between hosts.
    pub boot: String,
    /// The time since a fixed moment of that boot; it includes time in which the host was
    /// suspended.
    pub at: Duration,
}

impl BootMoment {
    /// The time left until this moment; zero once it is over. In another boot, or on another host,
    /// the moment counts as over, because the two times cannot be compared.
    pub fn left(&self, now: &Self) -> Duration {
        match self.boot == now.boot {
            true => self.at.saturating_sub(now.at),
            false => Duration::ZERO,
        }
    }

    /// This moment, `later` later.
    pub fn after(self, later: Duration) -> Self {
        Self {
            at: self.at.saturating_add(later),
            ..self
        }
    }
}

/// The error text for a text that is no RFC 3339 time.
const NOT_A_MOMENT: &str = "a time has to be written like 2026-11-24T13:05:00Z";

/// A moment in UTC, in whole microseconds since 1970: the resolution that every database keeps.
/// Its JSON form is RFC 3339, and so is its text; `{:.0}` leaves out the parts of a second, for people.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since 1970-01-01T00:00:00Z.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Whole seconds since 1970-01-01T00:00:00Z.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// This moment, `later` later; the far end of time instead of an overflow.
    pub fn after(self, later: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(later.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Its day, such as `2026-11-24`.
    pub fn date(self) -> String {
        let mut text = format!("{self:.0}");
        // Years beyond 9999 have more letters.
        text.truncate(text.find('T').unwrap_or(text.len()));
        text
    }

    /// The time from `earlier` to this moment; zero where `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment =
            DateTime::<Utc>::from_timestamp_micros(self.0).unwrap_or(DateTime::<Utc>::MAX_UTC);
        let parts = match f.precision() {
            Some(0) => SecondsFormat::Secs,
            _ => SecondsFormat::Micros,
        };
        f.write_str(&moment.to_rfc3339_opts(parts, true))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let moment = DateTime::parse_from_rfc3339(&text);
        let moment = moment.map_err(|_| serde::de::Error::custom(NOT_A_MOMENT))?;
        Ok(Self(moment.timestamp_micros()))
    }
}

/// The system's clocks.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: std::time::Instant,
    boot: String,
}

impl SystemClock {
    /// The one place that reads the system's time.
    #[expect(
        clippy::disallowed_methods,
        clippy::new_without_default,
        reason = "this is the clock that `main` passes down"
    )]
    pub fn new() -> Self {
        Self {
            started: std::time::Instant::now(),
            boot: boot(),
        }
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that `main` passes down"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn boot_time(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::try_from(now).unwrap_or_default()
    }

    fn boot(&self) -> &str {
        &self.boot
    }
}

/// The kernel's id of this boot. Where the kernel gives none, each process makes up its own.
fn boot() -> String {
    let known = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    known.map_or_else(
        |_| {
            let mut random = [0; 16];
            crate::OsEntropy.fill(&mut random);
            uuid::Uuid::from_bytes(random).to_string()
        },
        |id| id.trim().to_owned(),
    )
}

/// A clock that stands still until a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    micros: std::sync::atomic::AtomicI64,
    suspended: std::sync::atomic::AtomicI64,
    set_forward: std::sync::atomic::AtomicI64,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn at(start: Timestamp) -> Self {
        Self {
            micros: start.0.into(),
            suspended: 0.into(),
            set_forward: 0.into(),
        }
    }

    /// Moves all times forward.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.micros
            .fetch_add(by, std::sync::atomic::Ordering::SeqCst);
    }

    /// Sets the wall clock forward by so many microseconds, or back where the number is negative.
    pub fn set_wall(&self, forward: i64) {
        self.set_forward
            .fetch_add(forward, std::sync::atomic::Ordering::SeqCst);
    }

    /// Suspends the host: the monotonic clock stands still for this time.
    pub fn suspend(&self, by: Duration) {
        self.advance(by);
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.suspended
            .fetch_add(by, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let set_forward = self.set_forward.load(std::sync::atomic::Ordering::SeqCst);
        Timestamp(self.micros.load(std::sync::atomic::Ordering::SeqCst) + set_forward)
    }

    fn monotonic(&self) -> Duration {
        let suspended = self.suspended.load(std::sync::atomic::Ordering::SeqCst);
        let micros = self.micros.load(std::sync::atomic::Ordering::SeqCst);
        Timestamp(micros).since(Timestamp(suspended))
    }

    fn boot_time(&self) -> Duration {
        let micros = self.micros.load(std::sync::atomic::Ordering::SeqCst);
        Timestamp(micros).since(Timestamp(0))
    }

    fn boot(&self) -> &str {
        "the boot of a manual clock"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_a_boot_is_over_in_another_one_and_no_wall_clock_moves_it() {
        let clock = ManualClock::at(Timestamp::from_micros(0));
        let moment = clock.boot_moment().after(Duration::from_secs(10));
        clock.set_wall(-1_000_000_000);
        clock.suspend(Duration::from_secs(4));
        let now = clock.boot_moment();
        assert_eq!(moment.left(&now), Duration::from_secs(6));
        let boot = "another".to_owned();
        assert_eq!(moment.left(&BootMoment { boot, ..now }), Duration::ZERO);
        clock.advance(Duration::from_secs(7));
        assert_eq!(moment.left(&clock.boot_moment()), Duration::ZERO);
        let system = [SystemClock::new(), SystemClock::new()].map(|clock| clock.boot_moment());
        assert_eq!(system[0].boot, system[1].boot, "processes agree");
    }

    #[test]
    fn a_moment_survives_json_to_the_microsecond() {
        let moment = Timestamp::from_micros(1_789_000_000_123_456);
        let json = serde_json::to_string(&moment).expect("a timestamp is a string");
        assert_eq!(json, "\"2026-09-10T00:26:40.123456Z\"");
        assert_eq!(
            serde_json::from_str::<Timestamp>(&json).expect("it reads back"),
            moment
        );
    }

    #[test]
    fn people_are_shown_whole_seconds_of_which_none_is_still_to_come() {
        let moment = Timestamp::from_micros(1_789_000_000_999_999);
        assert_eq!(format!("{moment:.0}"), "2026-09-10T00:26:40Z");
        assert_eq!(format!("{moment}"), "2026-09-10T00:26:40.999999Z");
    }

    #[test]
    fn a_later_moment_lies_no_time_before_an_earlier_one() {
        let (early, late) = (Timestamp::from_micros(1), Timestamp::from_micros(5));
        assert_eq!(late.since(early), Duration::from_micros(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}

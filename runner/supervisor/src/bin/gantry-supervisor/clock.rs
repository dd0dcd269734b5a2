//! The two clocks of deadlines.

use std::{io, time::Duration};

use rustix::{
    fd::OwnedFd,
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
        clock_gettime, timerfd_create, timerfd_settime,
    },
};

/// Time that does not pass while the host is suspended.
pub(crate) fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// The duration for system calls, rounded up to what they can express.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// A timer that becomes readable, on the clock that goes on while the host is suspended.
#[derive(Debug)]
pub(crate) struct BootTimer(pub(crate) OwnedFd);

impl BootTimer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, flags)?))
    }

    /// Sets the timer; what was set before is forgotten.
    pub(crate) fn set(&self, after: Duration) -> io::Result<()> {
        // Zero would switch it off.
        let after = after.max(Duration::from_nanos(1));
        let timer = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value: timespec(after),
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }

    /// Switches it off.
    pub(crate) fn stop(&self) -> io::Result<()> {
        let never = Itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value: timespec(Duration::ZERO),
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &never)?;
        Ok(())
    }

    /// True if it has run out since it was last set.
    pub(crate) fn is_over(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }
}

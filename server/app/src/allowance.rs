//! Bounds on what one user may store, over all credentials of the user. A key that is lost, or a
//! program that has gone wild, fills neither the disk nor the log.
//!
//! The store counts the rows that exist, in the transaction that would add one. This module counts the
//! rates of a minute, in memory: a restart forgets at most one minute's worth. The bounds are per
//! user, not per credential, because a key may make keys. To revoke a key is always allowed.
//!
//! Replicas of one database count together ([`shared`]).

mod shared;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use shared_types::{Clock, TenantId, UserId};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::{AppError, OpContext, Parts};

/// Over which time the rates count.
const MINUTE: Duration = Duration::from_secs(60);

/// The number of users whose rates are remembered. Beyond it, users that did nothing in the last
/// minute are forgotten.
const REMEMBERED: usize = 1024;

/// The limits of one user. The bounds that no deployment needs to change are the store's:
/// [`server_store::KEYS_OF_USER_AT_MOST`] and the like.
#[derive(Debug, Clone, Copy)]
pub struct UserLimits {
    /// Sessions; deleted ones do not count.
    pub sessions: u32,
    /// New sessions, keys and join tokens in a minute.
    pub new_per_minute: u32,
    /// Bytes of messages in a minute.
    pub message_bytes_per_minute: u64,
    /// Bytes of images for messages in a minute.
    pub image_bytes_per_minute: u64,
    /// New operations in a minute.
    pub operations_per_minute: u32,
    /// The time for which an operation of a *caller* and its output are kept after its end; for ever, if
    /// absent.
    pub operations_kept_for: Option<Duration>,
}

impl Default for UserLimits {
    fn default() -> Self {
        Self {
            sessions: 10_000,
            new_per_minute: 60,
            message_bytes_per_minute: 4 * 1024 * 1024,
            image_bytes_per_minute: 64 * 1024 * 1024,
            operations_per_minute: 1200,
            operations_kept_for: None,
        }
    }
}

/// The kinds of rate that are counted in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rate {
    /// New sessions, keys and join tokens.
    New,
    /// Bytes of messages.
    MessageBytes,
    /// Bytes of images.
    ImageBytes,
    /// New operations.
    Operation,
}

impl Rate {
    /// The setting that bounds it.
    pub fn setting(self) -> &'static str {
        match self {
            Self::New => "new_per_minute",
            Self::MessageBytes => "message_kib_per_minute",
            Self::ImageBytes => "image_kib_per_minute",
            Self::Operation => "operations_per_minute",
        }
    }
}

impl Rate {
    /// Its name in the database.
    fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::MessageBytes => "message_bytes",
            Self::ImageBytes => "image_bytes",
            Self::Operation => "operation",
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "new sessions, keys and join tokens",
            Self::MessageBytes => "bytes of messages",
            Self::ImageBytes => "bytes of images",
            Self::Operation => "new operations",
        })
    }
}

/// The key of one rate: tenant, user and kind.
type Whose = (TenantId, UserId, Rate);

/// One amount that was allowed, so that it can be given back.
#[derive(Debug)]
pub(crate) struct Allowed {
    of: Whose,
    takes: Duration,
}

/// Knows what each user did lately. Clones share it.
#[derive(Clone)]
pub(crate) struct Allowance {
    /// A reload of the settings changes them.
    limits: Arc<RwLock<UserLimits>>,
    clock: Arc<dyn Clock>,
    counts: Arc<Mutex<HashMap<Whose, Count>>>,
    /// Something was counted that other replicas do not know of. Absent where there are none.
    news: Option<Arc<Notify>>,
}

/// The count of one rate.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// The time at which all of a minute's worth is free again if nothing more comes.
    free_at: Duration,
    /// The part of it that other replicas do not know of, in microseconds.
    untold_us: i64,
}

impl Count {
    fn take(&mut self, takes: Duration, now: Duration) {
        self.free_at = self.free_at.max(now) + takes;
    }

    fn give_back(&mut self, takes: Duration) {
        self.free_at = self.free_at.saturating_sub(takes);
    }

    fn is_worth_nothing(&self, now: Duration) -> bool {
        self.free_at <= now && self.untold_us == 0
    }
}

impl Allowance {
    pub(crate) fn new(limits: UserLimits, clock: Arc<dyn Clock>) -> Self {
        Self {
            limits: Arc::new(RwLock::new(limits)),
            clock,
            counts: Arc::default(),
            news: None,
        }
    }

    /// One that counts together with the other replicas of the database, if there may be any.
    pub(crate) fn of(parts: &Parts, tasks: &TaskTracker) -> Self {
        let mut allowance = Self::new(parts.user_limits, parts.clock.clone());
        if parts.store.is_shared() {
            let news = Arc::default();
            allowance.news = Some(Arc::clone(&news));
            let telling = allowance.clone().tell_others(parts.store.clone(), news);
            tasks.spawn(parts.stop.clone().run_until_cancelled_owned(telling));
        }
        allowance
    }

    pub(crate) fn limits(&self) -> UserLimits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other limits from now on. What users did before is counted as it was.
    pub(crate) fn use_limits(&self, limits: UserLimits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// One more session, key or join token.
    ///
    /// # Errors
    /// If there were too many within the last minute; it says how long to wait.
    pub(crate) fn one_more(&self, ctx: &OpContext) -> Result<Allowed, AppError> {
        let takes = MINUTE / self.limits().new_per_minute.max(1);
        self.take(ctx, Rate::New, takes)
    }

    /// One more operation.
    ///
    /// # Errors
    /// If there were too many within the last minute; it says how long to wait.
    pub(crate) fn operation(&self, ctx: &OpContext) -> Result<Allowed, AppError> {
        let takes = MINUTE / self.limits().operations_per_minute.max(1);
        self.take(ctx, Rate::Operation, takes)
    }

    /// A message of so many bytes.
    ///
    /// # Errors
    /// If there were too many bytes within the last minute; it says how long to wait.
    pub(crate) fn message(&self, ctx: &OpContext, bytes: usize) -> Result<Allowed, AppError> {
        let at_most = self.limits().message_bytes_per_minute;
        self.take(ctx, Rate::MessageBytes, share(bytes, at_most))
    }

    /// An image of so many bytes.
    ///
    /// # Errors
    /// If there were too many bytes within the last minute; it says how long to wait.
    pub(crate) fn image(&self, ctx: &OpContext, bytes: usize) -> Result<Allowed, AppError> {
        let at_most = self.limits().image_bytes_per_minute;
        self.take(ctx, Rate::ImageBytes, share(bytes, at_most))
    }

    /// Gives back what came to nothing.
    pub(crate) fn back(&self, allowed: Allowed) {
        self.with(|counts| {
            if let Some(count) = counts.get_mut(&allowed.of) {
                count.give_back(allowed.takes);
                self.note(count, micros(allowed.takes).saturating_neg());
            }
        });
    }

    /// # Errors
    /// If there were too many within the last minute; it says how long to wait.
    fn take(&self, ctx: &OpContext, rate: Rate, takes: Duration) -> Result<Allowed, AppError> {
        let now = self.clock.monotonic();
        let of = (ctx.tenant, ctx.user, rate);
        self.with(|counts| {
            if counts.len() >= REMEMBERED {
                counts.retain(|_, count| !count.is_worth_nothing(now));
            }
            let mut count = counts.get(&of).copied().unwrap_or_default();
            count.take(takes, now);
            let full = now + MINUTE;
            if count.free_at > full {
                return Err(AppError::OverRate {
                    rate,
                    retry_after_s: (count.free_at - full).as_secs() + 1,
                });
            }
            self.note(&mut count, micros(takes));
            counts.insert(of, count);
            Ok(Allowed { of, takes })
        })
    }

    /// Other replicas, where there are any, are to know of this.
    fn note(&self, count: &mut Count, takes_us: i64) {
        if let Some(news) = &self.news {
            count.untold_us = count.untold_us.saturating_add(takes_us);
            news.notify_one();
        }
    }

    /// Nothing that panics runs under the lock.
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<Whose, Count>) -> T) -> T {
        act(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// The share of a minute that so many bytes take. What takes more than a minute's worth may be sent when nothing else
/// was.
fn share(bytes: usize, in_a_minute: u64) -> Duration {
    let share = bytes as f64 / in_a_minute.max(1) as f64;
    MINUTE.mul_f64(share.min(1.0))
}

#[cfg(test)]
mod tests;

//! Bounds on what one user may store, over all credentials of the user. A key that is lost, or a
//! program that has gone wild, fills neither the disk nor the log.
//!
//! The store counts the rows that exist, in the transaction that would add one. This module counts the
//! rates of a minute, in memory: a restart forgets at most one minute's worth. The bounds are per
//! user, not per credential, because a key may make keys. To revoke a key is always allowed.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use shared_types::{Clock, TenantId, UserId};

use crate::{AppError, OpContext};

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
    /// The time at which all of a minute's worth is free again if nothing more comes.
    free_at: Arc<Mutex<HashMap<Whose, Duration>>>,
}

impl Allowance {
    pub(crate) fn new(limits: UserLimits, clock: Arc<dyn Clock>) -> Self {
        Self {
            limits: Arc::new(RwLock::new(limits)),
            clock,
            free_at: Arc::default(),
        }
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
        self.with(|free_at| {
            if let Some(free_at) = free_at.get_mut(&allowed.of) {
                *free_at = free_at.saturating_sub(allowed.takes);
            }
        });
    }

    /// # Errors
    /// If there were too many within the last minute; it says how long to wait.
    fn take(&self, ctx: &OpContext, rate: Rate, takes: Duration) -> Result<Allowed, AppError> {
        let now = self.clock.monotonic();
        let of = (ctx.tenant, ctx.user, rate);
        self.with(|free_at| {
            if free_at.len() >= REMEMBERED {
                free_at.retain(|_, at| *at > now);
            }
            let before = free_at.get(&of).copied().unwrap_or_default().max(now);
            let (after, full) = (before + takes, now + MINUTE);
            if after > full {
                return Err(AppError::OverRate {
                    rate,
                    retry_after_s: (after - full).as_secs() + 1,
                });
            }
            free_at.insert(of, after);
            Ok(Allowed { of, takes })
        })
    }

    /// Nothing that panics runs under the lock.
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<Whose, Duration>) -> T) -> T {
        act(&mut self.free_at.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The share of a minute that so many bytes take. What takes more than a minute's worth may be sent when nothing else
/// was.
fn share(bytes: usize, in_a_minute: u64) -> Duration {
    let share = bytes as f64 / in_a_minute.max(1) as f64;
    MINUTE.mul_f64(share.min(1.0))
}

#[cfg(test)]
mod tests;

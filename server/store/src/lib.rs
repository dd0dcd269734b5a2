//! The durable truth of the server: a database on SQLite or PostgreSQL, and the output of operations
//! ([`Outputs`]), beside it in files or in it.
//!
//! One concrete [`Store`], one file per noun. Rules:
//!
//! - **The tenant comes first.** Every query takes it and finds nothing of another one; so does the connection that the
//!   query runs on (`read`, `write`). The exceptions are questions before a tenant is known, and work for all of them;
//!   each gives a reason: [`Store::first_owner`], [`Store::subject_by_hash`], [`Store::redeem_sign_in_code`],
//!   [`Store::enrol`], [`Store::join_token_by_hash`], [`Store::runner_for_authentication`], the attempts,
//!   [`Store::unfinished_turns`], [`Store::turns_to_wake`], [`Store::next_wait_over_at`], [`Store::session_by_link`],
//!   [`Store::take_stream_ticket`], [`Store::deleted_sessions`], [`Store::last_events`], [`Store::turns_held_elsewhere`],
//!   [`Store::counts`], [`Store::start_replica`],
//!   [`Store::data_keys_after`], [`Store::master_keys_in_use`], [`Store::data_key_of_master_key`] and
//!   [`Store::forget_master_key`].
//! - **Facts that must be true together are written together.** One transaction holds an event and the row that it
//!   describes, a spent token and the thing that it bought, or a change and its audit entry. When a method returns, its
//!   transaction is synced to disk.
//! - **Once means once.** Outcomes, ends and cancels are set by statements that do nothing the second time, and return
//!   the stored value.
//! - **The engine's writes carry an epoch**, and an older one fails. Inbox writes (input, cancel, late results) take
//!   only the session's next number.
//! - **The statements are portable**: `$1` placeholders, no time and no randomness in SQL. They run above the drivers,
//!   whose types stand in `database.rs`; the few that differ give a reason.
//! - **Nothing rests on a single writer.** On PostgreSQL a transaction locks the rows that it decides by, in one order
//!   (`database/lock.rs`).
//!
//! A method that is dropped half-way has written everything or nothing.

mod agent;
mod announce;
mod approval;
mod at_work;
mod attempt;
mod audit;
mod backup;
mod browser;
mod chat;
mod chat_text;
mod columns;
mod counts;
mod credential;
mod database;
mod duty;
mod error;
mod event;
mod extension;
mod fleet;
mod image;
mod join_token;
mod model_account;
mod model_call;
mod operation;
mod output;
mod person;
mod ports;
mod rate;
mod replica;
mod request_key;
mod room;
mod rule;
mod runner;
mod sandbox;
mod scope;
mod secret;
mod service_account;
mod session;
mod setting;
mod sign_in_code;
mod stream_ticket;
mod subject;
mod tenant;
mod text;
mod todo;
mod tool_grant;
mod tool_value;
mod trusted_file;
mod turn;
mod user;

pub use at_work::{ToStop, WorkItem};
pub use attempt::{ATTEMPTS_KEPT_AT_MOST, ATTEMPTS_KEPT_FOR, AttemptKind};
pub use audit::{Actor, AuditEntry, AuditFilter, AuditOrigin, AuditRow, By};
pub use backup::{Backup, BackupContent, BackupError, BackupMade, write_backup};
pub use browser::{CookieRow, Replaced};
pub use counts::{StoreCounts, TenantCounts};
pub use credential::{CredentialKind, CredentialRow, KEYS_OF_USER_AT_MOST, NewCredential};
pub use database::{
    BadPostgresUrl, CopiedTable, CopyError, MAX_PAGE, Page, PostgresUrl, Schema, Store, copy,
    require_empty,
};
pub use error::{Full, StoreError, StoreOpenError};
pub use extension::NewExtension;
pub use fleet::{CallerPlace, FleetRow};
pub use image::{IMAGES_OF_SESSION_AT_MOST, IMAGES_OF_SESSION_BYTES, ImageRow};
pub use join_token::{JOIN_TOKENS_OF_USER_AT_MOST, JoinTokenRow, NewJoinToken};
pub use model_account::{
    AccountOf, AccountTerms, MAX_ACCOUNT_NAME_BYTES, MAX_BASE_URL_BYTES, MAX_MODEL_NAME_BYTES,
    MODEL_ACCOUNTS_AT_MOST, MODELS_OF_ACCOUNT_AT_MOST, ModelAccountRow, NewModelAccount,
};
pub use model_call::{ModelUsage, UsageBy, UsageOf};
pub use operation::{
    AskedBy, CallOf, Label, ListedOperation, MAX_OUTCOME_BYTES, MAX_REQUEST_KEY_BYTES,
    NewCallerOperation, NewOperation, OpenCallerOperation, OperationAccess, OperationFilter,
    OperationRow, OperationState, Placed, StopCause, StoredOutcome,
};
pub use output::{KeptOutput, OUTPUT_KEPT_BYTES, OutputKey, Outputs};
pub use person::{PEOPLE_AT_MOST, PersonRow};
pub use ports::{CallerIntents, IntentsOf, Ports, TenantOutputs};
pub use rate::TakenRate;
pub use replica::{OtherReplica, Renewed, ReplicaRow, ThisReplica};
pub use request_key::{
    KnownRequest, MAX_ANSWER_BYTES, REQUEST_KEYS_KEPT_FOR, REQUEST_KEYS_OF_USER_AT_MOST,
    RequestAnswer, RequestKey,
};
pub use rule::NewRuleRow;
pub use runner::{
    ChallengeNumber, EnrolRefusal, JoinState, Late, LinkClaim, LinkClaimed, LinkRow, NewRunner,
    RunnerAccess, RunnerChange, RunnerRow, RunnerShares, SharedWith, ShownState,
};
pub use sandbox::{PooledSandbox, Reported, SandboxChange, SandboxRow};
pub use scope::{Scope, Scopes};
pub use secret::{DataKeyRow, MAX_SEALED_BYTES, MasterKeyInUse, SealedSecret};
pub use session::{
    DeletedSession, LINKS_OF_SESSION_AT_MOST, NewSession, NewSessionLink, SessionAgent,
    SessionChange, SessionFilter, SessionRow, Unended,
};
pub use setting::{
    Pin, RunnerInUse, SettingChange, SettingLayer, SettingName, SettingRow, SettingsChanged,
    SettingsOf, StoredSettings,
};
pub use sign_in_code::{NewSignInCode, RedeemRefusal};
pub use stream_ticket::{NewStreamTicket, TICKETS_OF_CREDENTIAL_AT_MOST};
pub use subject::SubjectRow;
pub use tenant::{Bootstrap, NewTenant, TenantRow};
pub use text::{TEXT_OF_SESSION_BYTES, TEXTS_OF_SESSION_BYTES};
pub use tool_grant::{NewToolGrant, NewToolSignIn, TakenToolSignIn, ToolGrantRow};
pub use tool_value::ToolValueRow;
pub use trusted_file::{FoundFile, NewTrustedFile};
pub use turn::{
    Cancel, HeldTurn, Input, QUEUED_TURNS_AT_MOST, QUEUED_TURNS_OF_USER_AT_MOST, Sent,
    UNTAKEN_STEERS_AT_MOST,
};
pub use user::{NewUser, Role, UserKind, UserRow};

#[cfg(test)]
mod tests;

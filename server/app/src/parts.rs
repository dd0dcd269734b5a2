//! The parts of a server, from which [`App::start`](crate::App::start) makes the use cases.

use std::{sync::Arc, time::Duration};

use server_llm::{Catalogue, Models, Reach};
use server_records::SetRule;
use server_router::links::{LinkOptions, Links};
use server_store::{Ports, Store};
use server_web::Web;
use shared_types::{Clock, Entropy, ReplicaId};
use tokio_util::sync::CancellationToken;

use crate::{
    DatabaseClock, IsolationPolicy, OperatorSettings, TurnLimits, UserLimits,
    keys::{LinkKeys, SigningKey},
    vault::Vault,
};

/// The parts of a server; `main` alone chooses them.
pub struct Parts {
    /// The database.
    pub store: Store,
    /// The store of operations' output.
    pub outputs: server_store::Outputs,
    /// The models that the operator offers.
    pub models: Models,
    /// The providers of models, as the operator's settings have them now.
    pub catalogue: Catalogue,
    /// The operator's text with which the system prompt begins; `None` for Gantry's own.
    pub prompt: Option<Arc<str>>,
    /// The networks in which the servers of people's model accounts may stand.
    pub reach: Reach,
    /// The web, as far as turns may ask it.
    pub web: Arc<Web>,
    /// The operator's settings for all tenants.
    pub operator: OperatorSettings,
    /// The operator's rules about what agents may do.
    pub rules: Vec<SetRule>,
    /// Tokens that fit into one request to any of the models and its answer, where that is known.
    pub model_window: Option<usize>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The same clock, where it goes by that of the database.
    pub database_clock: Option<Arc<DatabaseClock>>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// The key by which runners know this server.
    pub identity: SigningKey,
    /// The keys that sign and verify link tokens.
    pub link_keys: LinkKeys,
    /// The times of the runners' links.
    pub link: LinkOptions,
    /// After this long without a word an ephemeral runner is removed.
    pub ephemeral_silence: Duration,
    /// The number of turns at once, and the times that they wait.
    pub turns: TurnLimits,
    /// The isolation that sandboxes must have, and the runners whose reports of it count.
    pub isolation: Arc<IsolationPolicy>,
    /// The limits of one user.
    pub user_limits: UserLimits,
    /// The secrets at rest.
    pub vault: Vault,
    /// This process.
    pub replica: ReplicaId,
    /// The place where it runs: no other process runs at the same place at the same time.
    pub place: String,
    /// The host and port at which it answers the other replicas of its database, where it does.
    pub peer_address: Option<String>,
    /// The version of this program.
    pub version: String,
    /// Ends everything.
    pub stop: CancellationToken,
}

impl Parts {
    /// The ports of the router and of the loops that it runs.
    pub(crate) fn ports(&self) -> Ports {
        Ports {
            store: self.store.clone(),
            outputs: self.outputs.clone(),
            clock: self.clock.clone(),
            forbids_sudo: self.isolation.forbids_sudo,
        }
    }

    /// Starts the links of this replica's runners.
    pub(crate) fn links(&self) -> Links {
        Links::start(
            self.ports().links(self.replica),
            self.clock.clone(),
            self.entropy.clone(),
            self.link.clone(),
            self.stop.clone(),
        )
    }
}

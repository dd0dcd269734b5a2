//! The enrolment of a runner with a join token. The request is sealed to the key that came with its
//! challenge, so that a proxy between the two neither reads nor changes it; see [`proto::enrolling`].

use std::{collections::BTreeMap, net::IpAddr};

use proto::{
    enrolling::{self, ReplyKey},
    public_key, signing, v1,
};
use server_store::{EnrolRefusal, JoinTokenRow, NewRunner, RunnerRow};
use shared_telemetry::server::ENROLMENTS;
use shared_types::{
    AddressRange, Clock, Entropy, RunnerId, Timestamp, Token, TokenKind, clean::is_clean_line,
    limits::is_name,
};

use super::{
    Enrolment,
    refused::{self, RefusedEnrolment},
};
use crate::{AppError, gate::Gate, keys::verifies, refusals::place, rights::Action};

/// A runner that is enrolled.
#[derive(Debug)]
pub struct EnrolledRunner {
    /// Its id.
    pub runner: RunnerId,
    /// Its name.
    pub name: String,
}

/// The result of a request that could be opened.
pub struct Joined {
    /// For the runner alone.
    pub answer: Result<EnrolledRunner, AppError>,
    /// The key that seals the answer.
    pub reply: ReplyKey,
}

/// A request that was opened.
pub(super) struct OpenedRequest {
    pub(super) content: v1::EnrolContent,
    /// A good one, from [`Enrolment::identify`].
    pub(super) challenge: Vec<u8>,
    /// The runner's key of the seal.
    pub(super) ephemeral_key: Vec<u8>,
    /// The address of the request.
    pub(super) address: Option<IpAddr>,
}

impl Enrolment {
    /// Opens the request of a runner that wants to join, and enrols it.
    ///
    /// # Errors
    /// If it cannot be opened. The peer that gets this error has proved nothing, and the server proves
    /// nothing to it.
    pub async fn enrol(
        &self,
        sealed: v1::EnrolRequest,
        address: Option<IpAddr>,
    ) -> Result<Joined, AppError> {
        let (content, reply) = match self.open(&sealed).await {
            Ok(opened) => opened,
            Err(refused) => {
                let now = self.inner.clock.now();
                return Err(self.refuse(refused, place(address), now).await);
            }
        };
        let asked = OpenedRequest {
            content,
            challenge: sealed.challenge,
            ephemeral_key: sealed.ephemeral_key,
            address,
        };
        let answer = self.join(asked).await;
        if answer.is_ok() {
            ENROLMENTS.add(&[], 1);
        }
        Ok(Joined { answer, reply })
    }

    async fn open(
        &self,
        sealed: &v1::EnrolRequest,
    ) -> Result<(v1::EnrolContent, ReplyKey), RefusedEnrolment> {
        if sealed.sealed.is_empty() {
            return Err(RefusedEnrolment::not_sealed());
        }
        let good = self.good(&sealed.challenge).await?;
        let good = good.ok_or_else(|| RefusedEnrolment::old_challenge(refused::ENROL))?;
        enrolling::open(good.sealing_key, sealed).map_err(|_| RefusedEnrolment::not_opened())
    }

    /// Spends a join token and makes the runner known. Where its owner has chosen no runner yet,
    /// this one becomes the choice. A good token is always tried; what else an address sends is
    /// limited.
    ///
    /// # Errors
    /// If the token is wrong, spent or expired, the signature does not hold, the name is taken, a
    /// runner with this key is enrolled, or the address has failed too often.
    pub(super) async fn join(&self, asked: OpenedRequest) -> Result<EnrolledRunner, AppError> {
        let inner = &*self.inner;
        let now = inner.clock.now();
        let row = match self.spend(&asked, now).await {
            Ok(row) => row,
            Err(refused) => return Err(self.refuse(refused, place(asked.address), now).await),
        };
        inner
            .store
            .choose_first_runner(row.tenant, row.owner, row.id, now)
            .await?;
        tracing::info!(runner.id = %row.id, runner.name = row.name, "runner enrolled");
        Ok(EnrolledRunner {
            runner: row.id,
            name: row.name,
        })
    }

    async fn spend(
        &self,
        asked: &OpenedRequest,
        now: Timestamp,
    ) -> Result<RunnerRow, RefusedEnrolment> {
        let inner = &*self.inner;
        let token = &asked.content.join_token;
        let token: Token = token.parse().map_err(|_| RefusedEnrolment::no_token())?;
        if token.kind() != TokenKind::Join || token.pin() != Some(&inner.identity.public()) {
            return Err(RefusedEnrolment::foreign_token());
        }
        let known = inner.store.join_token_by_hash(&token.hash()).await?;
        let known = known.ok_or(EnrolRefusal::Unknown)?;
        let owner = inner.store.user(known.tenant, known.owner).await?;
        let tried = match known.is_good(now) {
            Ok(()) if !Gate::may_still(&owner, Action::MakeJoinToken) => {
                Err(RefusedEnrolment::maker_may_not())
            }
            Ok(()) if !may_come_from(&known, asked.address) => Err(RefusedEnrolment::elsewhere()),
            Ok(()) if !may_be_called(&known, &asked.content.name) => Err(
                RefusedEnrolment::another_name(&known.name, &asked.content.name),
            ),
            Ok(()) => self.try_good(asked, &token, &known, now).await,
            Err(refusal @ EnrolRefusal::Spent) if may_come_from(&known, asked.address) => {
                self.again(asked, &known, refusal).await
            }
            Err(refusal) => Err(refusal.into()),
        };
        tried.map_err(|refused| refused.of(known.tenant, known.id))
    }

    async fn try_good(
        &self,
        asked: &OpenedRequest,
        token: &Token,
        known: &JoinTokenRow,
        now: Timestamp,
    ) -> Result<RunnerRow, RefusedEnrolment> {
        let inner = &*self.inner;
        signs_for_itself(asked)?;
        let runner = new_runner(&asked.content, &*inner.clock, &*inner.entropy)?;
        match inner.store.enrol(&token.hash(), &runner, now).await {
            Err(refusal @ EnrolRefusal::KeyTaken) => self.again(asked, known, refusal).await,
            enrolled => Ok(enrolled?),
        }
    }

    /// The runner that this request has enrolled before: its answer may have been lost on the way, and then
    /// the same machine asks with the same token and key. Of everybody else it is refused.
    async fn again(
        &self,
        asked: &OpenedRequest,
        known: &JoinTokenRow,
        refusal: EnrolRefusal,
    ) -> Result<RunnerRow, RefusedEnrolment> {
        if signs_for_itself(asked).is_err() {
            return Err(refusal.into());
        }
        let store = &self.inner.store;
        let enrolled = store
            .enrolled_with(known, &asked.content.public_key)
            .await?;
        Ok(enrolled.ok_or(refusal)?)
    }
}

/// Refuses a request that the holder of its key has not signed.
fn signs_for_itself(asked: &OpenedRequest) -> Result<(), RefusedEnrolment> {
    let content = &asked.content;
    if !public_key::is_sound(&content.public_key) {
        return Err(RefusedEnrolment::unsound_key());
    }
    let signed = signing::enrol(&asked.challenge, &asked.ephemeral_key, &content.join_token);
    match verifies(&content.public_key, &signed, &content.signature) {
        true => Ok(()),
        false => Err(RefusedEnrolment::bad_signature()),
    }
}

fn may_come_from(token: &JoinTokenRow, address: Option<IpAddr>) -> bool {
    let inside = |range: AddressRange| address.is_some_and(|address| range.contains(address));
    token.from.is_none_or(inside)
}

/// True if the token leaves the runner the name that it asks for; it may ask for none.
fn may_be_called(token: &JoinTokenRow, asked: &str) -> bool {
    token.name.is_empty() || asked.is_empty() || token.name == asked
}

fn new_runner(
    ask: &v1::EnrolContent,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<NewRunner, AppError> {
    let name = if ask.name.is_empty() {
        name_from(&ask.hostname)
    } else {
        ask.name.clone()
    };
    if !is_name(&name) {
        return Err(AppError::Invalid(format!(
            "{name:?} cannot name a runner: use up to 63 of a–z, 0–9, '-', '.' and '_', such as build-7"
        )));
    }
    // Terminals and logs will show these; their lengths are bounded by the store.
    let mut shown = ask
        .labels
        .iter()
        .flat_map(|(key, value)| [key, value])
        .chain([&ask.hostname, &ask.software_version]);
    if !shown.all(|text| is_clean_line(text)) {
        return Err(AppError::Invalid(
            "labels, host name and version may not have control characters, direction marks or spaces at their ends".to_owned(),
        ));
    }
    let public_key = ask
        .public_key
        .as_slice()
        .try_into()
        .map_err(|_| AppError::Invalid("an Ed25519 public key has 32 bytes".to_owned()))?;
    Ok(NewRunner {
        id: RunnerId::generate(clock, entropy),
        name,
        labels: BTreeMap::from_iter(ask.labels.clone()),
        public_key,
        hostname: ask.hostname.clone(),
        version: ask.software_version.clone(),
    })
}

/// A name made of a host's name: what does not fit becomes a dash.
pub(super) fn name_from(hostname: &str) -> String {
    let fits = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '.' | '_')
    };
    let name: String = hostname
        .to_ascii_lowercase()
        .chars()
        .take(63)
        .map(|letter| if fits(letter) { letter } else { '-' })
        .collect();
    let name = name.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    if name.is_empty() {
        "runner".to_owned()
    } else {
        name.to_owned()
    }
}

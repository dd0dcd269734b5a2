//! Refusals of runners, and of peers that claim to be one: the answer, and the entry in the log. One
//! kind of refusal has one word.

use std::time::Duration;

use server_store::{EnrolRefusal, StoreError};
use shared_types::{TenantId, clean::clean_line};

use crate::{AppError, refusals::Refusal};

/// Letters of a name that are shown of one that cannot be used.
const NAME_SHOWN: usize = 63;

/// The refusal of a runner that asks for a link token.
#[derive(Debug)]
pub struct NotLetIn {
    /// The answer to the runner.
    pub error: AppError,
    /// By the identity key, where the runner was removed or locked; see
    /// [`proto::signing::dismissed`].
    pub dismissal: Option<Vec<u8>>,
}

/// See the module.
pub(super) struct RefusedEnrolment {
    /// The answer.
    pub(super) error: AppError,
    /// True if it could be a guess at a token, and counts against the address.
    pub(super) is_guess: bool,
    /// True if it dismisses a runner that has proved itself, which then gets the proof.
    pub(super) is_dismissal: bool,
    kind: &'static str,
    /// The word of the log; none where the server could not decide.
    reason: Option<&'static str>,
    /// The tenant, and the id that it is about, where they are known.
    of: Option<(TenantId, Box<str>)>,
}

/// The kinds of what is refused, as the log has them.
pub(super) const ENROL: &str = "enrolment.refused";
pub(super) const AUTHENTICATE: &str = "authentication.refused";
const LINK: &str = "link.refused";

const STRANGER: AppError =
    AppError::Unauthenticated("this runner is not known here; enrol it with a new join token");

impl RefusedEnrolment {
    pub(super) fn no_token() -> Self {
        Self::guess(
            "no token",
            "the join token is not valid; make a new one: gantry runners add",
        )
    }

    pub(super) fn foreign_token() -> Self {
        Self::guess(
            "foreign token",
            "this is not a join token of this server; make one: gantry runners add",
        )
    }

    /// So often failed from an address within this time.
    pub(super) fn too_many(within: Duration) -> Self {
        let retry_after_s = within.as_secs();
        Self::new(ENROL, "too many", AppError::TooMany { retry_after_s })
    }

    /// A good token, but not from where it may be used.
    pub(super) fn elsewhere() -> Self {
        let error = AppError::Forbidden(
            "this join token is not for your network; use it where it was made for, or make another one: gantry runners add --from".into(),
        );
        Self::new(ENROL, "address out of range", error)
    }

    /// A good token of a person whose role does not allow to make it any more.
    pub(super) fn maker_may_not() -> Self {
        let error = AppError::Forbidden(
            "the person who made this join token may not add runners any more; ask an admin for one: gantry runners add".into(),
        );
        Self::new(ENROL, "maker's role too small", error)
    }

    pub(super) fn bad_signature() -> Self {
        let error = AppError::Unauthenticated("the enrolment's signature does not hold; try again");
        Self::new(ENROL, "bad signature", error)
    }

    /// A request of before enrolment was sealed: its token was sent in the clear.
    pub(super) fn not_sealed() -> Self {
        let error = AppError::Invalid(
            "this enrolment is not sealed, so that its join token may have been read on the way: upgrade gantry-runner, and use a new token".to_owned(),
        );
        Self::new(ENROL, "not sealed", error)
    }

    /// It was sealed to another key, or changed on its way.
    pub(super) fn not_opened() -> Self {
        let error = AppError::Invalid(
            "this enrolment is not as the runner sealed it: check what stands between the two, and try again".to_owned(),
        );
        Self::new(ENROL, "not opened", error)
    }

    /// A key under which anybody can sign.
    pub(super) fn unsound_key() -> Self {
        let error = AppError::Invalid(
            "an Ed25519 public key has 32 bytes, and is no point of small order: make another one"
                .to_owned(),
        );
        Self::new(ENROL, "unsound key", error)
    }

    /// A refusal that does not end a runner for good: the server may have restarted in between.
    pub(super) fn old_challenge(kind: &'static str) -> Self {
        let error = AppError::Invalid(
            "the challenge is too old, or of a server that is gone: ask for a new one".to_owned(),
        );
        Self::new(kind, "old challenge", error)
    }

    /// A request that comes twice, or after one that was signed later: it says nothing about copies.
    pub(super) fn late() -> Self {
        let error = AppError::Invalid(
            "a request of this runner's under the same or a newer challenge came before, or another server let it in \
             last: ask for a new challenge"
                .to_owned(),
        );
        Self::new(AUTHENTICATE, "late request", error)
    }

    /// A join state that is newer than any that was given, and not signed by this server.
    pub(super) fn never_given() -> Self {
        let error = AppError::Forbidden(
            "this runner shows a join state that this server never gave; remove the runner \
             (gantry runners remove), and enrol it anew"
                .into(),
        );
        Self::new(AUTHENTICATE, "join state never given", error)
    }

    pub(super) fn stranger() -> Self {
        Self::new(AUTHENTICATE, "unknown runner", STRANGER)
    }

    pub(super) fn removed() -> Self {
        Self::new(AUTHENTICATE, "removed runner", STRANGER)
    }

    /// The bearer of a link token that was given before the removal.
    pub(super) fn removed_since() -> Self {
        let error = AppError::Unauthenticated(
            "this runner was removed; enrol it anew with a new join token (gantry runners add)",
        );
        Self::new(LINK, "removed runner", error)
    }

    /// A peer without the runner's key.
    pub(super) fn impostor() -> Self {
        Self::new(AUTHENTICATE, "bad signature", STRANGER)
    }

    /// A peer that has a link token, but not the runner's key.
    pub(super) fn stolen_link_token() -> Self {
        Self::new(LINK, "bad signature", STRANGER)
    }

    pub(super) fn locked() -> Self {
        let error = AppError::Forbidden(
            "this runner is locked, because its folder was copied: find the copy, remove the \
             runner (gantry runners remove), and enrol it anew"
                .into(),
        );
        Self::new(AUTHENTICATE, "locked runner", error)
    }

    /// Adds the tenant, and the id that it is about.
    pub(super) fn of(mut self, tenant: TenantId, subject: impl ToString) -> Self {
        self.of = Some((tenant, subject.to_string().into()));
        self
    }

    /// Of a runner that has proved itself.
    pub(super) fn dismissal(mut self) -> Self {
        self.is_dismissal = true;
        self
    }

    /// For the log; nothing where nothing was refused.
    pub(super) fn refusal(&self, from: String) -> Option<Refusal> {
        let (tenant, subject) = self.of.clone().unzip();
        Some(Refusal {
            tenant,
            subject: subject.unwrap_or_default().into(),
            ..Refusal::of_stranger(self.kind, self.reason?, from)
        })
    }

    fn guess(reason: &'static str, answer: &'static str) -> Self {
        Self {
            is_guess: true,
            ..Self::new(ENROL, reason, AppError::Unauthenticated(answer))
        }
    }

    /// The token stays good: the runner can ask again without a name.
    pub(super) fn another_name(fixed: &str, asked: &str) -> Self {
        let asked = clean_line(asked, NAME_SHOWN);
        Self::new(
            ENROL,
            "another name",
            AppError::Conflict(format!(
                "the join token fixes the runner's name: {fixed}, not {asked}; leave out --name, or make a token without a name: gantry runners add"
            )),
        )
    }

    fn new(kind: &'static str, reason: &'static str, error: AppError) -> Self {
        Self {
            error,
            is_guess: false,
            is_dismissal: false,
            kind,
            reason: Some(reason),
            of: None,
        }
    }
}

impl From<EnrolRefusal> for RefusedEnrolment {
    fn from(refusal: EnrolRefusal) -> Self {
        match refusal {
            EnrolRefusal::Unknown => Self::guess(
                "unknown token",
                "the join token is not known; make a new one: gantry runners add",
            ),
            EnrolRefusal::Spent => Self::guess(
                "spent token",
                "the join token was used already; make a new one: gantry runners add",
            ),
            EnrolRefusal::Expired => Self::guess(
                "expired token",
                "the join token has expired; make a new one: gantry runners add",
            ),
            EnrolRefusal::KeyTaken => Self::new(
                ENROL,
                "key taken",
                AppError::Conflict(
                    "a runner with this key is enrolled already: the request came twice".to_owned(),
                ),
            ),
            EnrolRefusal::NameTaken(name) => Self::new(
                ENROL,
                "name taken",
                AppError::Conflict(format!(
                    "a runner called {name} exists; choose another name with --name, or remove that one: gantry runners remove {name}"
                )),
            ),
            EnrolRefusal::Store(error) => error.into(),
        }
    }
}

impl From<AppError> for RefusedEnrolment {
    fn from(error: AppError) -> Self {
        let decided = !matches!(error, AppError::Unavailable(_));
        Self {
            reason: decided.then_some("invalid request"),
            ..Self::new(ENROL, "", error)
        }
    }
}

impl From<StoreError> for RefusedEnrolment {
    fn from(error: StoreError) -> Self {
        AppError::from(error).into()
    }
}

//! The client: one method for each route.

use std::{fmt, sync::Arc, time::Duration};

use reqwest::Method;
use shared_api::{
    CancelAccepted, CreateJoinToken, CreateKey, CreateSession, CreatedKey, Events, JoinToken,
    JoinTokens, Key, Keys, ListedJoinToken, Me, MessageAccepted, Replicas, Rewind, Rewound, Runner,
    Runners, SendMessage, Session, SessionContext, Sessions, SignIn, SignedIn, Task, Tasks,
    UseRunner,
};
use shared_tls::Trust;
use shared_types::{
    CredentialId, Digest, Entropy, JoinTokenId, RunnerId, SessionId, WhileWorking, event::Terms,
};
use url::Url;

use crate::{ClientError, Follow, backoff, http::Http};

/// Attempts to send a message before the client gives up on the server.
pub(crate) const SEND_ATTEMPTS: u32 = 8;

/// The default interval between pings to a silent server.
pub const PING_EVERY: Duration = Duration::from_secs(15);

/// The settings of a client's connections to its server.
pub struct Options {
    /// The server's base address: `https`, or `http` to loopback.
    pub server: Url,
    /// The bearer token; without one, only [`Client::sign_in`] works.
    pub token: Option<String>,
    /// Which certificate proves that it is the server.
    pub trust: Trust,
    /// True if plain text may also go to other hosts than this one.
    pub plain_text_allowed: bool,
    /// The interval between pings to an otherwise silent server. After four unanswered ones it counts as gone.
    pub ping_every: Duration,
    /// The source of idempotency keys and of the jitter of reconnects.
    pub entropy: Arc<dyn Entropy>,
}

/// A server, seen by one credential. Clones share connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) http: Http,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.server())
    }
}

impl Client {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// Fails with [`ClientError::Address`] or [`ClientError::Token`] if an option cannot be used.
    pub fn new(options: Options) -> Result<Self, ClientError> {
        Ok(Self {
            http: Http::new(&options)?,
            entropy: options.entropy,
        })
    }

    /// The server's base address, without a slash at the end.
    pub fn server(&self) -> String {
        self.http.base.shown()
    }

    /// True if the client trusts the server's certificate by its fingerprint; other programs may not trust it.
    pub fn is_pinned(&self) -> bool {
        self.http.pinned
    }

    /// The same client with another credential.
    ///
    /// # Errors
    /// Fails with [`ClientError::Token`] if it cannot be a token.
    pub fn with_token(&self, token: &str) -> Result<Self, ClientError> {
        Ok(Self {
            http: self.http.with_token(token)?,
            entropy: self.entropy.clone(),
        })
    }

    /// The server's reason why it cannot serve requests now; `None` where it can.
    ///
    /// # Errors
    /// Fails when the server gives no answer.
    pub async fn not_ready(&self) -> Result<Option<String>, ClientError> {
        self.http.not_ready().await
    }

    /// Exchanges a one-time code for a token; `device` is its name in lists.
    ///
    /// # Errors
    /// As every method here, fails when the server refuses the request or gives no answer.
    pub async fn sign_in(&self, code: &str, device: &str) -> Result<SignedIn, ClientError> {
        let body = SignIn {
            code: code.to_owned(),
            device: device.to_owned(),
        };
        self.http.call(Method::POST, &["sign-in"], &body).await
    }

    /// The servers that use the same database.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn replicas(&self) -> Result<Replicas, ClientError> {
        self.http.get(&["replicas"], &[]).await
    }

    /// The person that the credential belongs to, with the tenant, the model and the active runner.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn me(&self) -> Result<Me, ClientError> {
        self.http.get(&["me"], &[]).await
    }

    /// The sessions whose ids begin so, by id, at most `limit`.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn sessions_beginning(
        &self,
        beginning: &str,
        limit: u32,
    ) -> Result<Vec<Session>, ClientError> {
        let query = [("prefix", beginning.to_owned())];
        let found = self
            .http
            .list::<Sessions>(&["sessions"], &query, limit as usize);
        found.await
    }

    /// Begins a session.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn create_session(&self, title: &str) -> Result<Session, ClientError> {
        let body = CreateSession {
            title: title.to_owned(),
            ..CreateSession::default()
        };
        self.begin_session(&body).await
    }

    /// Begins a session on these terms.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn begin_session(&self, terms: &CreateSession) -> Result<Session, ClientError> {
        self.http.call(Method::POST, &["sessions"], terms).await
    }

    /// Pins a session to a runner, by name or id. It counts from the next turn.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn pin_session(&self, id: SessionId, runner: &str) -> Result<Session, ClientError> {
        let body = UseRunner {
            runner: runner.to_owned(),
        };
        let path = ["sessions", &id.to_string(), "runner"];
        self.http.call(Method::PUT, &path, &body).await
    }

    /// Lets a session work on the runner that the user chose. It counts from the next turn.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn unpin_session(&self, id: SessionId) -> Result<(), ClientError> {
        let path = ["sessions", &id.to_string(), "runner"];
        self.http.delete(&path).await
    }

    /// One session.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn session(&self, id: SessionId) -> Result<Session, ClientError> {
        self.http.get(&["sessions", &id.to_string()], &[]).await
    }

    /// A page of a session's log after the event `after`, at most `limit` events.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn events(
        &self,
        id: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Events, ClientError> {
        let query = [("after", after.to_string()), ("limit", limit.to_string())];
        self.http
            .get(&["sessions", &id.to_string(), "events"], &query)
            .await
    }

    /// A key under which a message is sent at most once, however often it is tried.
    pub fn new_client_id(&self) -> String {
        let mut random = [0; 16];
        self.entropy.fill(&mut random);
        format!("{:032x}", u128::from_be_bytes(random))
    }

    /// Sends a message. It is tried again where the connection fails: the same `client_id` is one
    /// turn.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn send(
        &self,
        id: SessionId,
        text: &str,
        client_id: &str,
    ) -> Result<MessageAccepted, ClientError> {
        self.send_with_images(id, text, &[], client_id).await
    }

    /// Sends a message with images, which the session has already ([`Client::add_image`]).
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn send_with_images(
        &self,
        id: SessionId,
        text: &str,
        images: &[Digest],
        client_id: &str,
    ) -> Result<MessageAccepted, ClientError> {
        let body = SendMessage {
            text: text.to_owned(),
            images: images.to_vec(),
            compacts: None,
            terms: Terms::default(),
            while_working: WhileWorking::Queue,
            client_id: Some(client_id.to_owned()),
        };
        self.send_message(id, &body).await
    }

    /// Sends a message, with its effect on a turn of the session that works already.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn send_while_working(
        &self,
        id: SessionId,
        text: &str,
        while_working: WhileWorking,
        client_id: &str,
    ) -> Result<MessageAccepted, ClientError> {
        let body = SendMessage {
            text: text.to_owned(),
            images: Vec::new(),
            compacts: None,
            terms: Terms::default(),
            while_working,
            client_id: Some(client_id.to_owned()),
        };
        self.send_message(id, &body).await
    }

    /// Sends a message. It is tried again where the connection fails: the same `client_id` is one turn.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn send_message(
        &self,
        id: SessionId,
        body: &SendMessage,
    ) -> Result<MessageAccepted, ClientError> {
        let path = ["sessions", &id.to_string(), "messages"];
        let mut attempt = 1;
        loop {
            match self.http.call(Method::POST, &path, body).await {
                Err(error) if attempt < SEND_ATTEMPTS && error.is_servers() => {
                    tokio::time::sleep(self.wait_before(attempt)).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    /// Asks to compact a conversation; says what matters most in it.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn compact(
        &self,
        id: SessionId,
        focus: &str,
        client_id: &str,
    ) -> Result<MessageAccepted, ClientError> {
        let body = SendMessage {
            text: format!("/compact {focus}").trim_end().to_owned(),
            images: Vec::new(),
            compacts: Some(focus.to_owned()),
            terms: Terms::default(),
            while_working: WhileWorking::Queue,
            client_id: Some(client_id.to_owned()),
        };
        self.send_message(id, &body).await
    }

    /// Stops the turn that is under way, down to its processes. Asking twice changes nothing.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn cancel(&self, id: SessionId) -> Result<CancelAccepted, ClientError> {
        let path = ["sessions", &id.to_string(), "cancel"];
        self.http
            .call(Method::POST, &path, &serde_json::json!({}))
            .await
    }

    /// Goes back to before a message of a session. Sent again it does no more, and is refused once the conversation went
    /// back.
    ///
    /// # Errors
    /// See [`Client::sign_in`]; also while a turn works or waits.
    pub async fn rewind(&self, id: SessionId, back: &Rewind) -> Result<Rewound, ClientError> {
        let path = ["sessions", &id.to_string(), "rewind"];
        self.http.call(Method::POST, &path, back).await
    }

    /// The use of the model's window by a session: the categories, and the changes of what was sent before.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn context(&self, id: SessionId) -> Result<SessionContext, ClientError> {
        let path = ["sessions", &id.to_string(), "context"];
        self.http.get(&path, &[]).await
    }

    /// The commands of a session that went on in the background.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn tasks(&self, id: SessionId) -> Result<Vec<Task>, ClientError> {
        let path = ["sessions", &id.to_string(), "tasks"];
        self.http.list::<Tasks>(&path, &[], usize::MAX).await
    }

    /// Reads a session from the event after `after` on: first the log, then live events. Must be called within a tokio
    /// runtime.
    pub fn follow(&self, id: SessionId, after: u64) -> Follow {
        Follow::start(self.http.clone(), self.entropy.clone(), id, after)
    }

    /// The runners, by name.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn runners(&self) -> Result<Vec<Runner>, ClientError> {
        let all = self.http.list::<Runners>(&["runners"], &[], usize::MAX);
        all.await
    }

    /// Chooses the active runner, by name or id.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn use_runner(&self, runner: &str) -> Result<Runner, ClientError> {
        let body = UseRunner {
            runner: runner.to_owned(),
        };
        self.http.call(Method::PUT, &["me", "runner"], &body).await
    }

    /// Chooses no runner.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn use_no_runner(&self) -> Result<(), ClientError> {
        self.http.delete(&["me", "runner"]).await
    }

    /// Revokes and forgets a runner.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn remove_runner(&self, id: RunnerId) -> Result<(), ClientError> {
        self.http.delete(&["runners", &id.to_string()]).await
    }

    /// Makes a token with which runners may enrol.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn create_join_token(
        &self,
        terms: &CreateJoinToken,
    ) -> Result<JoinToken, ClientError> {
        self.http.call(Method::POST, &["join-tokens"], terms).await
    }

    /// The user's join tokens with which runners can still enrol, the newest first.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn join_tokens(&self) -> Result<Vec<ListedJoinToken>, ClientError> {
        let path = ["join-tokens"];
        self.http.list::<JoinTokens>(&path, &[], usize::MAX).await
    }

    /// Ends a join token: no runner enrols with it any more.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn end_join_token(&self, id: JoinTokenId) -> Result<(), ClientError> {
        self.http.delete(&["join-tokens", &id.to_string()]).await
    }

    /// The keys and sign-ins, the newest first.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn keys(&self) -> Result<Vec<Key>, ClientError> {
        self.http.list::<Keys>(&["keys"], &[], usize::MAX).await
    }

    /// Makes an API key with the usual scopes; the key itself is in this answer only.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn create_key(&self, name: &str) -> Result<CreatedKey, ClientError> {
        self.create_key_with(&CreateKey {
            name: name.to_owned(),
            scopes: None,
            valid_for_s: None,
            from: None,
        })
        .await
    }

    /// Makes an API key on these terms; the key itself is in this answer only.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn create_key_with(&self, terms: &CreateKey) -> Result<CreatedKey, ClientError> {
        self.http.call(Method::POST, &["keys"], terms).await
    }

    /// Revokes a key or sign-in.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn remove_key(&self, id: CredentialId) -> Result<(), ClientError> {
        self.http.delete(&["keys", &id.to_string()]).await
    }

    pub(crate) fn wait_before(&self, attempt: u32) -> Duration {
        backoff::before(attempt, &*self.entropy)
    }
}

//! A second tenant on the same server. No request makes one, so it is made in the database.

use server_store::{AuditOrigin, CredentialKind, NewCredential, NewTenant, NewUser, Store};
use shared_types::{
    Clock as _, CredentialId, OsEntropy, SystemClock, TenantId, Token, TokenKind, UserId,
};

use super::Gantry;

impl Gantry {
    /// Makes another tenant, whose owner is signed in; returns the owner's token.
    pub async fn other_tenant(&self) -> String {
        let store = self.store().await;
        let (clock, entropy) = (SystemClock::new(), OsEntropy);
        let tenant = NewTenant {
            id: TenantId::generate(&clock, &entropy),
            name: "elsewhere".to_owned(),
        };
        let owner = NewUser {
            id: UserId::generate(&clock, &entropy),
            name: "owner".to_owned(),
        };
        let made = store.create_tenant(&tenant, &owner, clock.now()).await;
        made.expect("the ids are new");
        let token = Token::generate(TokenKind::SignIn, &entropy);
        let credential = NewCredential {
            id: CredentialId::generate(&clock, &entropy),
            kind: CredentialKind::SignIn,
            name: "test".to_owned(),
            hash: token.hash(),
            made_by: None,
            scopes: None,
            expires_at: None,
            from: None,
            origin: AuditOrigin::default(),
            maker: None,
            second_hash: None,
        };
        let made = store.insert_credential(tenant.id, owner.id, &credential, clock.now());
        made.await.expect("the secret is new");
        store.close().await;
        token.reveal()
    }

    /// The server's database, beside the server.
    async fn store(&self) -> Store {
        let mut settings = self.environment.iter();
        let url = settings.find(|(name, _)| name == "GANTRY_DATABASE_URL");
        let store = match url {
            Some((_, url)) => Store::open_postgres_beside(&url.parse().expect("a URL")).await,
            None => Store::open_beside(&self.home().join("server/gantry.db")).await,
        };
        store.expect("the server has made it")
    }
}

//! Sign-ins to tool servers.

use server_records::ExtensionKind;
use shared_types::{Digest, ExtensionId, SecretId, UserId};

use super::fixture::{Fixture, Tenant, at, unique};
use crate::{
    DataKeyRow, NewExtension, NewToolGrant, NewToolSignIn, NewUser, Role, SealedSecret, StoreError,
    ToolGrantRow,
};

on_every_backend!(
    a_sign_in_is_taken_once_by_its_user_in_time,
    of_two_renewals_of_the_same_tokens_one_is_taken,
    tokens_go_with_the_sign_out_and_with_the_person,
    values_and_tokens_go_with_their_tool_server,
);

const URL: &str = "https://tools.example/mcp";

fn sealed(version: u32) -> SealedSecret {
    SealedSecret {
        id: SecretId::from_u128(unique()),
        version,
        data_key: 1,
        sealed: vec![0xfe],
    }
}

impl Tenant {
    async fn can_seal(&self) {
        let key = DataKeyRow {
            tenant: self.id,
            version: 1,
            master_key: unique().to_string(),
            wrapped: vec![1; 61],
        };
        self.db.add_data_key(&key, at(1)).await.expect("it is kept");
    }

    async fn someone(&self) -> UserId {
        let new = NewUser {
            id: UserId::from_u128(unique()),
            name: "someone".to_owned(),
        };
        let by = self.owner.into();
        let added = self
            .db
            .add_service_account(self.id, &new, Role::Member, &by, at(1));
        added.await.expect("the name is free").id
    }

    async fn sign_in(&self, user: UserId) -> SealedSecret {
        let secret = sealed(1);
        let new = NewToolGrant {
            url: URL,
            secret: &secret,
            issuer: "https://login.example",
            scopes: "read",
            ends_at: Some(at(100)),
        };
        let by = self.owner.into();
        let put = self.db.put_tool_grant(self.id, user, new, &by, at(1));
        put.await.expect("it is kept");
        secret
    }

    async fn grant(&self) -> Result<(ToolGrantRow, Option<SealedSecret>), StoreError> {
        self.db.tool_grant(self.id, self.owner, URL).await
    }
}

async fn a_sign_in_is_taken_once_by_its_user_in_time(fixture: Fixture) {
    let ours = fixture.tenant().await;
    ours.can_seal().await;
    let other = ours.someone().await;
    let state = Digest::of(&unique().to_le_bytes());
    let begin = async |state: Digest, ends: i64| {
        let new = NewToolSignIn {
            state,
            url: URL,
            name: "tools",
            secret: &sealed(1),
            ends_at: at(ends),
        };
        let begun = ours.db.begin_tool_sign_in(ours.id, ours.owner, new, at(1));
        begun.await.expect("it is kept");
    };
    begin(state, 10).await;
    let take = async |user, state, now| {
        let taken = ours.db.take_tool_sign_in(ours.id, user, state, at(now));
        taken.await.ok().map(|taken| taken.name)
    };
    assert_eq!(take(other, state, 2).await, None);
    assert_eq!(take(ours.owner, state, 10).await, None);
    assert_eq!(take(ours.owner, state, 9).await, Some("tools".to_owned()));
    assert_eq!(take(ours.owner, state, 9).await, None);
    // The oldest ends for the eleventh.
    let all: Vec<_> = (0..11_u8).map(|n| Digest::of(&[n])).collect();
    for (state, ends) in all.iter().zip(20..) {
        begin(*state, ends).await;
    }
    assert_eq!(take(ours.owner, all[0], 2).await, None);
    assert!(take(ours.owner, all[1], 2).await.is_some());
}

async fn of_two_renewals_of_the_same_tokens_one_is_taken(fixture: Fixture) {
    let ours = fixture.tenant().await;
    ours.can_seal().await;
    let tokens = ours.sign_in(ours.owner).await;
    let take = async |tokens: &SealedSecret, now| {
        let taken =
            ours.db
                .take_tool_renewal(ours.id, ours.owner, (URL, tokens), at(now + 30), at(now));
        taken.await.expect("it answers")
    };
    let both = futures_util::future::join(take(&tokens, 2), take(&tokens, 2)).await;
    assert!(both.0 ^ both.1, "{both:?}");
    assert!(take(&tokens, 32).await, "the first one has not come back");
    let next = SealedSecret {
        version: 2,
        ..tokens.clone()
    };
    let new = NewToolGrant {
        url: URL,
        secret: &next,
        issuer: "https://login.example",
        scopes: "read",
        ends_at: None,
    };
    let renewed = ours.db.renew_tool_grant(ours.id, ours.owner, new, at(33));
    renewed.await.expect("it is kept");
    assert!(!take(&tokens, 90).await, "they are spent");
    assert!(take(&next, 90).await);
    let dropped = ours
        .db
        .drop_tool_renewal(ours.id, ours.owner, (URL, &next), true);
    dropped.await.expect("it is removed");
    let (row, secret) = ours.grant().await.expect("it is there");
    assert_eq!((row.wanted.as_deref(), secret), (Some("read"), None));
    let gone = ours.db.secret(ours.id, next.id).await;
    assert!(matches!(gone, Err(StoreError::NotFound)));
}

async fn tokens_go_with_the_sign_out_and_with_the_person(fixture: Fixture) {
    let ours = fixture.tenant().await;
    ours.can_seal().await;
    let first = ours.sign_in(ours.owner).await;
    let second = ours.sign_in(ours.owner).await;
    assert_eq!(
        ours.grant().await.expect("it is there").1,
        Some(second.clone())
    );
    let gone = ours.db.secret(ours.id, first.id).await;
    assert!(matches!(gone, Err(StoreError::NotFound)));
    let by = ours.owner.into();
    let ended = ours.db.end_tool_grant(ours.id, ours.owner, URL, &by, at(2));
    assert_eq!(ended.await.expect("it is removed"), Some(second));
    assert!(matches!(ours.grant().await, Err(StoreError::NotFound)));
    let person = ours.someone().await;
    let third = ours.sign_in(person).await;
    let removed = ours.db.remove_person(ours.id, person, &by, at(3));
    removed.await.expect("the person is there");
    let gone = ours.db.secret(ours.id, third.id).await;
    assert!(matches!(gone, Err(StoreError::NotFound)));
}

async fn values_and_tokens_go_with_their_tool_server(fixture: Fixture) {
    let ours = fixture.tenant().await;
    ours.can_seal().await;
    let by = ours.owner.into();
    let put = async |url: &str, secret: &SealedSecret| {
        let text = format!(r#"{{"mcpServers":{{"tools":{{"url":"{url}"}}}}}}"#);
        let new = NewExtension {
            id: ExtensionId::from_u128(unique()),
            kind: ExtensionKind::Mcp,
            user: Some(ours.owner),
            name: "tools",
            text: &text,
            digest: Digest::of(text.as_bytes()),
            source: "",
            packed: &[],
            secret: Some(secret),
            replaces: None,
        };
        let put = ours.db.put_extension(ours.id, new, &by, at(1)).await;
        put.expect("it is kept")
    };
    let is_there = async |secret: &SealedSecret| ours.db.secret(ours.id, secret.id).await.is_ok();
    let (first, second, third) = (sealed(1), sealed(1), sealed(1));
    put(URL, &first).await;
    let tokens = ours.sign_in(ours.owner).await;
    put(URL, &second).await;
    assert!(!is_there(&first).await && is_there(&second).await);
    assert!(is_there(&tokens).await, "it has the same address");
    put("https://elsewhere.example/mcp", &third).await;
    assert!(!is_there(&tokens).await);
    assert!(matches!(ours.grant().await, Err(StoreError::NotFound)));
    let last = put(URL, &sealed(1)).await;
    let tokens = ours.sign_in(ours.owner).await;
    let removed = ours
        .db
        .remove_extension(ours.id, last.id, Some(ours.owner), &by, at(2));
    let gone = removed.await.expect("it is there");
    assert!(!is_there(&tokens).await);
    let values = gone.secret.expect("it has values");
    assert!(ours.db.secret(ours.id, values).await.is_err());
}

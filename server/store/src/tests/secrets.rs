//! Secrets, the keys that seal them, and the accounts that they belong to.

use shared_types::{ModelAccountId, SecretId, UserId};

use super::fixture::{Fixture, Tenant, at, unique};
use crate::{
    AccountOf, AccountTerms, DataKeyRow, MODEL_ACCOUNTS_AT_MOST, ModelAccountRow, NewModelAccount,
    NewUser, Role, SealedSecret, StoreError,
};

on_every_backend!(
    a_data_key_is_made_once_and_wrapped_anew_only_by_the_first_rotation,
    data_keys_of_all_tenants_come_in_pages,
    each_new_text_of_a_secret_has_the_next_version,
    of_two_first_texts_of_a_secret_at_once_both_writers_get_one,
    a_user_sees_accounts_of_the_user_and_of_the_tenant,
    an_account_goes_with_its_key_and_a_person_with_the_accounts,
    an_owner_has_so_many_accounts_and_each_name_once,
    a_lost_master_key_is_forgotten_with_all_that_depends_on_it,
    secrets_and_accounts_of_another_tenant_are_not_found,
);

fn data_key(tenant: &Tenant, version: u32, master_key: &str, wrapped: u8) -> DataKeyRow {
    DataKeyRow {
        tenant: tenant.id,
        version,
        master_key: master_key.to_owned(),
        wrapped: vec![wrapped; 61],
    }
}

fn sealed(id: SecretId, version: u32) -> SealedSecret {
    SealedSecret {
        id,
        version,
        data_key: 1,
        sealed: vec![0xfe, u8::try_from(version).expect("it is small")],
    }
}

fn account(of: AccountOf, name: &str, key: Option<SealedSecret>) -> NewModelAccount {
    NewModelAccount {
        id: ModelAccountId::from_u128(unique()),
        of,
        provider: "openai".to_owned(),
        terms: terms(name),
        key,
    }
}

fn terms(name: &str) -> AccountTerms {
    AccountTerms {
        name: name.to_owned(),
        format: None,
        base_url: Some("https://models.example/v1".to_owned()),
        models: vec!["large".to_owned(), "small".to_owned()],
    }
}

impl Tenant {
    async fn with_data_key(&self) -> SecretId {
        let key = data_key(self, 1, "mk_one", 1);
        let added = self.db.add_data_key(&key, at(1)).await;
        assert_eq!(added.expect("the tenant is there"), key);
        SecretId::from_u128(unique())
    }

    async fn add(&self, account: &NewModelAccount) -> Result<ModelAccountRow, StoreError> {
        let by = self.owner.into();
        self.db
            .add_model_account(self.id, account, &by, at(2))
            .await
    }

    async fn member(&self, name: &str) -> UserId {
        let new = NewUser {
            id: UserId::from_u128(unique()),
            name: name.to_owned(),
        };
        let (role, by) = (Role::Member, self.owner.into());
        let added = self.db.add_service_account(self.id, &new, role, &by, at(1));
        added.await.expect("the name is free").id
    }
}

async fn a_data_key_is_made_once_and_wrapped_anew_only_by_the_first_rotation(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    assert_eq!(db.newest_data_key(ours.id).await.expect("it answers"), None);
    let first = data_key(&ours, 1, "mk_one", 1);
    db.add_data_key(&first, at(1)).await.expect("it is new");
    let second = data_key(&ours, 1, "mk_one", 2);
    let stored = db.add_data_key(&second, at(2)).await;
    assert_eq!(stored.expect("it answers"), first, "the first one stays");
    let again = data_key(&ours, 1, "mk_two", 3);
    for (from, expected) in [("mk_zero", false), ("mk_one", true), ("mk_one", false)] {
        let rewrapped = db.rewrap_data_key(&again, from).await;
        assert_eq!(rewrapped.expect("it answers"), expected, "{from}");
    }
    let newest = db.newest_data_key(ours.id).await.expect("it answers");
    assert_eq!(newest, Some(again.clone()));
    assert_eq!(db.data_key(ours.id, 1).await.expect("it is there"), again);
    let in_use = db.master_keys_in_use().await.expect("it answers");
    let in_use: Vec<_> = in_use
        .iter()
        .map(|key| (key.id.as_str(), key.data_keys))
        .collect();
    assert_eq!(in_use, [("mk_two", 1)]);
    let tried = db.data_key_of_master_key("mk_two").await;
    assert_eq!(tried.expect("it answers"), Some(again));
    let gone = db.data_key_of_master_key("mk_one").await;
    assert_eq!(gone.expect("it answers"), None);
}

async fn data_keys_of_all_tenants_come_in_pages(fixture: Fixture) {
    let db = &fixture.db;
    let mut added = Vec::new();
    for _ in 0..3 {
        let tenant = fixture.tenant().await;
        for version in 1..=2 {
            let key = data_key(&tenant, version, "mk_one", 1);
            added.push(db.add_data_key(&key, at(1)).await.expect("it is new"));
        }
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = db.data_keys_after(after, 4).await.expect("it answers");
        let Some(last) = page.last() else { break };
        after = Some((last.tenant, last.version));
        found.extend(page);
    }
    assert_eq!(found, added);
}

async fn each_new_text_of_a_secret_has_the_next_version(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let id = SecretId::from_u128(unique());
    let without = db.put_secret(ours.id, &sealed(id, 1), at(1)).await;
    assert!(
        matches!(without, Err(StoreError::NotFound)),
        "there is no data key: {without:?}"
    );
    ours.with_data_key().await;
    for (version, fits) in [
        (2, false),
        (1, true),
        (1, false),
        (3, false),
        (2, true),
        (2, false),
    ] {
        let put = db
            .put_secret(ours.id, &sealed(id, version), at(version.into()))
            .await;
        match (&put, fits) {
            (Ok(()), true) | (Err(StoreError::Conflict(_)), false) => {}
            _ => panic!("version {version}: {put:?}"),
        }
    }
    let stored = db.secret(ours.id, id).await.expect("it is there");
    assert_eq!(stored, sealed(id, 2));
    let mut large = sealed(id, 3);
    large.sealed = vec![0; crate::MAX_SEALED_BYTES + 1];
    let refused = db.put_secret(ours.id, &large, at(3)).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { .. })));
    db.remove_secret(ours.id, id).await.expect("it is there");
    let gone = db.secret(ours.id, id).await;
    assert!(matches!(gone, Err(StoreError::NotFound)), "{gone:?}");
}

async fn a_user_sees_accounts_of_the_user_and_of_the_tenant(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let other = ours.member("other").await;
    for (of, name) in [
        (AccountOf::Tenant, "b"),
        (AccountOf::User(ours.owner), "b"),
        (AccountOf::User(other), "b"),
        (AccountOf::User(ours.owner), "a"),
    ] {
        let added = ours.add(&account(of, name, None)).await;
        let added = added.expect("the name is free for its owner");
        assert_eq!(
            (added.of, added.terms, added.created_by),
            (of, terms(name), ours.owner)
        );
    }
    let seen = |user| async move {
        let accounts = db.model_accounts(ours.id, user).await.expect("it answers");
        let seen = accounts.into_iter().map(|row| (row.of, row.terms.name));
        seen.collect::<Vec<_>>()
    };
    let (own, of_other) = (AccountOf::User(ours.owner), AccountOf::User(other));
    let named = |of, name: &str| (of, name.to_owned());
    assert_eq!(
        seen(ours.owner).await,
        [
            named(own, "a"),
            named(own, "b"),
            named(AccountOf::Tenant, "b")
        ]
    );
    assert_eq!(
        seen(other).await,
        [named(of_other, "b"), named(AccountOf::Tenant, "b")]
    );
}

async fn an_account_goes_with_its_key_and_a_person_with_the_accounts(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    let first = ours.with_data_key().await;
    let new = account(AccountOf::Tenant, "ours", Some(sealed(first, 1)));
    let added = ours.add(&new).await.expect("it is new");
    assert_eq!(added.key, Some(first));
    let by = ours.owner.into();
    let change = |terms, key: Option<SealedSecret>| async move {
        db.change_model_account(ours.id, new.id, &terms, key.as_ref(), &by, at(3))
            .await
    };
    let changed = change(terms("renamed"), None).await.expect("it is there");
    assert_eq!(
        (changed.terms.name.as_str(), changed.key),
        ("renamed", Some(first))
    );
    let again = change(terms("renamed"), Some(sealed(first, 2))).await;
    assert_eq!(again.expect("it is the next version").key, Some(first));
    let stale = change(terms("other"), Some(sealed(first, 2))).await;
    assert!(matches!(stale, Err(StoreError::Conflict(_))), "{stale:?}");
    let second = SecretId::from_u128(unique());
    let replaced = change(terms("renamed"), Some(sealed(second, 1))).await;
    assert_eq!(replaced.expect("it is new").key, Some(second));
    let is_there = |secret| async move { db.secret(ours.id, secret).await.is_ok() };
    assert_eq!(
        (is_there(first).await, is_there(second).await),
        (false, true)
    );
    let refused = db.remove_secret(ours.id, second).await;
    assert!(refused.is_err(), "the account has it");
    db.remove_model_account(ours.id, new.id, &by, at(4))
        .await
        .expect("it is there");
    assert!(!is_there(second).await);
    let log = db.audit_after(ours.id, 0, 100).await.expect("it answers");
    let kinds: Vec<_> = log.iter().map(|entry| entry.kind.as_str()).collect();
    assert!(kinds.ends_with(&["model_account.changed", "model_account.removed"]));

    let person = ours.member("person").await;
    let third = SecretId::from_u128(unique());
    let own = account(AccountOf::User(person), "own", Some(sealed(third, 1)));
    ours.add(&own).await.expect("it is new");
    db.remove_person(ours.id, person, &by, at(5))
        .await
        .expect("the person is there");
    assert!(!is_there(third).await);
    let gone = db.model_account(ours.id, own.id).await;
    assert!(matches!(gone, Err(StoreError::NotFound)), "{gone:?}");
}

async fn an_owner_has_so_many_accounts_and_each_name_once(fixture: Fixture) {
    let ours = fixture.tenant().await;
    for of in [AccountOf::Tenant, AccountOf::User(ours.owner)] {
        for number in 0..MODEL_ACCOUNTS_AT_MOST {
            let added = ours.add(&account(of, &number.to_string(), None)).await;
            added.expect("there is room");
            if number == 0 {
                let twice = ours.add(&account(of, "0", None)).await;
                assert!(matches!(twice, Err(StoreError::Conflict(_))), "{twice:?}");
            }
        }
        let full = ours.add(&account(of, "more", None)).await;
        assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    }
    let of = AccountOf::User(ours.member("other").await);
    let mut many = account(of, "many", None);
    many.terms.models = vec!["a model".to_owned(); crate::MODELS_OF_ACCOUNT_AT_MOST + 1];
    let refused = ours.add(&many).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    let mut long = account(of, &"n".repeat(65), None);
    let refused = ours.add(&long).await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { .. })),
        "{refused:?}"
    );
    long.terms = terms("name");
    long.terms.base_url = Some("u".repeat(1025));
    let refused = ours.add(&long).await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { .. })),
        "{refused:?}"
    );
}

async fn of_two_first_texts_of_a_secret_at_once_both_writers_get_one(fixture: Fixture) {
    let (db, ours) = (&fixture.db, fixture.tenant().await);
    ours.with_data_key().await;
    let id = SecretId::from_u128(unique());
    let stored = async |text: u8| {
        let secret = SealedSecret {
            sealed: vec![text],
            ..sealed(id, 1)
        };
        let stored = db.secret_or_put(ours.id, &secret, at(1)).await;
        stored.expect("it answers")
    };
    let (one, other) = tokio::join!(stored(1), stored(2));
    assert_eq!(one, other);
    assert_eq!(stored(3).await, one);
}

async fn a_lost_master_key_is_forgotten_with_all_that_depends_on_it(fixture: Fixture) {
    let db = &fixture.db;
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let lost = ours.with_data_key().await;
    let new = account(AccountOf::Tenant, "ours", Some(sealed(lost, 1)));
    ours.add(&new).await.expect("it is new");
    let other = data_key(&theirs, 1, "mk_two", 2);
    db.add_data_key(&other, at(1)).await.expect("it is new");
    let kept = SecretId::from_u128(unique());
    let put = db.put_secret(theirs.id, &sealed(kept, 1), at(2)).await;
    put.expect("there is a data key");
    let forgotten = db.forget_master_key("mk_one").await;
    assert_eq!(forgotten.expect("it wraps one"), 1);
    let again = db.forget_master_key("mk_one").await;
    assert!(matches!(again, Err(StoreError::NotFound)), "{again:?}");
    assert_eq!(db.newest_data_key(ours.id).await.expect("it answers"), None);
    let account = db.model_account(ours.id, new.id).await;
    assert_eq!(account.expect("it stays").key, None);
    db.secret(theirs.id, kept).await.expect("it stays");
}

async fn secrets_and_accounts_of_another_tenant_are_not_found(fixture: Fixture) {
    let db = &fixture.db;
    let (ours, theirs) = (fixture.tenant().await, fixture.tenant().await);
    let secret = theirs.with_data_key().await;
    let new = account(AccountOf::Tenant, "theirs", Some(sealed(secret, 1)));
    theirs.add(&new).await.expect("it is new");
    let on_their_key = SealedSecret {
        id: SecretId::from_u128(unique()),
        ..sealed(secret, 1)
    };
    let of_their_user = account(AccountOf::User(theirs.owner), "ours", None);
    let by = ours.owner.into();
    let not_found = [
        db.secret(ours.id, secret).await.map(drop),
        db.data_key(ours.id, 1).await.map(drop),
        db.put_secret(ours.id, &on_their_key, at(9)).await,
        db.remove_secret(ours.id, secret).await,
        db.model_account(ours.id, new.id).await.map(drop),
        db.remove_model_account(ours.id, new.id, &by, at(9)).await,
        db.change_model_account(ours.id, new.id, &terms("x"), None, &by, at(9))
            .await
            .map(drop),
        ours.add(&of_their_user).await.map(drop),
    ];
    for answer in not_found {
        assert!(matches!(answer, Err(StoreError::NotFound)), "{answer:?}");
    }
    let newest = db.newest_data_key(ours.id).await.expect("it answers");
    assert_eq!(newest, None);
    let mut stolen = data_key(&ours, 1, "mk_two", 9);
    let rewrapped = db.rewrap_data_key(&stolen, "mk_one").await;
    assert!(!rewrapped.expect("it answers"));
    for user in [ours.owner, theirs.owner] {
        let seen = db.model_accounts(ours.id, user).await.expect("it answers");
        assert!(seen.is_empty(), "{seen:?}");
    }
    stolen.tenant = theirs.id;
    let kept = db.data_key(theirs.id, 1).await.expect("it is there");
    assert_ne!(kept, stolen);
}

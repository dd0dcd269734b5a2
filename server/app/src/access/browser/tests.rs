use std::{net::Ipv4Addr, sync::Arc};

use server_store::AuditFilter;
use shared_types::{Clock as _, OsEntropy, SystemClock, clock::ManualClock};

use super::*;
use crate::{UserLimits, allowance::Allowance, gate::Gate, refusals::Refusals, testing::Fixture};

/// A server's access whose clock is the test's, and a browser that is signed in.
struct Browser {
    fixture: Fixture,
    access: Access,
    clock: Arc<ManualClock>,
    cookie: String,
}

impl Browser {
    async fn signed_in() -> Self {
        let fixture = Fixture::practice().await;
        let clock = Arc::new(ManualClock::at(SystemClock::new().now()));
        let allowance = Allowance::new(UserLimits::default(), clock.clone());
        let store = fixture.app.store.clone();
        let gate = Gate::new(store.clone(), Refusals::default());
        let access = Access::new(store, gate, clock.clone(), Arc::new(OsEntropy), allowance);
        let ctx = &fixture.ctx;
        let code = access.issue_code(ctx.tenant, ctx.user).await;
        let code = code.expect("a code");
        let signed_in = access.sign_in_browser(&code, "firefox", Ipv4Addr::LOCALHOST.into());
        let cookie = signed_in.await.expect("the code is good").cookie.reveal();
        Self {
            fixture,
            access,
            clock,
            cookie,
        }
    }

    /// A request with this cookie; the one that takes its place, if it does.
    async fn ask(&self, cookie: &str) -> Result<Option<String>, AppError> {
        let from = Some(Ipv4Addr::LOCALHOST.into());
        let session = self.access.authenticate_browser(cookie, from).await?;
        assert_eq!(session.ctx.user, self.fixture.ctx.user);
        Ok(session.fresh.map(|(token, _)| token.reveal()))
    }

    /// A request for which the session ends, or has ended.
    async fn is_refused(&self, cookie: &str) {
        let refused = self.ask(cookie).await;
        assert!(
            matches!(refused, Err(AppError::Unauthenticated(_))),
            "{refused:?}"
        );
    }

    /// The kinds of what was done that gives a reason.
    async fn reasons(&self) -> Vec<String> {
        let filter = AuditFilter {
            after: Some(0),
            ..AuditFilter::default()
        };
        let log = self
            .fixture
            .app
            .store
            .audit_page(self.fixture.ctx.tenant, &filter, 100)
            .await;
        let log = log.expect("the store answers").into_iter();
        log.filter(|row| row.detail.get("why").is_some())
            .map(|row| row.kind)
            .collect()
    }
}

#[tokio::test]
async fn a_cookie_is_replaced_after_a_quarter_of_an_hour_and_a_lost_answer_does_no_harm() {
    let browser = Browser::signed_in().await;
    let first = browser.cookie.clone();
    browser
        .clock
        .advance(REPLACED_AFTER - Duration::from_secs(1));
    assert_eq!(browser.ask(&first).await.expect("it holds"), None);
    browser.clock.advance(Duration::from_secs(1));
    let second = browser.ask(&first).await.expect("it holds");
    let second = second.expect("it is replaced");
    assert_ne!(second, first);
    // That answer is lost: whoever asks with the old one gets the same again, however late.
    browser.clock.advance(Duration::from_secs(60 * 60));
    let again = browser
        .ask(&first)
        .await
        .expect("its successor was not seen");
    assert_eq!(again.as_ref(), Some(&second));

    assert_eq!(browser.ask(&second).await.expect("it holds"), None);
    browser.clock.advance(GRACE);
    assert_eq!(browser.ask(&first).await.expect("it was under way"), None);
    assert_eq!(browser.reasons().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_cookie_that_is_used_after_its_grace_ends_the_session_and_is_in_the_log() {
    for rounds in [1, 2] {
        let browser = Browser::signed_in().await;
        let mut newest = browser.cookie.clone();
        for _ in 0..rounds {
            browser.clock.advance(REPLACED_AFTER);
            let next = browser.ask(&newest).await.expect("it holds");
            newest = next.expect("it is replaced");
            assert_eq!(browser.ask(&newest).await.expect("it holds"), None);
        }
        browser.clock.advance(GRACE + Duration::from_secs(1));
        browser.is_refused(&browser.cookie).await;
        browser.is_refused(&newest).await;
        assert_eq!(browser.reasons().await, ["credential.revoked"]);
    }
}

#[tokio::test]
async fn a_browser_is_signed_out_after_half_a_day_without_a_request_and_after_thirty_days() {
    let browser = Browser::signed_in().await;
    browser.clock.advance(IDLE_AT_MOST);
    browser.is_refused(&browser.cookie).await;

    let mut browser = Browser::signed_in().await;
    let step = IDLE_AT_MOST - Duration::from_secs(60);
    let mut age = Duration::ZERO;
    while age + step < VALID_FOR {
        browser.clock.advance(step);
        age += step;
        if let Some(next) = browser.ask(&browser.cookie).await.expect("it is used") {
            browser.cookie = next;
        }
        let (ctx, now) = (&browser.fixture.ctx, browser.clock.now());
        // The use is recorded by a task of its own.
        let keys = async || browser.access.keys(ctx, 500.into()).await.expect("a list");
        while keys()
            .await
            .0
            .iter()
            .all(|key| key.last_used_at != Some(now))
        {
            tokio::task::yield_now().await;
        }
    }
    browser.clock.advance(VALID_FOR - age);
    browser.is_refused(&browser.cookie).await;
    let keys = browser.access.keys(&browser.fixture.ctx, 500.into()).await;
    let (keys, _) = keys.expect("a list");
    let listed = keys.iter().find(|key| key.kind == CredentialKind::Browser);
    let ends = listed.and_then(|key| key.expires_at);
    assert_eq!(ends, Some(browser.clock.now()), "the list says so");
}

#[tokio::test]
async fn a_ticket_that_is_late_or_of_a_browser_that_was_signed_out_opens_nothing() {
    let browser = Browser::signed_in().await;
    let session = browser.access.authenticate_browser(&browser.cookie, None);
    let ctx = session.await.expect("it holds").ctx;
    let ticket = async || {
        let made = browser.access.create_ticket(&ctx, None).await;
        made.expect("a ticket").token.reveal()
    };
    let take = async |ticket: &str| browser.access.take_ticket(ticket, None, None).await;
    let good = ticket().await;
    assert_eq!(
        take(&good).await.expect("it is good").credential,
        ctx.credential
    );
    take(&good).await.expect_err("it was used");
    let late = ticket().await;
    browser.clock.advance(Duration::from_secs(30));
    take(&late).await.expect_err("it is late");
    let orphan = ticket().await;
    browser
        .access
        .sign_out(&ctx)
        .await
        .expect("it is a browser");
    take(&orphan).await.expect_err("its browser is signed out");
    browser.is_refused(&browser.cookie).await;
}

#[tokio::test]
async fn the_metrics_of_the_whole_server_are_for_the_operators_tenant_alone() {
    let fixture = Fixture::practice().await;
    let access = &fixture.app.access;
    access
        .read_metrics(&fixture.ctx)
        .await
        .expect("it is the operator's");
    let other = OpContext {
        tenant: shared_types::TenantId::from_u128(9),
        ..fixture.ctx.clone()
    };
    let refused = access.read_metrics(&other).await.err();
    assert!(
        matches!(refused, Some(AppError::Forbidden(_))),
        "{refused:?}"
    );
}

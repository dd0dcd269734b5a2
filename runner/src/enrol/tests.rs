//! Enrolments over real connections, against a server double.

use shared_tls::ServerTls;
use shared_types::entropy::SeededEntropy;
use tonic::Status;

use super::*;
use crate::{
    connection::{ConnectError, Transport},
    testing::{FakeServer, RUNNER, endpoints, nowhere, over_both},
};

struct Place {
    directory: tempfile::TempDir,
    home: Home,
}

fn place() -> Place {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::within(directory.path());
    Place { directory, home }
}

fn certificate(place: &Place, name: &str) -> ServerTls {
    ServerTls::self_signed(&place.directory.path().join(name), &["127.0.0.1".into()])
        .expect("a certificate")
}

async fn enrol_with(
    place: &Place,
    server: &FakeServer,
    change: impl FnOnce(&mut Enrolment),
) -> Result<EnrolReport, EnrolError> {
    let mut wanted = Enrolment {
        endpoints: endpoints(&[&server.url]),
        allow_plain_text: false,
        token: server.join_token(),
        name: None,
        labels: vec![("os".into(), "linux".into())],
        hostname: "host".into(),
        workspace: place.directory.path().to_owned(),
        replace: false,
    };
    change(&mut wanted);
    enrol(&place.home, wanted, &SeededEntropy::new(5)).await
}

over_both! {
    an_enrolled_runner_remembers_its_server_its_certificate_and_its_key,
    a_token_never_reaches_a_server_with_another_identity,
    a_token_never_passes_a_certificate_that_nobody_vouches_for,
    a_refused_token_leaves_nothing_behind_and_says_what_the_server_said,
    an_answer_that_was_changed_on_its_way_enrols_nobody,
    a_second_enrolment_in_one_home_must_be_meant,
    what_cannot_work_is_said_before_the_token_is_spent,
    a_server_that_is_not_there_is_named,
    of_several_addresses_the_first_that_answers_enrols_and_all_are_remembered,
    a_stranger_among_the_addresses_ends_the_enrolment_and_sees_no_token,
}

async fn an_enrolled_runner_remembers_its_server_its_certificate_and_its_key(over: Transport) {
    let place = place();
    let tls = certificate(&place, "tls");
    let server = FakeServer::tls(over, 1, &tls).await;
    let report = enrol_with(&place, &server, |_| {})
        .await
        .expect("an enrolment");
    let enrolled = place
        .home
        .enrolled()
        .expect("a home")
        .expect("an enrolment");
    assert_eq!(enrolled, report.0);
    assert_eq!(enrolled.runner, RUNNER);
    assert_eq!(enrolled.server_identity, server.identity());
    let pinned = enrolled.certificate.expect("a certificate");
    assert_eq!(*pinned.as_bytes(), tls.certificate_sha256());
    place.home.key().expect("a key");
    let line = report.to_string();
    assert!(
        line.starts_with("enrolled as laptop with https://127.0.0.1:"),
        "{line}"
    );
    assert!(
        line.contains("isolation: none — commands run as your user, or in containers with"),
        "{line}"
    );
    assert!(!line.contains('\n'));
}

async fn a_token_never_reaches_a_server_with_another_identity(over: Transport) {
    let place = place();
    let (expected, other) = (
        FakeServer::over(over, 1).await,
        FakeServer::over(over, 2).await,
    );
    let refused = enrol_with(&place, &other, |wanted| {
        wanted.token = expected.join_token()
    })
    .await;
    let error = refused.expect_err("a stranger");
    assert!(
        matches!(error, EnrolError::Server(EnrolmentError::Stranger)),
        "{error}"
    );
    assert_eq!(other.tokens_seen(), 0);
    assert_eq!(place.home.enrolled().expect("a home"), None);
}

async fn a_token_never_passes_a_certificate_that_nobody_vouches_for(over: Transport) {
    let place = place();
    let (shown, real) = (certificate(&place, "shown"), certificate(&place, "real"));
    let claims = real.certificate_sha256().to_vec();
    let relay = FakeServer::start(Some(over), 1, Some(&shown), claims).await;
    let error = enrol_with(&place, &relay, |_| {})
        .await
        .expect_err("a relay");
    let interposed = EnrolmentError::Interposed(ConnectError::Handshake {
        url: String::new(),
        source: std::io::ErrorKind::Other.into(),
    });
    let EnrolError::Server(error) = error else {
        panic!("another error: {error}");
    };
    assert_eq!(
        std::mem::discriminant(&error),
        std::mem::discriminant(&interposed)
    );
    assert_eq!(relay.tokens_seen(), 0);
}

async fn a_refused_token_leaves_nothing_behind_and_says_what_the_server_said(over: Transport) {
    let place = place();
    let server = FakeServer::over(over, 1).await;
    server.refuse(Status::permission_denied("the join token is spent"));
    let error = enrol_with(&place, &server, |_| {})
        .await
        .expect_err("a refusal");
    assert_eq!(
        error.to_string(),
        "the server says: the join token is spent"
    );
    assert_eq!(place.home.enrolled().expect("a home"), None);
}

async fn an_answer_that_was_changed_on_its_way_enrols_nobody(over: Transport) {
    let place = place();
    let server = FakeServer::over(over, 1).await;
    server.alter(true);
    let error = enrol_with(&place, &server, |_| {}).await;
    assert!(
        matches!(error, Err(EnrolError::Server(EnrolmentError::Altered))),
        "{error:?}"
    );
    assert_eq!(place.home.enrolled().expect("a home"), None);
}

async fn a_second_enrolment_in_one_home_must_be_meant(over: Transport) {
    let place = place();
    let server = FakeServer::over(over, 1).await;
    enrol_with(&place, &server, |_| {})
        .await
        .expect("an enrolment");
    let error = enrol_with(&place, &server, |_| {})
        .await
        .expect_err("a refusal");
    assert!(error.to_string().contains("--replace"), "{error}");
    assert_eq!(server.tokens_seen(), 1, "the second token is not spent");
    let again = enrol_with(&place, &server, |wanted| wanted.replace = true).await;
    again.expect("an enrolment that replaces the first");
}

async fn what_cannot_work_is_said_before_the_token_is_spent(over: Transport) {
    let place = place();
    let server = FakeServer::over(over, 1).await;
    let missing = place.directory.path().join("missing");
    let error = enrol_with(&place, &server, |wanted| wanted.workspace = missing).await;
    assert!(matches!(error, Err(EnrolError::Workspace { .. })));
    let error = enrol_with(&place, &server, |wanted| {
        wanted.name = Some("My Laptop".into())
    })
    .await;
    assert!(matches!(error, Err(EnrolError::Name(_))));
    let lock = place.home.lock().expect("the lock of a running daemon");
    let error = enrol_with(&place, &server, |_| {}).await;
    assert!(matches!(error, Err(EnrolError::Home(HomeError::Taken(_)))));
    drop(lock);
    assert_eq!(server.tokens_seen(), 0);
}

async fn a_server_that_is_not_there_is_named(over: Transport) {
    let place = place();
    let server = FakeServer::over(over, 1).await;
    let url = nowhere();
    let error = enrol_with(&place, &server, |wanted| {
        wanted.endpoints = endpoints(&[&url]);
    })
    .await
    .expect_err("nobody");
    assert!(
        error.to_string().contains(&format!("cannot reach {url}")),
        "{error}"
    );
}

async fn of_several_addresses_the_first_that_answers_enrols_and_all_are_remembered(
    over: Transport,
) {
    let place = place();
    let server = FakeServer::over(over, 1).await;
    let urls = [nowhere(), server.url.clone()];
    let report = enrol_with(&place, &server, |wanted| {
        wanted.endpoints = endpoints(&[&urls[0], &urls[1]]);
    })
    .await
    .expect("an enrolment");
    assert_eq!(report.0.servers, urls);
    let line = report.to_string();
    assert!(line.contains(&urls.join(", ")), "{line}");
    assert_eq!(server.tokens_seen(), 1);
}

async fn a_stranger_among_the_addresses_ends_the_enrolment_and_sees_no_token(over: Transport) {
    let place = place();
    let (server, other) = (
        FakeServer::over(over, 1).await,
        FakeServer::over(over, 2).await,
    );
    let refused = enrol_with(&place, &server, |wanted| {
        wanted.endpoints = endpoints(&[&other.url, &server.url]);
    })
    .await;
    let error = refused.expect_err("a stranger");
    assert!(
        matches!(error, EnrolError::Server(EnrolmentError::Stranger)),
        "{error}"
    );
    assert_eq!((server.tokens_seen(), other.tokens_seen()), (0, 0));
}

use shared_types::event::{Finish, Parts, Usage};

use super::*;

/// A vendor that fails, or says nothing, as long as it is told to.
struct Scripted {
    failure: Mutex<Option<ModelError>>,
    is_silent: Mutex<bool>,
    asked: Mutex<u32>,
}

#[async_trait]
impl Vendor for Scripted {
    fn info(&self) -> ModelInfo {
        crate::Model::info(&crate::Practice)
    }

    async fn attempt(
        &self,
        _request: &ModelRequest,
        _events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        *self.asked.lock().expect("no panic") += 1;
        if *self.is_silent.lock().expect("no panic") {
            std::future::pending::<()>().await;
        }
        match self.failure.lock().expect("no panic").clone() {
            Some(error) => Err(error.into()),
            None => Ok(Answer {
                parts: Parts::text("hello"),
                finish: Finish::Complete,
                usage: Usage::default(),
                model: String::new(),
                first_byte: None,
            }),
        }
    }
}

struct Guarded {
    vendor: Arc<Scripted>,
    breaker: Breaker,
}

impl Guarded {
    fn failing(error: ModelError) -> Self {
        let vendor = Arc::new(Scripted {
            failure: Mutex::new(Some(error)),
            is_silent: Mutex::new(false),
            asked: Mutex::new(0),
        });
        Self {
            breaker: Breaker::new(vendor.clone()),
            vendor,
        }
    }

    async fn ask(&self) -> Result<Answer, Failure> {
        let (events, _heard) = mpsc::channel(1);
        self.breaker
            .attempt(&ModelRequest::default(), &events)
            .await
    }

    fn asked(&self) -> u32 {
        *self.vendor.asked.lock().expect("no panic")
    }

    fn recovers(&self) {
        *self.vendor.failure.lock().expect("no panic") = None;
    }
}

fn down() -> ModelError {
    ModelError::Unavailable("down".to_owned())
}

#[tokio::test(start_paused = true)]
async fn three_failures_open_it_and_an_answer_to_a_probe_closes_it() {
    let guarded = Guarded::failing(down());
    for _ in 0..FAILURES {
        assert!(!guarded.ask().await.expect_err("it fails").is_unasked);
    }
    let left_alone = guarded.ask().await.expect_err("it is open");
    assert!(left_alone.is_unasked && left_alone.retry_after <= Some(OPEN_FIRST));
    assert_eq!(guarded.asked(), FAILURES);
    assert!(matches!(guarded.breaker.health(), Health::CoolingDown(..)));
    assert!(guarded.breaker.is_left_alone());

    tokio::time::advance(OPEN_FIRST).await;
    assert!(
        !guarded.breaker.is_left_alone(),
        "the next request probes it"
    );
    assert!(!guarded.ask().await.expect_err("the probe fails").is_unasked);
    let again = guarded.ask().await.expect_err("it is open again");
    assert!(
        again.retry_after > Some(OPEN_FIRST),
        "for longer than before"
    );

    guarded.recovers();
    tokio::time::advance(2 * OPEN_FIRST).await;
    guarded.ask().await.expect("the probe is answered");
    guarded.ask().await.expect("it is closed");
    assert_eq!(guarded.breaker.health(), Health::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_refused_opens_it_at_once_and_is_shown_as_refused() {
    let refused = ModelError::Unauthenticated("no".to_owned());
    let guarded = Guarded::failing(refused.clone());
    guarded.ask().await.expect_err("it is refused");
    assert!(guarded.ask().await.expect_err("it is open").is_unasked);
    assert_eq!(guarded.breaker.health(), Health::Refused(refused));
    guarded.breaker.recovered();
    assert_eq!(guarded.breaker.health(), Health::Ready);
    assert!(!guarded.ask().await.expect_err("it is refused").is_unasked);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_for_itself_says_nothing_of_the_vendor() {
    let guarded = Guarded::failing(ModelError::Overflow("long".to_owned()));
    for _ in 0..2 * FAILURES {
        assert!(!guarded.ask().await.expect_err("it fails").is_unasked);
    }
    assert_eq!(guarded.breaker.health(), Health::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_given_up_lets_the_next_one_through() {
    let guarded = Guarded::failing(down());
    for _ in 0..FAILURES {
        guarded.ask().await.expect_err("it fails");
    }
    tokio::time::advance(OPEN_FIRST).await;
    *guarded.vendor.is_silent.lock().expect("no panic") = true;
    let probe = tokio::time::timeout(Duration::from_millis(1), guarded.ask()).await;
    probe.expect_err("its caller gave it up");
    *guarded.vendor.is_silent.lock().expect("no panic") = false;
    assert!(!guarded.ask().await.expect_err("it fails").is_unasked);
}

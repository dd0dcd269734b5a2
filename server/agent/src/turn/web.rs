//! Calls that ask for the web. Nothing of them outlives the call: a cancelled turn drops the request, and a turn that
//! runs again asks again.

use std::time::Duration;

use shared_types::{Digest, event::CallOutcome};
use tokio::time::timeout;

use super::{
    TurnError,
    site::Site,
    told::{self, HANDLE_BYTES},
};
use crate::{
    session::{LogError, spoken},
    tools::{NEVER_RAN, Rendered, WebAsk, excerpt_of, web},
};

/// The time that an ask is given.
pub(super) const WITHIN: Duration = Duration::from_secs(30);

/// Asks the web, and returns the words for the model. Where they are a part of a page, the session keeps the whole of it.
pub(super) async fn run(
    site: &Site<'_>,
    ask: &WebAsk,
) -> Result<(Rendered, Option<Digest>), TurnError> {
    if site.cancel.is_cancelled() {
        return Ok((told::cancelled(NEVER_RAN.to_owned()), None));
    }
    let answered = tokio::select! {
        biased;
        () = site.cancel.cancelled() => {
            let cancelled = told::cancelled("cancelled before the web answered".to_owned());
            return Ok((cancelled, None));
        }
        answered = timeout(WITHIN, answer(site, ask)) => answered,
    };
    match answered {
        Ok(Ok(answer)) => kept(site, answer).await,
        Ok(Err(why)) => Ok((Rendered::failed(why), None)),
        Err(_) => {
            let why = format!("the web gave no answer within {}", spoken(WITHIN));
            Ok((Rendered::new(CallOutcome::TimedOut, why), None))
        }
    }
}

/// A text of the web as it is shown, and the whole of it.
struct Answer {
    shown: String,
    whole: String,
}

async fn answer(site: &Site<'_>, ask: &WebAsk) -> Result<Answer, String> {
    let (source, limit) = (
        &site.engine.web,
        site.result_bytes.saturating_sub(HANDLE_BYTES),
    );
    let [shown, whole] = match ask {
        WebAsk::Fetch { url } => {
            let page = source.fetch(url).await?;
            [limit, usize::MAX].map(|limit| web::page(&page, limit))
        }
        WebAsk::Search { query, at_most } => {
            let found = source.search(query, *at_most).await?;
            [limit, usize::MAX].map(|limit| web::results(&found, limit))
        }
    };
    Ok(Answer { shown, whole })
}

/// Has the session keep what is not shown. A session that has no room for it is shown the part alone.
async fn kept(
    site: &Site<'_>,
    Answer { shown, whole }: Answer,
) -> Result<(Rendered, Option<Digest>), TurnError> {
    if shown == whole {
        return Ok((Rendered::completed(shown), None));
    }
    let digest = match site.ports.log.keep_text(whole.into()).await {
        Ok(digest) => digest,
        Err(LogError::Refused(_)) => return Ok((Rendered::completed(shown), None)),
        Err(error) => return Err(error.into()),
    };
    let text = excerpt_of(&shown, site.number);
    Ok((Rendered::completed(text), Some(digest)))
}

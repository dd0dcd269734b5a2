//! Calls that ask for the web. Nothing of them outlives the call: a cancelled turn drops the request, and a turn that
//! runs again asks again.

use std::time::Duration;

use shared_types::event::CallOutcome;
use tokio::time::timeout;

use super::{site::Site, told};
use crate::{
    session::spoken,
    tools::{NEVER_RAN, Rendered, WebAsk, web},
};

/// The time that an ask is given.
pub(super) const WITHIN: Duration = Duration::from_secs(30);

/// Asks the web, and returns the words for the model.
pub(super) async fn run(site: &Site<'_>, ask: &WebAsk) -> Rendered {
    if site.cancel.is_cancelled() {
        return told::cancelled(NEVER_RAN.to_owned());
    }
    tokio::select! {
        biased;
        () = site.cancel.cancelled() => told::cancelled("cancelled before the web answered".to_owned()),
        answered = timeout(WITHIN, answer(site, ask)) => match answered {
            Ok(Ok(text)) => Rendered::completed(text),
            Ok(Err(why)) => Rendered::failed(why),
            Err(_) => Rendered::new(
                CallOutcome::TimedOut,
                format!("the web gave no answer within {}", spoken(WITHIN)),
            ),
        },
    }
}

async fn answer(site: &Site<'_>, ask: &WebAsk) -> Result<String, String> {
    let (source, limit) = (&site.engine.web, site.result_bytes);
    match ask {
        WebAsk::Fetch { url } => {
            let page = source.fetch(url).await?;
            Ok(web::page(&page, limit))
        }
        WebAsk::Search { query, at_most } => {
            let found = source.search(query, *at_most).await?;
            Ok(web::results(&found, limit))
        }
    }
}

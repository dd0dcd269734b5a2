//! Repeated requests after a lost connection, for verbs that continue until a person ends them.

use shared_client::{Client, ClientError};
use shared_types::{clean::clean_line, limits::MAX_PEER_TEXT};

use crate::screen::Screen;

/// Sends a request until the server answers. Tells the person when the connection is lost and when
/// it is back.
///
/// # Errors
/// Fails when another attempt cannot help, or with the last failure once the server counts as gone.
pub(crate) async fn patiently<T>(
    client: &Client,
    screen: Screen,
    mut ask: impl AsyncFnMut() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let mut failures = 0;
    loop {
        match ask().await {
            Err(error) if error.is_passing() => {
                failures += 1;
                if failures == 1 {
                    screen.note(&format!("gantry: {}", lost(error.answer())));
                }
                client.wait_again(failures, error).await?;
            }
            answer => {
                if failures > 0 && answer.is_ok() {
                    screen.note("gantry: connected again");
                }
                return answer;
            }
        }
    }
}

/// The words for a person while it is tried again: the server's own, where the server has answered.
pub(crate) fn lost(answer: Option<&str>) -> String {
    let answer = answer.map(|answer| clean_line(answer, MAX_PEER_TEXT));
    format!(
        "{}; trying again",
        answer.as_deref().unwrap_or("connection lost")
    )
}

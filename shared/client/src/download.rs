//! Downloads of public files, such as skills, without any credential.

use std::time::Duration;

use shared_tls::Trust;
use url::Url;

use crate::ClientError;

/// Time for a whole download.
const WITHIN: Duration = Duration::from_secs(60);

/// The bytes at this address, at most so many. The address begins with `https://`, or is one of this machine.
///
/// # Errors
/// The address may not be asked for, does not answer with success, or has more bytes.
pub async fn download(address: &str, at_most: usize) -> Result<Vec<u8>, ClientError> {
    let refused = |reason: String| ClientError::Download {
        url: address.to_owned(),
        reason,
    };
    let url = Url::parse(address).map_err(|error| refused(error.to_string()))?;
    let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if url.scheme() != "https" && !(url.scheme() == "http" && is_here) {
        return Err(refused("it does not begin with https://".to_owned()));
    }
    let builder = reqwest::Client::builder()
        .timeout(WITHIN)
        // A redirect to plain text is not followed.
        .https_only(!is_here);
    let builder = match url.scheme() {
        "https" => {
            let config = shared_tls::client_config(Trust::Platform);
            let config = config.map_err(|error| refused(error.to_string()))?;
            builder.tls_backend_preconfigured(config.as_ref().clone())
        }
        _ => builder.tls_certs_only(std::iter::empty()),
    };
    let failed = |error: reqwest::Error| refused(reason(error));
    let client = builder.build().map_err(failed)?;
    let mut response = client
        .get(url)
        .send()
        .await
        .map_err(failed)?
        .error_for_status()
        .map_err(failed)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > at_most {
            return Err(refused(format!("it has more than {at_most} bytes")));
        }
    }
    Ok(bytes)
}

/// The innermost reason of a failure, without the address.
fn reason(error: reqwest::Error) -> String {
    if let Some(status) = error.status() {
        return format!("the answer is {status}");
    }
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

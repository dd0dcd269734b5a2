//! What an operation wrote, as it wrote it.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use shared_client::Client;
use shared_types::OperationId;

use crate::{render::clean::clean, screen::Screen};

/// Writes what is kept of a stream, from the offset on or so many bytes before its end; what is not
/// kept is noted.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    operation: OperationId,
    stream: &str,
    mut offset: i64,
) -> anyhow::Result<()> {
    loop {
        let page = client.output(operation, stream, offset).await?;
        if let Ok(asked) = u64::try_from(offset)
            && asked < page.base
        {
            screen.note(&format!(
                "gantry: {} bytes of {stream} from {asked} on are not kept",
                page.base - asked
            ));
        }
        if page.bytes == 0 {
            if !page.ended {
                screen.note("gantry: the operation has not ended; there will be more");
            }
            return Ok(());
        }
        let data = STANDARD
            .decode(&page.data)
            .context("failed to read the server's answer")?;
        write(&data).context("failed to write to standard output")?;
        offset = i64::try_from(page.base.saturating_add(page.bytes)).unwrap_or(i64::MAX);
    }
}

/// Bytes as they are, but a terminal is shown nothing that it would obey.
fn write(data: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.is_terminal() {
        true => out.write_all(clean(&String::from_utf8_lossy(data)).as_bytes())?,
        false => out.write_all(data)?,
    }
    out.flush()
}

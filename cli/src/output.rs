//! The output of an operation, as it was written.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use shared_api::Output;
use shared_client::Client;
use shared_types::OperationId;

use crate::{render::clean::clean, screen::Screen};

/// How long the server waits for more output of an operation that is followed, in milliseconds.
const WAIT_MS: u32 = 20_000;

/// Prints what is kept of a stream, from the offset on or so many bytes before its end; what is not
/// kept is noted. With `follow` it goes on until the operation ends.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    operation: OperationId,
    stream: &str,
    mut offset: i64,
    follow: bool,
) -> anyhow::Result<()> {
    let mut reader = Reader {
        client,
        screen,
        wait_ms: if follow { WAIT_MS } else { 0 },
        failures: 0,
    };
    loop {
        let page = reader.page(operation, stream, offset).await?;
        if let Ok(asked) = u64::try_from(offset)
            && asked < page.base
        {
            screen.note(&format!(
                "gantry: {} bytes of {stream} from {asked} on are not kept",
                page.base - asked
            ));
        }
        if page.bytes == 0 && follow && !page.ended {
            // What ends a stream may have been left out.
            offset = offset_of(page.base);
            continue;
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
        write(screen, &data)?;
        offset = offset_of(page.base.saturating_add(page.bytes));
    }
}

fn offset_of(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

/// Asks for page after page; where it follows, also over lost connections.
struct Reader<'a> {
    client: &'a Client,
    screen: Screen,
    wait_ms: u32,
    failures: u32,
}

impl Reader<'_> {
    async fn page(
        &mut self,
        operation: OperationId,
        stream: &str,
        offset: i64,
    ) -> anyhow::Result<Output> {
        loop {
            let asked = self
                .client
                .output_within(operation, stream, offset, self.wait_ms);
            match asked.await {
                Ok(page) => {
                    if std::mem::take(&mut self.failures) > 0 {
                        self.screen.note("gantry: connected again");
                    }
                    return Ok(page);
                }
                Err(error) if self.wait_ms > 0 && error.is_passing() => {
                    self.failures += 1;
                    if self.failures == 1 {
                        self.screen.note("gantry: connection lost; trying again");
                    }
                    self.client.wait_again(self.failures, error).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Bytes as they are, but a terminal is shown nothing that it would obey.
fn write(screen: Screen, data: &[u8]) -> anyhow::Result<()> {
    match std::io::stdout().is_terminal() {
        true => screen.print(&clean(&String::from_utf8_lossy(data))),
        false => screen.write(data),
    }
}

//! The output of an operation, as it was written.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use shared_client::Client;
use shared_types::OperationId;

use crate::{patience::patiently, render::clean::Clean, screen::Screen};

/// The longest wait of the server for more output, in milliseconds, when an operation is followed.
const WAIT_MS: u32 = 20_000;

/// Prints the stored bytes of a stream, from `offset` on or that many bytes before its end. Notes the bytes that are
/// not stored. With `follow` it continues until the operation ends.
pub(crate) async fn run(
    client: &Client,
    screen: Screen,
    operation: OperationId,
    stream: &str,
    mut offset: i64,
    follow: bool,
) -> anyhow::Result<()> {
    let wait_ms = if follow { WAIT_MS } else { 0 };
    let mut shown = std::io::stdout().is_terminal().then(Shown::default);
    loop {
        let ask = async || {
            client
                .output_within(operation, stream, offset, wait_ms)
                .await
        };
        let page = match follow {
            true => patiently(client, screen, ask).await?,
            false => ask().await?,
        };
        if let Ok(asked) = u64::try_from(offset)
            && asked < page.base
        {
            screen.note(&format!(
                "gantry: {} bytes of {stream} from {asked} on are not kept",
                page.base - asked
            ));
        }
        if page.bytes == 0 && follow && !page.ended {
            // The last bytes so far may have been dropped: continue at the base of the page.
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
        match &mut shown {
            Some(shown) => screen.print(&shown.take(&data))?,
            None => screen.write(&data)?,
        }
        offset = offset_of(page.base.saturating_add(page.bytes));
    }
}

fn offset_of(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

/// Output as a terminal is shown it, which obeys nothing of it. A page may end within a letter or a sequence.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// The beginning of a letter, three bytes at most.
    begun: Vec<u8>,
    clean: Clean,
}

impl Shown {
    pub(crate) fn take(&mut self, page: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(page);
        let mut text = String::new();
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let rest = chunk.invalid();
            let may_go_on = str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
            match rest.is_empty() {
                true => {}
                false if may_go_on && chunks.peek().is_none() => self.begun = rest.to_vec(),
                false => text.push(char::REPLACEMENT_CHARACTER),
            }
        }
        self.clean.take(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_cuts_is_shown_whole() {
        let output = "gr\u{fc}n \x1b[31mrot\x1b[0m 10%\r20%\r\n\u{1f600}";
        let whole = Shown::default().take(output.as_bytes());
        assert!(
            whole.contains("gr\u{fc}n rot") && whole.contains('\u{1f600}'),
            "{whole:?}"
        );
        for cut in 0..output.len() {
            let (first, second) = output.as_bytes().split_at(cut);
            let mut shown = Shown::default();
            let text = shown.take(first) + &shown.take(second);
            assert_eq!(text, whole, "cut at {cut}");
        }
        assert_eq!(Shown::default().take(b"a\xffb\xc3c"), "a\u{fffd}b\u{fffd}c");
    }
}

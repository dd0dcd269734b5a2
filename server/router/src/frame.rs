//! What a frame can carry.

use shared_sandbox::{Command, Request};
use shared_types::{Refusal, RefusalCode, limits::MAX_FRAME_BYTES};

/// Left for everything in a frame that is not the request's own text.
const FRAME_OVERHEAD_BYTES: usize = 16 * 1024;

/// What each word or variable costs on the wire beside its text, at most.
const WORD_OVERHEAD_BYTES: usize = 16;

/// Refuses a request that no frame can carry, before anything is recorded.
pub(crate) fn fits_a_frame(request: &Request) -> Result<(), Refusal> {
    let bytes = match request {
        Request::Exec(exec) => {
            let command = match &exec.command {
                Command::Shell(script) => script.len(),
                Command::Argv(words) => words.iter().map(|w| w.len() + WORD_OVERHEAD_BYTES).sum(),
            };
            let environment: usize = exec
                .environment
                .iter()
                .map(|(name, value)| name.len() + value.len() + WORD_OVERHEAD_BYTES)
                .sum();
            command + environment + exec.directory.len()
        }
        Request::Read(read) => read.path.len(),
        Request::Write(write) => write.path.len() + write.content.len(),
        Request::Edit(edit) => edit.path.len() + edit.old.len() + edit.new.len(),
        Request::List(list) => list.path.len(),
        Request::Glob(glob) => glob.path.len() + glob.pattern.len(),
        Request::Download(download) => download.path.len(),
        Request::Upload(upload) => upload.path.len(),
        Request::Grep(grep) => grep.path.len() + grep.pattern.len() + grep.files.len(),
    };
    let limit = MAX_FRAME_BYTES - FRAME_OVERHEAD_BYTES;
    if bytes > limit {
        return Err(Refusal::new(
            RefusalCode::Invalid,
            format!("the request has {bytes} bytes; at most {limit} can be sent at once"),
        ));
    }
    Ok(())
}

//! The output of a command, as much of it as the model can be shown.

use shared_sandbox::OutputStream;

use super::excerpt::Excerpt;

/// Room for headings and notes around the output.
const FRAME_BYTES: usize = 256;

/// The head and the tail of a command's output streams.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    stdout: Excerpt,
    stderr: Excerpt,
}

impl CommandOutput {
    /// Nothing yet; `keep` bytes of the head and of the tail of each stream will be kept.
    pub fn new(keep: usize) -> Self {
        Self::starting_at(keep, [0, 0])
    }

    /// The same of what stdout and stderr have from these offsets on.
    pub fn starting_at(keep: usize, [stdout, stderr]: [u64; 2]) -> Self {
        Self {
            stdout: Excerpt::new(keep, stdout),
            stderr: Excerpt::new(keep, stderr),
        }
    }

    /// The offsets at which to read on in stdout and stderr.
    pub fn ends(&self) -> [u64; 2] {
        [self.stdout.end(), self.stderr.end()]
    }

    /// Takes in bytes at their place; repeats are dropped, a jump is a gap.
    pub fn push(&mut self, stream: OutputStream, offset: u64, data: &[u8]) {
        self.stream(stream).push(offset, data);
    }

    /// Notes how much of stdout and stderr is known to have come, also of what was not pushed.
    pub fn note_came(&mut self, [stdout, stderr]: [u64; 2]) {
        self.stdout.note_came(stdout);
        self.stderr.note_came(stderr);
    }

    /// Notes that what lies before `to` and was not pushed is missing.
    pub fn skip_to(&mut self, stream: OutputStream, to: u64) {
        self.stream(stream).skip_to(to);
    }

    /// Both streams as text of at most `limit` bytes; empty where nothing was written.
    pub fn show(&self, limit: usize) -> String {
        let room = limit.saturating_sub(FRAME_BYTES);
        let wanted = [&self.stdout, &self.stderr].map(|stream| stream.show(room).text.len());
        let (stdout_room, stderr_room) = share(room, wanted[0], wanted[1]);
        let stdout = self.stdout.show(stdout_room);
        let stderr = self.stderr.show(stderr_room);
        let mut text = match (stdout.text.is_empty(), stderr.text.is_empty()) {
            (_, true) => stdout.text.clone(),
            (true, false) => format!("[stderr]\n{}", stderr.text),
            (false, false) => format!(
                "[stdout]\n{}[stderr]\n{}",
                with_line_end(&stdout.text),
                stderr.text
            ),
        };
        let notes = [
            (
                stdout.has_stale || stderr.has_stale,
                "[of lines that were written over (progress) only the last state is shown]",
            ),
            (
                stdout.lossy || stderr.lossy,
                "[the output is not all UTF-8; other bytes are shown as \u{FFFD}]",
            ),
        ];
        for (_, note) in notes.into_iter().filter(|(is_so, _)| *is_so) {
            text = with_line_end(&text) + note;
        }
        text
    }

    /// Once it has ended: says of each stream that it has fewer bytes than were to be passed over.
    pub fn ends_before(&self) -> String {
        let streams = [("stdout", &self.stdout), ("stderr", &self.stderr)];
        let short = streams.iter().filter_map(|(name, stream)| {
            let end = stream.ends_before()?;
            Some(format!("[{name} has only {end} bytes]\n"))
        });
        short.collect()
    }

    fn stream(&mut self, stream: OutputStream) -> &mut Excerpt {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }
}

/// Parts of `room` for two that want so much: half each, and what one leaves of it is the other's.
fn share(room: usize, one: usize, other: usize) -> (usize, usize) {
    let half = room / 2;
    if one <= half {
        (half, room - one)
    } else if other <= half {
        (room - other, half)
    } else {
        (half, room - half)
    }
}

fn with_line_end(text: &str) -> String {
    let mut text = text.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;

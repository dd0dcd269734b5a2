//! Calls that load a skill, with its files where it has some.

use bytes::Bytes;
use shared_sandbox::{Request, Unpack};
use shared_types::{
    Digest, DigestAlgorithm, Event,
    event::{CallOutcome, Parts},
    limits,
};

use super::{Call, Ran, done::Times};
use crate::{
    tools::{Prepared, Rendered, SkillAsk, Tool, skill_rendered},
    turn::TurnError,
};

impl Call<'_> {
    /// Loads a skill that is registered. Its other files go to the runner by an operation of the call.
    pub(super) async fn load_skill(
        &self,
        tool: &dyn Tool,
        ask: &SkillAsk,
    ) -> Result<Ran, TurnError> {
        let Some(skill) = self.site.ports.log.skill(ask.layer, &ask.name).await? else {
            let gone = format!("the skill {} is not registered any more", ask.name);
            return Ok(self.done(Rendered::failed(gone), Times::default()).into());
        };
        let loaded = |folder: Option<&str>| {
            skill_rendered(&skill.text, &ask.name, Some(&ask.arguments), folder, false)
        };
        let Some(packed) = skill.packed else {
            return Ok(self.done(loaded(None), Times::default()).into());
        };
        let digest = Digest::of(&packed).to_string();
        let folder = format!("{SYNCED_SKILLS}/{}-{}", ask.name, &digest[..12]);
        let prepared = unpacking(&folder, packed);
        let mut done = match self.operate(tool, &prepared).await? {
            Ran::Ended(done) => done,
            other => return Ok(other),
        };
        if let Event::CallEnded { outcome, parts, .. } = &mut done.event {
            let (rendered, note) = match outcome {
                CallOutcome::Completed => (loaded(Some(&folder)), String::new()),
                CallOutcome::Cancelled => return Ok(Ran::Ended(done)),
                _ => {
                    let why = parts.words();
                    let note = format!("\n[its other files are not on the runner: {}]", why.trim());
                    (loaded(None), note)
                }
            };
            *outcome = rendered.outcome;
            *parts = Parts::text(rendered.text + &note);
        }
        Ok(Ran::Ended(done))
    }
}

/// The folder, relative to the session's, with the files of skills that are registered at the server.
const SYNCED_SKILLS: &str = ".gantry/cache/skills";

/// The request that puts these packed files into a folder.
fn unpacking(folder: &str, packed: Bytes) -> Prepared {
    let unpack = Unpack {
        path: folder.to_owned(),
        bytes: packed.len() as u64,
        digest: DigestAlgorithm::Sha256.of(&packed),
    };
    Prepared {
        request: Request::Unpack(unpack),
        run_for: limits::FILE_OPERATION_WITHIN,
        wait_for: None,
        input: packed,
    }
}

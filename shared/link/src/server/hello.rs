//! A runner's description of itself, checked and bounded: it is stored and shown to people.

use proto::{OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, v1};
use shared_types::{
    Incarnation, Isolation, Mode, OperationId, RunnerId, SandboxId,
    clean::{clean_line, is_clean_line},
    is_sandbox_name,
    limits::{MAX_NAME_BYTES, MAX_PATH_BYTES},
};

use crate::wire::{Malformed, PoolFacts, mode_from_wire, number, operation_id, words};

/// Longest text that a runner may say of itself (its host's name, its version), in bytes.
const MAX_WORD_BYTES: usize = 256;

/// Most sandboxes and most features that one runner may have.
const MAX_OFFERS: usize = 64;

/// Most operations that a first message may list; the door bounds its bytes as well.
const MAX_INVENTORY: usize = 4096;

/// A runner's description of itself when it links, checked and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloFacts {
    /// The protocol version that both speak on this link.
    pub protocol_version: u32,
    /// The runner's build.
    pub software_version: String,
    /// The identity of its memory.
    pub incarnation: Incarnation,
    /// Operations that it accepted since its journal began.
    pub journal_sequence: u64,
    /// Its operating system.
    pub os: String,
    /// Its processor architecture.
    pub architecture: String,
    /// Its host's name.
    pub hostname: String,
    /// Requests beyond version 1 that it serves.
    pub features: Vec<String>,
    /// The sandboxes where operations can happen on it.
    pub sandboxes: Vec<SandboxFacts>,
    /// The facts of its pool, where it has one.
    pub pool: Option<PoolFacts>,
    /// The most freedom of an agent by the machine's own policy, where it has one.
    pub ceiling: Option<Mode>,
    /// The operations that it remembers.
    pub inventory: Vec<Remembered>,
}

/// A sandbox as its runner describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxFacts {
    /// The id; derived from the runner's id and the name.
    pub id: SandboxId,
    /// The runner's name for it.
    pub name: String,
    /// Its root on the host: for people.
    pub root: String,
    /// The isolation that is proved for it.
    pub isolation: Isolation,
    /// The reason why nothing can happen there; empty where it can.
    pub problem: String,
}

/// An operation that a runner remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// The operation.
    pub operation: OperationId,
    /// True if it has ended.
    pub ended: bool,
}

/// The state of a runner's memory as the server saw it before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMemory {
    /// Of its newest link.
    pub incarnation: Incarnation,
    /// Operations that it had accepted when that link began.
    pub journal_sequence: u64,
    /// Operations that it has accepted by its own word since, over that link.
    pub accepted_sequence: u64,
}

impl HelloFacts {
    /// True if the runner remembers less than the server has seen of the same journal. Then an
    /// older state of it was restored, and what it accepted since would be started again
    /// (docs/internals/contracts.md#a3). Operations accepted over a link count within the same boot
    /// only. A host that dies may lose the last of the journal, and what was placed before that
    /// cannot start in another boot anyway.
    pub fn went_back(&self, seen: &KnownMemory) -> bool {
        let highest = match self.incarnation.boot == seen.incarnation.boot {
            true => seen.journal_sequence.max(seen.accepted_sequence),
            false => seen.journal_sequence,
        };
        self.incarnation.journal == seen.incarnation.journal && self.journal_sequence < highest
    }
}

/// The facts in a first message from `runner`.
///
/// # Errors
/// It cannot be read, or goes beyond a bound.
pub fn facts(runner: RunnerId, hello: v1::Hello) -> Result<HelloFacts, Malformed> {
    let protocol_version = version(hello.protocol_version)?;
    let incarnation = proto::convert::incarnation(hello.incarnation)
        .ok_or_else(|| Malformed::new("the first message carries no incarnation"))?;
    bounded("the boot id", &incarnation.boot, MAX_WORD_BYTES)?;
    if !is_clean_line(&incarnation.boot) {
        return Err(Malformed::new("the boot id is no printable text"));
    }
    if incarnation.boot.is_empty() {
        return Err(Malformed::new("the first message carries no boot id"));
    }
    let capabilities = hello
        .capabilities
        .ok_or_else(|| Malformed::new("the first message carries no capabilities"))?;
    for (what, text) in [
        ("the software's version", &hello.software_version),
        ("the operating system", &capabilities.os),
        ("the architecture", &capabilities.architecture),
        ("the host's name", &capabilities.hostname),
    ]
    .into_iter()
    .chain(capabilities.features.iter().map(|text| ("a feature", text)))
    {
        bounded(what, text, MAX_WORD_BYTES)?;
    }
    if capabilities
        .sandboxes
        .len()
        .max(capabilities.features.len())
        > MAX_OFFERS
    {
        return Err(Malformed(format!(
            "the first message offers more than {MAX_OFFERS} sandboxes or features"
        )));
    }
    let sandbox = |wire| sandbox(runner, wire);
    Ok(HelloFacts {
        protocol_version,
        software_version: words(&hello.software_version),
        incarnation,
        journal_sequence: number("the journal's sequence", hello.journal_sequence)?,
        os: words(&capabilities.os),
        architecture: words(&capabilities.architecture),
        hostname: words(&capabilities.hostname),
        features: capabilities
            .features
            .iter()
            .map(|text| words(text))
            .collect(),
        sandboxes: capabilities
            .sandboxes
            .into_iter()
            .map(sandbox)
            .collect::<Result<_, _>>()?,
        pool: capabilities.pool.map(pool).transpose()?,
        ceiling: ceiling(capabilities.ceiling)?,
        inventory: inventory(&hello.inventory)?,
    })
}

/// The highest version that both ends speak.
fn version(theirs: u32) -> Result<u32, Malformed> {
    if theirs < OLDEST_PROTOCOL_VERSION {
        return Err(Malformed(format!(
            "this server speaks versions {OLDEST_PROTOCOL_VERSION} to {PROTOCOL_VERSION} of the \
             link's protocol and the runner speaks version {theirs}; upgrade gantry-runner"
        )));
    }
    Ok(theirs.min(PROTOCOL_VERSION))
}

fn sandbox(runner: RunnerId, wire: v1::Sandbox) -> Result<SandboxFacts, Malformed> {
    bounded("a sandbox's name", &wire.name, MAX_NAME_BYTES)?;
    bounded("a sandbox's root", &wire.root, MAX_PATH_BYTES)?;
    let id: SandboxId = wire
        .sandbox
        .parse()
        .map_err(|error| Malformed(format!("a sandbox's id cannot be read: {error}")))?;
    if !is_clean_line(&wire.name) {
        return Err(Malformed::new("a sandbox's name is no printable text"));
    }
    if id != SandboxId::derive(runner, &wire.name) {
        return Err(Malformed(format!(
            "sandbox {:?} has an id that does not belong to this runner",
            wire.name
        )));
    }
    Ok(SandboxFacts {
        id,
        isolation: wire
            .isolation
            .parse()
            .map_err(|error| Malformed(format!("a sandbox's isolation is unknown: {error}")))?,
        name: wire.name,
        root: clean_line(&wire.root, MAX_PATH_BYTES),
        problem: words(&wire.problem),
    })
}

fn pool(wire: v1::Pool) -> Result<PoolFacts, Malformed> {
    if !(1..=MAX_OFFERS).contains(&wire.templates.len()) {
        return Err(Malformed(format!(
            "the first message offers {} templates, where 1 to {MAX_OFFERS} are possible",
            wire.templates.len()
        )));
    }
    if !wire.templates.iter().all(|name| is_sandbox_name(name)) {
        return Err(Malformed::new(
            "the first message offers a template whose name is none",
        ));
    }
    bounded("the pool's backend", &wire.backend, MAX_WORD_BYTES)?;
    Ok(PoolFacts {
        backend: words(&wire.backend),
        // Of a template that is not offered nothing can be made.
        sudo_templates: wire
            .sudo_templates
            .into_iter()
            .filter(|name| wire.templates.contains(name))
            .take(MAX_OFFERS)
            .collect(),
        templates: wire.templates,
        isolation: wire
            .isolation
            .parse()
            .map_err(|error| Malformed(format!("a pool's isolation is unknown: {error}")))?,
        problem: words(&wire.problem),
    })
}

/// A bound that cannot be read must not count as none.
fn ceiling(wire: i32) -> Result<Option<Mode>, Malformed> {
    let mode = v1::Mode::try_from(wire).map_err(|_| {
        Malformed::new(
            "the runner's policy names a mode that is unknown here; upgrade gantry-server",
        )
    })?;
    Ok(mode_from_wire(mode))
}

fn inventory(wire: &[v1::InventoryEntry]) -> Result<Vec<Remembered>, Malformed> {
    if wire.len() > MAX_INVENTORY {
        return Err(Malformed(format!(
            "the first message lists more than {MAX_INVENTORY} operations"
        )));
    }
    let remembered = |entry: &v1::InventoryEntry| {
        Ok(Remembered {
            operation: operation_id(&entry.operation)?,
            ended: entry.ended,
        })
    };
    wire.iter().map(remembered).collect()
}

fn bounded(what: &str, text: &str, limit: usize) -> Result<(), Malformed> {
    if text.len() > limit {
        return Err(Malformed(format!("{what} is longer than {limit} bytes")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing::incarnation, wire::mode_to_wire};

    #[test]
    fn what_a_runner_says_of_itself_drives_no_terminal_and_forges_no_line() {
        let evil = "vm\n2026-01-01 ERROR forged \x1b]0;title\x07\u{202e}x".to_owned();
        let capabilities = v1::Capabilities {
            os: evil.clone(),
            architecture: evil.clone(),
            hostname: evil.clone(),
            sandboxes: Vec::new(),
            features: vec![evil.clone()],
            ..v1::Capabilities::default()
        };
        let hello = v1::Hello {
            protocol_version: PROTOCOL_VERSION,
            software_version: evil,
            incarnation: Some((&incarnation()).into()),
            capabilities: Some(capabilities),
            ..v1::Hello::default()
        };
        let said = facts(RunnerId::from_u128(1), hello).expect("facts");
        let clean = "vm⏎2026-01-01 ERROR forged \u{fffd}x";
        assert_eq!(said.features, [clean]);
        for text in [
            said.os,
            said.architecture,
            said.hostname,
            said.software_version,
        ] {
            assert_eq!(text, clean);
        }
    }

    #[test]
    fn the_ceiling_of_a_policy_is_read_and_one_that_cannot_be_is_never_none() {
        let said = |ceiling| {
            let capabilities = v1::Capabilities {
                ceiling,
                ..v1::Capabilities::default()
            };
            let hello = v1::Hello {
                protocol_version: PROTOCOL_VERSION,
                incarnation: Some((&incarnation()).into()),
                capabilities: Some(capabilities),
                ..v1::Hello::default()
            };
            facts(RunnerId::from_u128(1), hello).map(|facts| facts.ceiling)
        };
        assert_eq!(said(0), Ok(None));
        for mode in Mode::ALL {
            assert_eq!(said(mode_to_wire(mode).into()), Ok(Some(mode)));
        }
        assert!(said(99).is_err());
    }
}

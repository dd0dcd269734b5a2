//! Gives up the rights of root for those of an ordinary user, or for the few that root has in a container
//! whose commands may be root: for good.

use runner_supervisor::CommandUser;
use rustix::{
    io::Errno,
    process::{Gid, Uid},
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
        set_thread_res_gid, set_thread_res_uid,
    },
};

/// Numbers that a user or group cannot have: system calls take them for "as it is".
const NOBODY_IN_PARTICULAR: u32 = u32::MAX;

/// Becomes this user. Afterwards no capability is left, in no set, and no program brings one back.
pub(crate) fn become_user(user: CommandUser) -> Result<(), Errno> {
    let CommandUser { uid, gid } = user;
    if uid == NOBODY_IN_PARTICULAR || gid == NOBODY_IN_PARTICULAR {
        return Err(Errno::INVAL);
    }
    bound(CapabilitySet::empty())?;
    // This process has one thread.
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[gid])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

/// The capabilities of root in a container whose commands may be root: those that it takes to install
/// programs and to be another user of the container.
const OF_ROOT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// A user that no command can be. As one of a supervisor's three users it makes that supervisor differ from
/// root's commands, which could else set its limits (prlimit(2)).
const NOBODY: u32 = 65534;

/// Becomes root as commands may be it. Afterwards there are no other capabilities, and no program brings one
/// back.
pub(crate) fn become_root() -> Result<(), Errno> {
    bound(OF_ROOT)?;
    set_thread_groups(&[Gid::ROOT])?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: OF_ROOT,
            permitted: OF_ROOT,
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// Makes this process, and all that it forks, differ from root's commands, without giving up anything.
pub(crate) fn stand_apart() -> Result<(), Errno> {
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::from_raw(NOBODY))
}

/// No other capabilities than these can ever be had again.
fn bound(to: CapabilitySet) -> Result<(), Errno> {
    for capability in CapabilitySet::all().difference(to).iter() {
        match remove_capability_from_bounding_set(capability) {
            // No process can have a capability that this kernel does not know.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    clear_ambient_capability_set()?;
    set_no_new_privs(true)
}

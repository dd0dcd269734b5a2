//! Gives up the rights of root for those of an ordinary user, for good.

use runner_supervisor::User;
use rustix::{
    io::Errno,
    process::{Gid, Uid},
    thread::{
        CapabilitySet, clear_ambient_capability_set, remove_capability_from_bounding_set,
        set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
    },
};

/// Numbers that a user or group cannot have: system calls take them for "as it is".
const NOBODY_IN_PARTICULAR: u32 = u32::MAX;

/// Becomes this user. Afterwards no capability is left, in no set, and no program brings one back.
pub(crate) fn become_user(user: User) -> Result<(), Errno> {
    let User { uid, gid } = user;
    if uid == NOBODY_IN_PARTICULAR || gid == NOBODY_IN_PARTICULAR {
        return Err(Errno::INVAL);
    }
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // One that this kernel does not know nobody can have.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    clear_ambient_capability_set()?;
    set_no_new_privs(true)?;
    // This process has one thread.
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[gid])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}

//! The time before the request.

use runner_supervisor::{CommandRequest, FromSupervisor, ProcessIdentity, ToSupervisor, VERSION};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::OwnedFd,
    io::Errno,
};

use crate::{client::ControlClient, prepare::Prepared, sys};

/// The first frame on each connection.
pub(crate) fn hello(identity: &ProcessIdentity, input: u64, last_id: u64) -> FromSupervisor {
    FromSupervisor::Hello {
        version: VERSION,
        identity: identity.clone(),
        input,
        last_id,
    }
}

/// Waits for the request; `None` when there will be none, or it could not be carried out.
pub(crate) fn request(
    prepared: &Prepared,
    client: &mut ControlClient,
) -> Option<(CommandRequest, Option<OwnedFd>)> {
    loop {
        while let Some(frame) = client.next() {
            match frame.head {
                ToSupervisor::Start {
                    operation,
                    words,
                    variables,
                    terms,
                } => {
                    let parts = CommandRequest::from_parts(
                        operation,
                        words,
                        variables,
                        terms,
                        &frame.bytes,
                    );
                    match parts {
                        Ok(request) => return Some((request, client.descriptor())),
                        Err(error) => refuse(client, &error.to_string()),
                    }
                }
                ToSupervisor::Cancel => return None,
                _ => refuse(client, "nothing runs yet; send the request first"),
            }
        }
        if client.is_gone() {
            return None;
        }
        let mut wanted = PollFlags::IN;
        if client.is_behind() {
            wanted |= PollFlags::OUT;
        }
        let mut fds = [
            PollFd::new(client.socket(), wanted),
            PollFd::new(&prepared.signals, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        if sys::asked_to_end(&prepared.signals) || child_is_gone(prepared) {
            return None;
        }
        client.fill();
        client.flush();
    }
}

/// True if the child has ended before it became anything, so that it can become nothing. Other
/// processes that have ended were left by an earlier command, and are collected.
fn child_is_gone(prepared: &Prepared) -> bool {
    let child = prepared
        .child
        .as_ref()
        .and_then(|child| child.id().as_pid());
    while let Some(ended) = sys::ended_child() {
        if Some(ended) == child || sys::collect(ended).is_err() {
            return true;
        }
    }
    false
}

/// No request will come: the operation never runs, even if a later daemon finds it.
pub(crate) fn give_up(mut prepared: Prepared, mut client: ControlClient) {
    if let Some(child) = prepared.child.take() {
        child.close();
    }
    // If neither can be done, the next daemon fences it, because it has no supervisor.
    let _ = prepared
        .directory
        .fence("its supervisor gave up before anything was asked of it");
    client.say(&FromSupervisor::Fenced);
    let _ = prepared.leaf.remove();
}

fn refuse(client: &mut ControlClient, reason: &str) {
    client.say(&FromSupervisor::Refused {
        reason: reason.to_owned(),
    });
}

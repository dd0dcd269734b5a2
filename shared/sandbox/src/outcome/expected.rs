//! The outcomes that a request can have.

use crate::{Outcome, Request};

/// Tells whether an outcome is one that a certain kind of request can have.
pub type Expects = fn(&Outcome) -> bool;

/// The outcomes that an operation with this request can have, beside being refused.
pub fn expected(request: &Request) -> Expects {
    use Outcome::{
        Downloaded, Edited, Exited, Failed, Found, Globbed, Grepped, Listed, MadeDirectory, Moved,
        Packed, Read, Refused, Removed, Surveyed, Unpacked, Written,
    };
    match request {
        Request::Exec(_) => |end| matches!(end, Exited(_) | Refused(_)),
        Request::Read(_) => |end| matches!(end, Read(_) | Failed(_) | Refused(_)),
        Request::Download(_) => |end| matches!(end, Downloaded(_) | Failed(_) | Refused(_)),
        Request::Write(_) | Request::Upload(_) => {
            |end| matches!(end, Written(_) | Failed(_) | Refused(_))
        }
        Request::Edit(_) => |end| matches!(end, Edited(_) | Failed(_) | Refused(_)),
        Request::List(_) => |end| matches!(end, Listed(_) | Failed(_) | Refused(_)),
        Request::Glob(_) => |end| matches!(end, Globbed(_) | Failed(_) | Refused(_)),
        Request::Grep(_) => |end| matches!(end, Grepped(_) | Failed(_) | Refused(_)),
        Request::Stat(_) => |end| matches!(end, Found(_) | Failed(_) | Refused(_)),
        Request::MakeDirectory(_) => |end| matches!(end, MadeDirectory(_) | Failed(_) | Refused(_)),
        Request::Move(_) => |end| matches!(end, Moved(_) | Failed(_) | Refused(_)),
        Request::Remove(_) => |end| matches!(end, Removed(_) | Failed(_) | Refused(_)),
        Request::Pack(_) => |end| matches!(end, Packed(_) | Failed(_) | Refused(_)),
        Request::Unpack(_) => |end| matches!(end, Unpacked(_) | Failed(_) | Refused(_)),
        Request::Survey(_) => |end| matches!(end, Surveyed(_) | Failed(_) | Refused(_)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn every_request_can_succeed_and_no_success_is_of_no_request() {
        let requests = examples::requests();
        let succeeds = |request: &Request, outcome: &Outcome| expected(request)(outcome);
        for outcome in examples::ends() {
            let any = requests.iter().any(|request| succeeds(request, &outcome));
            assert!(any, "{outcome:?}");
        }
        for request in &requests {
            let ends = examples::ends()
                .into_iter()
                .filter(|outcome| succeeds(request, outcome));
            let success = |end: &Outcome| !matches!(end, Outcome::Failed(_) | Outcome::Refused(_));
            assert!(ends.into_iter().any(|end| success(&end)), "{request:?}");
        }
    }
}

//! The server's end: whatever a runner sends.

use std::{cell::RefCell, rc::Rc, time::Duration};

use prost::Message;
use proto::v1::{self, runner_frame};
use shared_fuzz::{Dice, fuzz, peak_of};
use shared_link::{
    server::{
        ControlAnswer, HelloFacts, InboxError, InboxSeat, Link, LinkCommand, LinkOver, LinkTimes,
        Mail, OutputInbox, Post, Reader, facts,
    },
    wire,
};
use shared_types::{
    Epoch, Generation, Owner, SessionId,
    limits::{CREDIT_WINDOW_BYTES, MAX_HELLO_BYTES},
};

use super::{
    corpus::{RUNNER, operation, operations, request},
    frames::{self, bound},
};

/// Seeds of a run without any wish.
const SEEDS: u64 = 10_000;

const TIMES: LinkTimes = LinkTimes {
    heartbeat_every: Duration::from_secs(10),
    silence: Duration::from_secs(30),
    lease: Duration::from_secs(45),
};

#[test]
fn a_server_survives_whatever_a_runner_sends() {
    fuzz(&frames::corpus("server"), SEEDS, |input, dice| {
        let ((), peak) = peak_of(|| serve(input, dice));
        assert!(peak <= bound(input), "{peak} bytes for {}", input.len());
    });
}

fn serve(input: &[u8], dice: &mut Dice) {
    let mut frames = frames::from_bytes::<v1::RunnerFrame>(input, dice);
    let Some(facts) = frames.next().and_then(introduced) else {
        return;
    };
    let mut link = Link::new(&facts, Generation(1), TIMES, Duration::ZERO);
    let readings: Vec<_> = (1..=operations())
        .map(|number| attach(&mut link, number))
        .collect();
    let mut now = Duration::ZERO;
    for frame in frames {
        now += Duration::from_millis(dice.below(2000));
        match link.frame(frame, now) {
            Ok(_) => {}
            Err(LinkOver::Goodbye(_) | LinkOver::Left(_)) => return,
            Err(LinkOver::Violation(reason)) => {
                assert!(!reason.is_empty());
                return;
            }
            Err(LinkOver::Silent) => panic!("something was heard"),
        }
        if dice.one_in(2) {
            read(&mut link, dice.pick(&readings), dice);
        }
        while link.next_frame().is_some() {}
    }
}

/// The facts of a first message that the transport lets through.
fn introduced(frame: v1::RunnerFrame) -> Option<HelloFacts> {
    let Some(runner_frame::Kind::Hello(hello)) = frame.kind else {
        return None;
    };
    if hello.encoded_len() > MAX_HELLO_BYTES {
        return None;
    }
    let read = facts(RUNNER, *hello);
    read.inspect_err(|malformed| assert!(!malformed.to_string().is_empty()))
        .ok()
}

/// A reader with its inbox.
struct Reading {
    number: u128,
    inbox: Rc<RefCell<OutputInbox>>,
}

struct Seated {
    inbox: Rc<RefCell<OutputInbox>>,
    seat: InboxSeat,
}

impl Post for Seated {
    fn put(&self, mail: Mail) -> Result<(), InboxError> {
        self.inbox.borrow_mut().put(self.seat, mail)
    }

    fn put_answer(&self, answer: ControlAnswer) -> Result<(), InboxError> {
        self.inbox.borrow_mut().put_answer(self.seat, answer)
    }
}

fn attach(link: &mut Link<Seated>, number: u128) -> Reading {
    let inbox = Rc::new(RefCell::new(OutputInbox::new()));
    let (seat, _) = inbox.borrow_mut().attach();
    let post = Seated {
        inbox: Rc::clone(&inbox),
        seat,
    };
    link.command(LinkCommand::Attach {
        id: operation(number),
        frame: Box::default(),
        reader: Reader {
            key: number as u64,
            post,
            expects: wire::expected(&request(number)),
            yields: false,
        },
    });
    Reading { number, inbox }
}

/// Takes what is there, and does one more thing that readers do.
fn read(link: &mut Link<Seated>, reading: &Reading, dice: &mut Dice) {
    let id = operation(reading.number);
    let mut taken = 0;
    loop {
        let mail = reading.inbox.borrow_mut().take();
        let (stream, up_to) = match mail {
            Some(Mail::Output {
                stream,
                offset,
                data,
            }) => {
                taken += data.len() as u64;
                (stream, offset + data.len() as u64)
            }
            Some(Mail::Gap { stream, to, .. }) => (stream, to),
            _ => break,
        };
        let credit = reading.inbox.borrow_mut().taken(stream, up_to);
        if let Some(up_to) = credit {
            link.command(LinkCommand::Grant {
                id,
                reader: reading.number as u64,
                stream,
                up_to,
            });
        }
    }
    assert!(taken <= 2 * CREDIT_WINDOW_BYTES, "{taken} bytes waited");
    match dice.below(4) {
        0 => link.command(LinkCommand::Cancel {
            id,
            owner: Owner::Session(SessionId::from_u128(3)),
            epoch: Epoch(1),
        }),
        1 => link.command(LinkCommand::Forget { id }),
        _ => {}
    }
}

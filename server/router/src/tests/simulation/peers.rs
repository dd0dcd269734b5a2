//! The calls between servers. What they carry takes its time; they are cut, and each end notices at once or later.

use async_trait::async_trait;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use proto::v1;
use server_records::LinkHolder;
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

use super::{
    machine::is_of,
    wire::{Lane, Received},
    world::World,
};
use crate::links::{LentAnswer, LinkHolders, NotLent};

/// Frames that wait at each end, each way.
const FRAMES: usize = 4;

type Lent = Result<BoxStream<'static, LentAnswer>, NotLent>;

/// A server asks another one to lend it a link.
pub(crate) struct Ask {
    link: LinkHolder,
    orders: mpsc::Receiver<Box<v1::ServerFrame>>,
    reply: oneshot::Sender<Lent>,
}

/// The way of a server to others: what it asks is taken from here.
pub(crate) struct Asks(pub(crate) mpsc::UnboundedSender<Ask>);

/// A call that carries a link which is lent.
pub(crate) struct Call {
    asker: usize,
    holder: usize,
    /// None once that end is over.
    ordered: Option<mpsc::Receiver<Box<v1::ServerFrame>>>,
    to_holder: Option<mpsc::Sender<v1::ServerFrame>>,
    answered: Option<mpsc::Receiver<LentAnswer>>,
    to_asker: mpsc::Sender<LentAnswer>,
    orders: Lane<v1::ServerFrame>,
    answers: Lane<LentAnswer>,
    serving: AbortHandle,
}

#[async_trait]
impl LinkHolders for Asks {
    async fn borrow(
        &self,
        link: &LinkHolder,
        orders: mpsc::Receiver<Box<v1::ServerFrame>>,
    ) -> Lent {
        let (reply, answer) = oneshot::channel();
        let link = link.clone();
        let asked = self.0.send(Ask {
            link,
            orders,
            reply,
        });
        let gone = || NotLent("the call is gone".to_owned());
        asked.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Call {
    /// Whether something is under way.
    fn is_busy(&self) -> bool {
        let to_holder = self.to_holder.as_ref();
        self.orders.has_something()
            || self.answers.has_something()
            || self.ordered.as_ref().is_some_and(|from| !from.is_empty())
            || self.answered.as_ref().is_some_and(|from| !from.is_empty())
            || self.to_asker.capacity() < FRAMES
            || to_holder.is_none_or(|to| to.capacity() < FRAMES)
    }

    fn order(&mut self) {
        if self.orders.has_room()
            && let Some(ordered) = &mut self.ordered
        {
            match ordered.try_recv() {
                Ok(frame) => self.orders.send(*frame),
                Err(mpsc::error::TryRecvError::Empty) => {}
                Err(mpsc::error::TryRecvError::Disconnected) => {
                    self.orders.close();
                    self.ordered = None;
                }
            }
        }
        let room = self.to_holder.as_ref().filter(|to| to.capacity() > 0);
        let is_over = match room.map(|room| (room, self.orders.receive())) {
            Some((room, Received::Frame(frame))) => room.try_send(frame).is_err(),
            Some((_, Received::End)) => true,
            Some((_, Received::Nothing)) | None => false,
        };
        if is_over {
            self.to_holder = None;
        }
    }

    /// Returns false once the asker has heard of the end.
    fn answer(&mut self) -> bool {
        if self.answers.has_room()
            && let Some(answered) = &mut self.answered
        {
            match answered.try_recv() {
                Ok(answer) => self.answers.send(answer),
                Err(mpsc::error::TryRecvError::Empty) => {}
                Err(mpsc::error::TryRecvError::Disconnected) => {
                    self.answers.close();
                    self.answered = None;
                }
            }
        }
        if self.to_asker.capacity() == 0 {
            return true;
        }
        match self.answers.receive() {
            Received::Frame(answer) => self.to_asker.try_send(answer).is_ok(),
            Received::End => false,
            Received::Nothing => true,
        }
    }
}

impl World {
    pub(super) fn has_busy_calls(&self) -> bool {
        !self.asks.is_empty() || self.calls.values().any(Call::is_busy)
    }

    /// The loans of a machine's server that are there.
    pub(super) fn loans(&self, machine: usize) -> usize {
        let calls = self.calls.values().filter(|call| call.holder == machine);
        calls.filter(|call| !call.serving.is_finished()).count()
    }

    /// Something happens between servers.
    pub(super) fn peer_step(&mut self) {
        for machine in self.running() {
            while let Some(ask) = self.server(machine).and_then(|server| server.next_ask()) {
                self.asks.push((machine, ask));
            }
        }
        if !self.asks.is_empty() && self.dice.one_in(3) {
            let at = self.dice.below(self.asks.len() as u64) as usize;
            let (machine, ask) = self.asks.swap_remove(at);
            return self.begin_call(machine, ask);
        }
        let calls: Vec<_> = self.calls.keys().copied().collect();
        if let Some(call) = self.dice.pick(&calls) {
            self.call_step(call);
        }
    }

    fn begin_call(&mut self, asker: usize, ask: Ask) {
        let holder = self.find_server(|server| is_of(&ask.link, server));
        let is_reached = !self.faults || !self.dice.one_in(8);
        let Some(holder) = holder.filter(|_| is_reached) else {
            let _ = ask
                .reply
                .send(Err(NotLent("it cannot be reached".to_owned())));
            return;
        };
        let (to_holder, mut ordered) = mpsc::channel(FRAMES);
        let (answers, answered) = mpsc::channel(FRAMES);
        let (to_asker, mut told) = mpsc::channel(FRAMES);
        let Ask {
            link,
            orders,
            reply,
        } = ask;
        let key = self.fresh();
        self.say(format!(
            "call {key}: server {asker} asks {holder} for {:?}",
            link.generation
        ));
        let Some(server) = self.server(holder) else {
            return;
        };
        let links = server.links.clone();
        let serving = server.spawn(async move {
            let lent = links.lend(link.tenant, link.runner, link.generation).await;
            let Some(lent) = lent else {
                let _ = reply.send(Err(NotLent("it does not hold it".to_owned())));
                return;
            };
            let told = stream::poll_fn(move |context| told.poll_recv(context)).boxed();
            if reply.send(Ok(told)).is_ok() {
                let ordered = stream::poll_fn(move |context| ordered.poll_recv(context));
                lent.serve(ordered, answers).await;
            }
        });
        let call = Call {
            asker,
            holder,
            ordered: Some(orders),
            to_holder: Some(to_holder),
            answered: Some(answered),
            to_asker,
            orders: Lane::new(),
            answers: Lane::new(),
            serving,
        };
        self.checks.tally.count("borrowed");
        self.calls.insert(key, call);
    }

    fn call_step(&mut self, key: u64) {
        let notices = !self.faults || self.dice.one_in(20);
        let orders = self.dice.one_in(2);
        let Some(call) = self.calls.get_mut(&key) else {
            return;
        };
        if notices {
            call.orders.notice();
            call.answers.notice();
        }
        let is_left = call.to_asker.is_closed();
        let goes_on = match orders {
            _ if is_left => false,
            true => {
                call.order();
                true
            }
            false => call.answer(),
        };
        if !goes_on {
            // A call that the asker has left is reset at the holder.
            call.serving.abort();
            self.calls.remove(&key);
            self.say(format!("call {key}: is over"));
        }
    }

    /// The newest call is cut.
    pub(super) fn cut_call(&mut self) {
        if let Some((key, call)) = self.calls.iter_mut().last() {
            call.orders.cut(&mut self.dice);
            call.answers.cut(&mut self.dice);
            let line = format!("call {key} is cut");
            self.say(line);
            self.checks.tally.count("calls cut");
        }
    }

    /// Nothing passes between servers for a while, one way or both.
    pub(super) fn stall_calls(&mut self) {
        let (orders, answers) = (self.dice.one_in(2), self.dice.one_in(2));
        self.say(format!("calls stall: orders {orders}, answers {answers}"));
        for call in self.calls.values_mut() {
            call.orders.stall(orders);
            call.answers.stall(answers);
        }
    }

    pub(super) fn unstall_calls(&mut self) {
        for call in self.calls.values_mut() {
            call.orders.stall(false);
            call.answers.stall(false);
        }
    }

    /// The server of this machine is no more.
    pub(super) fn cut_calls_of(&mut self, machine: usize) {
        self.asks.retain(|(asker, _)| *asker != machine);
        let calls = self.calls.values_mut();
        for call in calls.filter(|call| call.asker == machine || call.holder == machine) {
            call.orders.cut(&mut self.dice);
            call.answers.cut(&mut self.dice);
        }
    }

    /// Whether this server's way to the runner leads through another one.
    pub(super) fn is_borrower(&self, machine: usize) -> bool {
        self.calls.values().any(|call| call.asker == machine)
    }
}

//! The requests of a conversation to the server. Each runs beside the loop and tells its answer as a [`Reply`].

use std::{collections::HashSet, sync::Arc, time::Duration};

use shared_api::{
    Approval, CancelAccepted, Command, CommandDone, OfferedModel, Rewind, Rewound, RunCommand,
    Runner, SendMessage, Session, Task,
};
use shared_client::{Attached, Client, ClientError};
use shared_types::{
    ApprovalId, Digest, Mode, OperationId, SessionEvent, SessionId, TurnId,
    event::{Answer, Terms},
    limits::MAX_EVENTS_PAGE,
};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use super::{
    facts::{self, SessionFacts},
    files,
    outbox::{Outgoing, OutgoingKind},
};
use crate::{
    chat::recent,
    render::{Begin, ToFollow},
    usage::cost_of_turn,
    watch,
};

/// Answers that may wait for the loop.
const REPLIES: usize = 64;

/// Pieces of output of a background command that may wait.
const PIECES: usize = 16;

/// The pause before a request is sent again to a server that was not reached.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Most pages of events in which messages are looked for.
const MAX_PAGES: usize = 100;

/// Most sessions that a list offers.
const MAX_SESSIONS: u32 = 200;

/// The answer to a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// A line was taken or refused.
    Sent {
        /// The idempotency key of the line.
        client_id: String,
        /// The answer.
        done: Result<CommandDone, ClientError>,
    },
    /// A question of the agent.
    Asked {
        /// Its id.
        approval: ApprovalId,
        /// The question.
        question: Result<Approval, ClientError>,
    },
    /// The outcome of an answer to a question.
    Answered {
        /// The question.
        approval: ApprovalId,
        /// The question as it is now.
        outcome: Result<Approval, ClientError>,
    },
    /// The outcome of the wish to stop the turn.
    Stopped(Result<CancelAccepted, ClientError>),
    /// The commands of the server.
    Commands(Vec<Command>),
    /// The facts of a session.
    Facts {
        /// The session.
        session: SessionId,
        /// The facts.
        facts: Result<SessionFacts, ClientError>,
    },
    /// The tasks of a session that run or have ended.
    Tasks {
        /// The session.
        session: SessionId,
        /// The tasks.
        tasks: Vec<Task>,
    },
    /// A background command has written this.
    TaskOutput {
        /// The operation of the command.
        operation: OperationId,
        /// The text.
        text: String,
    },
    /// The cost of a turn, in words.
    Cost {
        /// The session of the turn.
        session: SessionId,
        /// The words; absent where no paid model was asked, or the server does not tell it in time.
        line: Option<String>,
    },
    /// The entries that fit what was typed behind an `@`.
    Files {
        /// The beginning that was typed.
        prefix: String,
        /// The paths, folders with a slash at their end.
        paths: Vec<String>,
    },
    /// The session went back to before a message.
    Rewound(Result<Rewound, ClientError>),
    /// Things to choose from.
    Offer(Offer),
    /// The newest events of a session that a list shows.
    Preview {
        /// The session.
        session: SessionId,
        /// Its newest events.
        events: Vec<SessionEvent>,
    },
}

/// Things to choose from, as the server lists them.
#[derive(Debug)]
pub(super) enum Offer {
    /// Sessions to go on in.
    Sessions(Result<Vec<Session>, ClientError>),
    /// Models.
    Models(Result<Vec<OfferedModel>, ClientError>),
    /// Runners.
    Runners(Result<Vec<Runner>, ClientError>),
    /// The events of a session, among them the messages to go back to.
    Messages(Result<Vec<SessionEvent>, ClientError>),
}

/// The requests that are under way. Dropping it gives them up; the server may carry them out all the same.
#[derive(Debug)]
pub(super) struct Requests {
    client: Client,
    tell: mpsc::Sender<Reply>,
    replies: mpsc::Receiver<Reply>,
    tasks: JoinSet<()>,
    /// Those that follow background commands, and the commands.
    followers: JoinSet<()>,
    followed: HashSet<OperationId>,
    /// The wish to stop a turn, until the server has answered.
    stopping: Option<AbortHandle>,
}

impl Requests {
    pub(super) fn new(client: Client) -> Self {
        let (tell, replies) = mpsc::channel(REPLIES);
        Self {
            client,
            tell,
            replies,
            tasks: JoinSet::new(),
            followers: JoinSet::new(),
            followed: HashSet::new(),
            stopping: None,
        }
    }

    /// The next answer. A caller may drop the future while it waits.
    pub(super) async fn next(&mut self) -> Reply {
        match self.replies.recv().await {
            Some(reply) => reply,
            // This end holds a sender, so the channel is never closed.
            None => std::future::pending().await,
        }
    }

    fn begin(&mut self, request: impl Future<Output = Reply> + Send + 'static) -> AbortHandle {
        while self.tasks.try_join_next().is_some() {}
        let tell = self.tell.clone();
        self.tasks.spawn(async move {
            // The loop that is gone needs no answer.
            let _ = tell.send(request.await).await;
        })
    }

    /// Sends a line, again and again until the server answers.
    pub(super) fn send(&mut self, session: SessionId, line: Outgoing, terms: Terms) {
        let client = self.client.clone();
        self.begin(async move {
            let done = loop {
                match send_once(&client, session, &line, terms.clone()).await {
                    Err(error) if error.is_passing() => sleep(AGAIN_AFTER).await,
                    done => break done,
                }
            };
            Reply::Sent {
                client_id: line.client_id,
                done,
            }
        });
    }

    /// Fetches a question, which another person may have answered by now.
    pub(super) fn question(&mut self, approval: ApprovalId) {
        let client = self.client.clone();
        self.begin(async move {
            Reply::Asked {
                approval,
                question: again(|| client.approval(approval)).await,
            }
        });
    }

    /// Sends an answer to a question.
    pub(super) fn answer(&mut self, approval: ApprovalId, digest: Digest, answer: Answer) {
        let client = self.client.clone();
        self.begin(async move {
            Reply::Answered {
                approval,
                outcome: again(|| client.answer(approval, digest, answer.clone())).await,
            }
        });
    }

    /// Asks the server to stop the turn.
    pub(super) fn stop(&mut self, session: SessionId) {
        let client = self.client.clone();
        let asking =
            self.begin(async move { Reply::Stopped(again(|| client.cancel(session)).await) });
        self.stopping = Some(asking);
    }

    /// Gives up asking: the turn has ended, and the next one must not be stopped in its place.
    pub(super) fn stop_no_more(&mut self) {
        if let Some(asking) = self.stopping.take() {
            asking.abort();
        }
    }

    pub(super) fn facts(&mut self, session: Session, mode: Option<Mode>) {
        let client = self.client.clone();
        self.begin(async move {
            Reply::Facts {
                session: session.id,
                facts: facts::ask(&client, &session, mode).await,
            }
        });
    }

    pub(super) fn tasks(&mut self, session: SessionId) {
        let client = self.client.clone();
        self.begin(async move {
            // A server of an earlier release has no tasks to tell.
            let tasks = client.tasks(session).await.unwrap_or_default();
            Reply::Tasks { session, tasks }
        });
    }

    /// Follows the output of a background command, once.
    pub(super) fn follow_task(&mut self, operation: OperationId) {
        if !self.followed.insert(operation) {
            return;
        }
        let task = ToFollow {
            operation,
            from: Begin::LastLines,
        };
        let (tell_task, mut heard) = mpsc::channel(PIECES);
        self.followers
            .spawn(watch::follow_task(self.client.clone(), task, tell_task));
        let tell = self.tell.clone();
        self.followers.spawn(async move {
            while let Some((operation, item)) = heard.recv().await {
                let Ok(Attached::Output { data, .. }) = item else {
                    continue;
                };
                let text = String::from_utf8_lossy(&data).into_owned();
                let reply = Reply::TaskOutput { operation, text };
                if tell.send(reply).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Stops following background commands: another session is shown.
    pub(super) fn follow_no_task(&mut self) {
        self.followers.abort_all();
        self.followed.clear();
    }

    pub(super) fn cost(&mut self, session: SessionId, turn: TurnId) {
        let client = self.client.clone();
        self.begin(async move {
            Reply::Cost {
                session,
                line: cost_of_turn(&client, session, turn).await,
            }
        });
    }

    pub(super) fn files(&mut self, session: Session, prefix: String) {
        let client = self.client.clone();
        self.begin(async move {
            let paths = files::beginning(&client, &session, &prefix).await;
            Reply::Files { prefix, paths }
        });
    }

    /// Goes back to before a message.
    pub(super) fn rewind(&mut self, session: SessionId, rewind: Rewind) {
        let client = self.client.clone();
        self.begin(async move { Reply::Rewound(client.rewind(session, &rewind).await) });
    }

    pub(super) fn sessions(&mut self) {
        let client = self.client.clone();
        self.begin(
            async move { Reply::Offer(Offer::Sessions(client.sessions(MAX_SESSIONS).await)) },
        );
    }

    pub(super) fn models(&mut self) {
        let client = self.client.clone();
        self.begin(async move {
            Reply::Offer(Offer::Models(
                client.models().await.map(|models| models.models),
            ))
        });
    }

    pub(super) fn runners(&mut self) {
        let client = self.client.clone();
        self.begin(async move { Reply::Offer(Offer::Runners(client.runners().await)) });
    }

    pub(super) fn preview(&mut self, session: Session) {
        let client = self.client.clone();
        self.begin(async move {
            let events = recent::newest_events(&client, &session).await;
            Reply::Preview {
                session: session.id,
                events: events.unwrap_or_default(),
            }
        });
    }

    /// Fetches the commands, and the prompts of the tool servers of this session, which are commands as well.
    pub(super) fn commands(&mut self, session: SessionId) {
        let client = self.client.clone();
        self.begin(async move {
            // A server of an earlier release has none.
            let mut commands = client.commands().await.unwrap_or_default();
            let servers = client
                .session_tool_servers(session)
                .await
                .unwrap_or_default();
            let prompts = servers.into_iter().flat_map(|server| server.prompts);
            commands.extend(prompts.map(|prompt| Command {
                name: prompt.command,
                arguments: prompt.arguments,
                summary: prompt.description,
                between_turns: false,
            }));
            Reply::Commands(commands)
        });
    }

    /// Fetches the events of a session, for the messages among them.
    pub(super) fn messages(&mut self, session: SessionId) {
        let client = self.client.clone();
        self.begin(
            async move { Reply::Offer(Offer::Messages(all_events(&client, session).await)) },
        );
    }
}

/// Sends a line once.
async fn send_once(
    client: &Client,
    session: SessionId,
    line: &Outgoing,
    terms: Terms,
) -> Result<CommandDone, ClientError> {
    match &line.kind {
        OutgoingKind::Command { .. } => {
            let command = RunCommand {
                line: line.text.trim().to_owned(),
                terms,
                client_id: Some(line.client_id.clone()),
            };
            client.run_command(session, &command, &line.client_id).await
        }
        // It goes to the runner, and not from here.
        OutgoingKind::Own => Ok(CommandDone::default()),
        OutgoingKind::Message {
            while_working,
            images,
        } => {
            let message = SendMessage {
                text: line.text.trim().to_owned(),
                images: added(client, session, images).await?,
                compacts: None,
                terms,
                while_working: *while_working,
                client_id: Some(line.client_id.clone()),
            };
            Ok(CommandDone {
                message: Some(client.send_message(session, &message).await?),
                ..CommandDone::default()
            })
        }
    }
}

/// Adds images to the session; adding one twice changes nothing.
async fn added(
    client: &Client,
    session: SessionId,
    images: &Arc<[Vec<u8>]>,
) -> Result<Vec<Digest>, ClientError> {
    let mut digests = Vec::with_capacity(images.len());
    for image in images.iter() {
        digests.push(client.add_image(session, image.clone()).await?.digest);
    }
    Ok(digests)
}

/// The events of a session, up to a bound of pages from its beginning.
async fn all_events(client: &Client, session: SessionId) -> Result<Vec<SessionEvent>, ClientError> {
    let mut events: Vec<SessionEvent> = Vec::new();
    for _ in 0..MAX_PAGES {
        let after = events.last().map_or(0, |event| event.seq);
        let page = client.events(session, after, MAX_EVENTS_PAGE).await?;
        let is_stuck = page.events.is_empty();
        events.extend(page.events);
        if !page.more || is_stuck {
            break;
        }
    }
    Ok(events)
}

/// Asks until the server answers.
async fn again<T, F: Future<Output = Result<T, ClientError>>>(
    mut ask: impl FnMut() -> F,
) -> Result<T, ClientError> {
    loop {
        match ask().await {
            Err(error) if error.is_passing() => sleep(AGAIN_AFTER).await,
            answer => return answer,
        }
    }
}

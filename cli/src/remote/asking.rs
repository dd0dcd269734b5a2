//! A wish to interrupt or stop a command, sent again until the server has it.

use std::{future::Future, pin::Pin};

use shared_api::Signal;
use shared_client::{Client, ClientError};
use shared_types::OperationId;

/// The status with which the server refuses a signal to an operation that has not begun or has
/// ended.
const CONFLICT: u16 = 409;

/// Attempts to send a wish. They last about as long as the attempts to reconnect the shown command.
const ATTEMPTS: u32 = 180;

/// A wish of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wished {
    Interrupt,
    Stop,
}

/// The outcome of the wish.
pub(super) enum Came {
    /// The first attempt did not arrive. It is sent again.
    Late,
    Answered(Result<(), ClientError>),
}

type Attempt = Pin<Box<dyn Future<Output = Result<(), ClientError>> + Send>>;

/// The wish while it is under way.
pub(super) struct Asking {
    client: Client,
    id: OperationId,
    pub(super) wished: Wished,
    attempt: Attempt,
    failures: u32,
}

impl Asking {
    pub(super) fn begin(client: &Client, id: OperationId, wished: Wished) -> Self {
        Self {
            attempt: Box::pin(send(client.clone(), id, wished)),
            client: client.clone(),
            id,
            wished,
            failures: 0,
        }
    }

    /// Waits for the next outcome. Dropping the future does not withdraw the wish.
    pub(super) async fn next(&mut self) -> Came {
        loop {
            match (&mut self.attempt).await {
                Err(error) if error.is_passing() && self.failures < ATTEMPTS => {
                    self.failures += 1;
                    self.attempt = self.again(error);
                    if self.failures == 1 {
                        return Came::Late;
                    }
                }
                answer => return Came::Answered(answer),
            }
        }
    }

    /// Another attempt, after a pause.
    fn again(&self, last: ClientError) -> Attempt {
        let (client, id, wished, failures) =
            (self.client.clone(), self.id, self.wished, self.failures);
        Box::pin(async move {
            client.wait_again(failures, last).await?;
            send(client, id, wished).await
        })
    }
}

async fn send(client: Client, id: OperationId, wished: Wished) -> Result<(), ClientError> {
    match wished {
        Wished::Stop => client.cancel_operation(id).await.map(drop),
        Wished::Interrupt => match client.signal_operation(id, Signal::Interrupt).await {
            // The command has not begun, or the signal has ended it; its end will be reported soon.
            Err(ClientError::Refused(problem)) if problem.status == CONFLICT => Ok(()),
            answer => answer,
        },
    }
}

//! Input, sizes and signals that one client passes on to an operation, in the client's order.

use std::{collections::VecDeque, future::pending, mem::take, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};
use server_app::AppError;
use shared_sandbox::{Control, Controls, Input};
use shared_types::{Refusal, limits::MAX_CONTROLS_WAITING};

use crate::rest::hand_over;

/// See the module.
pub(super) struct Hands {
    controls: Arc<dyn Controls>,
    /// The piece of input that is being handed over.
    handing_over: Option<BoxFuture<'static, Result<u64, Refusal>>>,
    /// The piece behind it.
    next: Option<Input>,
    /// The control that the process carries out now.
    doing: Option<BoxFuture<'static, Result<(), Refusal>>>,
    /// The controls after it.
    waiting: VecDeque<Control>,
}

impl Hands {
    pub(super) fn of(controls: Arc<dyn Controls>) -> Self {
        Self {
            controls,
            handing_over: None,
            next: None,
            doing: None,
            waiting: VecDeque::new(),
        }
    }

    /// True if another piece of input can be taken.
    pub(super) fn have_room(&self) -> bool {
        self.next.is_none()
    }

    /// Takes a piece of input, for which there is room.
    pub(super) fn take(&mut self, piece: Input) {
        self.next = Some(piece);
        self.hand_over_next();
    }

    /// A piece was handed over, or something was done to the process. Safe to cancel.
    ///
    /// # Errors
    /// Fails if the operation refused it.
    pub(super) async fn passed(&mut self) -> Result<(), Refusal> {
        let (handed_over, done) = (&mut self.handing_over, &mut self.doing);
        tokio::select! {
            handed_over = finished(handed_over) => {
                self.hand_over_next();
                handed_over.map(|_| ())
            }
            done = finished(done) => {
                self.start_next();
                done
            }
        }
    }

    fn hand_over_next(&mut self) {
        if self.handing_over.is_none()
            && let Some(piece) = take(&mut self.next)
        {
            let controls = self.controls.clone();
            let handing_over = async move { hand_over(&*controls, piece).await };
            self.handing_over = Some(handing_over.boxed());
        }
    }

    /// Applies a control to the process after the earlier ones. Of successive waiting sizes only the last one counts.
    pub(super) fn do_next(&mut self, control: Control) -> Result<(), AppError> {
        let full = self.waiting.len() >= MAX_CONTROLS_WAITING;
        match (self.waiting.back_mut(), control) {
            (Some(last @ Control::Resize(_)), Control::Resize(_)) => *last = control,
            _ if full => {
                return Err(AppError::Conflict(format!(
                    "{MAX_CONTROLS_WAITING} sizes and signals wait for the runner already"
                )));
            }
            _ => self.waiting.push_back(control),
        }
        self.start_next();
        Ok(())
    }

    fn start_next(&mut self) {
        if self.doing.is_none()
            && let Some(control) = self.waiting.pop_front()
        {
            let controls = self.controls.clone();
            self.doing = Some(async move { controls.control(control).await }.boxed());
        }
    }
}

/// Waits for the result, which is returned once; for ever where there is nothing to wait for.
async fn finished<T>(work: &mut Option<BoxFuture<'static, T>>) -> T {
    let Some(under_way) = work else {
        return pending().await;
    };
    let result = under_way.await;
    *work = None;
    result
}

#[cfg(test)]
mod tests;

//! The seam between the layers around a call and a vendor's wire format.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::{Answer, ModelError, ModelEvent, ModelInfo, ModelRequest};

/// A model server: makes one attempt, and knows nothing of repetition.
#[async_trait]
pub trait Vendor: Send + Sync {
    /// The name and kind of the model.
    fn info(&self) -> ModelInfo;

    /// True while it cools down after failures: an attempt would not reach it.
    fn is_left_alone(&self) -> bool {
        false
    }

    /// One attempt. Sends only [`ModelEvent::Said`] and [`ModelEvent::TakenBack`]; dropping the future cancels it.
    ///
    /// # Errors
    /// Fails if it did not lead to a whole answer.
    async fn attempt(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure>;
}

#[async_trait]
impl<V: Vendor + ?Sized> Vendor for Arc<V> {
    fn info(&self) -> ModelInfo {
        (**self).info()
    }

    fn is_left_alone(&self) -> bool {
        (**self).is_left_alone()
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        events: &mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, Failure> {
        (**self).attempt(request, events).await
    }
}

/// The reason why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error for the user, if this was the last attempt.
    pub error: ModelError,
    /// The wait that the vendor demands.
    pub retry_after: Option<Duration>,
    /// True if the vendor was not asked at all: it cools down after failures, or its runner is offline.
    pub is_unasked: bool,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            retry_after: None,
            is_unasked: false,
        }
    }
}

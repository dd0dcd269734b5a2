//! The limit: so many calls of one tenant at the same time, and the others wait their turn.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Semaphore, mpsc};

use crate::{Answer, Model, ModelError, ModelEvent, ModelInfo, ModelRequest};

/// A model that is asked by so many callers at most at the same time.
pub struct Limited<M> {
    model: M,
    places: Arc<Semaphore>,
}

impl<M> Limited<M> {
    /// Asks the model only while one of the places is free.
    pub fn new(model: M, places: Arc<Semaphore>) -> Self {
        Self { model, places }
    }
}

#[async_trait]
impl<M: Model> Model for Limited<M> {
    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    fn is_left_alone(&self) -> bool {
        self.model.is_left_alone()
    }

    async fn answer(
        &self,
        request: ModelRequest,
        events: mpsc::Sender<ModelEvent>,
    ) -> Result<Answer, ModelError> {
        let place = match self.places.try_acquire() {
            Ok(place) => Ok(place),
            Err(_) => {
                let _ = events.send(ModelEvent::Waiting).await;
                self.places.acquire().await
            }
        };
        // The places are never closed.
        let _place = place.map_err(|_| {
            ModelError::Unavailable("the server is stopping: send the message again".to_owned())
        })?;
        self.model.answer(request, events).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Practice;
    use shared_types::event::Parts;

    #[tokio::test]
    async fn a_call_waits_until_a_place_is_free() {
        let places = Arc::new(Semaphore::new(1));
        let taken = places.clone().try_acquire_owned().expect("one is free");
        let model = Limited::new(Practice, places);
        let (events, mut heard) = mpsc::channel(100);
        let request = ModelRequest {
            messages: vec![crate::Message::User {
                parts: Parts::text("hello"),
            }],
            ..ModelRequest::default()
        };
        let asking = tokio::spawn(async move { model.answer(request, events).await });
        assert_eq!(heard.recv().await, Some(ModelEvent::Waiting));
        drop(taken);
        asking.await.expect("no panic").expect("it answers");
    }
}

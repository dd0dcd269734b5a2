//! Models, and the accounts at providers that pay for them.

use reqwest::Method;
use shared_api::{AddModelAccount, AddedModelAccount, ModelProbe, Models, TestModel};
use shared_types::ModelAccountId;

use crate::{Client, ClientError};

impl Client {
    /// The models that the user may use, and the accounts that offer them.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn models(&self) -> Result<Models, ClientError> {
        self.http.get(&["models"], &[]).await
    }

    /// Adds an account, or replaces the one of its name, once its model answers.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn add_model_account(
        &self,
        account: &AddModelAccount,
    ) -> Result<AddedModelAccount, ClientError> {
        let path = ["model-accounts"];
        self.http.call(Method::POST, &path, account).await
    }

    /// Asks a model, or the first model of an account, one small thing.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn test_model(&self, name: &str) -> Result<ModelProbe, ClientError> {
        let body = TestModel {
            name: name.to_owned(),
        };
        self.http
            .call(Method::POST, &["models", "test"], &body)
            .await
    }

    /// Removes an account, with its key.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn remove_model_account(&self, id: ModelAccountId) -> Result<(), ClientError> {
        let path = ["model-accounts", &id.to_string()];
        self.http.delete(&path).await
    }
}

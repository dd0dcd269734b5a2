//! Questions of agents, answers, and rules.

use reqwest::Method;
use shared_api::{
    AddPermissionRule, AnswerApproval, Approval, Approvals, PermissionRule, PermissionRules,
    PermissionVerdict, ProposedRules, TestPermission, TrustProject, TrustedFile,
};
use shared_types::{ApprovalId, Digest, RuleId, SessionId, event::Answer};

use crate::{Client, ClientError};

impl Client {
    /// The questions to the caller, the newest first: those that wait for an answer, or all.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn approvals(&self, all: bool, at_most: usize) -> Result<Vec<Approval>, ClientError> {
        let query = [("all", all.to_string())];
        self.http
            .list::<Approvals>(&["approvals"], &query, at_most)
            .await
    }

    /// One question to the caller.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn approval(&self, id: ApprovalId) -> Result<Approval, ClientError> {
        self.http.get(&["approvals", &id.to_string()], &[]).await
    }

    /// Answers the question with this digest. The first answer counts.
    ///
    /// # Errors
    /// See [`Client::sign_in`]; a conflict if another answer came first, or the deadline has passed.
    pub async fn answer(
        &self,
        id: ApprovalId,
        digest: Digest,
        answer: Answer,
    ) -> Result<Approval, ClientError> {
        let body = AnswerApproval { digest, answer };
        let path = ["approvals", &id.to_string(), "answer"];
        self.http.call(Method::POST, &path, &body).await
    }

    /// The rules that count for the caller's agents.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn permission_rules(&self) -> Result<Vec<PermissionRule>, ClientError> {
        let rules: PermissionRules = self.http.get(&["permissions"], &[]).await?;
        Ok(rules.rules)
    }

    /// Sets a rule.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn add_permission_rule(
        &self,
        rule: &AddPermissionRule,
    ) -> Result<PermissionRule, ClientError> {
        self.http.call(Method::POST, &["permissions"], rule).await
    }

    /// Removes a rule.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn remove_permission_rule(&self, id: RuleId) -> Result<(), ClientError> {
        let path = ["permissions", &id.to_string()];
        self.http.delete(&path).await
    }

    /// The rules of the project's file that the last look of a session found.
    ///
    /// # Errors
    /// See [`Client::sign_in`]; not found if the look found none.
    pub async fn proposed_rules(&self, session: SessionId) -> Result<ProposedRules, ClientError> {
        let path = ["sessions", &session.to_string(), "permissions"];
        self.http.get(&path, &[]).await
    }

    /// Trusts the project's file that the last look of a session found, if its text has this digest.
    ///
    /// # Errors
    /// See [`Client::sign_in`]; a conflict if the look found another text.
    pub async fn trust_project(
        &self,
        session: SessionId,
        digest: Digest,
    ) -> Result<TrustedFile, ClientError> {
        let body = TrustProject { session, digest };
        let path = ["permissions", "projects"];
        self.http.call(Method::POST, &path, &body).await
    }

    /// Trusts a project's file no more.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn untrust_project(&self, id: RuleId) -> Result<(), ClientError> {
        let path = ["permissions", "projects", &id.to_string()];
        self.http.delete(&path).await
    }

    /// Asks what would be decided about something that an agent might do.
    ///
    /// # Errors
    /// See [`Client::sign_in`].
    pub async fn test_permission(
        &self,
        test: &TestPermission,
    ) -> Result<PermissionVerdict, ClientError> {
        self.http
            .call(Method::POST, &["permissions", "test"], test)
            .await
    }
}

//! A call at the gates: what they see of it, and how they let it through, change it or end it.

use shared_consent::Verdict;
use shared_sandbox::{Command, Consent, Request};
use shared_types::{
    Digest, Effect, Mode,
    event::{Answer, Place, PlannedCall},
};

use super::{
    Call, Done,
    done::{Beside, Times},
};
use crate::{
    gates::{of_answer, planned_call},
    tools::{Ask, NEVER_RAN, Rendered},
    turn::{
        agent,
        chat::ChatScene,
        show::CallPlace,
        told::{self, not_run},
    },
};

impl Call<'_> {
    /// Its request; nothing where its arguments are none.
    pub(in crate::turn) fn ask(&self) -> Option<&Ask> {
        self.plan.as_ref().ok().map(|plan| &plan.ask)
    }

    /// True if an earlier run of the turn placed it, so that it may have happened.
    pub(in crate::turn) fn was_placed(&self) -> bool {
        let has_agent = self.agent.as_ref().is_some_and(agent::Scene::has_begun);
        let has_chat = self.chat.as_ref().is_some_and(ChatScene::has_begun);
        self.placed.is_some() || self.requested.is_some() || has_agent || has_chat
    }

    pub(in crate::turn) fn place(&self) -> CallPlace {
        self.site.place
    }

    /// The digest of its request, as the runner gets it; nothing if it asks nothing of a runner.
    pub(in crate::turn) fn digest(&self) -> Option<Digest> {
        let Some(Ask::Operation(prepared)) = self.ask() else {
            return None;
        };
        let request = prepared.request.clone().of_directory(&self.site.directory);
        Some(request.digest())
    }

    /// The question to people about it.
    pub(in crate::turn) fn planned<T>(
        &self,
        place: Option<&Place>,
        verdict: &Verdict<'_, T>,
    ) -> Option<PlannedCall> {
        let plan = self.plan.as_ref().ok()?;
        let name = plan.tool.name();
        let directory = &self.site.directory;
        Some(planned_call(name, &plan.ask, directory, place, verdict))
    }

    /// True if it may run beside others: it only reads, does nothing at all, or has an agent of its own.
    pub(in crate::turn) fn only_reads(&self) -> bool {
        match &self.plan {
            Ok(plan) if matches!(plan.ask, Ask::Agent(_)) => true,
            Ok(plan) => plan.tool.effect() == Effect::Pure,
            Err(_) => true,
        }
    }

    /// The call with another command, which a person has put in its place.
    #[must_use]
    pub(in crate::turn) fn with_command(mut self, command: &str) -> Self {
        if let Ok(plan) = &mut self.plan
            && let Ask::Operation(prepared) = &mut plan.ask
            && let Request::Exec(exec) = &mut prepared.request
        {
            exec.command = Command::Shell(command.to_owned());
            self.changed = Some(command.to_owned());
        }
        self
    }

    /// The call, let through in this mode without a question.
    #[must_use]
    pub(in crate::turn) fn in_mode(mut self, mode: Mode) -> Self {
        self.site.consent = Consent::Agent(mode);
        self
    }

    /// The call as it is, let through by a person.
    #[must_use]
    pub(in crate::turn) fn approved(mut self, mode: Mode) -> Self {
        self.site.approved = true;
        self.site.consent = match self.digest() {
            Some(plan) => Consent::Approved { mode, plan },
            None => Consent::Agent(mode),
        };
        self
    }

    /// Its end where it may not run.
    pub(in crate::turn) fn refused(&self, why: &str) -> Done {
        self.done(not_run(why), Times::default())
    }

    /// Its end where the turn is stopped before it runs.
    pub(in crate::turn) fn stopped(&self) -> Done {
        self.done(told::cancelled(NEVER_RAN.to_owned()), Times::default())
    }

    /// The end of a question of the model's own.
    pub(in crate::turn) fn answered(&self, answer: &Answer, mode: Mode) -> Done {
        let rendered = match answer {
            Answer::Said { text } => Rendered::completed(format!("the user says: {text}")),
            Answer::Allowed { .. } if mode == Mode::Plan => Rendered::completed(
                "the user accepts the plan, and it cannot be carried out here, where agents only read: say so, and end"
                    .to_owned(),
            ),
            Answer::Allowed { .. } => {
                Rendered::completed("the user accepts the plan: carry it out now".to_owned())
            }
            other => not_run(of_answer(other).unwrap_or_default()),
        };
        self.done(rendered, Times::default())
    }

    /// The end of a call that needs a runner, where one before it found none for this reason; nothing
    /// where an earlier run of the turn placed it, so that it may have happened.
    pub(in crate::turn) fn unplaced(&self, reason: &str) -> Option<Done> {
        let needs_runner = match &self.plan {
            Ok(plan) => matches!(plan.ask, Ask::Operation(_)),
            Err(_) => false,
        };
        let beside = Beside {
            unplaced: true,
            ..Beside::default()
        };
        (needs_runner && self.placed.is_none())
            .then(|| self.done_with(not_run(reason), Times::default(), beside))
    }
}

//! The tools that ask the user: a question, and consent to a plan.

use std::sync::Arc;

use shared_types::{Effect, Mode, event::TurnSettings};

use super::{Arguments, Ask, BadArguments, Kind, Parameter, Tool, ToolSource};

/// Longest question, in bytes.
const MAX_QUESTION_BYTES: usize = 4 * 1024;

/// Longest plan, in bytes.
const MAX_PLAN_BYTES: usize = 32 * 1024;

/// Most answers to choose from, and the longest, in bytes.
const MAX_CHOICES: usize = 9;
const MAX_CHOICE_BYTES: usize = 200;

/// The requests to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonAsk {
    /// A question.
    Question {
        /// The question.
        text: String,
        /// Answers to choose from.
        choices: Vec<String>,
    },
    /// Consent to a plan.
    Plan {
        /// The plan.
        text: String,
    },
}

/// Asks the user a question.
#[derive(Debug, Clone, Copy)]
pub struct AskUserTool;

impl Tool for AskUserTool {
    fn name(&self) -> &str {
        "ask_user"
    }

    fn aliases(&self) -> &[&str] {
        &["AskUser", "AskUserQuestion"]
    }

    fn description(&self) -> &str {
        "Asks the user what only the user can decide, and returns the answer. The work stops until it comes."
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[
            Parameter::required(
                "question",
                Kind::Text {
                    empty: false,
                    at_most: MAX_QUESTION_BYTES,
                    instead: "ask one short question",
                },
                "The question.",
            ),
            Parameter::optional(
                "choices",
                Kind::Text {
                    empty: true,
                    at_most: MAX_CHOICES * (MAX_CHOICE_BYTES + 1),
                    instead: "offer fewer and shorter choices",
                },
                "Answers to choose from, one a line.",
            ),
        ];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        let lines = arguments.text("choices").lines();
        let choices: Vec<_> = lines
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect();
        let is_long = |choice: &String| choice.len() > MAX_CHOICE_BYTES;
        if choices.len() > MAX_CHOICES || choices.iter().any(is_long) {
            return Err(BadArguments::new(format!(
                "offer at most {MAX_CHOICES} choices of at most {MAX_CHOICE_BYTES} bytes each"
            )));
        }
        Ok(Ask::Person(PersonAsk::Question {
            text: arguments.text("question").to_owned(),
            choices,
        }))
    }
}

/// Proposes a plan, at the end of work that only reads.
#[derive(Debug, Clone, Copy)]
pub struct PresentPlanTool;

impl Tool for PresentPlanTool {
    fn name(&self) -> &str {
        "present_plan"
    }

    fn aliases(&self) -> &[&str] {
        &["ExitPlanMode"]
    }

    fn description(&self) -> &str {
        "Proposes a plan to the user. Once the user accepts it you may carry it out. Say which files you would \
         change, which commands you would run, and in which order."
    }

    fn parameters(&self) -> &[Parameter] {
        const PARAMETERS: &[Parameter] = &[Parameter::required(
            "plan",
            Kind::Text {
                empty: false,
                at_most: MAX_PLAN_BYTES,
                instead: "write a shorter plan",
            },
            "The plan, as Markdown.",
        )];
        PARAMETERS
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Ask, BadArguments> {
        Ok(Ask::Person(PersonAsk::Plan {
            text: arguments.text("plan").to_owned(),
        }))
    }
}

/// The source of the tools that ask the user. Plans are proposed where only reading is allowed.
#[derive(Debug, Clone, Copy)]
pub struct PersonTools;

impl ToolSource for PersonTools {
    fn tools(&self, settings: Option<&TurnSettings>) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(AskUserTool)];
        let only_reads = |settings: &TurnSettings| {
            let modes = [settings.mode, settings.ceiling, settings.machine_ceiling];
            modes.contains(&Some(Mode::Plan))
        };
        if settings.is_some_and(only_reads) {
            tools.push(Arc::new(PresentPlanTool));
        }
        tools
    }
}

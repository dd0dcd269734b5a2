//! Commands about sessions: beginning, finding, leaving and deleting them.

use server_store::{Page, SessionFilter};
use shared_types::human::ago;

use super::{Asked, CommandDone, Commands, Shown};
use crate::{AppError, Session, SessionTerms, SettingLayer, SettingName, settings::SetBy};

/// The sessions that are listed.
const LISTED: u32 = 10;

/// The beginning of every id of a session.
const ID: &str = "ses_";

impl Commands {
    pub(super) async fn new_session(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let session = self.in_the_same_place(asked).await?;
        Ok(CommandDone {
            session: Some(session),
            ..CommandDone::text("a new session begins")
        })
    }

    pub(super) async fn list_sessions(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let (found, more) = self.titled(asked, asked.words).await?;
        if found.is_empty() {
            return Ok(CommandDone::text("no session has that in its title"));
        }
        let mut shown = vec![self.table(asked, &found)];
        if more {
            shown.push(Shown::Text(format!(
                "these are the {LISTED} that were used last; /sessions WORDS finds others"
            )));
        }
        shown.push(Shown::Text(
            "/resume SESSION goes on in one of them".to_owned(),
        ));
        Ok(CommandDone::shown(shown))
    }

    pub(super) async fn resume(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        // The agents of this session are called by their names.
        let agents = self.sessions.agents(asked.ctx, asked.id()).await?;
        let named = agents
            .into_iter()
            .find(|(agent, _)| agent.name == asked.words);
        if let Some((_, Some(session))) = named {
            return Ok(self.going_on(session));
        }
        let (found, _) = match asked.words.starts_with(ID) {
            true => {
                let page = Page {
                    after: None,
                    limit: LISTED,
                };
                let beginning = self.sessions.beginning(asked.ctx, asked.words, page);
                beginning.await?
            }
            false => self.titled(asked, asked.words).await?,
        };
        match found.as_slice() {
            [] => Ok(CommandDone::text(
                "you have no such session; /sessions lists them",
            )),
            [session] => Ok(self.going_on(session.clone())),
            several => Ok(CommandDone::shown([
                self.table(asked, several),
                Shown::Text("several sessions are called so; name one by its id".to_owned()),
            ])),
        }
    }

    pub(super) async fn back(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        match self.used_before(asked).await? {
            Some(session) => Ok(self.going_on(session)),
            None => Ok(CommandDone::text("you have no other session")),
        }
    }

    pub(super) async fn delete(&self, asked: &Asked<'_>) -> Result<CommandDone, AppError> {
        let title = title(&asked.session);
        match asked.words {
            "yes" => {}
            "" => {
                return Ok(CommandDone::text(format!(
                    "this deletes {title} with all output of its commands, for good; to do it: /delete yes"
                )));
            }
            _ => return Err(AppError::Invalid("write /delete yes".to_owned())),
        }
        asked.by_a_person("delete a session with: gantry sessions delete SESSION")?;
        // The conversation needs a session to go on in, also where no further one can be made.
        let next = match self.used_before(asked).await? {
            Some(session) => session,
            None => self.in_the_same_place(asked).await?,
        };
        self.sessions.delete(asked.ctx, asked.id()).await?;
        let mut done = self.going_on(next);
        let gone = Shown::Text(format!("deleted {title}"));
        done.shown.insert(0, gone);
        Ok(done)
    }

    /// A session with the runner, the directory and the model of this one.
    async fn in_the_same_place(&self, asked: &Asked<'_>) -> Result<Session, AppError> {
        let settings = self.settings.list(asked.ctx, Some(asked.id())).await?;
        let model = settings.settings.into_iter().find(|one| {
            one.name == SettingName::Model && one.set_by == SetBy::Layer(SettingLayer::Session)
        });
        let runner = asked.session.pin.as_ref().map(|pin| match &pin.workspace {
            Some(workspace) => format!("{}/{workspace}", pin.runner),
            None => pin.runner.to_string(),
        });
        let terms = SessionTerms {
            title: "",
            runner: runner.as_deref(),
            model: model.as_ref().and_then(|model| model.value.as_deref()),
            directory: &asked.session.directory,
        };
        self.sessions.create(asked.ctx, &terms).await
    }

    async fn titled(
        &self,
        asked: &Asked<'_>,
        words: &str,
    ) -> Result<(Vec<Session>, bool), AppError> {
        let filter = SessionFilter {
            archived: false,
            title: words,
            agents_of: None,
        };
        let page = Page {
            after: None,
            limit: LISTED,
        };
        self.sessions.list(asked.ctx, filter, page).await
    }

    /// The session that the user used last, beside this one.
    async fn used_before(&self, asked: &Asked<'_>) -> Result<Option<Session>, AppError> {
        let (found, _) = self.titled(asked, "").await?;
        Ok(found.into_iter().find(|one| one.id != asked.id()))
    }

    fn going_on(&self, session: Session) -> CommandDone {
        let used = ago(self.clock.now().since(session.updated_at));
        let text = format!("going on in {}, used {used}", title(&session));
        CommandDone {
            session: Some(session),
            ..CommandDone::text(text)
        }
    }

    fn table(&self, asked: &Asked<'_>, sessions: &[Session]) -> Shown {
        let now = self.clock.now();
        let row = |session: &Session| {
            let state = match session.running_turn {
                _ if session.id == asked.id() => "this one",
                Some(_) => "working",
                None => "",
            };
            vec![
                session.id.to_string(),
                ago(now.since(session.updated_at)),
                state.to_owned(),
                session.title.clone(),
            ]
        };
        Shown::Table {
            columns: vec!["SESSION", "LAST USED", "", "TITLE"],
            rows: sessions.iter().map(row).collect(),
        }
    }
}

/// A session for people: its title, else its id.
pub(super) fn title(session: &Session) -> String {
    match session.title.as_str() {
        "" => session.id.to_string(),
        title => format!("“{title}”"),
    }
}

//! The requests to a tool server.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use shared_types::clean::{clean_line, peer_words};
use tokio::{
    pin, select,
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::{
    Content, Era, McpError, Person, Pipe, Prompt, Remote, Resource, Tools,
    bounds::{
        CALL_AT_MOST, MAX_PAGES, MAX_QUESTIONS, MAX_ROUNDS, MAX_TOKEN_BYTES, MAX_TOOLS,
        PAGE_WITHIN, PROBE_WITHIN, START_AT_MOST,
    },
    elicit::{self, Asked as AskedPerson},
    era::{
        self, HEADER_MISMATCH, LEGACY, MODERN, UNSUPPORTED_VERSION, WANTS_ADDRESS, legacy_version,
    },
    headers::{self, ParamHeader},
    http::{Asked, HttpLink},
    message::{self, RpcError},
    pipe::PipeLink,
};

/// The way to a server.
pub enum Way {
    /// Over the standard input and output of a program that runs already.
    Pipe(Pipe),
    /// Over HTTP.
    Http(Remote),
}

/// The choices about a connection.
pub struct Options {
    /// The era of the server, where it is known; else the server is asked.
    pub era: Option<Era>,
    /// The people who answer the server's questions.
    pub person: Arc<dyn Person>,
    /// The time in which the server has to be ready; at most [`START_AT_MOST`].
    pub start_within: Duration,
}

/// A connection with a tool server. Dropping it ends what waits; a program is left to its owner.
pub struct Client {
    link: Link,
    era: Era,
    person: Arc<AskedPerson>,
    next: AtomicU64,
    changed: Arc<AtomicBool>,
    capabilities: Mutex<Value>,
    server: String,
    /// The arguments that are repeated in headers, of each tool; absent until the tools are listed.
    headers: Mutex<Option<HashMap<String, Vec<ParamHeader>>>>,
    /// Listens to what a server of the earlier era says outside its answers.
    listening: Mutex<Option<JoinHandle<()>>>,
}

/// The answer to the question for a server's era.
enum Discovered {
    /// A server of the modern era, with its name.
    Modern(String),
    /// A server of the earlier era, with which the handshake was made; with its name.
    Legacy(String),
    /// A server of the earlier era that waits for the handshake.
    Earlier,
}

enum Link {
    Pipe(PipeLink),
    Http(Arc<HttpLink>),
}

impl Client {
    /// Connects, and learns of the server's era and abilities.
    ///
    /// # Errors
    /// The server does not answer in time as a tool server would.
    pub async fn connect(way: Way, options: Options) -> Result<Self, McpError> {
        let within = options.start_within.min(START_AT_MOST);
        let connecting = Self::connecting(way, options);
        match timeout(within, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(McpError::TimedOut(within)),
        }
    }

    async fn connecting(way: Way, options: Options) -> Result<Self, McpError> {
        let changed = Arc::new(AtomicBool::new(false));
        let Options { era, person, .. } = options;
        let person = Arc::new(AskedPerson::new(person));
        let asked: Arc<dyn Person> = Arc::clone(&person) as _;
        let link = match way {
            Way::Pipe(pipe) => Link::Pipe(PipeLink::open(pipe, asked, Arc::clone(&changed))),
            Way::Http(remote) => {
                let link = HttpLink::open(remote, asked, Arc::clone(&changed));
                Link::Http(Arc::new(link))
            }
        };
        let mut client = Self {
            link,
            era: Era::Legacy,
            person,
            next: AtomicU64::new(1),
            changed,
            capabilities: Mutex::default(),
            server: String::new(),
            headers: Mutex::default(),
            listening: Mutex::default(),
        };
        let modern = match era {
            Some(Era::Legacy) => None,
            Some(Era::Modern) => Some(client.discover(true).await?),
            None => client.probed().await?,
        };
        match modern {
            Some(Discovered::Modern(server)) => {
                client.era = Era::Modern;
                client.server = server;
                if let Link::Pipe(link) = &client.link {
                    link.take_no_requests();
                }
            }
            Some(Discovered::Legacy(server)) => client.server = server,
            None | Some(Discovered::Earlier) => client.server = client.initialize().await?,
        }
        Ok(client)
    }

    /// Asks a server for its era. One that gives no answer may still be starting, and its era is open: it is asked in
    /// the way of the earlier era too, and the first answer counts.
    async fn probed(&self) -> Result<Option<Discovered>, McpError> {
        let discovering = self.discover(false);
        pin!(discovering);
        if let Ok(discovered) = timeout(PROBE_WITHIN, &mut discovering).await {
            return Ok(Some(discovered?));
        }
        let initializing = self.initialize();
        pin!(initializing);
        select! {
            biased;
            discovered = &mut discovering => match discovered? {
                Discovered::Earlier => Ok(Some(Discovered::Legacy(initializing.await?))),
                other => Ok(Some(other)),
            },
            server = &mut initializing => match server {
                Ok(server) => Ok(Some(Discovered::Legacy(server))),
                // A server of the modern era refuses the handshake, and answers the first question.
                Err(McpError::Refused { .. } | McpError::Version(_)) => Ok(Some(discovering.await?)),
                Err(error) => Err(error),
            },
        }
    }

    /// Asks a server of the modern era for its abilities.
    async fn discover(&self, is_known: bool) -> Result<Discovered, McpError> {
        for retried in [false, true] {
            let asking = self.exchange_in(Era::Modern, "server/discover", Map::new(), &[]);
            match asking.await {
                Ok(Ok(result)) => {
                    let versions = result["supportedVersions"].as_array();
                    let speaks = |version: &str| {
                        versions
                            .is_some_and(|versions| versions.iter().any(|known| known == version))
                    };
                    if !speaks(MODERN) && speaks(LEGACY) {
                        return Ok(Discovered::Earlier);
                    }
                    *self.capabilities() = result["capabilities"].clone();
                    let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
                    return Ok(Discovered::Modern(name(info)));
                }
                Ok(Err(error)) if error.code == UNSUPPORTED_VERSION => {
                    let supported = error.data["supported"].as_array();
                    let supported: Vec<_> = supported
                        .into_iter()
                        .flatten()
                        .filter_map(Value::as_str)
                        .collect();
                    match () {
                        () if supported.contains(&MODERN) && !retried => {}
                        () if supported
                            .iter()
                            .any(|known| legacy_version(known).is_some()) =>
                        {
                            return Ok(Discovered::Earlier);
                        }
                        () => return Err(McpError::Version(peer_words(&supported.join(", ")))),
                    }
                }
                Ok(Err(error)) if is_known || era::is_modern_error(error.code) => {
                    return Err(error.into());
                }
                Ok(Err(_)) => return Ok(Discovered::Earlier),
                // An address without a server of this era refuses such a request by its status.
                Err(McpError::Status(400..500) | McpError::Form(_)) if !is_known => {
                    return Ok(Discovered::Earlier);
                }
                Err(error) => return Err(error),
            }
        }
        Err(McpError::Version(
            "it refused the version that it supports".to_owned(),
        ))
    }

    /// The handshake of the earlier era; returns the server's name.
    async fn initialize(&self) -> Result<String, McpError> {
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": era::capabilities(self.person.is_there()),
            "clientInfo": era::client_info(),
        });
        let Value::Object(params) = params else {
            return Err(McpError::Form(String::new()));
        };
        let asking = self.exchange_in(Era::Legacy, "initialize", params, &[]);
        let result = asking.await??;
        let version = result["protocolVersion"].as_str().unwrap_or_default();
        let version =
            legacy_version(version).ok_or_else(|| McpError::Version(peer_words(version)))?;
        *self.capabilities() = result["capabilities"].clone();
        let initialized = message::notification("notifications/initialized", &Value::Null);
        match &self.link {
            Link::Pipe(link) => link.notify(&initialized).await?,
            Link::Http(link) => {
                link.speak(version);
                link.notify(Era::Legacy, &initialized).await?;
                let link = Arc::clone(link);
                self.listen(tokio::spawn(async move { link.listen().await }));
            }
        }
        Ok(name(&result["serverInfo"]))
    }

    fn listen(&self, task: JoinHandle<()>) {
        let before = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(task);
        if let Some(before) = before {
            before.abort();
        }
    }

    /// The era of the server.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The server's own name and version, on one line; may be empty.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// True if the server has said, since this was asked last, that its tools are others now.
    pub fn has_changed(&self) -> bool {
        self.changed.swap(false, Ordering::Relaxed)
    }

    /// The reason why the connection is over, if it is.
    pub fn ended(&self) -> Option<McpError> {
        match &self.link {
            Link::Pipe(link) => link.ended(),
            Link::Http(_) => None,
        }
    }

    /// Ends the session with a server of the web. A program is left to its owner.
    pub async fn close(&self) {
        if let Link::Http(link) = &self.link {
            link.close().await;
        }
    }

    /// The tools.
    ///
    /// # Errors
    /// The server does not list them.
    pub async fn tools(&self) -> Result<Tools, McpError> {
        let mut tools = Tools::default();
        for written in self.list("tools", "tools/list").await? {
            match tools.tools.len() < MAX_TOOLS {
                true => tools.add(&written),
                false => {
                    tools.refused.push(format!(
                        "it has more than {MAX_TOOLS} tools; the others are left out"
                    ));
                    break;
                }
            }
        }
        let headers = tools.tools.iter();
        let headers = headers.map(|tool| (tool.name.clone(), tool.headers.clone()));
        *self.headers() = Some(headers.collect());
        Ok(tools)
    }

    /// The result of a call of a tool, by the server's name of it.
    ///
    /// # Errors
    /// There is none; [`McpError::is_in_doubt`] tells if the call may have had its effect.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        within: Duration,
    ) -> Result<Content, McpError> {
        let is_http = matches!(self.link, Link::Http(_));
        if is_http && self.era == Era::Modern && self.headers().is_none() {
            self.tools().await?;
        }
        let mut params = Map::new();
        params.insert("name".to_owned(), tool.into());
        params.insert("arguments".to_owned(), arguments.clone().into());
        let asked = self.ask("tools/call", params.clone(), within).await;
        let result = match asked {
            // The tool's headers are others by now. The server has done nothing.
            Err(McpError::Refused {
                code: HEADER_MISMATCH,
                ..
            }) => {
                self.tools().await?;
                self.ask("tools/call", params, within).await?
            }
            asked => asked?,
        };
        Ok(Content::of_call(&result))
    }

    /// True if the server says that it has resources.
    pub fn has_resources(&self) -> bool {
        self.capabilities().get("resources").is_some()
    }

    /// The resources that the server lists.
    ///
    /// # Errors
    /// The server does not list them.
    pub async fn resources(&self) -> Result<Vec<Resource>, McpError> {
        let listed = self.list("resources", "resources/list").await?;
        Ok(listed.iter().filter_map(Resource::read).collect())
    }

    /// The content of a resource.
    ///
    /// # Errors
    /// There is none.
    pub async fn read(&self, uri: &str, within: Duration) -> Result<Content, McpError> {
        let mut params = Map::new();
        params.insert("uri".to_owned(), uri.into());
        let result = self.ask("resources/read", params, within).await?;
        Ok(Content::of_resource(&result))
    }

    /// The prompts that the server lists.
    ///
    /// # Errors
    /// The server does not list them.
    pub async fn prompts(&self) -> Result<Vec<Prompt>, McpError> {
        let listed = self.list("prompts", "prompts/list").await?;
        Ok(listed.iter().filter_map(Prompt::read).collect())
    }

    /// The text of a prompt with these values.
    ///
    /// # Errors
    /// There is none.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        within: Duration,
    ) -> Result<Content, McpError> {
        let mut params = Map::new();
        params.insert("name".to_owned(), name.into());
        params.insert("arguments".to_owned(), arguments.clone().into());
        let result = self.ask("prompts/get", params, within).await?;
        Ok(Content::of_prompt(&result))
    }

    /// All pages of a list. A server without the ability has nothing to list.
    async fn list(&self, ability: &str, method: &str) -> Result<Vec<Value>, McpError> {
        if self.capabilities().get(ability).is_none() {
            return Ok(Vec::new());
        }
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let mut params = Map::new();
            if let Some(cursor) = cursor.take() {
                params.insert("cursor".to_owned(), cursor.into());
            }
            let mut result = self.once(method, params, PAGE_WITHIN).await??;
            let Value::Array(page) = result[ability].take() else {
                return Err(McpError::Form(format!("its list of {ability} is none")));
            };
            items.extend(
                page.into_iter()
                    .take(MAX_TOOLS + 1 - items.len().min(MAX_TOOLS)),
            );
            match result["nextCursor"].as_str() {
                Some(next) if next.len() <= MAX_TOKEN_BYTES && items.len() <= MAX_TOOLS => {
                    cursor = Some(next.to_owned());
                }
                _ => return Ok(items),
            }
        }
        Ok(items)
    }

    /// The result of a request for which the server may want input first.
    async fn ask(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        within: Duration,
    ) -> Result<Value, McpError> {
        let within = within.min(CALL_AT_MOST);
        for _ in 0..=MAX_ROUNDS {
            let result = match self.once(method, params.clone(), within).await? {
                Err(error) if error.code == WANTS_ADDRESS && self.opened(&error.data).await? => {
                    continue;
                }
                result => result?,
            };
            match result.get("resultType").and_then(Value::as_str) {
                None | Some("complete") => return Ok(result),
                Some("input_required") if self.era == Era::Modern => {}
                Some(_) => {
                    return Err(McpError::Form(
                        "its result is of a kind that is not known".to_owned(),
                    ));
                }
            }
            params.remove("inputResponses");
            params.remove("requestState");
            if let Some(requests) = result["inputRequests"].as_object() {
                params.insert("inputResponses".to_owned(), self.inputs(requests).await?);
            }
            if let Some(state) = result["requestState"].as_str() {
                if state.len() > MAX_TOKEN_BYTES {
                    return Err(McpError::Form("its state is too long".to_owned()));
                }
                params.insert("requestState".to_owned(), state.into());
            }
        }
        Err(McpError::Rounds(MAX_ROUNDS))
    }

    /// Has a person open the addresses that a server wants to have opened before it does what it is asked; returns false
    /// where the person does not.
    async fn opened(&self, data: &Value) -> Result<bool, McpError> {
        let wanted = data["elicitations"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        if wanted.is_empty() || wanted.len() > MAX_QUESTIONS || !self.person.is_there() {
            return Ok(false);
        }
        for params in wanted {
            if elicit::answer(&*self.person, params).await["action"] != "accept" {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn inputs(&self, requests: &Map<String, Value>) -> Result<Value, McpError> {
        if requests.len() > MAX_QUESTIONS {
            return Err(McpError::Form(
                "it asks for too much input at once".to_owned(),
            ));
        }
        let mut responses = Map::new();
        for (key, request) in requests {
            let answer = match request["method"].as_str() {
                Some("elicitation/create") if self.person.is_there() => {
                    elicit::answer(&*self.person, &request["params"]).await
                }
                _ => {
                    return Err(McpError::Form(
                        "it asks for input that this client does not give".to_owned(),
                    ));
                }
            };
            responses.insert(key.clone(), answer);
        }
        Ok(responses.into())
    }

    /// The answer to one request. A request whose session the server has forgotten had no effect: it is sent again in a
    /// new session. The time does not run while a person has a question of the server.
    async fn once(
        &self,
        method: &str,
        params: Map<String, Value>,
        within: Duration,
    ) -> Result<Result<Value, RpcError>, McpError> {
        let asking = async {
            let headers = self.headers_of(method, &params);
            let asked = self.exchange(method, params.clone(), &headers).await;
            let is_forgotten = match (&asked, &self.link) {
                (Err(McpError::Status(404)), Link::Http(link)) => link.has_session(),
                _ => false,
            };
            match (&self.link, is_forgotten) {
                (Link::Http(link), true) => {
                    link.forget();
                    self.initialize().await?;
                    self.exchange(method, params, &headers).await
                }
                _ => asked,
            }
        };
        select! {
            answered = asking => answered,
            () = over(within, self.person.open()) => Err(McpError::TimedOut(within)),
        }
    }

    fn headers_of(&self, method: &str, params: &Map<String, Value>) -> Vec<(String, String)> {
        let tool = params
            .get("name")
            .and_then(Value::as_str)
            .filter(|_| method == "tools/call");
        let arguments = params.get("arguments").and_then(Value::as_object);
        let known = self.headers();
        let of_tool = known
            .as_ref()
            .zip(tool)
            .and_then(|(known, tool)| known.get(tool));
        of_tool
            .zip(arguments)
            .map_or_else(Vec::new, |(of_tool, arguments)| {
                headers::of_call(of_tool, arguments)
            })
    }

    async fn exchange(
        &self,
        method: &str,
        params: Map<String, Value>,
        headers: &[(String, String)],
    ) -> Result<Result<Value, RpcError>, McpError> {
        self.exchange_in(self.era, method, params, headers).await
    }

    async fn exchange_in(
        &self,
        era: Era,
        method: &str,
        params: Map<String, Value>,
        headers: &[(String, String)],
    ) -> Result<Result<Value, RpcError>, McpError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let params = era::params(era, self.person.is_there(), params);
        match &self.link {
            Link::Pipe(link) => {
                link.exchange(id, &message::request(id, method, &params))
                    .await
            }
            Link::Http(link) => {
                let asked = Asked {
                    era,
                    id,
                    method,
                    params: &params,
                    headers,
                };
                let answered = link.exchange(&asked).await?;
                match &answered.outcome {
                    // A session that is not known may be refused with words.
                    Err(_) if answered.status == 404 && link.has_session() => {
                        Err(McpError::Status(404))
                    }
                    _ => Ok(answered.outcome),
                }
            }
        }
    }

    fn capabilities(&self) -> std::sync::MutexGuard<'_, Value> {
        self.capabilities
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn headers(&self) -> std::sync::MutexGuard<'_, Option<HashMap<String, Vec<ParamHeader>>>> {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let task = self
            .listening
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task {
            task.abort();
        }
    }
}

/// Returns after so much time in which no question was open.
async fn over(within: Duration, mut open: watch::Receiver<usize>) {
    let mut left = within;
    loop {
        let began = Instant::now();
        select! {
            () = sleep(left) => return,
            Ok(_) = open.wait_for(|open| *open > 0) => left = left.saturating_sub(began.elapsed()),
        }
        // Its sender lives as long as the connection.
        let _ = open.wait_for(|open| *open == 0).await;
    }
}

fn name(info: &Value) -> String {
    let word = |name: &str| info[name].as_str().unwrap_or_default();
    clean_line(format!("{} {}", word("name"), word("version")).trim(), 200)
}

#[cfg(test)]
mod tests;

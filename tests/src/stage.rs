//! A stage for scripts that drive a browser: a server behind a proxy, runners and a scripted model.
//!
//! A script of Node's does what a person does in the web console. What a page cannot do it asks for: it prints one
//! wish a line as JSON, and reads one answer a line. Its words of failure go to standard error.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
    sync::Notify,
};

use crate::{
    gantry::{Gantry, Runner, Setup, binary, eventually},
    model_server::{ModelServer, Reply, Said, Step},
    proxy::Proxy,
};

/// What a script plays on.
pub struct Stage {
    model: ModelServer,
    gantry: Gantry,
    network: Proxy,
    runners: HashMap<String, Runner>,
    release: Arc<Notify>,
}

impl Stage {
    /// A server whose agents ask before they do something. It reaches the scripted model under this name, and has no
    /// runner.
    pub async fn with_model(name: &str) -> Self {
        let model = ModelServer::start().await;
        model.lists(&[name]);
        let gantry = Gantry::with(Setup {
            model: Some(model.base_url()),
            variables: [("GANTRY_MODE", "ask"), ("GANTRY_MODEL", name)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..Setup::default()
        })
        .await;
        Self {
            network: Proxy::before(gantry.url()).await,
            model,
            gantry,
            runners: HashMap::new(),
            release: Arc::default(),
        }
    }

    /// Plays a script to its end, with these variables in its environment. Gives what it said.
    ///
    /// # Panics
    /// With what the script said, if it fails.
    pub async fn play(mut self, script: &Path, variables: &[(&str, PathBuf)]) -> String {
        let mut node = Command::new("node")
            .arg(script)
            .env("SERVER", self.network.url())
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node starts");
        let mut answers = node.stdin.take().expect("stdin is piped");
        let mut wishes = BufReader::new(node.stdout.take().expect("stdout is piped")).lines();
        while let Some(wish) = wishes.next_line().await.expect("text") {
            let wish: Value = serde_json::from_str(&wish).expect("a wish is one JSON object");
            let answer = self.grant(&wish).await;
            // A script that failed meanwhile reads no more; its end says so.
            let _ = answers.write_all(format!("{answer}\n").as_bytes()).await;
        }
        let output = node.wait_with_output().await.expect("it can be waited for");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        said.into_owned()
    }

    async fn grant(&mut self, wish: &Value) -> Value {
        let text = |name: &str| wish[name].as_str().unwrap_or_default();
        match text("wish") {
            "code" => self.gantry.sign_in_code().await.into(),
            "api" => {
                let body = wish.get("body").map(Value::to_string);
                let asked = self.gantry.ask(text("method"), text("path"), body);
                let answer = asked.await;
                json!({ "status": answer.status, "body": answer.body })
            }
            "replies" => {
                let replies = wish["replies"].as_array().into_iter().flatten();
                let replies = replies.map(|reply| self.reply(reply)).collect();
                self.model.script(replies);
                Value::Null
            }
            "until_replied" => {
                eventually("the model has given its replies but for these", || async {
                    let left = wish["left"].as_u64().unwrap_or_default();
                    (self.model.replies_left() as u64 == left).then_some(())
                })
                .await;
                Value::Null
            }
            "release" => {
                self.release.notify_one();
                Value::Null
            }
            "database" => json!(self.gantry.home().join("server/gantry.db")),
            "runner" => {
                let name = text("name");
                let runner = self.gantry.runner(name).await;
                let workspace = runner.workspace();
                self.runners.insert(name.to_owned(), runner);
                json!(workspace)
            }
            "paste" => {
                let runner = pasted(text("line"), text("folder")).await;
                self.runners.insert(text("name").to_owned(), runner);
                Value::Null
            }
            "until_online" => {
                self.gantry.until_online(text("name"), true).await;
                Value::Null
            }
            "kill_runner" => {
                self.runner(text("name")).kill().await;
                self.gantry.until_online(text("name"), false).await;
                Value::Null
            }
            "file" => json!(self.runner(text("name")).file(text("path"))),
            "write_file" => {
                let file = self.runner(text("name")).workspace().join(text("path"));
                let folder = file.parent().expect("it is in the workspace");
                std::fs::create_dir_all(folder).expect("the workspace can be written");
                std::fs::write(file, text("text")).expect("the workspace can be written");
                Value::Null
            }
            "kill_server" => {
                self.gantry.kill_server().await;
                Value::Null
            }
            "start_server" => {
                self.gantry.start_server().await;
                Value::Null
            }
            "cut_network" => {
                self.network.set(|weather| weather.refuses = true);
                self.network.cut();
                Value::Null
            }
            "mend_network" => {
                self.network.clear();
                Value::Null
            }
            other => panic!("the script has a wish that nobody knows: {other}"),
        }
    }

    fn runner(&mut self, name: &str) -> &mut Runner {
        self.runners.get_mut(name).expect("a runner of this name")
    }

    /// A reply of the model: `pieces` of text, where null waits for the wish `release`; or `text`, `thoughts` and
    /// `calls`, with the tokens `input` and `output`.
    fn reply(&self, reply: &Value) -> Reply {
        let text = |name: &str| reply[name].as_str().unwrap_or_default().to_owned();
        if let Some(pieces) = reply["pieces"].as_array() {
            let steps = pieces.iter().map(|piece| match piece.as_str() {
                Some(text) => Step::text(text),
                None => Step::Hold(Arc::clone(&self.release)),
            });
            return Reply::Raw(steps.chain([Step::end()]).collect());
        }
        let calls = reply["calls"].as_array().into_iter().flatten();
        let calls = calls.map(|call| {
            let name = call[0].as_str().expect("the name of a tool");
            (name.to_owned(), call[1].to_string())
        });
        let mut said = Said {
            thoughts: text("thoughts"),
            text: text("text"),
            calls: calls.collect(),
            ..Said::default()
        };
        if let (Some(input), Some(output)) = (reply["input"].as_u64(), reply["output"].as_u64()) {
            said.usage.input = input;
            said.usage.output = output;
        }
        Reply::Said(said)
    }
}

/// A machine on which this line was pasted, in this folder or else in its workspace, and whose runner was then started.
async fn pasted(line: &str, folder: &str) -> Runner {
    let mut runner = Runner::stranger();
    let folder = match folder {
        "" => runner.workspace(),
        folder => PathBuf::from(folder),
    };
    let programs = binary("gantry-runner");
    let programs = programs.parent().expect("it lies in a folder");
    let pasted = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env("GANTRY_HOME", runner.home())
        .output();
    let output = pasted.await.expect("sh starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{said}");
    runner.start();
    runner
}

//! A real Chromium, driven by `WebDriver` over HTTP.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Longer than anything takes on a busy host.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A client for plain HTTP.
pub fn client() -> Client<HttpConnector, Full<bytes::Bytes>> {
    Client::builder(TokioExecutor::new()).build_http()
}

/// A browser with one window.
pub struct Browser {
    _driver: Child,
    process: Option<Pid>,
    _folder: tempfile::TempDir,
    session: String,
    axe: Option<String>,
}

fn cache() -> PathBuf {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("CANDOR_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("candor")))
        .or_else(|| Some(set("HOME")?.join(".cache/candor")))
        .expect("a cache: set HOME, or CANDOR_CACHE")
}

/// A program of the cache, or on PATH.
fn program(names: &[&str]) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(cache().join("bin")).chain(std::env::split_paths(&path));
    let mut all = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    all.find(|program| program.is_file())
        .unwrap_or_else(|| panic!("none of {names:?} is here: make setup"))
}

impl Browser {
    /// Starts it.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut driver = Command::new(program(&["chromedriver"]))
            .arg("--port=0")
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next_line().await.unwrap().expect("the driver starts");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim_end_matches('.').to_owned();
            }
        };
        let binary = program(&["chromium-headless-shell", "chromium"]);
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
        ];
        let wanted =
            json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"binary": binary, "args": arguments}}}});
        let driver_url = format!("http://127.0.0.1:{port}/session");
        let session = post(&driver_url, &wanted).await;
        let id = session["sessionId"].as_str().expect("a session").to_owned();
        let process = session["capabilities"]["goog:processID"].as_i64();
        Self {
            _driver: driver,
            process: process.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)),
            _folder: folder,
            session: format!("{driver_url}/{id}"),
            axe: std::fs::read_to_string(cache().join("browser/axe.min.js")).ok(),
        }
    }

    /// Ends it.
    pub async fn end(mut self) {
        send("DELETE", &self.session, None).await;
        self.process = None;
    }

    async fn ask(&self, what: &str, body: &Value) -> Value {
        post(&format!("{}/{what}", self.session), body).await
    }

    /// Opens a page.
    pub async fn open(&self, url: &str) {
        self.ask("url", &json!({ "url": url })).await;
    }

    /// The value of an expression in the page.
    pub async fn value(&self, expression: &str) -> Value {
        let script = format!("return {expression}");
        self.ask("execute/sync", &json!({"script": script, "args": []})).await
    }

    /// The text that a user reads in an element.
    pub async fn text(&self, selector: &str) -> String {
        let found = self
            .value(&format!("document.querySelector('{selector}')?.innerText ?? ''"))
            .await;
        found.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true; returns how long it took.
    pub async fn until(&self, expression: &str) -> Duration {
        let begun = Instant::now();
        loop {
            if self.value(expression).await == Value::Bool(true) {
                return begun.elapsed();
            }
            let is_late = begun.elapsed() > PATIENCE;
            assert!(
                !is_late,
                "not in {PATIENCE:?}: {expression}\n{}",
                self.text("body").await
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until an element has a text.
    pub async fn until_text(&self, selector: &str, text: &str) -> Duration {
        self.until(&format!(
            "(document.querySelector('{selector}')?.innerText ?? '').includes({})",
            json!(text)
        ))
        .await
    }

    /// A command of Chromium's own protocol.
    pub async fn command(&self, name: &str, parameters: Value) -> Value {
        self.ask("goog/cdp/execute", &json!({"cmd": name, "params": parameters}))
            .await
    }

    /// Shows the page in a window of this width, light or dark, with or without motion.
    pub async fn show(&self, width: u32, dark: bool, calm: bool) {
        let height = if width < 1000 { 800 } else { width * 9 / 16 + 180 };
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", size).await;
        let features = json!({"features": [
            {"name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" }},
            {"name": "prefers-reduced-motion", "value": if calm { "reduce" } else { "no-preference" }},
        ]});
        self.command("Emulation.setEmulatedMedia", features).await;
    }

    /// Checks at three widths that axe-core finds no violation and that nothing is wider than the window.
    pub async fn is_accessible(&self, scene: &str) {
        for (width, dark) in [(360, false), (1280, true), (2560, false)] {
            self.show(width, dark, true).await;
            let at = format!("{scene} at {width} px, dark: {dark}");
            assert_eq!(self.violations().await, json!([]), "{at}");
            let is_wider = self.value("document.documentElement.scrollWidth > innerWidth").await;
            assert_eq!(is_wider, false, "{at}: wider than its window");
        }
        self.show(1280, false, false).await;
    }

    /// What axe-core finds; nothing if npm could not fetch it (hack/browser.sh).
    async fn violations(&self) -> Value {
        let Some(axe) = &self.axe else {
            eprintln!("axe-core is not here: make setup fetches it by npm");
            return json!([]);
        };
        if self.value("typeof axe").await != "object" {
            self.ask("execute/sync", &json!({"script": axe, "args": []})).await;
        }
        let script = "const done = arguments[arguments.length - 1];
            axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations.map((one) =>
            one.id + ': ' + one.nodes.map((node) => node.html + ' ' + node.failureSummary).join('; '))))";
        self.ask("execute/async", &json!({"script": script, "args": []})).await
    }

    /// Pictures at three widths, light and dark, if `CANDOR_PICTURES` names a folder; `CANDOR_PICTURES_AS` names another
    /// format than webp.
    pub async fn screenshot(&self, name: &str) {
        let Some(folder) = std::env::var_os("CANDOR_PICTURES") else {
            return;
        };
        let format = std::env::var("CANDOR_PICTURES_AS").unwrap_or("webp".to_owned());
        for (width, dark) in [360, 1280, 2560]
            .into_iter()
            .flat_map(|width| [(width, false), (width, true)])
        {
            self.show(width, dark, true).await;
            let shade = if dark { "dark" } else { "light" };
            let parameters = json!({"format": format, "quality": 80});
            let taken = self.command("Page.captureScreenshot", parameters).await;
            let picture = STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
            std::fs::write(
                Path::new(&folder).join(format!("{name}-{width}-{shade}.{format}")),
                picture,
            )
            .unwrap();
        }
        self.show(1280, false, false).await;
    }
}

/// A driver that is killed leaves its browser behind.
impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(process) = self.process {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

async fn post(url: &str, body: &Value) -> Value {
    send("POST", url, Some(body)).await
}

async fn send(method: &str, url: &str, body: Option<&Value>) -> Value {
    let bytes = body.map(ToString::to_string).unwrap_or_default();
    let request = http::Request::builder()
        .method(method)
        .uri(url)
        .body(Full::from(bytes))
        .unwrap();
    let answer = tokio::time::timeout(PATIENCE, client().request(request)).await;
    let answer = answer.expect("the driver answers").unwrap();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
    assert!(answer["value"]["error"].is_null(), "{url}: {answer}");
    answer["value"].take()
}

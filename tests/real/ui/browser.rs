//! A headless Chromium, driven over two pipes by the DevTools protocol.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// It is ended when dropped: it ends with its pipes.
pub(super) struct Browser {
    child: Child,
    to: Option<File>,
    from: BufReader<File>,
    calls: u64,
    /// Events that nobody has waited for yet.
    events: Vec<Value>,
    _directory: TempDir,
}

impl Browser {
    pub(super) fn start(program: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let made = Command::new("mkfifo").arg(path("to")).arg(path("from")).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        // A browser that hangs must not keep the tests from ending.
        let script = "exec timeout --kill-after=5 600 \"$0\" \"$@\" 3<\"$TO\" 4>\"$FROM\"";
        let profile = format!("--user-data-dir={}", path("profile").display());
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .args(["--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args(["--disable-dev-shm-usage", "--no-first-run", "--force-color-profile=srgb"])
            .arg(profile)
            .env("TO", path("to"))
            .env("FROM", path("from"))
            .env("HOME", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(path("log")).expect("a file"))
            .spawn()
            .expect("it can be executed");
        let to = OpenOptions::new().write(true).open(path("to")).expect("a pipe");
        let from = BufReader::new(File::open(path("from")).expect("a pipe"));
        Self { child, to: Some(to), from, calls: 0, events: Vec::new(), _directory: directory }
    }

    pub(super) fn tab(&mut self) -> Tab<'_> {
        let target = self.call(None, "Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.call(None, "Target.attachToTarget", &attach)["sessionId"].clone();
        let mut tab = Tab { browser: self, session: session.as_str().expect("an id").to_owned() };
        for domain in ["Page", "Runtime", "DOM", "Log", "Accessibility"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        tab
    }

    fn call(&mut self, session: Option<&str>, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let to = self.to.as_mut().expect("open until it is dropped");
        write!(to, "{message}\0").expect("it reads");
        loop {
            let answer = self.read();
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method} {parameters}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message).expect("it writes");
        assert!(message.pop().is_some(), "the browser has ended");
        serde_json::from_slice(&message).expect("JSON")
    }

    fn wait_for(&mut self, method: &str) {
        if let Some(at) = self.events.iter().position(|event| event["method"] == method) {
            self.events.remove(at);
            return;
        }
        loop {
            let event = self.read();
            if event["method"] == method {
                return;
            }
            self.events.push(event);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when its pipe does.
        self.to = None;
        let _ = self.child.wait();
    }
}

/// One tab.
pub(super) struct Tab<'a> {
    browser: &'a mut Browser,
    session: String,
}

impl Tab<'_> {
    pub(super) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        let session = self.session.clone();
        self.browser.call(Some(&session), method, parameters)
    }

    pub(super) fn without_scripts(&mut self) {
        self.call("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    }

    /// Light or dark, as the person prefers it.
    pub(super) fn scheme(&mut self, scheme: &str) {
        let wanted = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &wanted);
    }

    pub(super) fn size(&mut self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Opens an address and waits until it is loaded.
    pub(super) fn open(&mut self, address: &str) {
        let opened = self.call("Page.navigate", &json!({"url": address}));
        assert!(opened["errorText"].is_null(), "{address}: {opened}");
        self.browser.wait_for("Page.loadEventFired");
    }

    pub(super) fn html(&mut self) -> String {
        let root = self.call("DOM.getDocument", &json!({}))["root"]["nodeId"].clone();
        let html = self.call("DOM.getOuterHTML", &json!({"nodeId": root}));
        html["outerHTML"].as_str().expect("a text").to_owned()
    }

    /// The value of an expression; a promise is waited for.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &ask);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until a person sees this text.
    pub(super) fn shows(&mut self, text: &str) {
        let script = "new Promise((done) => {
            const look = () => document.body.innerText.replace(/\\s+/g, ' ').includes(TEXT) && done(true);
            new MutationObserver(look).observe(document.documentElement,
                {subtree: true, childList: true, characterData: true, attributes: true});
            look();
        })";
        self.value(&script.replace("TEXT", &json!(text).to_string()));
    }

    pub(super) fn press(&mut self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": 9});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    pub(super) fn picture(&mut self) -> Vec<u8> {
        let png = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        BASE64_STANDARD.decode(png["data"].as_str().expect("a text")).expect("base64")
    }

    /// What the browser has written to its console: what the page's policy forbids, errors of scripts.
    pub(super) fn problems(&mut self) -> Value {
        let is_problem = |event: &&Value| {
            ["Log.entryAdded", "Runtime.exceptionThrown"]
                .map(Value::from)
                .contains(&event["method"])
        };
        self.browser.events.iter().filter(is_problem).map(|event| event["params"].clone()).collect()
    }
}

//! Containers of a real Docker engine, through its own client.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Where the images for tests come from.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs the client; returns its output, or its error.
pub(crate) fn try_docker(args: &[&str]) -> Result<String, String> {
    // The old builder, because the new one is a plugin that is not always installed.
    let output = Command::new("docker").args(args).env("DOCKER_BUILDKIT", "0").output();
    let output = output.map_err(|error| format!("docker: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[track_caller]
pub(crate) fn docker(args: &[&str]) -> String {
    try_docker(args).unwrap_or_else(|error| panic!("docker {args:?}: {error}"))
}

/// The images for users, with the static binary; `Err` names what is missing here.
pub(crate) fn manager_image() -> Result<&'static str, String> {
    let binary = std::env::var("STAYPUT_STATIC_BIN").map_err(|_| "no STAYPUT_STATIC_BIN")?;
    std::env::var("DOCKER_HOST").map_err(|_| "no DOCKER_HOST: no Docker engine")?;
    try_docker(&["version"])?;
    let context = tempfile::tempdir().expect("a temp dir");
    std::fs::copy(binary, context.path().join("stayput")).expect("the static binary");
    let file = format!("{ROOT}/docker/manager.Dockerfile");
    let image = "stayput-test/manager";
    let context = context.path().to_str().expect("UTF-8");
    docker(&["build", "--quiet", "-f", &file, "-t", image, context]);
    Ok(image)
}

/// The image for OpenSearch, built as users build it, on a base that works like the official one and has
/// the engine of `home`.
pub(crate) fn opensearch_image(home: &Path) -> Result<&'static str, String> {
    let manager = manager_image()?;
    let (entrypoint, base) = (engine_image()?, "stayput-test/opensearch-base");
    let directory = tempfile::tempdir().expect("a temp dir");
    let file = directory.path().join("Dockerfile");
    let lines = format!(
        "FROM {entrypoint}\nCOPY --chown=1000:1000 . /usr/share/opensearch/\n\
         RUN chown 1000:1000 /usr/share/opensearch && rmdir /engine && ln -s /usr/share/opensearch /engine\n"
    );
    std::fs::write(&file, lines).expect("a file");
    let (file, home) = (file.to_str().expect("UTF-8"), home.to_str().expect("UTF-8"));
    docker(&["build", "--quiet", "-f", file, "-t", base, home]);
    let image = "stayput-test/opensearch";
    build_for_users("opensearch", image, base, manager);
    Ok(image)
}

/// The image for Elasticsearch, built as users build it, on a base that works like the official one. The engine
/// is to be mounted at `/engine`.
pub(crate) fn elasticsearch_image() -> Result<&'static str, String> {
    let (manager, base) = (manager_image()?, engine_image()?);
    let image = "stayput-test/elasticsearch";
    build_for_users("elasticsearch", image, base, manager);
    Ok(image)
}

fn build_for_users(engine: &str, image: &str, base: &str, manager: &str) {
    let (base, manager) = (format!("BASE={base}"), format!("MANAGER={manager}"));
    let context = format!("{ROOT}/docker/{engine}");
    let args = ["--build-arg", &base, "--build-arg", &manager];
    docker(&[&["build", "--quiet", "-t", image][..], &args, &[&context]].concat());
}

/// The stand-in for the official engine images, without an engine.
fn engine_image() -> Result<&'static str, String> {
    base_image()?;
    let image = "stayput-test/engine";
    docker(&["build", "--quiet", "-t", image, &format!("{ROOT}/docker/test-engine")]);
    Ok(image)
}

/// Debian with a JRE.
pub(crate) fn base_image() -> Result<&'static str, String> {
    let image = "stayput-test/debian-jre:12";
    match try_docker(&["image", "inspect", image]) {
        Ok(_) => Ok(image),
        Err(_) => Err(format!("no image {image}: tests/parts/base-image makes it")),
    }
}

/// A container; removed when dropped.
#[derive(Debug)]
pub(crate) struct Container(String);

impl Container {
    /// Creates and starts one.
    #[track_caller]
    pub(crate) fn run(args: &[&str]) -> Self {
        Self(docker(&[&["run", "--detach"], args].concat()))
    }

    /// Runs a command in it.
    pub(crate) fn exec(&self, line: &[&str]) -> Result<String, String> {
        try_docker(&[&["exec", &self.0], line].concat())
    }

    /// The output of the client in it.
    #[track_caller]
    pub(crate) fn status(&self, client: &[&str]) -> Value {
        let printed = self.exec(client).unwrap_or_else(|error| panic!("{client:?}: {error}"));
        serde_json::from_str(&printed).unwrap_or_else(|_| panic!("not JSON: {printed}"))
    }

    /// `stop`, `start`, `kill`…
    #[track_caller]
    pub(crate) fn act(&self, what: &[&str]) {
        docker(&[what, &[&self.0]].concat());
    }

    /// The output of `docker inspect` with a format.
    #[track_caller]
    pub(crate) fn inspect(&self, format: &str) -> String {
        docker(&["inspect", "--format", format, &self.0])
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&self) -> String {
        docker(&["wait", &self.0])
    }

    /// The command lines in it.
    #[track_caller]
    pub(crate) fn commands(&self) -> String {
        docker(&["top", &self.0, "-o", "pid,args"])
    }

    pub(crate) fn log(&self) -> String {
        let output = Command::new("docker").args(["logs", "--tail", "60", &self.0]).output();
        output.map_or_else(
            |error| error.to_string(),
            |output| String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the log of the container:\n{}", self.log());
        }
        let _ = try_docker(&["rm", "--force", "--volumes", &self.0]);
    }
}

/// A bind mount's argument.
pub(crate) fn bind(from: &Path, to: &str) -> String {
    format!("{}:{to}", from.display())
}

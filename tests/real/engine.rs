//! Real engines: OpenSearch (one JVM) and Elasticsearch (launcher and server).

mod cycles;
mod deaths;
mod plugins;
mod restart;
mod rollback;
mod starting;
mod warm;

/// Runs these stories on an engine, each as a test of its own.
macro_rules! on_engine {
    ($engine:ident, $kind:ident, [$($story:ident),+ $(,)?]) => {
        mod $engine {
            $(#[test] fn $story() {
                crate::engine::on(
                    concat!(module_path!(), "::", stringify!($story)),
                    crate::support::engine::Kind::$kind,
                    super::$story,
                );
            })+
        }
    };
}
use on_engine;

use crate::support::engine::{Kind, Node};
use crate::support::skip;

fn on(name: &str, kind: Kind, story: impl FnOnce(Node)) {
    match Node::new(kind) {
        Ok(node) => story(node),
        // The harness leaves the crate's name out.
        Err(why) => skip(name.split_once("::").map_or(name, |(_, rest)| rest), &why),
    }
}

/// Prints the next step, so that a failure can be read together with the steps before it.
fn step(what: &str) {
    println!("-- {what}");
}

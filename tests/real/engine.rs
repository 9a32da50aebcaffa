//! Real engines: OpenSearch (one JVM) and Elasticsearch (launcher and server).

mod cycles;
mod deaths;
mod restart;
mod rollback;
mod starting;
mod warm;

/// Runs the same test on both engines, each as a separate test.
macro_rules! on_both_engines {
    ($($story:ident),+ $(,)?) => {
        mod opensearch {
            $(#[test] fn $story() {
                crate::engine::on(
                    concat!(module_path!(), "::", stringify!($story)),
                    crate::support::engine::Kind::OpenSearch,
                    super::$story,
                );
            })+
        }
        mod elasticsearch {
            $(#[test] fn $story() {
                crate::engine::on(
                    concat!(module_path!(), "::", stringify!($story)),
                    crate::support::engine::Kind::Elasticsearch,
                    super::$story,
                );
            })+
        }
    };
}
use on_both_engines;

use crate::support::engine::{Kind, Node};
use crate::support::skip::skip;

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

//! A StatefulSet, written by hand or by a chart.

use serde_json::Value;

use super::Plan;
use crate::edit::Path;
use crate::options::Options;
use crate::pod::{self, Pod};

pub(super) fn plan(object: &Value, cluster: &str, options: &Options) -> Option<Plan> {
    let at = Path::keys(&["spec", "template", "spec"]);
    let spec = &object["spec"]["template"]["spec"];
    let container = pod::find_container(spec, options.container.as_deref())?;
    if pod::has_manager(container) {
        let found = pod::by_hand(format!("{at}.containers"));
        return Some(Plan { found: vec![found], ..Plan::default() });
    }
    let (changes, found) = pod::changes(Pod { at: &at, spec, cluster, options }, container);
    Some(Plan { changes, found })
}

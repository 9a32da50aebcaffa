mod transitions;

use std::borrow::Cow;

use super::*;

fn plan(waits: &[(&str, Code, &'static str)]) -> Plan {
    let waiting = |(node, code, message): &(&str, Code, &'static str)| Waiting {
        pod: Some(format!("{node}-uid")),
        node: Some((*node).to_owned()),
        code: *code,
        message: Cow::Borrowed(message),
    };
    Plan { waiting: waits.iter().map(waiting).collect(), ..Plan::default() }
}

fn wait(code: Code, nodes: &str, message: &str) -> Line {
    Line::Wait { code, nodes: nodes.to_owned(), message: message.to_owned() }
}

#[test] // proves OPERATE-1
fn a_wait_is_logged_when_it_changes_and_once_for_all_nodes() {
    let mut log = DecisionLog::default();
    let names: Vec<String> = (0..7).map(|at| format!("logs-{at}")).collect();
    let all: Vec<(&str, Code, &'static str)> = names
        .iter()
        .map(|name| (name.as_str(), Code::NotItsTurn, "its turn comes later"))
        .collect();
    let nodes = "logs-0 logs-1 logs-2 logs-3 logs-4 and 2 more";
    let lines = log.waits(&plan(&all));
    assert_eq!(lines, [wait(Code::NotItsTurn, nodes, "its turn comes later")]);
    assert_eq!(log.waits(&plan(&all)), []);
    // Numbers in a message change at each look.
    let mut later = all.clone();
    later[3] = ("logs-3", Code::NotItsTurn, "its turn comes in 5 s");
    later[4] = ("logs-4", Code::Quorum, "a majority would be lost: 2 of 3");
    let lines = log.waits(&plan(&later));
    assert_eq!(lines, [wait(Code::Quorum, "logs-4", "a majority would be lost: 2 of 3")]);
    let idle = [("logs-4", Code::Idle, "nothing to do")];
    assert_eq!(log.waits(&plan(&idle)), []);
    assert_eq!(log.waits(&plan(&later)).len(), 2, "they wait again");
}

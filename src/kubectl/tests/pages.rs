//! The text pages of each command.

use serde_json::{Value, json};
use stayput_restart::{Request, Strategy, Target};

use crate::json::NodeOutput;
use crate::tests::{self, idle, now, pods, ready, rolling, view};
use crate::text::{self, Paint};
use crate::view::ClusterView;

const PLAIN: Paint = Paint { colored: false };

#[test]
fn status_in_the_middle_of_a_restart() {
    let view = view(&rolling(), &Value::Null, pods());
    assert_eq!(
        text::status(&view, now(), PLAIN),
        "\
cluster     search/logs
phase       Restarting, rolling 1/3 done
            logs-1 was started and has not joined yet
restart     rolling 4f2a91c07b3e, requested by alice; 3 nodes
            started 2026-11-21T03:08:00Z (2m ago)
nodes       3, 2 ready; 1 under way; 1 waiting
config      Secret logs-config (found in the pods)
available   True (Yellow): every primary is there, a replica is not

NODE     PHASE              ENGINE     CONFIG         WHY
logs-1   start              starting   0123456789ab   logs-1 was started and has not joined yet
logs-0   schedule-rolling   running    ba9876543210   another node is under way
"
    );
}

#[test] // proves UPDATE-30
fn the_step_of_each_node_and_its_fields_are_shown() {
    let mut status = rolling();
    let image = "spec.containers[search].image: search:1 -> search:2";
    status["nodes"][0]["step"] = "container".into();
    status["nodes"][0]["because"] = json!([image]);
    status["nodes"][1]["step"] = "restart".into();
    let view = view(&status, &Value::Null, pods());
    let page = text::status(&view, now(), PLAIN);
    let line = format!("\n\nlogs-1: container, keeps pod, address and volumes: {image}\n");
    assert!(page.ends_with(&line), "{page}");
    let why = text::why(&view, &view.pods[1], now(), PLAIN);
    assert!(why.contains("template") && why.contains(image), "{why}");
    let update =
        format!("template    logs-1: container, keeps pod, address and volumes: {image}\n");
    let kept = "            (restart, unless another step is named: keeps container, pod, address and volumes)\n";
    let plan = text::plan(&view, "nobody answers", PLAIN);
    assert!(plan.contains(&format!("finished    1 node\n{update}{kept}")), "{plan}");
    // A person may decide against a field that needs another pod, also if nothing is under way.
    let mut rest = idle();
    let affinity = "spec.affinity: {} is new";
    rest["nodes"] = json!([{"name": "logs-0", "step": "replace", "because": [affinity]}]);
    let plan = text::plan(&tests::view(&rest, &Value::Null, pods()), "nobody answers", PLAIN);
    let update = format!("template    logs-0: replace, keeps name and volume claims: {affinity}\n");
    assert!(plan.contains(&update), "{plan}");

    status["history"] = json!([{
        "id": "u", "strategy": "rolling", "outcome": "done", "reason": "",
        "started": "2026-11-21T03:08:00Z", "seconds": 100, "nodes": 3,
        "steps": {"container": 2, "restart": 1},
    }]);
    let history = text::history(&tests::view(&status, &Value::Null, pods()));
    assert!(history.contains("3 (2 container, 1 restart)"), "{history}");
}

#[test]
fn status_with_what_is_left_and_what_is_off() {
    let mut status = rolling();
    let estimate = "about 4 minutes left, estimated from 1 of 3 nodes";
    status["estimate"] = estimate.into();
    status["message"] = format!("{}; {estimate}", status["message"].as_str().unwrap()).into();
    let undo = "kubectl annotate searchcluster logs --namespace search \
                eck.k8s.elastic.co/disable-upgrade-predicates-";
    status["conditions"].as_array_mut().unwrap().push(json!({
        "type": "PredicatesDisabled", "status": "True", "reason": "Disabled",
        "message": format!("require_started_replica is not evaluated; when it has served its \
                            purpose: {undo}"),
        "lastTransitionTime": "2026-11-21T03:08:00Z",
    }));
    let page = text::status(&view(&status, &Value::Null, pods()), now(), PLAIN);
    let (head, _) = page.split_once("\n\n").unwrap();
    assert_eq!(
        head,
        "\
cluster     search/logs
phase       Restarting, rolling 1/3 done
            logs-1 was started and has not joined yet
restart     rolling 4f2a91c07b3e, requested by alice; 3 nodes
            started 2026-11-21T03:08:00Z (2m ago)
            about 4 minutes left, estimated from 1 of 3 nodes
nodes       3, 2 ready; 1 under way; 1 waiting
config      Secret logs-config (found in the pods)
available   True (Yellow): every primary is there, a replica is not
rules off   require_started_replica is not evaluated; when it has served its purpose: kubectl annotate searchcluster logs --namespace search eck.k8s.elastic.co/disable-upgrade-predicates-"
    );
    // Blocked, the estimate stands in its place all the same.
    status["blocked"] = "one_master_at_a_time".into();
    status["message"] = "another one is under way".into();
    let page = text::status(&view(&status, &Value::Null, pods()), now(), PLAIN);
    assert!(
        page.contains("blocked by  one_master_at_a_time: another one is under way\n"),
        "{page}"
    );
    assert!(page.contains(&format!("\n            {estimate}\n")), "{page}");
}

#[test]
fn status_at_rest() {
    let view = view(&idle(), &json!({}), ready(3));
    assert_eq!(
        text::status(&view, now(), PLAIN),
        "\
cluster     search/logs
phase       Idle
nodes       3, 3 ready
config      Secret logs-config (found in the pods)
last        rolling 4f2a91c07b3e done, 2026-11-21T03:09:40Z (20s ago)
"
    );
}

#[test] // proves UPDATE-30
fn status_tells_in_one_line_where_the_config_comes_from() {
    let line = |status: &Value, pods: Vec<Value>| {
        let page = text::status(&view(status, &Value::Null, pods), now(), PLAIN);
        let line = page.lines().find_map(|line| line.strip_prefix("config      "));
        line.expect("a line").to_owned()
    };
    assert_eq!(line(&idle(), pods()), "Secret logs-config (found in the pods)");
    let mut own = pods();
    for (number, pod) in own.iter_mut().enumerate() {
        pod["spec"]["volumes"][0]["secret"]["secretName"] = format!("logs-{number}-config").into();
    }
    assert_eq!(line(&idle(), own.clone()), "Secret {pod}-config (found in the pods)");
    let mut status = idle();
    status["sourceAbsent"] = "Secret logs-1-config is absent: create it".into();
    assert_eq!(
        line(&status, own.clone()),
        "Secret {pod}-config (found in the pods); Secret logs-1-config is absent: create it"
    );
    own[2]["spec"]["containers"][0]["args"] = json!([]);
    let page = line(&idle(), own);
    assert!(page.contains("(found in the pods); not known: the pod logs-2 has neither"), "{page}");

    let mut named = tests::cluster(&idle(), &Value::Null);
    named.spec.config.sources = serde_json::from_value(json!([
        {"secret": "{pod}-config"}, {"configMap": "words"},
    ]))
    .unwrap();
    let pods: Vec<_> = pods().into_iter().map(|pod| serde_json::from_value(pod).unwrap()).collect();
    let view = ClusterView::from_objects(&named, &pods);
    let page = text::status(&view, now(), PLAIN);
    let config = "config      ConfigMap words, Secret {pod}-config (spec.config.sources)\n";
    assert!(page.contains(config), "{page}");
}

#[test]
fn status_of_what_is_blocked_and_asked_for() {
    let mut status = idle();
    status["phase"] = "Blocked".into();
    status["blocked"] = "health".into();
    status["message"] = "the cluster is red: index a".into();
    let request = json!({
        "id": "b", "strategy": "coordinated", "notBefore": "2026-11-21T04:00:00Z",
        "deadline": "1h", "target": {"nodes": ["logs-0"], "zone": "z1", "role": "data"},
    });
    let asked = json!({"stayput.dev/restart-request": request.to_string()});
    let view = view(&status, &asked, ready(3));
    assert_eq!(
        text::status(&view, now(), PLAIN),
        "\
cluster     search/logs
phase       Blocked
blocked by  health: the cluster is red: index a
requested   coordinated b of logs-0, role data, zone z1, not before 2026-11-21T04:00:00Z, deadline 1h: not accepted yet
nodes       3, 3 ready
config      Secret logs-config (found in the pods)
last        rolling 4f2a91c07b3e done, 2026-11-21T03:09:40Z (20s ago)
"
    );
}

#[test]
fn status_before_the_first_look() {
    let view = view(&Value::Null, &json!({"stayput.dev/restart-request": "{}"}), Vec::new());
    assert_eq!(
        text::status(&view, now(), PLAIN),
        "\
cluster     search/logs
phase       unknown
            stayput-reconciler has not processed this SearchCluster yet; check that it runs and watches this namespace: `kubectl get pods -A -l app.kubernetes.io/name=stayput-reconciler`
requested   the restart request is not a valid JSON object: missing field `id` at line 1 column 2; write for example {\"id\":\"2026-11-21-a\",\"strategy\":\"rolling\"}
"
    );
}

#[test] // proves UPDATE-16
fn why_names_what_a_change_of_restarts_nothing() {
    let mut all = pods();
    let spec = &mut all[0]["spec"];
    let mounts = spec["containers"][0]["volumeMounts"].as_array_mut().unwrap();
    mounts.push(json!({"name": "certs", "mountPath": "/certs"}));
    let certs = json!({"name": "certs", "secret": {"secretName": "logs-certs"}});
    spec["volumes"].as_array_mut().unwrap().push(certs);
    let view = view(&rolling(), &Value::Null, all);
    let page = |node: &str| text::why(&view, view.pod_of_node(node).unwrap(), now(), PLAIN);
    let line = "\nnot watched Secret logs-certs at /certs: a change restarts nothing\n";
    assert!(page("logs-0").contains(line), "{}", page("logs-0"));
    assert!(!page("logs-2").contains("not watched"), "{}", page("logs-2"));
}

#[test]
fn why_a_node_waits_and_how_it_was_last() {
    let view = view(&rolling(), &Value::Null, pods());
    let page = |node: &str| text::why(&view, view.pod_of_node(node).unwrap(), now(), PLAIN);
    assert_eq!(
        page("logs-0"),
        "\
node        logs-0 of search/logs
pod         logs-0, ready, uid uid-0
phase       schedule-rolling
engine      running
config      checksum ba9876543210…, made from Secret logs-config
why         another node is under way
restart     4f2a91c07b3e: waits for its turn, since 2026-11-21T03:09:20Z (40s ago)
last        its engine was never restarted in this pod
"
    );
    assert_eq!(
        page("logs-2"),
        "\
node        logs-2 of search/logs
pod         logs-2, ready, uid uid-2
phase       -
config      made from Secret logs-config
why         nothing to do
restart     4f2a91c07b3e: is finished, since 2026-11-21T03:09:20Z (40s ago)
last        4f2a91c07b3e done
            started 2026-11-21T03:08:00Z (2m ago), took 1m 14s
"
    );
}

#[test] // proves UPDATE-66
fn why_tells_why_nobody_knows_what_the_config_is_made_from() {
    let mut pods = pods();
    pods[2]["spec"]["volumes"][0] = json!({"name": "config", "emptyDir": {}});
    let view = view(&idle(), &Value::Null, pods);
    let page = text::why(&view, view.pod_of_node("logs-2").unwrap(), now(), PLAIN);
    let line = "config      its Secrets and ConfigMaps are not known: the pod logs-2 watches /config, whose \
                volume is of the kind emptyDir: ";
    assert!(page.contains(line), "{page}");
}

#[test]
fn plan_says_what_is_next_and_why_the_others_wait() {
    assert_eq!(
        text::plan(&view(&rolling(), &Value::Null, pods()), "nobody answers", PLAIN),
        "\
restart     rolling 4f2a91c07b3e, requested by alice
under way   logs-1: logs-1 was started and has not joined yet
waiting     logs-0: another node is under way
finished    1 node
no dry run  nobody answers
"
    );
    let mut pending = idle();
    pending["counts"]["pendingRestart"] = 2.into();
    assert_eq!(
        text::plan(&view(&pending, &Value::Null, pods()), "nobody answers", PLAIN),
        "\
next        nothing: no restart is requested; 2 nodes run on another config than their sources have: restart with `kubectl stayput -n search restart logs`
no dry run  nobody answers
"
    );
    pending["blocked"] = "needs_coordinated".into();
    pending["message"] = "cluster.name changes from a to b".into();
    assert_eq!(
        text::plan(&view(&pending, &Value::Null, pods()), "nobody answers", PLAIN),
        "\
blocked by  needs_coordinated: cluster.name changes from a to b
next        nothing by itself: 2 nodes on another config than their sources have; all nodes need it at once, an outage: `kubectl stayput -n search restart logs --coordinated`
no dry run  nobody answers
"
    );
}

#[test]
fn a_dry_run_tells_the_order() {
    let mut pods = pods();
    pods[0]["metadata"]["annotations"] = json!({"stayput.dev/stopped": "true"});
    let view = view(&idle(), &Value::Null, pods);
    let why = "nobody answers".to_owned();
    let rolling = Request { id: "a".into(), ..Request::default() };
    assert_eq!(
        text::dry_run(&view, &rolling, Err(&why)),
        "\
request     rolling a
order       logs-1, logs-2
            (data nodes go before master-eligible nodes and the elected master goes last, which only the engine knows)
left out    logs-0: kept stopped
no dry run  nobody answers
This is a dry run: nothing was requested.
"
    );
    let target = Target { role: Some("data".into()), ..Target::default() };
    let role = Request { target, ..rolling };
    let coordinated = Request { strategy: Strategy::Coordinated, ..role.clone() };
    assert_eq!(
        text::dry_run(&view, &role, Err(&why)),
        "\
request     rolling a, role data
order       logs-1, logs-2
            (only those with the role or zone, which only the engine knows)
            (data nodes go before master-eligible nodes and the elected master goes last, which only the engine knows)
left out    logs-0: kept stopped
no dry run  nobody answers
This is a dry run: nothing was requested.
"
    );
    assert_eq!(
        text::dry_run(&view, &coordinated, Err(&why)),
        "\
request     coordinated a, role data
nodes       logs-1, logs-2: all are stopped before any is started
            (only those with the role or zone, which only the engine knows)
left out    logs-0: kept stopped
no dry run  nobody answers
This is a dry run: nothing was requested.
"
    );
}

#[test]
fn history_is_a_table_with_the_latest_first() {
    let mut status = idle();
    status["history"].as_array_mut().unwrap().push(json!({
        "id": "b", "strategy": "coordinated", "outcome": "rolledBack",
        "reason": "logs-1 did not come up", "started": "2026-11-21T03:10:00Z", "seconds": 4000,
        "nodes": 12,
    }));
    assert_eq!(
        text::history(&view(&status, &Value::Null, pods())),
        "\
STARTED                TOOK     STRATEGY      NODES   OUTCOME      ID             REASON
2026-11-21T03:10:00Z   1h 6m    coordinated   12      rolledBack   b              logs-1 did not come up
2026-11-21T03:08:00Z   1m 40s   rolling       3       done         4f2a91c07b3e
"
    );
    let none = view(&json!({"phase": "Idle"}), &Value::Null, pods());
    assert_eq!(text::history(&none), "no restart has ended yet\n");
}

#[test] // proves UPDATE-61
fn a_change_that_is_ignored_is_told_with_the_annotation() {
    let mut status = rolling();
    let (config, wanted) = ("ba98765432100123", "0123456789abcdef");
    status["ignoredChanges"] = json!({config: [wanted], "feedfeedfeedfeed": [wanted]});
    let view = view(&status, &Value::Null, pods());
    let told = |from: &str| {
        format!(
            "no restart for the change from {from}… to 0123456789ab…: only what \
             stayput.dev/ignore takes out differs\n"
        )
    };
    let page = |node: &str| text::why(&view, view.pod_of_node(node).unwrap(), now(), PLAIN);
    let own = page("logs-0");
    assert!(own.contains(&format!("ignored     {}", told("ba9876543210"))), "{own}");
    assert!(!own.contains("feed"), "another node's: {own}");
    let unknown = page("logs-2");
    assert!(unknown.contains(&told("ba9876543210")), "{unknown}");
    assert!(unknown.contains(&told("feedfeedfeed")), "{unknown}");
    let history = text::history(&view);
    assert!(history.ends_with(&told("feedfeedfeed")), "{history}");
}

#[test]
fn nothing_in_an_annotation_moves_the_cursor() {
    let mut status = rolling();
    status["message"] = "\u{1b}[2J\u{7}".into();
    status["nodes"][0]["message"] = "\u{1b}[2J".into();
    status["restart"]["request"]["by"] = "eve\r".into();
    let view = view(&status, &Value::Null, pods());
    let pages = [
        text::status(&view, now(), PLAIN),
        text::plan(&view, "nobody answers", PLAIN),
        text::why(&view, view.pod_of_node("logs-1").unwrap(), now(), PLAIN),
    ];
    for page in pages {
        assert!(!page.replace('\n', "").contains(char::is_control), "{page:?}");
        assert!(page.contains(r"\u{1b}[2J"), "{page}");
    }
}

#[test]
fn a_node_that_is_down_is_shown_to_a_tired_operator() {
    let message = "the engine ended with code 78 after 3s before it was ready; its log: `kubectl \
                   -n search logs logs-2 -c search`; to start it: `kubectl stayput -n search \
                   restart logs --node logs-2`";
    let mut status = idle();
    let sentence = format!("logs-2 is down: {message}");
    status["phase"] = "Degraded".into();
    status["message"] = sentence.clone().into();
    status["counts"] = json!({"pods": 3, "ready": 2, "down": 1});
    status["nodes"] =
        json!([{"name": "logs-2", "state": "failed", "down": "failed", "message": message}]);
    let degraded = json!({
        "type": "Degraded", "status": "True", "reason": "NodesDown", "message": sentence,
        "lastTransitionTime": "2026-11-21T03:08:00Z",
    });
    status["conditions"] = json!([degraded]);
    let view = view(&status, &Value::Null, pods());
    let page = text::status(&view, now(), PLAIN);
    for line in [
        "phase       Degraded\n".to_owned(),
        format!("            {sentence}\n"),
        "nodes       3, 2 ready; 1 DOWN\n".to_owned(),
        format!("logs-2   -                  failed   -        DOWN: {message}\n"),
    ] {
        assert!(page.contains(&line), "{line} is not in\n{page}");
    }
    assert!(!page.contains("degraded"), "said once:\n{page}");
    let pod = view.pod_of_node("logs-2").unwrap();
    let page = text::why(&view, pod, now(), PLAIN);
    assert!(page.contains(&format!("DOWN: {message}\n")), "{page}");
    assert!(!page.contains("nothing"), "{page}");
}

/// The operator reads the label, and so does `kubectl get statefulset`.
#[test] // proves UPDATE-103
fn the_revision_that_a_pod_is_made_from_is_shown_while_its_label_names_another() {
    let mut pods = pods();
    pods[0]["metadata"]["annotations"] = json!({"stayput.dev/actual-revision": "logs-7d9f"});
    let view = view(&idle(), &Value::Null, pods);
    let page = text::why(&view, &view.pods[0], now(), PLAIN);
    let line = "made from   logs-7d9f; its label names another revision, which it is to get\n";
    assert!(page.contains(line), "{page}");
    let printed = json!(NodeOutput::why(&view.node(&view.pods[0].node)));
    assert_eq!(printed["actualRevision"], "logs-7d9f");
}

#[test] // proves UPDATE-44
fn a_node_that_the_status_has_no_room_for_is_not_called_fine() {
    let mut status = idle();
    let listed =
        (0..100).map(|number| json!({"name": format!("logs-{number}"), "message": "drifts"}));
    status["nodes"] = listed.collect();
    let cut = view(&status, &Value::Null, ready(102));
    let page = text::status(&cut, now(), PLAIN);
    assert!(page.ends_with("\n(the first 100 nodes: the status names no more)\n"), "{page}");
    let unknown = "not known: the status names only the first 100 nodes: `kubectl stayput -n search \
                   plan logs`";
    let why =
        |view: &ClusterView, node| text::why(view, view.pod_of_node(node).unwrap(), now(), PLAIN);
    let page = why(&cut, "logs-101");
    assert!(page.contains(&format!("why         {unknown}\n")), "{page}");
    let output = json!(NodeOutput::new(&cut.node("logs-101")));
    assert_eq!(output["message"], unknown);
    assert!(why(&cut, "logs-7").contains("why         drifts\n"));
    status["nodes"].as_array_mut().unwrap().pop();
    let whole = view(&status, &Value::Null, ready(102));
    assert!(why(&whole, "logs-101").contains("why         nothing to do\n"));
    assert!(!text::status(&whole, now(), PLAIN).contains("no more"));
}

#[test] // proves OPERATE-2
fn why_names_the_page_of_the_runbook() {
    let runbook = |status: &Value, pod: usize| -> Vec<String> {
        let view = view(status, &Value::Null, pods());
        let page = text::why(&view, &view.pods[pod], now(), PLAIN);
        let lines = page.lines().filter_map(|line| line.split_once("docs/runbook/"));
        lines.map(|(_, rest)| rest.to_owned()).collect()
    };
    let mut status = rolling();
    assert_eq!(runbook(&status, 0), [""; 0]);
    status["nodes"][1]["waitsFor"] = "update_tried".into();
    let waiting = "waiting.md, or: kubectl stayput runbook update_tried";
    assert_eq!(runbook(&status, 0), [waiting]);
    status["nodes"][1]["blockedBy"] = "quorum".into();
    let quorum = "quorum.md, or: kubectl stayput runbook quorum";
    assert_eq!(runbook(&status, 0), [quorum]);
    // What blocks the cluster, for a node that is not blocked itself.
    assert_eq!(runbook(&status, 2), [""; 0]);
    status["blocked"] = "debts".into();
    assert_eq!(runbook(&status, 2), ["debts.md, or: kubectl stayput runbook debts"]);
    assert_eq!(runbook(&status, 0), [quorum]);
    status["nodes"][1]["down"] = "failed".into();
    let down = "nodes_down.md, or: kubectl stayput runbook nodes_down";
    assert_eq!(runbook(&status, 0), [down, quorum]);
    // A code of a newer reconciler.
    status["blocked"] = "unheard_of".into();
    assert_eq!(runbook(&status, 2), [""; 0]);
}

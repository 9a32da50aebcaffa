//! `restart`: writes a request.

use std::io::{self, BufRead, IsTerminal, Write};

use ring::rand::{SecureRandom, SystemRandom};

use super::{Told, annotate, contended};
use crate::kubectl::apiserver::{Unpatched, patch_cluster};
use crate::kubectl::args::RestartArgs;
use crate::kubectl::connect::Session;
use crate::kubectl::failure::Failure;
use crate::kubectl::output::{ActOutput, Done};
use crate::kubectl::text::nodes;
use crate::kubectl::view::View;
use crate::kubectl::{ahead, find, pages};
use stayput_restart::{Code, Request, Strategy, annotation};

/// Asks for a restart, once.
pub(in crate::kubectl) async fn restart(
    session: &Session,
    args: &RestartArgs,
) -> Result<(Told, View), Failure> {
    let id = fresh_id()?;
    let request = args.request(|| id, session.user.clone());
    let text = serde_json::to_string(&request)
        .map_err(|error| Failure::Failed(format!("the request cannot be written: {error}")))?;
    // What the reconciler would refuse is refused here, where somebody reads it.
    Request::parse(&text).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut agreed = args.yes || args.dry_run;
    for _ in 0..super::TRIES {
        let view = find::view(session, args.which.cluster.as_deref()).await?;
        if let Some(told) = already(&view, &request) {
            return Ok((told, view));
        }
        check(&view, &request).map_err(Failure::Failed)?;
        if args.dry_run {
            let ahead = ahead::of_request(&view, &args.eye, &request).await;
            let page = pages::asked(&view, &request, ahead.as_ref());
            let told = told(&view, &request, Done::Nothing, page);
            return Ok((told, view));
        }
        if request.strategy == Strategy::Coordinated && !agreed {
            agree(&view, &request)?;
            agreed = true;
        }
        let patch = annotate(&view.version, view.is_annotated, annotation::REQUEST, Some(&text));
        match patch_cluster(session, &view.name, patch).await {
            Ok(()) => {
                let page = asked(&view, &request);
                return Ok((told(&view, &request, Done::Requested, page), view));
            }
            Err(Unpatched::Changed) => {}
            Err(Unpatched::Failure(failure)) => return Err(failure),
        }
    }
    Err(contended("the SearchCluster"))
}

/// Asking twice with one id is asking once.
fn already(view: &View, request: &Request) -> Option<Told> {
    let lies_there = view.requested().is_some_and(|one| one.is_ok_and(|one| one.id == request.id));
    if !lies_there && !view.has_handled(&request.id) {
        return None;
    }
    let page = format!("restart {} was asked for before; nothing was changed\n", request.id);
    Some(told(view, request, Done::AlreadyRequested, page))
}

fn told(view: &View, request: &Request, done: Done, page: String) -> Told {
    let mut output = ActOutput::new(view, done);
    output.id = Some(request.id.clone());
    output.strategy = Some(request.strategy);
    let target = &request.target.nodes;
    let order = view.in_order().into_iter().map(|pod| pod.node.clone());
    output.nodes = order.filter(|node| target.is_empty() || target.contains(node)).collect();
    Told { page, output }
}

/// What speaks against it, in a sentence.
fn check(view: &View, request: &Request) -> Result<(), String> {
    let name = &view.name;
    if view.deleting {
        return Err(format!("SearchCluster {name} is being deleted: no restart begins any more"));
    }
    if view.status.is_none() {
        // It would be taken for a request from before, and left alone.
        return Err(pages::UNSEEN.to_owned());
    }
    if let Some(Ok(other)) = view.requested() {
        return Err(format!(
            "restart {} was asked for and is not taken up yet: wait, or withdraw it with `kubectl \
             stayput cancel {name}`",
            other.id
        ));
    }
    let known: Vec<String> = view.node_names().collect();
    if let Some(node) = request.target.nodes.iter().find(|node| !known.contains(node)) {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(format!("{name} has no node {node}; there are: {known}"));
    }
    let kept = |node: &&String| view.node(node).is_some_and(|pod| view.is_kept_stopped(pod));
    if let Some(node) = request.target.nodes.iter().find(kept) {
        return Err(format!(
            "{node} is kept stopped and is not restarted: start it with `kubectl stayput start \
             {node}`"
        ));
    }
    if view.in_order().is_empty() {
        return Err(format!(
            "{name} has no node that may be restarted: see `kubectl stayput status`"
        ));
    }
    Ok(())
}

/// Has somebody say that an outage is meant.
fn agree(view: &View, request: &Request) -> Result<(), Failure> {
    let count = match request.target.nodes.len() {
        0 => view.in_order().len(),
        count => count,
    };
    let cost = format!(
        "A coordinated restart is an outage: {} of {} are stopped together before any is started.",
        nodes(count),
        view.name
    );
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(format!("{cost} If that is meant, add --yes")));
    }
    let mut err = io::stderr();
    write!(err, "{cost}\nType yes if that is meant: ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() == "yes" {
        Ok(())
    } else {
        Err(Failure::Failed("nothing was asked for".into()))
    }
}

fn asked(view: &View, request: &Request) -> String {
    let mut page = format!(
        "{} restart {} of {} asked for\n",
        request.strategy.as_str(),
        request.id,
        view.name
    );
    if let Some(restart) = view.restart() {
        let id = &restart.request.id;
        let takes_its_place =
            request.strategy == Strategy::Coordinated && view.is_blocked_by(Code::Stranded);
        page += &match takes_its_place {
            true => format!(
                "it takes the place of restart {id}, which can go neither on nor back, if it means \
                 all of its nodes\n"
            ),
            false => format!("it begins when restart {id} is over\n"),
        };
    }
    if let Some(queued) = view.queued() {
        page += &format!("restart {}, which waited for that, is given up for it\n", queued.id);
    }
    if view.paused {
        page += "no node is stopped while spec.paused is true\n";
    }
    page
}

/// Twelve random hexadecimal digits. Two that are the same would make two requests one.
fn fresh_id() -> Result<String, Failure> {
    let mut bytes = [0; 6];
    SystemRandom::new().fill(&mut bytes).map_err(|_| {
        Failure::Failed("the system has no random numbers: name an id with --id".into())
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

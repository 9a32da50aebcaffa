//! Lines of a script about templates of pods, and what Kubernetes makes of their changes.

use super::command::matching;
use crate::tests::driver::Driver;
use crate::tests::world::template::Limits;

/// Carries out the command; false if there is none of these words.
pub(super) fn carry_out(driver: &mut Driver, words: &[&str]) -> bool {
    let now = driver.world.now;
    match *words {
        ["template", pods, ref fields @ ..] => template(driver, pods, fields),
        ["image", image, "cannot", "be", "pulled"] => limits(driver, |limits| {
            limits.bad_images.insert(image.into());
        }),
        ["admission", "changes", "images"] => limits(driver, |limits| limits.mirrors = true),
        ["admission", "changes", "images", "unseen"] => {
            limits(driver, |limits| limits.mirrors_unseen = true);
        }
        ["image", image, "can", "be", "pulled"] => {
            driver.world.pods.iter_mut().for_each(|pod| pod.living.can_pull(image, now));
        }
        ["the", "secret", "of", pod, "is", "absent"] => {
            driver.world.pod(pod).living.limits.lacks_secret = true;
        }
        ["the", "secret", "of", pod, "is", "there"] => {
            driver.world.pod(pod).secret_is_there(now);
        }
        ["image", image, "ends", "at", "once"] => limits(driver, |limits| {
            limits.ending_images.insert(image.into());
        }),
        ["image", image, "is", "never", "ready"] => limits(driver, |limits| {
            limits.unready_images.insert(image.into());
        }),
        ["image", image, "is", "made", "late"] => limits(driver, |limits| {
            limits.delayed_images.insert(image.into());
        }),
        ["image", image, "breaks", "the", "engine"] => limits(driver, |limits| {
            limits.broken_images.insert(image.into());
        }),
        ["env", value, "breaks", "the", "engine"] => limits(driver, |limits| {
            limits.broken_values.insert(value.into());
        }),
        ["variable", value, "breaks", "the", "engine"] => {
            for pod in &mut driver.world.pods {
                pod.living.limits.broken_variables.insert(value.into());
                pod.machine.habits.breaks.insert(value.into());
            }
        }
        ["memory", size, "is", "infeasible"] => limits(driver, |limits| {
            limits.infeasible.insert(size.into());
        }),
        ["memory", size, "is", "too", "low"] => limits(driver, |limits| {
            limits.low.insert(size.into());
        }),
        ["memory", size, "is", "deferred"] => limits(driver, |limits| {
            limits.deferred.insert(size.into());
        }),
        ["memory", size, "is", "refused"] => limits(driver, |limits| {
            limits.refused.insert(size.into());
        }),
        ["memory", size, "is", "taken"] => limits(driver, |limits| {
            limits.refused.remove(size);
        }),
        ["no", "room", "for", "memory", size] => limits(driver, |limits| {
            limits.no_room.insert(size.into());
        }),
        ["room", "for", "memory", size] => limits(driver, |limits| {
            limits.no_room.remove(size);
        }),
        ["no", "room", "for", "new", "pods"] => limits(driver, |limits| limits.is_full = true),
        ["room", "for", "new", "pods"] => limits(driver, |limits| limits.is_full = false),
        ["heap", "of", node, "is", mebibytes] => {
            let bytes = mebibytes.parse::<u64>().expect("a number of MiB") << 20;
            driver.world.engine.heaps.insert(node.into(), bytes);
        }
        ["pods", "must", "not", "be", "deleted"] => limits(driver, |limits| limits.is_kept = true),
        ["pods", "must", "not", "be", "changed"] => limits(driver, |limits| limits.is_fixed = true),
        ["pods", "may", "be", "changed"] => limits(driver, |limits| limits.is_fixed = false),
        ["pods", "have", "no", "claims"] => limits(driver, |limits| limits.has_no_claim = true),
        ["pods", "may", "be", "deleted"] => limits(driver, |limits| limits.is_kept = false),
        ["the", "claim", "of", pod, "is", "deleted", "with", "it"] => {
            driver.world.pod(pod).living.limits.loses_claim = true;
        }
        ["patches", "of", pods, "are", "refused"] => {
            for pod in matching(driver, pods) {
                driver.world.pod(&pod).refuses_patches = true;
            }
        }
        ["patches", "of", pods, "are", "taken"] => {
            for pod in matching(driver, pods) {
                driver.world.pod(&pod).refuses_patches = false;
            }
        }
        ["the", "label", "of", pod, "is", "set", "back"] => {
            let living = &mut driver.world.pod(pod).living;
            living.labelled = living.actual.clone();
        }
        ["the", "node", "of", pod, "is", "cordoned"] => {
            driver.world.pod(pod).living.limits.would_not_fit = true;
        }
        ["the", "node", "of", pod, "is", "uncordoned"] => {
            driver.world.pod(pod).living.limits.would_not_fit = false;
        }
        ["room", "for", pod] => driver.world.pod(pod).is_scheduled(now),
        _ => return false,
    }
    true
}

/// The owner of these pods wants another template: `template logs-* image=b env=b`.
fn template(driver: &mut Driver, pods: &str, fields: &[&str]) {
    for name in matching(driver, pods) {
        let pod = driver.world.pod(&name);
        for field in fields {
            let (field, value) = field.split_once('=').expect("field=value");
            pod.living.wanted.insert(field.into(), value.into());
        }
        let wanted = pod.living.wanted.clone();
        if !driver.world.templates.contains(&wanted) {
            driver.world.templates.push(wanted);
        }
    }
}

fn limits(driver: &mut Driver, change: impl Fn(&mut Limits)) {
    for pod in &mut driver.world.pods {
        change(&mut pod.living.limits);
    }
}

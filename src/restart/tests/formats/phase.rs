//! The seven phases as text.

use crate::{Phase, Strategy};

#[test]
fn every_word_is_read_as_the_phase_that_prints_it() {
    for phase in Phase::ALL {
        assert_eq!(Phase::parse(phase.as_str()), Ok(phase));
    }
    let mut words: Vec<&str> = Phase::ALL.into_iter().map(Phase::as_str).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 7, "no two phases share a word");
}

#[test]
fn nothing_else_is_a_phase_and_the_sentence_tells_what_is() {
    for word in [
        "",
        " stop",
        "stop\n",
        "Stop",
        "STOP",
        "rolling",
        "schedule_rolling",
        "start-rolling",
        "true",
    ] {
        let error = Phase::parse(word).expect_err(word);
        assert_eq!(error.0, word);
        let error = error.to_string();
        assert!(error.contains(&format!("{word:?}")), "{error}");
        assert!(error.contains("schedule-rolling") && error.contains("remove"), "{error}");
    }
}

#[test]
fn what_a_person_asks_for_with_each_word() {
    for (phase, asked) in [
        (Phase::Schedule, Some(Strategy::Immediate)),
        (Phase::ScheduleRolling, Some(Strategy::Rolling)),
        (Phase::ScheduleCoordinated, Some(Strategy::Coordinated)),
        (Phase::Stop, Some(Strategy::Immediate)),
        (Phase::StopCoordinated, Some(Strategy::Coordinated)),
        (Phase::Start, None),
        (Phase::StartCoordinated, None),
    ] {
        assert_eq!(phase.asks_for(), asked, "{phase:?}");
    }
}

#[test]
fn what_is_shown_of_each_strategy() {
    let shown = |strategy| {
        [Phase::scheduled(strategy), Phase::stop(strategy), Phase::start(strategy)]
            .map(Phase::as_str)
            .join(" ")
    };
    for (strategy, words) in [
        (Strategy::Immediate, "schedule stop start"),
        (Strategy::Rolling, "schedule-rolling stop start"),
        (Strategy::Coordinated, "schedule-coordinated stop-coordinated start-coordinated"),
    ] {
        assert_eq!(shown(strategy), words);
        // The value that requests a restart is also the one of a waiting pod.
        assert_eq!(Phase::scheduled(strategy).asks_for(), Some(strategy));
    }
}

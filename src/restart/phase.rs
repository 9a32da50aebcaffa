//! The words on the pods: the restart phase, as the ADR of 2019 spells it. Parsed and printed here
//! and nowhere else.

use thiserror::Error;

use super::Strategy;

/// Value of the annotation [`super::annotation::PHASE`]; absent means there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// To be restarted as soon as there is a slot.
    Schedule,
    /// To be restarted in its turn, by the rules.
    ScheduleRolling,
    /// To be restarted together with all the others.
    ScheduleCoordinated,
    /// Being stopped.
    Stop,
    /// Being stopped together with all the others.
    StopCoordinated,
    /// Being started.
    Start,
    /// Being started together with all the others.
    StartCoordinated,
}

/// A value that is no phase.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no restart phase: write schedule, schedule-rolling or schedule-coordinated to ask \
     for a restart, or remove the annotation"
)]
pub struct UnknownPhase(pub String);

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 7] = [
        Self::Schedule,
        Self::ScheduleRolling,
        Self::ScheduleCoordinated,
        Self::Stop,
        Self::StopCoordinated,
        Self::Start,
        Self::StartCoordinated,
    ];

    /// The word as it stands on the pod.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::ScheduleRolling => "schedule-rolling",
            Self::ScheduleCoordinated => "schedule-coordinated",
            Self::Stop => "stop",
            Self::StopCoordinated => "stop-coordinated",
            Self::Start => "start",
            Self::StartCoordinated => "start-coordinated",
        }
    }

    /// Reads the word.
    ///
    /// # Errors
    /// The word, if it is none of the seven.
    pub fn parse(word: &str) -> Result<Self, UnknownPhase> {
        Self::ALL
            .into_iter()
            .find(|phase| phase.as_str() == word)
            .ok_or_else(|| UnknownPhase(word.to_owned()))
    }

    /// The strategy a person asks for with this word. `stop` on an idle pod is read as `schedule`,
    /// so that it takes a slot and obeys the rules; `start` asks for nothing.
    pub const fn asks_for(self) -> Option<Strategy> {
        match self {
            Self::Schedule | Self::Stop => Some(Strategy::Immediate),
            Self::ScheduleRolling => Some(Strategy::Rolling),
            Self::ScheduleCoordinated | Self::StopCoordinated => Some(Strategy::Coordinated),
            Self::Start | Self::StartCoordinated => None,
        }
    }

    /// Whether the pod's turn has not come.
    pub const fn is_scheduled(self) -> bool {
        match self {
            Self::Schedule | Self::ScheduleRolling | Self::ScheduleCoordinated => true,
            Self::Stop | Self::StopCoordinated | Self::Start | Self::StartCoordinated => false,
        }
    }

    /// Waiting, of a restart with this strategy.
    pub const fn scheduled(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Immediate => Self::Schedule,
            Strategy::Rolling => Self::ScheduleRolling,
            Strategy::Coordinated => Self::ScheduleCoordinated,
        }
    }

    /// Stopping, in a restart with this strategy.
    pub const fn stop(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Immediate | Strategy::Rolling => Self::Stop,
            Strategy::Coordinated => Self::StopCoordinated,
        }
    }

    /// Starting, in a restart with this strategy.
    pub const fn start(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Immediate | Strategy::Rolling => Self::Start,
            Strategy::Coordinated => Self::StartCoordinated,
        }
    }
}

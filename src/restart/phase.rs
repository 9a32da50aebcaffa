//! The restart phase in the annotation of a pod, as the ADR of 2019 spells it. Parsed and printed
//! only here.

use thiserror::Error;

use super::Strategy;

/// Value of the annotation [`super::annotation::PHASE`]; without it there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// To be restarted as soon as a slot is free.
    Schedule,
    /// To be restarted when the rules allow it.
    ScheduleRolling,
    /// To be restarted together with all other nodes.
    ScheduleCoordinated,
    /// Being stopped.
    Stop,
    /// Being stopped together with all other nodes.
    StopCoordinated,
    /// Being started.
    Start,
    /// Being started together with all other nodes.
    StartCoordinated,
}

/// A value that is not a phase.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a restart phase: write schedule, schedule-rolling or schedule-coordinated to ask \
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

    /// The value of the annotation.
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

    /// # Errors
    /// The text is not one of the seven phases.
    pub fn parse(text: &str) -> Result<Self, UnknownPhase> {
        Self::ALL
            .into_iter()
            .find(|phase| phase.as_str() == text)
            .ok_or_else(|| UnknownPhase(text.to_owned()))
    }

    /// The strategy that a person requests with this value. `stop` on an idle pod is read as
    /// `schedule`, so that it takes a slot and obeys the rules; `start` asks for nothing.
    pub const fn asks_for(self) -> Option<Strategy> {
        match self {
            Self::Schedule | Self::Stop => Some(Strategy::Immediate),
            Self::ScheduleRolling => Some(Strategy::Rolling),
            Self::ScheduleCoordinated | Self::StopCoordinated => Some(Strategy::Coordinated),
            Self::Start | Self::StartCoordinated => None,
        }
    }

    /// True if the restart of the pod has not begun.
    pub const fn is_scheduled(self) -> bool {
        match self {
            Self::Schedule | Self::ScheduleRolling | Self::ScheduleCoordinated => true,
            Self::Stop | Self::StopCoordinated | Self::Start | Self::StartCoordinated => false,
        }
    }

    /// The phase of a waiting pod in a restart with this strategy.
    pub const fn scheduled(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Immediate => Self::Schedule,
            Strategy::Rolling => Self::ScheduleRolling,
            Strategy::Coordinated => Self::ScheduleCoordinated,
        }
    }

    /// The phase of a stopping pod in a restart with this strategy.
    pub const fn stop(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Immediate | Strategy::Rolling => Self::Stop,
            Strategy::Coordinated => Self::StopCoordinated,
        }
    }

    /// The phase of a starting pod in a restart with this strategy.
    pub const fn start(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Immediate | Strategy::Rolling => Self::Start,
            Strategy::Coordinated => Self::StartCoordinated,
        }
    }
}

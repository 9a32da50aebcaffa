//! Retries of a patch that is refused because others have changed the object meanwhile.

use crate::actions::error::ActionError;
use crate::apiserver::ApiError;

/// Maximum number of attempts for a patch.
pub(crate) const MAX_ATTEMPTS: usize = 5;

/// The attempts to patch one object.
#[derive(Default)]
pub(crate) struct Attempts {
    refused: usize,
    /// Resource version and answer of the last attempt, if the answer may be about the patch itself.
    last: Option<(String, ApiError)>,
}

impl Attempts {
    /// Starts the next attempt, with kind, name and resource version of the object as it is now.
    ///
    /// # Errors
    /// If another attempt would be refused as the last one was, or there were too many.
    pub(crate) fn next(
        &mut self,
        kind: &str,
        name: &str,
        version: &str,
    ) -> Result<(), ActionError> {
        if let Some((refused, error)) = self.last.take()
            && refused == version
        {
            return Err(error.into());
        }
        if self.refused < MAX_ATTEMPTS {
            Ok(())
        } else {
            Err(ActionError::Conflict { object: format!("{kind} {name}") })
        }
    }

    /// Records an attempt that was refused: `version` is the version that was read before it.
    ///
    /// # Errors
    /// If reading the object again cannot help.
    pub(crate) fn refused(&mut self, version: &str, error: ApiError) -> Result<(), ActionError> {
        if !error.is_conflict() {
            return Err(error.into());
        }
        self.refused += 1;
        if error.is_unprocessable() {
            self.last = Some((version.to_owned(), error));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;
    use crate::apiserver::Operation;

    fn error(code: u16) -> ApiError {
        let status = Status { code, message: "a webhook says no".into(), ..Status::default() };
        let operation = Operation::watch_pods("search");
        ApiError::call(&operation, kube::Error::Api(Box::new(status)))
    }

    fn next(attempts: &mut Attempts, version: &str) -> Result<(), ActionError> {
        attempts.next("SearchCluster", "logs", version)
    }

    #[test]
    fn a_refusal_of_what_nobody_has_changed_is_the_apiservers_own() {
        let mut attempts = Attempts::default();
        next(&mut attempts, "1").unwrap();
        attempts.refused("1", error(422)).unwrap();
        let told = next(&mut attempts, "1").unwrap_err().to_string();
        assert!(told.contains("a webhook says no"), "{told}");
    }

    #[test]
    fn what_others_change_again_and_again_is_named() {
        for code in [409, 422] {
            let mut attempts = Attempts::default();
            for version in 0..MAX_ATTEMPTS {
                next(&mut attempts, &version.to_string()).unwrap();
                attempts.refused(&version.to_string(), error(code)).unwrap();
            }
            let told = next(&mut attempts, "9").unwrap_err().to_string();
            let expected = "SearchCluster logs was changed by others 5 times meanwhile: try again";
            assert_eq!(told, expected);
        }
        assert!(Attempts::default().refused("1", error(403)).is_err());
    }
}

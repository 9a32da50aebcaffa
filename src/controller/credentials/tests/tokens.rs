use crate::credentials::*;
use stayput_http::jwt::MAX_AHEAD;

#[test] // proves RESTART-7
fn a_thousand_pods_cost_less_than_one_token_request_in_two_seconds() {
    let life = Duration::from_secs(TOKEN_SECONDS.into());
    let a_second = 1_000.0 / renewed_after(life).as_secs_f64();
    assert!(a_second < 0.5, "{a_second}");
    // Managers accept it although their clocks are ten minutes behind.
    assert!(life + Duration::from_secs(600) <= Duration::from_secs(MAX_AHEAD));
}

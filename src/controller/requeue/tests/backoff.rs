use crate::requeue::*;

#[test]
fn it_doubles_up_to_half_a_minute() {
    let seconds: Vec<f32> = (1..=9).map(|failures| pause(failures).as_secs_f32()).collect();
    assert_eq!(seconds, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
    assert_eq!(pause(u32::MAX), LONGEST);
    assert_eq!(pause(0), FIRST);
}

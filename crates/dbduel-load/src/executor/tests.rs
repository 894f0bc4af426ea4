use super::policy::CpuTime;
use super::*;

/// Longer than any test lasts.
const FOREVER: Duration = Duration::from_secs(600);

#[test]
fn a_timer_wakes_its_task_and_never_early() {
    let mut executor = Executor::new().unwrap();
    let reactor = Rc::clone(executor.reactor());
    let began = Instant::now();
    let at = began + Duration::from_millis(20);
    let token = executor.insert(|token| {
        Box::pin(async move {
            reactor.wake_at(token, at);
            turn().await;
            Instant::now()
        })
    });
    assert!(executor.poll(token).is_none());
    let mut ended = Vec::new();
    while ended.is_empty() {
        executor.turn(&mut ended).unwrap();
    }
    assert_eq!(ended[0].0, token);
    assert!(ended[0].1 >= at, "woken {:?} early", at - ended[0].1);
}

#[test]
fn timers_fire_in_the_order_of_their_instants() {
    let mut executor = Executor::new().unwrap();
    let began = Instant::now();
    for wait_ms in [9, 3, 6] {
        let reactor = Rc::clone(executor.reactor());
        let token = executor.insert(|token| {
            Box::pin(async move {
                reactor.wake_at(token, began + Duration::from_millis(wait_ms));
                turn().await;
                wait_ms
            })
        });
        executor.poll(token);
    }
    let mut ended = Vec::new();
    while ended.len() < 3 {
        executor.turn(&mut ended).unwrap();
    }
    assert_eq!(
        ended
            .iter()
            .map(|(_, wait_ms)| *wait_ms)
            .collect::<Vec<_>>(),
        [3, 6, 9]
    );
}

#[test]
fn the_bell_ends_a_wait() {
    let mut executor: Executor<()> = Executor::new().unwrap();
    let bell = executor.reactor().bell();
    let ringer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        bell.ring();
    });
    while !executor.turn(&mut Vec::new()).unwrap().rung {}
    ringer.join().unwrap();
}

#[test]
fn the_token_of_an_ended_task_is_used_again_after_a_turn_and_not_before() {
    let mut executor = Executor::new().unwrap();
    let both = [1, 2].map(|number| executor.insert(|_| Box::pin(async move { number })));
    assert_eq!(both.map(|token| executor.poll(token)), [Some(1), Some(2)]);
    assert_eq!(executor.poll(both[0]), None);
    // Nobody has told the owner of the other one yet.
    let third = executor.insert(|_| Box::pin(async { 3 }));
    assert!(!both.contains(&third));
    executor.reactor().bell().ring();
    executor.turn(&mut Vec::new()).unwrap();
    let fourth = executor.insert(|_| Box::pin(async { 4 }));
    assert_eq!(fourth, both[0]);
    executor.remove(fourth);
    assert_eq!(executor.poll(fourth), None);
}

/// One turn that only the owner's instant ends, `after` from now.
fn wait_for_owner(executor: &mut Executor<()>, after: Duration) {
    let at = Instant::now() + after;
    executor.reactor().wake_owner_at(Some(at));
    while Instant::now() < at {
        executor.turn(&mut Vec::new()).unwrap();
    }
    executor.reactor().wake_owner_at(None);
}

#[test]
fn a_thread_without_busy_polling_sleeps() {
    let mut executor = Executor::new().unwrap();
    let before = CpuTime::of_this_thread();
    wait_for_owner(&mut executor, Duration::from_millis(50));
    let used = CpuTime::of_this_thread().since(before);
    assert!(used.user_s + used.system_s < 0.01, "{used:?}");
    assert_eq!(executor.reactor().polled(), Polled::default());
}

#[test]
fn an_event_ends_polling() {
    let mut executor: Executor<()> = Executor::polling(FOREVER).unwrap();
    let bell = executor.reactor().bell();
    let ringer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        bell.ring();
    });
    assert!(executor.turn(&mut Vec::new()).unwrap().rung);
    ringer.join().unwrap();
    assert!(executor.reactor().polled().used > Duration::ZERO);
}

#[test]
fn what_is_there_already_is_not_polled_for() {
    let mut executor: Executor<()> = Executor::polling(FOREVER).unwrap();
    executor.reactor().bell().ring();
    assert!(executor.turn(&mut Vec::new()).unwrap().rung);
    assert_eq!(executor.reactor().polled(), Polled::default());
}

#[test]
fn an_instant_within_polling_is_met_without_the_timer_and_never_early() {
    let mut executor = Executor::polling(FOREVER).unwrap();
    let reactor = Rc::clone(executor.reactor());
    let task_at = Instant::now() + Duration::from_millis(5);
    let token = executor.insert(|token| {
        let reactor = Rc::clone(&reactor);
        Box::pin(async move {
            reactor.wake_at(token, task_at);
            turn().await;
            Instant::now()
        })
    });
    assert!(executor.poll(token).is_none());
    let mut ended = Vec::new();
    // Nothing else ends a wait, so one turn is all that it takes.
    executor.turn(&mut ended).unwrap();
    assert!(ended[0].1 >= task_at);
    let owner_at = task_at + Duration::from_millis(5);
    reactor.wake_owner_at(Some(owner_at));
    executor.turn(&mut ended).unwrap();
    assert!(reactor.turn_began() >= owner_at);
    assert!(!reactor.is_armed(), "it went to sleep");
}

#[test]
fn an_instant_that_has_passed_is_not_polled_for() {
    let mut executor: Executor<()> = Executor::polling(FOREVER).unwrap();
    executor.reactor().wake_owner_at(Some(Instant::now()));
    executor.turn(&mut Vec::new()).unwrap();
    assert_eq!(executor.reactor().polled(), Polled::default());
}

#[test]
fn each_wait_polls_up_to_its_limit_and_then_sleeps() {
    const LIMIT: Duration = Duration::from_millis(1);
    let mut executor: Executor<()> = Executor::polling(LIMIT).unwrap();
    let reactor = Rc::clone(executor.reactor());
    let mut polled = Duration::ZERO;
    for _ in 0..3 {
        reactor.wake_owner_at(Some(Instant::now() + Duration::from_millis(30)));
        executor.turn(&mut Vec::new()).unwrap();
        let each = reactor.polled().used - polled;
        polled = reactor.polled().used;
        // The last look may have been interrupted.
        assert!(each < 10 * LIMIT, "{each:?}");
    }
    assert!(polled > Duration::ZERO);
}

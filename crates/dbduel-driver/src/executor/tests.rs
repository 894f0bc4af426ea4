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

#[test]
fn a_thread_without_busy_polling_sleeps() {
    let mut executor: Executor<()> = Executor::new().unwrap();
    let reactor = Rc::clone(executor.reactor());
    let at = Instant::now() + Duration::from_millis(50);
    reactor.wake_owner_at(Some(at));
    // Nothing else ends a wait, so one turn is all that it takes.
    executor.turn(&mut Vec::new()).unwrap();
    assert!(reactor.turn_began() >= at);
    assert_eq!(reactor.sleeps(), 1);
    assert_eq!(reactor.polled(), Polled::default());
}

#[test]
fn an_event_ends_polling() {
    let mut executor: Executor<()> = Executor::polling(FOREVER).unwrap();
    let reactor = Rc::clone(executor.reactor());
    // On a busy machine the bell may ring before the polling begins.
    for _ in 0..100 {
        let bell = reactor.bell();
        let ringer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            bell.ring();
        });
        assert!(executor.turn(&mut Vec::new()).unwrap().rung);
        ringer.join().unwrap();
        if reactor.polled().used > Duration::ZERO {
            break;
        }
    }
    assert!(reactor.polled().used > Duration::ZERO);
    assert_eq!(reactor.sleeps(), 0);
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
    assert_eq!(reactor.sleeps(), 0);
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
    // A busy machine may take the processor away until the instant has come, and then there is nothing left to sleep for.
    for _ in 0..1_000 {
        reactor.wake_owner_at(Some(Instant::now() + Duration::from_millis(30)));
        executor.turn(&mut Vec::new()).unwrap();
        if reactor.sleeps() >= 3 {
            break;
        }
    }
    assert_eq!(reactor.sleeps(), 3);
    assert!(reactor.polled().used > Duration::ZERO);
}

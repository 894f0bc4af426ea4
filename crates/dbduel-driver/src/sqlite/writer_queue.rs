//! The writers of one file in this process, first come, first served.
//!
//! SQLite lets one connection write at a time. Others retry after growing pauses, so a writer that commits and begins
//! again at once can overtake them indefinitely. Here they wait in line.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The queue of one file.
#[derive(Debug, Default)]
pub(super) struct WriterQueue {
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    /// True while a writer has its turn.
    is_taken: bool,
    waiting: VecDeque<Arc<Turn>>,
}

/// A waiting writer.
#[derive(Debug, Default)]
struct Turn {
    has_come: Mutex<bool>,
    came: Condvar,
}

static QUEUES: Mutex<Option<HashMap<PathBuf, Weak<WriterQueue>>>> = Mutex::new(None);

impl WriterQueue {
    /// The queue of a file, identified independently of its path.
    pub(super) fn of(path: &Path) -> Arc<Self> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut queues = locked(&QUEUES);
        let queues = queues.get_or_insert_default();
        queues.retain(|_, queue| queue.strong_count() > 0);
        if let Some(queue) = queues.get(&path).and_then(Weak::upgrade) {
            return queue;
        }
        let queue = Arc::new(WriterQueue::default());
        queues.insert(path, Arc::downgrade(&queue));
        queue
    }

    /// Waits for its turn, at most `timeout`; false when it did not come.
    pub(super) fn enter(&self, timeout: Duration) -> bool {
        let turn = {
            let mut line = locked(&self.line);
            if !line.is_taken {
                line.is_taken = true;
                return true;
            }
            if timeout.is_zero() {
                return false;
            }
            let turn = Arc::new(Turn::default());
            line.waiting.push_back(Arc::clone(&turn));
            turn
        };
        let deadline = Instant::now() + timeout;
        let mut has_come = locked(&turn.has_come);
        while !*has_come {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(has_come);
                return self.give_up(&turn);
            }
            let waited = turn.came.wait_timeout(has_come, left);
            has_come = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Leaves the line; true when the turn came meanwhile.
    fn give_up(&self, turn: &Arc<Turn>) -> bool {
        let mut line = locked(&self.line);
        let has_come = *locked(&turn.has_come);
        line.waiting.retain(|waiting| !Arc::ptr_eq(waiting, turn));
        has_come
    }

    /// Lets the next one through.
    pub(super) fn leave(&self) {
        let mut line = locked(&self.line);
        match line.waiting.pop_front() {
            Some(turn) => {
                *locked(&turn.has_come) = true;
                turn.came.notify_one();
            }
            None => line.is_taken = false,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn await_waiting(queue: &WriterQueue, count: usize) {
        while locked(&queue.line).waiting.len() < count {
            std::thread::yield_now();
        }
    }

    #[test]
    fn those_that_wait_are_let_through_in_the_order_in_which_they_came() {
        let queue = WriterQueue::default();
        let order = Mutex::new(Vec::new());
        assert!(queue.enter(LONG));
        std::thread::scope(|scope| {
            for number in 0..5 {
                let (queue, order) = (&queue, &order);
                scope.spawn(move || {
                    assert!(queue.enter(LONG));
                    locked(order).push(number);
                    queue.leave();
                });
                await_waiting(queue, number + 1);
            }
            queue.leave();
        });
        assert_eq!(*locked(&order), [0, 1, 2, 3, 4]);
        assert!(queue.enter(Duration::ZERO), "the last one left");
    }

    #[test]
    fn a_wait_ends_with_its_time_and_leaves_the_line() {
        let queue = WriterQueue::default();
        assert!(queue.enter(LONG));
        assert!(!queue.enter(Duration::ZERO));
        assert!(!queue.enter(Duration::from_millis(5)));
        queue.leave();
        assert!(queue.enter(Duration::ZERO));
    }

    #[test]
    fn a_file_has_one_queue_by_whatever_path_it_is_reached() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sqlite");
        std::fs::write(&path, "").unwrap();
        let link = directory.path().join("link.sqlite");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let queue = WriterQueue::of(&path);
        assert!(Arc::ptr_eq(&queue, &WriterQueue::of(&link)));
        let other = directory.path().join("b.sqlite");
        assert!(!Arc::ptr_eq(&queue, &WriterQueue::of(&other)));
    }
}

//! Division of a load's clients over load hosts, and of each host's clients over its threads.

/// The part of the load that one load process drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostShare {
    /// Number of the load process's host, from 0.
    pub host: u32,
    /// Load hosts in all, each with one load process and the same number of threads.
    pub hosts: u32,
}

impl HostShare {
    /// The whole load.
    pub const WHOLE: HostShare = HostShare { host: 0, hosts: 1 };

    /// The part of one of this host's `threads`. Client n runs on host n mod `hosts`.
    #[must_use]
    pub fn of_thread(self, thread: u32, threads: u32, clients: u32) -> Share {
        Share {
            thread: thread * self.hosts + self.host,
            threads: threads * self.hosts,
            clients,
        }
    }

    /// A number unique over all hosts, from a number unique among the clients of this host.
    #[must_use]
    pub fn distinct(self, number: u32) -> u32 {
        number.wrapping_mul(self.hosts).wrapping_add(self.host)
    }
}

/// The part of the load that one thread drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Threads in all, on all load hosts.
    pub threads: u32,
    /// Clients of all threads; client n runs on thread n mod `threads`.
    pub clients: u32,
}

impl Share {
    /// The whole load on one thread.
    pub(crate) const WHOLE: Share = Share {
        thread: 0,
        threads: 1,
        clients: 1,
    };

    /// Number of clients on this thread.
    #[must_use]
    pub fn own_clients(&self) -> u32 {
        let before = self.clients.saturating_sub(self.thread);
        before.div_ceil(self.threads.max(1))
    }

    /// True when the arrival belongs to this thread. Each thread gets arrivals in proportion to its
    /// clients, and none when it has none.
    pub(crate) fn owns(&self, arrival: u64) -> bool {
        let client = arrival % u64::from(self.clients.max(1));
        client % u64::from(self.threads.max(1)) == u64::from(self.thread)
    }

    /// True when the client runs on this thread.
    #[must_use]
    pub fn has_client(&self, client: u32) -> bool {
        client % self.threads.max(1) == self.thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_runs_on_one_thread() {
        for (clients, threads, expected) in [(1, 2, vec![1, 0]), (7, 3, vec![3, 2, 2])] {
            let share = |thread| Share {
                thread,
                threads,
                clients,
            };
            let counts: Vec<u32> = (0..threads).map(|n| share(n).own_clients()).collect();
            assert_eq!(counts, expected);
        }
    }

    #[test]
    fn client_n_runs_on_host_n_mod_hosts_and_on_one_of_its_threads() {
        for (hosts, threads, clients) in [(2, 1, 5), (2, 3, 32), (3, 2, 7)] {
            for client in 0..clients {
                let mut drivers = Vec::new();
                for host in 0..hosts {
                    let own = HostShare { host, hosts };
                    let parts = (0..threads).map(|thread| own.of_thread(thread, threads, clients));
                    drivers.extend(parts.filter(|part| part.has_client(client)).map(|_| host));
                }
                assert_eq!(drivers, [client % hosts], "client {client} of {clients}");
            }
        }
    }

    #[test]
    fn hosts_draw_different_numbers() {
        let mut all: Vec<u32> = (0..3)
            .flat_map(|host| {
                (0..5).map(move |number| HostShare { host, hosts: 3 }.distinct(number))
            })
            .collect();
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..15));
    }
}

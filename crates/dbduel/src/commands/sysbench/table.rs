//! The options that sysbench knows by itself, with their types and defaults. Does nothing with them.

use dbduel_load::lua::{DeclaredOption, OptionKind};

/// An option.
#[derive(Debug)]
pub struct Spec {
    /// Its name, with hyphens; underscores are as good everywhere.
    pub name: &'static str,
    /// What values it takes.
    pub kind: OptionKind,
    /// Its value when none is given, as text.
    pub default: Option<&'static str>,
    /// What it means.
    pub about: &'static str,
}

/// Options that belong together in help.
pub struct Section {
    /// The line above them; empty for none.
    pub title: &'static str,
    /// The options.
    pub options: &'static [Spec],
}

const fn spec(
    name: &'static str,
    kind: OptionKind,
    default: &'static str,
    about: &'static str,
) -> Spec {
    Spec {
        name,
        kind,
        default: Some(default),
        about,
    }
}

const fn bare(name: &'static str, kind: OptionKind, about: &'static str) -> Spec {
    Spec {
        name,
        kind,
        default: None,
        about,
    }
}

impl Spec {
    /// The option as scripts declare theirs.
    pub fn declared(&self) -> DeclaredOption {
        DeclaredOption {
            name: self.name.to_owned(),
            description: self.about.to_owned(),
            kind: self.kind,
            default: self.default.map(str::to_owned),
        }
    }
}

use OptionKind::{Bool, Double, File, Int, List, Size, String as Text};

/// What every test takes.
pub const GENERAL: &[Section] = &[
    Section {
        title: "General options:",
        options: &[
            spec(
                "threads",
                Int,
                "1",
                "clients, each with one event at a time",
            ),
            spec(
                "events",
                Int,
                "0",
                "most events of all clients together; 0 for no limit",
            ),
            spec(
                "time",
                Int,
                "10",
                "seconds after which no event is begun; 0 for no limit",
            ),
            spec(
                "warmup-time",
                Int,
                "0",
                "seconds before that whose events are not counted",
            ),
            spec(
                "forced-shutdown",
                Text,
                "off",
                "seconds after --time at which the run ends whatever is running, a share of --time as N%, or off",
            ),
            spec(
                "thread-stack-size",
                Size,
                "64K",
                "stack of each thread of a machine test",
            ),
            spec(
                "thread-init-timeout",
                Int,
                "30",
                "seconds in which all clients must be connected",
            ),
            spec(
                "rate",
                Int,
                "0",
                "events that fall due per second; 0 for as many as there can be",
            ),
            spec(
                "report-interval",
                Int,
                "0",
                "seconds from one intermediate line to the next; 0 for none",
            ),
            spec(
                "report-checkpoints",
                List,
                "",
                "seconds after the start at which a full report is printed and counting begins anew",
            ),
            spec("debug", Bool, "off", "say more of what happens"),
            spec(
                "validate",
                Bool,
                "off",
                "look whether files hold what was written (fileio)",
            ),
            spec("help", Bool, "off", "print this and end"),
            spec("version", Bool, "off", "print the version and end"),
            bare(
                "config-file",
                File,
                "file with more options, one `name = value` per line",
            ),
            spec("tx-rate", Int, "0", "old name of --rate"),
            spec("max-requests", Int, "0", "old name of --events"),
            spec("max-time", Int, "0", "old name of --time"),
            spec("num-threads", Int, "1", "old name of --threads"),
            bare("test", Text, "old way to name the test"),
            spec(
                "luajit-cmd",
                Text,
                "",
                "accepted for the sake of scripts; LuaJIT compiles whatever it says",
            ),
        ],
    },
    Section {
        title: "Options of random numbers:",
        options: &[
            spec(
                "rand-type",
                Text,
                "special",
                "how ids are drawn {uniform, gaussian, special, pareto, zipfian}",
            ),
            spec(
                "rand-spec-iter",
                Int,
                "12",
                "uniform numbers summed up by gaussian and special",
            ),
            spec(
                "rand-spec-pct",
                Int,
                "1",
                "width of the hot band of special, percent",
            ),
            spec(
                "rand-spec-res",
                Int,
                "75",
                "draws of special that fall into its hot band, percent",
            ),
            spec(
                "rand-seed",
                Int,
                "0",
                "root of the random streams; 0 for a new one every time",
            ),
            spec("rand-pareto-h", Double, "0.2", "parameter h of pareto"),
            spec("rand-zipfian-exp", Double, "0.8", "exponent of zipfian"),
        ],
    },
    Section {
        title: "Options of messages:",
        options: &[
            spec(
                "verbosity",
                Int,
                "3",
                "how much to say, from 0 (fatal messages) to 5 (debugging)",
            ),
            spec(
                "percentile",
                Int,
                "95",
                "percentile of the latencies to print, 1 to 100; 0 for none",
            ),
            spec(
                "histogram",
                Bool,
                "off",
                "print a histogram of the latencies",
            ),
        ],
    },
    Section {
        title: "Options of databases:",
        options: &[
            spec("db-driver", Text, "mysql", "the only one is mysql"),
            spec(
                "db-ps-mode",
                Text,
                "auto",
                "whether statements are prepared {auto, disable}",
            ),
            spec(
                "db-debug",
                Bool,
                "off",
                "say more about statements that fail",
            ),
        ],
    },
    Section {
        title: "Options of MySQL and MariaDB:",
        options: &[
            spec("mysql-host", List, "localhost", "hosts of the servers"),
            spec("mysql-port", List, "3306", "ports of the servers"),
            bare(
                "mysql-socket",
                List,
                "sockets of the servers; hosts and ports do not count then",
            ),
            spec("mysql-user", Text, "sbtest", "account"),
            spec(
                "mysql-password",
                Text,
                "",
                "its password; the variable MYSQL_PWD keeps it out of lists of processes",
            ),
            spec("mysql-db", Text, "sbtest", "database"),
            spec(
                "mysql-ssl",
                Text,
                "off",
                "TLS {off, on, disabled, preferred, required, verify_ca, verify_identity}",
            ),
            spec(
                "mysql-ssl-ca",
                Text,
                "",
                "PEM file with the authority that signs the servers' certificates",
            ),
            spec(
                "mysql-ssl-key",
                Text,
                "",
                "not supported: clients do not show a certificate",
            ),
            spec(
                "mysql-ssl-cert",
                Text,
                "",
                "not supported: clients do not show a certificate",
            ),
            spec(
                "mysql-ssl-cipher",
                Text,
                "",
                "not supported: the TLS library chooses",
            ),
            spec(
                "mysql-compression",
                Bool,
                "off",
                "not supported: packets are never compressed",
            ),
            spec(
                "mysql-compression-algorithms",
                Text,
                "",
                "not supported: packets are never compressed",
            ),
            spec(
                "mysql-debug",
                Bool,
                "off",
                "accepted for the sake of scripts; there is no client library to trace",
            ),
            spec(
                "mysql-ignore-errors",
                List,
                "1213,1020,1205",
                "errors after which an event is begun again, or all",
            ),
            spec(
                "mysql-dry-run",
                Bool,
                "off",
                "statements go to a stand-in that answers at once",
            ),
        ],
    },
];

/// Options of `cpu`.
pub const CPU: &[Spec] = &[spec(
    "cpu-max-prime",
    Int,
    "10000",
    "upper limit of the primes",
)];

/// Options of `memory`.
pub const MEMORY: &[Spec] = &[
    spec("memory-block-size", Size, "1K", "size of a block"),
    spec(
        "memory-total-size",
        Size,
        "100G",
        "bytes to walk through, all clients together",
    ),
    spec(
        "memory-scope",
        Text,
        "global",
        "whether the clients share one block {global, local}",
    ),
    spec(
        "memory-hugetlb",
        Bool,
        "off",
        "take blocks from the pool of huge pages",
    ),
    spec(
        "memory-oper",
        Text,
        "write",
        "what is done with each word {read, write, none}",
    ),
    spec(
        "memory-access-mode",
        Text,
        "seq",
        "which word is next {seq, rnd}",
    ),
];

/// Options of `threads`.
pub const THREADS: &[Spec] = &[
    spec(
        "thread-yields",
        Int,
        "1000",
        "times that an event gives the processor away",
    ),
    spec("thread-locks", Int, "8", "locks"),
];

/// Options of `mutex`.
pub const MUTEX: &[Spec] = &[
    spec("mutex-num", Int, "4096", "mutexes"),
    spec("mutex-locks", Int, "50000", "times that a client takes one"),
    spec("mutex-loops", Int, "10000", "empty loops before each"),
];

/// Options of `fileio`.
pub const FILE_IO: &[Spec] = &[
    spec("file-num", Int, "128", "files"),
    spec("file-block-size", Size, "16384", "bytes of a block"),
    spec("file-total-size", Size, "2G", "bytes of all files together"),
    bare(
        "file-test-mode",
        Text,
        "which block is next {seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw}",
    ),
    spec(
        "file-io-mode",
        Text,
        "sync",
        "how files are accessed {sync, async, mmap}",
    ),
    spec(
        "file-async-backlog",
        Int,
        "128",
        "requests of a client in the kernel's queue",
    ),
    spec(
        "file-extra-flags",
        List,
        "",
        "how files are opened {sync, dsync, direct}",
    ),
    spec(
        "file-fsync-freq",
        Int,
        "100",
        "reads and writes after which all files are synced; 0 for never",
    ),
    spec(
        "file-fsync-all",
        Bool,
        "off",
        "sync a file after each write to it",
    ),
    spec("file-fsync-end", Bool, "on", "sync all files at the end"),
    spec(
        "file-fsync-mode",
        Text,
        "fsync",
        "how files are synced {fsync, fdatasync}",
    ),
    spec(
        "file-merged-requests",
        Int,
        "0",
        "blocks that a sequential access takes at once; 0 is one",
    ),
    spec("file-rw-ratio", Double, "1.5", "reads per write of rndrw"),
];

/// Options of the scripts oltp_* and select_random_*.
pub const OLTP: &[Spec] = &[
    spec(
        "auto-inc",
        Bool,
        "on",
        "whether the server numbers the rows of oltp_insert",
    ),
    spec(
        "create-secondary",
        Bool,
        "on",
        "whether column k has an index",
    ),
    spec("create-table-options", Text, "", "appended to CREATE TABLE"),
    spec(
        "delete-inserts",
        Double,
        "1",
        "pairs of DELETE and INSERT per transaction",
    ),
    spec(
        "distinct-ranges",
        Double,
        "1",
        "range queries with DISTINCT per transaction",
    ),
    spec(
        "index-updates",
        Double,
        "1",
        "updates of the indexed column per transaction",
    ),
    spec(
        "mysql-storage-engine",
        Text,
        "innodb",
        "storage engine of the tables",
    ),
    spec(
        "non-index-updates",
        Double,
        "1",
        "updates of a column without index per transaction",
    ),
    spec(
        "order-ranges",
        Double,
        "1",
        "range queries with ORDER BY per transaction",
    ),
    spec(
        "pgsql-variant",
        Text,
        "",
        "accepted for the sake of scripts; only MySQL and MariaDB are spoken",
    ),
    spec(
        "point-selects",
        Double,
        "10",
        "point queries per transaction",
    ),
    spec(
        "range-selects",
        Bool,
        "on",
        "whether there are range queries",
    ),
    spec("range-size", Double, "100", "ids that a range query spans"),
    spec(
        "reconnect",
        Double,
        "0",
        "events after which a client connects anew; 0 for never",
    ),
    spec(
        "secondary",
        Bool,
        "off",
        "whether id has an ordinary index instead of the primary key",
    ),
    spec(
        "simple-ranges",
        Double,
        "1",
        "range queries per transaction",
    ),
    spec(
        "skip-trx",
        Bool,
        "off",
        "whether BEGIN and COMMIT are left out",
    ),
    spec(
        "sum-ranges",
        Double,
        "1",
        "range queries with SUM per transaction",
    ),
    spec("table-size", Double, "10000", "rows per table"),
    spec("tables", Double, "1", "tables"),
];

/// The one more option of `select_random_points`.
pub const RANDOM_POINTS: &[Spec] = &[spec(
    "random-points",
    Double,
    "10",
    "values in the list of a query",
)];

/// The two more options of `select_random_ranges`.
pub const RANDOM_RANGES: &[Spec] = &[
    spec("number-of-ranges", Double, "10", "ranges of a query"),
    spec("delta", Double, "5", "width of each range"),
];

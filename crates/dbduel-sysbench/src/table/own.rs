//! Options of each test besides the general ones.

use dbduel_lua::OptionKind::{Bool, Double, Int, List, Size, String as Text};

use super::{Spec, bare, spec};

/// Options of `cpu`.
pub const CPU: &[Spec] = &[spec(
    "cpu-max-prime",
    Int,
    "10000",
    "upper limit for primes generator",
)];

/// Options of `memory`.
pub const MEMORY: &[Spec] = &[
    spec(
        "memory-block-size",
        Size,
        "1K",
        "size of memory block for test",
    ),
    spec(
        "memory-total-size",
        Size,
        "100G",
        "total size of data to transfer",
    ),
    spec(
        "memory-scope",
        Text,
        "global",
        "memory access scope {global,local}",
    ),
    spec(
        "memory-hugetlb",
        Bool,
        "off",
        "allocate memory from HugeTLB pool",
    ),
    spec(
        "memory-oper",
        Text,
        "write",
        "type of memory operations {read, write, none}",
    ),
    spec(
        "memory-access-mode",
        Text,
        "seq",
        "memory access mode {seq,rnd}",
    ),
];

/// Options of `threads`.
pub const THREADS: &[Spec] = &[
    spec(
        "thread-yields",
        Int,
        "1000",
        "number of yields to do per request",
    ),
    spec("thread-locks", Int, "8", "number of locks per thread"),
];

/// Options of `mutex`.
pub const MUTEX: &[Spec] = &[
    spec("mutex-num", Int, "4096", "total size of mutex array"),
    spec(
        "mutex-locks",
        Int,
        "50000",
        "number of mutex locks to do per thread",
    ),
    spec(
        "mutex-loops",
        Int,
        "10000",
        "number of empty loops to do outside mutex lock",
    ),
];

/// Options of `fileio`.
pub const FILE_IO: &[Spec] = &[
    spec("file-num", Int, "128", "files"),
    spec("file-block-size", Size, "16384", "bytes of a block"),
    spec("file-total-size", Size, "2G", "bytes of all files together"),
    bare(
        "file-test-mode",
        Text,
        "order and kind of accesses {seqwr, seqrewr, seqrd, rndrd, rndwr, rndrw}",
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
        "requests per client in the kernel's queue",
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
        "blocks per sequential access; 0 counts as 1",
    ),
    spec("file-rw-ratio", Double, "1.5", "reads per write of rndrw"),
];

/// Options of the scripts oltp_* and select_random_*.
pub const OLTP: &[Spec] = &[
    spec(
        "auto-inc",
        Bool,
        "on",
        "whether the server assigns the ids of oltp_insert",
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
        "accepted for compatibility; has no effect",
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
        "events after which a client reconnects; 0 for never",
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

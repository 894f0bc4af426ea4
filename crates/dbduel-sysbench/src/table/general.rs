//! General options, for every test.

use dbduel_lua::OptionKind::{Bool, Double, File, Int, List, Size, String as Text};

use super::{Section, bare, spec};

/// The general options, by section.
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
                "limit on the events of all clients together; 0 for no limit",
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
                "seconds of warm-up before that, whose events are not counted",
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
                "seconds within which all clients must be connected",
            ),
            spec(
                "rate",
                Int,
                "0",
                "events that fall due per second; 0 for no limit",
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
                "seconds after the start at which a full report is printed and counting restarts",
            ),
            spec("debug", Bool, "off", "print debugging messages"),
            spec(
                "validate",
                Bool,
                "off",
                "check that files hold what was written (fileio)",
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
                "whether LuaJIT compiles scripts {on, off}",
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
                "verbosity, from 0 (fatal messages) to 5 (debugging)",
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
            spec(
                "db-driver",
                Text,
                "mysql",
                "driver for the servers {mysql, pgsql}",
            ),
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
                "print more about statements that fail",
            ),
            spec(
                "db-statement-check",
                Int,
                "60",
                "seconds without an answer after which a statement is looked up in the server's process list; 0 for never",
            ),
        ],
    },
    Section {
        title: "Options of PostgreSQL:",
        options: &[
            spec(
                "pgsql-host",
                Text,
                "localhost",
                "host of the server, or the folder of its socket",
            ),
            spec("pgsql-port", Int, "5432", "port of the server"),
            spec("pgsql-user", Text, "sbtest", "account"),
            spec(
                "pgsql-password",
                Text,
                "",
                "its password; the variable PGPASSWORD keeps it out of process lists",
            ),
            spec(
                "pgsql-db",
                Text,
                "sbtest",
                "database, or words such as `dbname=sbtest sslmode=disable`",
            ),
            spec(
                "pgsql-sslmode",
                Text,
                "prefer",
                "TLS {disable, allow, prefer, require, verify-ca, verify-full}",
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
                "sockets of the servers; they replace hosts and ports",
            ),
            spec("mysql-user", Text, "sbtest", "account"),
            spec(
                "mysql-password",
                Text,
                "",
                "its password; the variable MYSQL_PWD keeps it out of process lists",
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
                "PEM file with the CA that signs the servers' certificates",
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
                "accepted for compatibility; there is no client library to trace",
            ),
            spec(
                "mysql-ignore-errors",
                List,
                "1213,1020,1205",
                "errors after which an event is restarted, or all",
            ),
            spec(
                "mysql-dry-run",
                Bool,
                "off",
                "statements go to a mock server that answers at once",
            ),
        ],
    },
];

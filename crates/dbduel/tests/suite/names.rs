//! Tables with hostile names: reserved words, blanks, quotes, letters in upper case and beyond ASCII.
//! They are filled, summed up, checked and dropped on every product, and so are those that a script makes.

use std::cell::Cell;
use std::fs;
use std::time::Duration;

use dbduel_client::random::Random;
use dbduel_client::{ClientContext, ClientTask, Clients};
use dbduel_driver::address::Address;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::database::{create_database, create_file};
use dbduel_driver::introspection::{self, ON_TABLES};
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, TlsMode};
use dbduel_record::event::Event;
use dbduel_record::plan::Parameters;
use dbduel_workloads::fill::{
    Digest, FillError, FillWatch, LoadMethodChoice, Place, clear, complaints, digest, fill,
    fill_by, table_names,
};
use dbduel_workloads::parameters::{self, ParameterSpec};
use dbduel_workloads::{RowContent, Table, Workload, find};
use tempfile::TempDir;

use super::lab::{Lab, SHORT_SCHEDULE, assert_verified};
use super::on_postgresql::cluster;
use super::on_server::server::{ALL, Server};

const NAMES: [&str; 7] = ["order", "a b", "Ünïcode", "a\"b", "a`b", "it's", "T"];

/// Rows of each table.
const ROWS: u64 = 1_000;

thread_local! {
    static MAKES_TABLES: Cell<bool> = const { Cell::new(false) };
}

/// A place that a test has for itself.
struct Site {
    dialect: Dialect,
    address: Address,
    credentials: Credentials,
    database: String,
    _folder: Option<TempDir>,
}

impl Site {
    /// A new database of a name that needs quotes as well.
    fn new(dialect: Dialect, address: Address, credentials: Credentials, purpose: &str) -> Self {
        let site = Site {
            dialect,
            address,
            credentials,
            database: format!("{purpose} `of` \"all\" Names"),
            _folder: None,
        };
        site.drop_database();
        create_database(&mut site.general(), &site.database).unwrap();
        site
    }

    fn on_server(server: &Server, purpose: &str) -> Self {
        Site::new(Dialect::MySql, server.unix(), server.credentials(), purpose)
    }

    fn on_postgresql(purpose: &str) -> Option<Self> {
        let cluster = cluster::shared()?;
        let (address, credentials) = (cluster.address(), cluster.credentials());
        Some(Site::new(
            Dialect::PostgreSql,
            address,
            credentials,
            purpose,
        ))
    }

    fn on_sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let address = Address::File {
            path: folder.path().join("a file's \"name\".sqlite").into(),
            settings: Box::default(),
        };
        create_file(&address).unwrap();
        Site {
            dialect: Dialect::Sqlite,
            address,
            credentials: Credentials::default(),
            database: "main".to_owned(),
            _folder: Some(folder),
        }
    }

    fn connect_to(&self, database: Option<&str>) -> Connection {
        let options = ConnectOptions {
            dialect: self.dialect,
            database: database.map(str::to_owned),
            ..ConnectOptions::default()
        };
        Connection::connect(&self.address, &self.credentials, &options).unwrap()
    }

    /// A connection to no database of a test.
    fn general(&self) -> Connection {
        self.connect_to((self.dialect == Dialect::PostgreSql).then_some("postgres"))
    }

    fn connect(&self) -> Connection {
        self.connect_to(Some(&self.database))
    }

    fn drop_database(&self) {
        if self.dialect != Dialect::Sqlite {
            let name = self.dialect.identifier(&self.database);
            let sql = format!("DROP DATABASE IF EXISTS {name}");
            self.general().execute(&sql).unwrap();
        }
    }

    fn place(&self) -> Place<'_> {
        Place {
            dialect: self.dialect,
            address: &self.address,
            credentials: &self.credentials,
            tls: &TlsMode::Off,
            database: &self.database,
            connections: 3,
            deadline: Duration::from_secs(60),
        }
    }

    /// Statistics, definition, and what the server says of the tables.
    #[track_caller]
    fn check_tables(&self) {
        let mut connection = self.connect();
        let present = table_names(&mut connection).unwrap();
        for name in NAMES {
            assert!(present.contains(name), "{name}: {present:?}");
            let complaints = complaints(&mut connection, name).unwrap();
            assert!(complaints.is_empty(), "{name}: {complaints:?}");
            let sql = introspection::definition(self.dialect, name);
            let definition = connection.query(&sql).unwrap().text(0, 1).unwrap();
            assert!(
                definition.contains(&self.dialect.identifier("two words").to_string()),
                "{definition}"
            );
        }
    }

    #[track_caller]
    fn is_empty(&self) {
        let left = table_names(&mut self.connect()).unwrap();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.drop_database();
        }
    }
}

/// Fills tables of these names, whose columns have such names too. Its clients do nothing.
struct Named;

impl Workload for Named {
    fn name(&self) -> &'static str {
        "named"
    }

    fn about(&self) -> &'static str {
        "Tables of all names."
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        Vec::new()
    }

    fn speaks(&self, _: Dialect) -> bool {
        true
    }

    fn tables(&self, dialect: Dialect, _: &Parameters) -> Vec<Table> {
        let table = |name: &&str| {
            let columns = ["key", "two words", "Größe"].map(|column| dialect.identifier(column));
            let [key, text, size] = columns;
            let name = (*name).to_owned();
            Table {
                create: format!(
                    "CREATE TABLE {} ({key} INTEGER PRIMARY KEY, {text} VARCHAR(20) NOT NULL, {size} INTEGER)",
                    dialect.identifier(&name)
                ),
                columns: "key, two words, Größe",
                rows: ROWS,
                content: Box::new(Numbers),
                finish: vec![format!(
                    "CREATE INDEX {} ON {} ({size})",
                    dialect.identifier(&format!("by {name}")),
                    dialect.identifier(&name)
                )],
                digest_columns: "key, two words, Größe",
                scaled: Vec::new(),
                name,
            }
        };
        NAMES.iter().map(table).collect()
    }
}

impl Clients for Named {
    fn client(&self, _: &Parameters, _: ClientContext) -> ClientTask {
        unreachable!("nothing drives it")
    }
}

struct Numbers;

impl RowContent for Numbers {
    fn write(&self, row: u64, random: &mut Random, sql: &mut String) {
        sql.push_str(&format!("({row},'row {row}',{})", random.below(1_000)));
    }
}

/// By every way of the rows that the server takes: equal digests, whole tables, none left.
fn check_filled(site: &Site) -> Digest {
    let (parameters, watch) = (Parameters::new(), FillWatch::default());
    let mut first = None;
    for way in [
        LoadMethodChoice::Fastest,
        LoadMethodChoice::Insert,
        LoadMethodChoice::LoadData,
        LoadMethodChoice::Bulk,
        LoadMethodChoice::Copy,
    ] {
        match fill_by(way, &Named, &parameters, &site.place(), 5, &watch) {
            Err(FillError::NoMethod { .. }) => {
                clear(&Named, &parameters, &site.place(), &FillWatch::default()).unwrap();
                continue;
            }
            outcome => outcome.unwrap(),
        };
        let again = fill(&Named, &parameters, &site.place(), 5, &watch);
        assert!(matches!(again, Err(FillError::Exists { .. })), "{again:?}");
        site.check_tables();
        let found = digest(&Named, &parameters, &site.place(), &watch).unwrap();
        assert_eq!(found.rows, ROWS * NAMES.len() as u64, "{way}");
        assert_eq!(*first.get_or_insert_with(|| found.clone()), found, "{way}");
        clear(&Named, &parameters, &site.place(), &FillWatch::default()).unwrap();
        site.is_empty();
    }
    first.unwrap()
}

/// A fill that ended before it said so: of one table all is written down, of the next one rows are missing.
fn check_resumed(site: &Site, whole: &Digest) {
    let (parameters, watch) = (Parameters::new(), FillWatch::default());
    // This thread makes the tables, others fill them.
    MAKES_TABLES.set(true);
    let cancelled = FillWatch {
        cancel: Cancel::when(|| !MAKES_TABLES.get()),
        ..FillWatch::default()
    };
    let outcome = fill(&Named, &parameters, &site.place(), 5, &cancelled);
    MAKES_TABLES.set(false);
    assert!(matches!(outcome, Err(FillError::Cancelled)), "{outcome:?}");
    let mut connection = site.connect();
    let row = format!(
        "INSERT INTO {} VALUES (1, 'alone', 1)",
        site.dialect.identifier(NAMES[1])
    );
    connection.execute(&row).unwrap();
    drop(connection);
    fill(&Named, &parameters, &site.place(), 5, &watch).unwrap();
    let found = digest(&Named, &parameters, &site.place(), &watch).unwrap();
    assert_eq!(&found, whole);
    clear(&Named, &parameters, &site.place(), &FillWatch::default()).unwrap();
    site.is_empty();
}

/// What a file of SQLite holds is what every other product's tables hold.
fn digest_of_sqlite() -> Digest {
    let site = Site::on_sqlite();
    let whole = check_filled(&site);
    check_resumed(&site, &whole);
    whole
}

#[test(on = ALL)]
fn tables_of_any_name_are_filled_summed_up_checked_and_dropped(server: &Server) {
    let site = Site::on_server(server, "fill");
    let whole = check_filled(&site);
    check_resumed(&site, &whole);
    assert_eq!(whole, digest_of_sqlite());
}

#[test]
fn tables_of_any_name_are_filled_summed_up_checked_and_dropped_on_postgresql() {
    let Some(site) = Site::on_postgresql("fill") else {
        return;
    };
    let whole = check_filled(&site);
    check_resumed(&site, &whole);
    assert_eq!(whole, digest_of_sqlite());
}

/// Everything that is asked about tables is understood, whatever the table is called.
fn check_statements(site: &Site) {
    let mut connection = site.connect();
    let mut texts = 0;
    for name in NAMES {
        let table = site.dialect.identifier(name);
        connection
            .execute(&format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY)"))
            .unwrap();
        for (question, text) in ON_TABLES {
            let Some(sql) = text(site.dialect, name) else {
                continue;
            };
            texts += 1;
            let answer = connection.query(&sql);
            let answer = answer.unwrap_or_else(|error| panic!("{question}: {error}"));
            // An error may be a row.
            let said = (0..answer.rows.len()).flat_map(|row| &answer.rows[row]);
            let said = said.flatten().map(|value| String::from_utf8_lossy(value));
            let said: Vec<_> = said.collect();
            assert!(!said.iter().any(|text| text == "Error"), "{sql}: {said:?}");
            if *question != "drop_if_exists" && *question != "columns_of_bytes" {
                let is_quiet = site.dialect != Dialect::MySql;
                assert!(is_quiet || !said.is_empty(), "{sql}");
            }
        }
    }
    assert!(texts >= 8 * NAMES.len(), "{texts}");
    site.is_empty();
}

#[test(on = ALL)]
fn every_statement_about_a_table_runs_on_every_product(server: &Server) {
    check_statements(&Site::on_server(server, "ask"));
}

#[test]
fn every_statement_about_a_table_runs_on_every_other_product() {
    check_statements(&Site::on_sqlite());
    if let Some(site) = Site::on_postgresql("ask") {
        check_statements(&site);
    }
}

/// A script that makes tables of these names, as a user of sysbench writes it for MySQL and PostgreSQL.
fn script() -> String {
    let names = NAMES.map(|name| format!("[==[{name}]==]")).join(", ");
    format!(
        r#"
local names = {{ {names} }}
local function quoted(name)
   local quote = sysbench.opt.db_driver == "pgsql" and '"' or '`'
   return quote .. (name:gsub(quote, quote .. quote)) .. quote
end
function prepare()
   local con = sysbench.sql.driver():connect()
   for _, name in ipairs(names) do
      con:query("CREATE TABLE " .. quoted(name) .. " (" .. quoted("key") .. " INT PRIMARY KEY, "
         .. quoted("two words") .. " VARCHAR(20) NOT NULL, seen TIMESTAMP)")
      for row = 1, 20 do
         con:query("INSERT INTO " .. quoted(name) .. " VALUES (" .. row .. ", 'row " .. row .. "', CURRENT_TIMESTAMP)")
      end
   end
end
function cleanup()
   local con = sysbench.sql.driver():connect()
   for _, name in ipairs(names) do con:query("DROP TABLE " .. quoted(name)) end
end
function thread_init() con = sysbench.sql.driver():connect() end
function event()
   local table = quoted(names[sysbench.rand.uniform(1, #names)])
   con:query("SELECT " .. quoted("two words") .. " FROM " .. table .. " WHERE " .. quoted("key") .. " = "
      .. sysbench.rand.uniform(1, 20))
end
"#
    )
}

fn check_script(site: &Site) -> Digest {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("names.lua");
    fs::write(&file, script()).unwrap();
    let workload = find("script").unwrap();
    let given = Parameters::from([("script".to_owned(), file.to_str().unwrap().into())]);
    let parameters = parameters::resolve(workload, &given).unwrap();
    let watch = FillWatch::default();
    fill(workload, &parameters, &site.place(), 1, &watch).unwrap();
    site.check_tables();
    let found = digest(workload, &parameters, &site.place(), &watch).unwrap();
    assert_eq!(found.rows, 20 * NAMES.len() as u64);
    clear(workload, &parameters, &site.place(), &FillWatch::default()).unwrap();
    site.is_empty();
    found
}

/// What the script wrote is the same with every product; when it did is left out.
#[test(on = ALL)]
fn tables_that_a_script_makes_may_have_any_name(server: &Server) {
    let found = check_script(&Site::on_server(server, "script"));
    // A database of its own for each of the servers, whose tests run at the same time.
    if let Some(site) = Site::on_postgresql(&format!("script {}", server.name())) {
        assert_eq!(check_script(&site), found);
    }
}

/// A contest of a script's tables: digests, definitions, statistics.
fn check_contest(server: &str) {
    let lab = Lab::new(&format!(
        "budget = \"8 s\"\nhorizon = \"25 %\"\nseed = 7\n[contenders.first]\nserver = \"{server}\"\n\
         [contenders.second]\nserver = \"{server}\"\n[workload]\nscript = \"names.lua\"\n[load]\nclients = 2\n\
         [schedule]\n{SHORT_SCHEDULE}"
    ));
    fs::write(lab.path().join("names.lua"), script()).unwrap();
    lab.run_to_the_end();
    assert_verified(&lab.record_dir());
    let record = lab.record();
    let digests = record.events.iter().filter_map(|event| match &event.what {
        Event::DatasetReady { digest, rows, .. } => Some((digest, *rows)),
        _ => None,
    });
    let digests: Vec<_> = digests.collect();
    assert!(
        digests.len() == 2 && digests[0] == digests[1],
        "{digests:?}"
    );
    assert_eq!(digests[0].1, 20 * NAMES.len() as u64);
    assert!(record.slices.iter().all(|row| row.failed == 0));
    for contender in ["first", "second"] {
        let schema = format!("contenders/{contender}/schema.sql");
        let schema = fs::read_to_string(lab.record_dir().join(schema)).unwrap();
        let tables = schema.matches("CREATE TABLE").count();
        assert!(
            tables == NAMES.len() && schema.contains("Ünïcode"),
            "{schema}"
        );
    }
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_contest_of_a_script_takes_tables_of_any_name() {
    check_contest("mariadb-10.11");
}

#[test(lab, needs = &["mysql-9.7"])]
fn a_contest_of_a_script_takes_tables_of_any_name_on_mysql() {
    check_contest("mysql-9.7");
}

#[test(lab, needs = &["postgresql-16"])]
fn a_contest_of_a_script_starts_on_postgresql_and_takes_tables_of_any_name() {
    check_contest("postgresql-16");
}

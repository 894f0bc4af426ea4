//! Dumps loaded into real servers: rows, rules, and what the loading account may not do.

use std::path::{Path, PathBuf};

use dbduel_driver::{ConnectOptions, Connection, Credentials};
use dbduel_record::plan::Parameters;
use dbduel_workloads::fill::{FillError, FillReport, FillWatch, Place, clear, digest, fill};
use dbduel_workloads::find;

use super::database::Database;
use super::server::{ALL, MARIADB, Server};

/// As mysqldump 8.0 writes it.
const DUMP: &str = r#"-- MySQL dump 10.13  Distrib 8.0.33, for Linux (x86_64)
/*!50503 SET NAMES utf8mb4 */;
SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5';
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop`;
USE `shop`;
DROP TABLE IF EXISTS `item`;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `item` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(100) COLLATE utf8mb4_unicode_520_ci DEFAULT NULL,
  `price` decimal(8,2) DEFAULT NULL,
  `picture` blob,
  `attributes` json DEFAULT NULL,
  `made` datetime DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `name` (`name`(20))
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4;
LOCK TABLES `item` WRITE;
/*!40000 ALTER TABLE `item` DISABLE KEYS */;
INSERT INTO `item` VALUES (0,'it\'s; ä',1.50,_binary '\0\'\\','{\"a\": 1}','0000-00-00 00:00:00'),(2,'two',-5.00,0x00FF,NULL,NULL);
INSERT INTO `item` VALUES (3,NULL,NULL,NULL,NULL,'2026-11-28 12:00:00');
/*!40000 ALTER TABLE `item` ENABLE KEYS */;
UNLOCK TABLES;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`nobody`@`nowhere`*/ /*!50003 TRIGGER `item_name` BEFORE INSERT ON `item` FOR EACH ROW BEGIN SET NEW.name = COALESCE(NEW.name, 'none;'); END */;;
DELIMITER ;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`nobody`@`nowhere` SQL SECURITY DEFINER */
/*!50001 VIEW `named` AS select `item`.`id` AS `id` from `item` where (`item`.`name` is not null) */;
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
-- Dump completed on 2026-11-28 12:00:00
"#;

/// Parameters of a captured workload with this dump.
pub fn with_dump(path: &Path) -> Parameters {
    let bytes = std::fs::read(path).unwrap();
    let digest = blake3::hash(&bytes).to_hex().to_string();
    Parameters::from([
        ("dump".to_owned(), path.display().to_string().into()),
        ("dump_digest".to_owned(), digest.into()),
    ])
}

fn written(folder: &tempfile::TempDir, dump: &str) -> PathBuf {
    let path = folder.path().join("shop.sql");
    std::fs::write(&path, dump).unwrap();
    path
}

/// Loads a dump.
pub fn filled(path: &Path, place: &Place<'_>) -> Result<FillReport, FillError> {
    let workload = find("captured").unwrap();
    fill(workload, &with_dump(path), place, 1, &FillWatch::default())
}

/// A connection of the account that loads dumps.
pub fn as_owner(place: &Place<'_>) -> Connection {
    let own = find("captured").unwrap().own_data().unwrap();
    let account: Credentials = own.account(place.credentials);
    let options = ConnectOptions {
        dialect: place.dialect,
        database: Some(place.database.to_owned()),
        ..ConnectOptions::default()
    };
    Connection::connect(place.address, &account, &options).unwrap()
}

/// Rows of a query, values joined by commas.
pub fn rows(connection: &mut Connection, sql: &str) -> Vec<String> {
    let set = connection.query(sql).unwrap();
    let text = |row: usize| -> Vec<String> {
        let columns = 0..set.columns.len();
        columns
            .map(|column| set.text(row, column).unwrap_or_else(|| "NULL".to_owned()))
            .collect()
    };
    (0..set.rows.len()).map(|row| text(row).join(",")).collect()
}

#[test(on = ALL)]
fn a_dump_is_loaded_with_its_rows_views_and_triggers(server: &Server) {
    let database = Database::create(server, "dump");
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, DUMP);
    let place = database.place(1);
    let report = filled(&path, &place).unwrap();
    assert_eq!(report.rows, 3);
    let has = |name: &str| {
        let remarks = report.remarks.iter();
        remarks
            .filter(|remark| remark.ends_with(&format!("[{name}]")))
            .count()
    };
    assert_eq!(
        (has("definer"), has("replication"), has("database")),
        (1, 1, 1)
    );
    assert_eq!(has("json"), usize::from(server.name().contains("mariadb")));
    let mut owner = as_owner(&place);
    let sql = "SELECT id, name, price, HEX(picture), made FROM item ORDER BY id";
    assert_eq!(
        rows(&mut owner, sql),
        [
            "0,it's; ä,1.50,00275C,0000-00-00 00:00:00",
            "2,two,-5.00,00FF,NULL",
            "3,NULL,NULL,NULL,2026-11-28 12:00:00",
        ]
    );
    owner
        .execute("INSERT INTO item (price) VALUES (7)")
        .unwrap();
    let names = rows(&mut owner, "SELECT name FROM item WHERE price = 7");
    assert_eq!(names, ["none;"]);
    assert_eq!(rows(&mut owner, "SELECT COUNT(*) FROM named"), ["3"]);
    drop(owner);
    let parameters = with_dump(&path);
    let workload = find("captured").unwrap();
    let summed = digest(workload, &parameters, &place, &FillWatch::default()).unwrap();
    assert_eq!(summed.rows, 4, "the view counts for nothing");
    clear(workload, &parameters, &place, &FillWatch::default()).unwrap();
    filled(&path, &place).unwrap();
}

#[test(on = &[MARIADB])]
fn tables_with_system_versioning_are_compared(server: &Server) {
    let database = Database::create(server, "versioned");
    let folder = tempfile::tempdir().unwrap();
    let dump = "CREATE TABLE `kept` (`id` int NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB WITH SYSTEM VERSIONING;
INSERT INTO `kept` VALUES (1),(2);
";
    let path = written(&folder, &format!("-- MariaDB dump\n{dump}"));
    let place = database.place(1);
    filled(&path, &place).unwrap();
    let workload = find("captured").unwrap();
    let summed = digest(workload, &with_dump(&path), &place, &FillWatch::default()).unwrap();
    assert_eq!(summed.rows, 2);
}

#[test(on = ALL)]
fn the_account_that_loads_a_dump_reaches_nothing_else(server: &Server) {
    let database = Database::create(server, "owner");
    let other = Database::create(server, "owners");
    let folder = tempfile::tempdir().unwrap();
    let place = database.place(1);
    filled(&written(&folder, DUMP), &place).unwrap();
    let mut owner = as_owner(&place);
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "x").unwrap();
    let file = secret.display();
    assert_eq!(
        rows(&mut owner, &format!("SELECT LOAD_FILE('{file}')")),
        ["NULL"]
    );
    for sql in [
        format!("SELECT 1 INTO OUTFILE '{file}2'"),
        format!("LOAD DATA INFILE '{file}' INTO TABLE item"),
        "SET GLOBAL max_connections = 5".to_owned(),
        "CREATE USER a".to_owned(),
        "SHUTDOWN".to_owned(),
        "SELECT * FROM mysql.user".to_owned(),
        format!("CREATE TABLE {}.t (a INT)", other.name),
        format!("CREATE DATABASE {}x", database.name.replace('_', "x")),
    ] {
        let error = owner.execute(&sql).unwrap_err();
        assert!(error.code().is_some(), "{sql}: {error}");
    }
}

#[test(on = ALL)]
fn a_statement_that_the_server_refuses_is_named_with_its_line(server: &Server) {
    let database = Database::create(server, "refusing");
    let folder = tempfile::tempdir().unwrap();
    let place = database.place(1);
    let twice = DUMP.replace("(3,NULL", "(2,'secret'");
    let error = filled(&written(&folder, &twice), &place).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("shop.sql`:23:1:") && text.contains("1062"),
        "{text}"
    );
    assert!(!error.is_resumable() && !text.contains("secret"), "{text}");
    clear(
        find("captured").unwrap(),
        &Parameters::new(),
        &place,
        &FillWatch::default(),
    )
    .unwrap();
    let mut parameters = with_dump(&written(&folder, DUMP));
    written(&folder, &DUMP.replace("two", "2"));
    parameters.extend([("mode".to_owned(), "mix".into())]);
    let workload = find("captured").unwrap();
    let error = fill(workload, &parameters, &place, 1, &FillWatch::default()).unwrap_err();
    assert!(error.to_string().contains("BLAKE3"), "{error}");
}

-- MySQL dump 10.13  Distrib 8.0.33, for Linux (x86_64)
--
-- Host: localhost    Database: shop
-- ------------------------------------------------------
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!50503 SET NAMES utf8mb4 */;
SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;
SET @@SESSION.SQL_LOG_BIN= 0;
SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5';
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */;
USE `shop`;
DROP TABLE IF EXISTS `item`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `item` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(100) DEFAULT NULL,
  `secret` int DEFAULT NULL /*!80023 INVISIBLE */,
  `place` point NOT NULL /*!80003 SRID 4326 */,
  `attributes` json DEFAULT NULL,
  `note` text,
  PRIMARY KEY (`id`),
  KEY `name` (`name`(20))
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='utf8mb4_0900_ai_ci; stays out';
/*!40101 SET character_set_client = @saved_cs_client */;
LOCK TABLES `item` WRITE;
/*!40000 ALTER TABLE `item` DISABLE KEYS */;
INSERT INTO `item` VALUES (1,'it\'s; one',NULL,0x00,'{\"a\": 1}',_binary 'x\0'),(2,"two",-5,x'00',NULL,'');
/*!40000 ALTER TABLE `item` ENABLE KEYS */;
UNLOCK TABLES;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET character_set_client  = utf8mb4 */ ;
/*!50003 SET sql_mode              = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES' */ ;
--
-- A view stands in for the one at the end.
--
/*!50001 DROP VIEW IF EXISTS `named`*/;
SET @saved_cs_client     = @@character_set_client;
/*!50001 CREATE VIEW `named` AS SELECT
 1 AS `id`*/;
SET character_set_client = @saved_cs_client;
--
-- Triggers and routines
--
/*!50003 SET collation_connection  = utf8mb4_bin */ ;
DELIMITER ;;

/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `item_note` BEFORE INSERT ON `item` FOR EACH ROW BEGIN SET NEW.note = 'it''s; done'; END */;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50001 DROP VIEW IF EXISTS `named`*/;
/*!50001 SET collation_connection      = utf8mb4_bin */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`shop`@`%` SQL SECURITY DEFINER */
/*!50001 VIEW `named` AS select `item`.`id` AS `id` from `item` where (`item`.`name` is not null) */;
/*!50106 SET @save_time_zone= @@TIME_ZONE */ ;
--
-- Events
--
DELIMITER ;;
/*!50106 CREATE*/ /*!50117 DEFINER=`root`@`localhost`*/ /*!50106 EVENT `sweep` ON SCHEDULE EVERY 1 DAY DO DELETE FROM `item` */ ;;
DELIMITER ;
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
-- Dump completed on 2026-11-28 12:00:00

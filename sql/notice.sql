-- CREATE EXTENSION and ALTER EXTENSION show how to preload the library.
DROP EXTENSION gpujoin;
CREATE EXTENSION gpujoin;
DROP EXTENSION gpujoin;
CREATE EXTENSION gpujoin VERSION '1.0';
ALTER EXTENSION gpujoin UPDATE;

-- The statement keeps what is preloaded now, and can be run as it stands.
DROP EXTENSION gpujoin;
SET session_preload_libraries = 'auto_explain', "$libdir/passwordcheck";
CREATE EXTENSION gpujoin;
ALTER DATABASE contrib_regression SET session_preload_libraries = 'auto_explain', '$libdir/passwordcheck', 'gpujoin';
SELECT setting FROM pg_db_role_setting, unnest(setconfig) setting WHERE setting ~ '^session_preload'
  AND setrole = 0 AND setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database());

-- So does it keep what only new sessions of the database will preload, and it is quiet where that is gpujoin.
RESET session_preload_libraries;
DROP EXTENSION gpujoin;
CREATE EXTENSION gpujoin;
ALTER DATABASE contrib_regression SET session_preload_libraries = 'auto_explain';
DROP EXTENSION gpujoin;
CREATE EXTENSION gpujoin;
ALTER DATABASE contrib_regression RESET session_preload_libraries;

-- No notice where it is preloaded, nor in a dump's script, nor for who wants errors alone; settings stay as they were.
DROP EXTENSION gpujoin;
SET row_security = off;
CREATE EXTENSION gpujoin;
RESET row_security;
DROP EXTENSION gpujoin;
SET session_preload_libraries = 'auto_explain', '$libdir/gpujoin';
CREATE EXTENSION gpujoin;
DROP EXTENSION gpujoin;
RESET session_preload_libraries;
SET client_min_messages = error;
CREATE EXTENSION gpujoin;
SHOW client_min_messages;
RESET client_min_messages;

-- What lies in the way of the script's own names does not mislead it.
DROP EXTENSION gpujoin;
CREATE SCHEMA trap;
CREATE FUNCTION trap.current_database() RETURNS name LANGUAGE sql RETURN 'trapped'::name;
CREATE FUNCTION trap.texteq(text, text) RETURNS boolean LANGUAGE sql RETURN false;
CREATE OPERATOR trap.= (FUNCTION = trap.texteq, LEFTARG = text, RIGHTARG = text);
SET search_path = trap, pg_catalog;
CREATE EXTENSION gpujoin SCHEMA trap;
SHOW search_path;
RESET search_path;
DROP SCHEMA trap CASCADE;
CREATE EXTENSION gpujoin;

-- A database whose name needs quotes.
CREATE DATABASE "My ""Shop""" TEMPLATE template0;
\set main :DBNAME
\c "My ""Shop"""
CREATE EXTENSION gpujoin;
\c :main
DROP DATABASE "My ""Shop""";

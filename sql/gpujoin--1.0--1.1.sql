\echo Use "ALTER EXTENSION gpujoin UPDATE TO '1.1'" to load this file. \quit

-- Rows with their neighbours have estimates, and stream in FROM.
ALTER FUNCTION gpu_neighbors(regclass, float8, name, name[], text, text) SUPPORT gpujoin_support;

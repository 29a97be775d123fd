\echo Use "ALTER EXTENSION gpujoin UPDATE TO '1.1'" to load this file. \quit

-- Rows with their neighbours have estimates, and stream in FROM.
ALTER FUNCTION gpu_neighbors(regclass, float8, name, name[], text, text) SUPPORT gpujoin_support;

-- Arrays of other numbers are compared as float8[]. The planner sees through these functions.

CREATE FUNCTION gpu_distance(int2[], int2[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <-> $2::float8[];
CREATE FUNCTION gpu_distance(int4[], int4[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <-> $2::float8[];
CREATE FUNCTION gpu_distance(int8[], int8[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <-> $2::float8[];
CREATE FUNCTION gpu_distance(numeric[], numeric[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <-> $2::float8[];
CREATE OPERATOR <-> (
    FUNCTION = gpu_distance, LEFTARG = int2[], RIGHTARG = int2[], COMMUTATOR = <->);
CREATE OPERATOR <-> (
    FUNCTION = gpu_distance, LEFTARG = int4[], RIGHTARG = int4[], COMMUTATOR = <->);
CREATE OPERATOR <-> (
    FUNCTION = gpu_distance, LEFTARG = int8[], RIGHTARG = int8[], COMMUTATOR = <->);
CREATE OPERATOR <-> (
    FUNCTION = gpu_distance, LEFTARG = numeric[], RIGHTARG = numeric[], COMMUTATOR = <->);
CREATE FUNCTION gpu_within(a int2[], b int2[], eps float8) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_within(a::float8[], b::float8[], eps);
CREATE FUNCTION gpu_within(a int4[], b int4[], eps float8) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_within(a::float8[], b::float8[], eps);
CREATE FUNCTION gpu_within(a int8[], b int8[], eps float8) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_within(a::float8[], b::float8[], eps);
CREATE FUNCTION gpu_within(a numeric[], b numeric[], eps float8) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_within(a::float8[], b::float8[], eps);
COMMENT ON FUNCTION gpu_distance(int2[], int2[]) IS 'implementation of <-> operator';
COMMENT ON FUNCTION gpu_distance(int4[], int4[]) IS 'implementation of <-> operator';
COMMENT ON FUNCTION gpu_distance(int8[], int8[]) IS 'implementation of <-> operator';
COMMENT ON FUNCTION gpu_distance(numeric[], numeric[]) IS 'implementation of <-> operator';
COMMENT ON OPERATOR <-> (int2[], int2[]) IS 'L2 distance';
COMMENT ON OPERATOR <-> (int4[], int4[]) IS 'L2 distance';
COMMENT ON OPERATOR <-> (int8[], int8[]) IS 'L2 distance';
COMMENT ON OPERATOR <-> (numeric[], numeric[]) IS 'L2 distance';
COMMENT ON FUNCTION gpu_within(int2[], int2[], float8) IS 'L2 distance is at most eps';
COMMENT ON FUNCTION gpu_within(int4[], int4[], float8) IS 'L2 distance is at most eps';
COMMENT ON FUNCTION gpu_within(int8[], int8[], float8) IS 'L2 distance is at most eps';
COMMENT ON FUNCTION gpu_within(numeric[], numeric[], float8) IS 'L2 distance is at most eps';

-- Vectors that are stored as text or JSON: '[1, 2.5]' or '{1,2.5}'; null is NULL.

CREATE FUNCTION gpu_vector(text) RETURNS float8[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN translate($1, '[]', '{}')::float8[];
CREATE FUNCTION gpu_vector(json) RETURNS float8[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_vector($1::text);
CREATE FUNCTION gpu_vector(jsonb) RETURNS float8[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_vector($1::text);
COMMENT ON FUNCTION gpu_vector(text) IS 'the vector that is written as a list of numbers in brackets or braces';
COMMENT ON FUNCTION gpu_vector(json) IS 'the vector that is an array of numbers';
COMMENT ON FUNCTION gpu_vector(jsonb) IS 'the vector that is an array of numbers';

\echo Use "CREATE EXTENSION gpujoin" to load this file. \quit

-- Which distances of a query are served, and why not the others. The library of an earlier release, on the disk or in this
-- session, has no such function.

DO $$
BEGIN
    CREATE FUNCTION gpu_why(query text)
        RETURNS TABLE (relations text, condition text, served boolean, reason text, hint text)
        AS 'MODULE_PATHNAME', 'gpujoin_why' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE ROWS 3;
EXCEPTION WHEN undefined_function THEN
    RAISE EXCEPTION 'the library gpujoin.so is of an earlier release than version 1.2 of the extension'
        USING HINT = 'Install gpujoin 1.2. Then restart the server if shared_preload_libraries names gpujoin, or else open a new session.';
END
$$;
COMMENT ON FUNCTION gpu_why IS 'which distances of a query the plan node serves, why not the others, and what to write instead';

-- Rows of tables without an integer key: functions name them by their ctids with id_column => 'ctid'.
CREATE FUNCTION gpu_ctid(id bigint) RETURNS tid
    AS 'MODULE_PATHNAME', 'gpujoin_ctid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION gpu_ctid IS 'the ctid of a row that a function named by it, with id_column => ''ctid''';

-- The planner's questions: how many rows a join returns and at what cost, how many pairs a distance leaves. Being
-- asked is also what loads the library in time for a session's first plan.
CREATE FUNCTION gpujoin_support(internal) RETURNS internal
    AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Range joins. A pair is in the result if and only if its distance is <= eps. NULL for an argument that has a
-- default means the default; NULL for another one means no rows. Columns are named in a text or in an array of names.

CREATE FUNCTION gpu_selfjoin(
    tbl regclass, eps float8, id_column name DEFAULT NULL, vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2', pairs text DEFAULT 'all')
    RETURNS TABLE (id1 bigint, id2 bigint)
    AS 'MODULE_PATHNAME', 'gpujoin_selfjoin'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 100000 SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_selfjoin IS 'pairs of rows of a table whose vectors are within eps';

CREATE FUNCTION gpu_selfjoin_distance(
    tbl regclass, eps float8, id_column name DEFAULT NULL, vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2', pairs text DEFAULT 'all')
    RETURNS TABLE (id1 bigint, id2 bigint, distance float8)
    AS 'MODULE_PATHNAME', 'gpujoin_selfjoin_distance'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 100000 SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_selfjoin_distance IS
    'pairs of rows of a table whose vectors are within eps, and their distances';

CREATE FUNCTION gpu_join(
    left_tbl regclass, right_tbl regclass, eps float8,
    left_id_column name DEFAULT NULL, right_id_column name DEFAULT NULL,
    left_vector_columns anycompatible DEFAULT NULL, right_vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2')
    RETURNS TABLE (id1 bigint, id2 bigint)
    AS 'MODULE_PATHNAME', 'gpujoin_join'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 100000 SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_join IS 'pairs of rows of two tables whose vectors are within eps';

CREATE FUNCTION gpu_join_distance(
    left_tbl regclass, right_tbl regclass, eps float8,
    left_id_column name DEFAULT NULL, right_id_column name DEFAULT NULL,
    left_vector_columns anycompatible DEFAULT NULL, right_vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2')
    RETURNS TABLE (id1 bigint, id2 bigint, distance float8)
    AS 'MODULE_PATHNAME', 'gpujoin_join_distance'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 100000 SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_join_distance IS
    'pairs of rows of two tables whose vectors are within eps, and their distances';

CREATE FUNCTION gpu_neighbors(
    tbl regclass, eps float8, id_column name DEFAULT NULL, vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2', pairs text DEFAULT 'distinct')
    RETURNS TABLE (id bigint, neighbors bigint[], distances float8[])
    AS 'MODULE_PATHNAME', 'gpujoin_neighbors'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 10000 SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_neighbors IS
    'rows of a table, each with the rows whose vectors are within eps of its own, nearest first';

-- The best pairs within eps, by a score; a table joined with itself gives each pair once.

CREATE FUNCTION gpu_topk_join(
    left_tbl regclass, right_tbl regclass, eps float8, k bigint,
    left_id_column name DEFAULT NULL, right_id_column name DEFAULT NULL,
    left_vector_columns anycompatible DEFAULT NULL, right_vector_columns anycompatible DEFAULT NULL,
    left_score_column name DEFAULT NULL, right_score_column name DEFAULT NULL,
    metric text DEFAULT 'l2', score text DEFAULT 'sum', weights float8[] DEFAULT NULL, best text DEFAULT NULL)
    RETURNS TABLE (id1 bigint, id2 bigint, score float8)
    AS 'MODULE_PATHNAME', 'gpujoin_topk_join'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 1000 SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_topk_join IS
    'the k pairs of rows of two tables with the best scores among those whose vectors are within eps, best first';

-- The nearest rows of another table, or of the same one, for each row.

CREATE FUNCTION gpu_knn_join(
    left_tbl regclass, right_tbl regclass, k bigint, max_distance float8 DEFAULT NULL,
    left_id_column name DEFAULT NULL, right_id_column name DEFAULT NULL,
    left_vector_columns anycompatible DEFAULT NULL, right_vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2', pairs text DEFAULT 'distinct')
    RETURNS TABLE (id1 bigint, id2 bigint, distance float8, rank bigint)
    AS 'MODULE_PATHNAME', 'gpujoin_knn_join'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 100000 SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_knn_join IS
    'rows of a table, each with the k rows of another one whose vectors are nearest to its own, nearest first';

-- Clusters of rows: groups that chains of neighbours connect, and groups by density.

CREATE FUNCTION gpu_components(
    tbl regclass, eps float8, id_column name DEFAULT NULL, vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2', partition_column name DEFAULT NULL)
    RETURNS TABLE (id bigint, component bigint)
    AS 'MODULE_PATHNAME', 'gpujoin_components'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 10000 SUPPORT gpujoin_support;
CREATE FUNCTION gpu_dbscan(
    tbl regclass, eps float8, min_points bigint DEFAULT 5, id_column name DEFAULT NULL,
    vector_columns anycompatible DEFAULT NULL, metric text DEFAULT 'l2', partition_column name DEFAULT NULL)
    RETURNS TABLE (id bigint, cluster bigint, kind text)
    AS 'MODULE_PATHNAME', 'gpujoin_dbscan'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 10000 SUPPORT gpujoin_support;
CREATE FUNCTION gpu_cluster_dbscan(
    v anyelement, eps float8, min_points bigint DEFAULT 5, metric text DEFAULT 'l2')
    RETURNS bigint AS 'MODULE_PATHNAME', 'gpujoin_cluster_dbscan'
    LANGUAGE C WINDOW STABLE PARALLEL RESTRICTED COST 100;
CREATE FUNCTION gpu_postgis_clusters(v anyelement, eps float8, min_points integer, instead_of regprocedure)
    RETURNS integer AS 'MODULE_PATHNAME', 'gpujoin_postgis_clusters'
    LANGUAGE C WINDOW STABLE PARALLEL RESTRICTED COST 100;
CREATE FUNCTION gpu_components(id1 bigint[], id2 bigint[])
    RETURNS TABLE (id bigint, component bigint)
    AS 'MODULE_PATHNAME', 'gpujoin_pair_components'
    LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10000 ROWS 10000;
CREATE FUNCTION gpu_density(
    tbl regclass, eps float8, id_column name DEFAULT NULL, vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2', pairs text DEFAULT 'all')
    RETURNS TABLE (id bigint, neighbors bigint)
    AS 'MODULE_PATHNAME', 'gpujoin_density'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 10000 SUPPORT gpujoin_support;
CREATE FUNCTION gpu_dedup(
    tbl regclass, eps float8, keep_column name DEFAULT NULL, keep text DEFAULT 'highest',
    id_column name DEFAULT NULL, vector_columns anycompatible DEFAULT NULL, metric text DEFAULT 'l2', partition_column name DEFAULT NULL)
    RETURNS TABLE (id bigint, kept_id bigint, distance float8)
    AS 'MODULE_PATHNAME', 'gpujoin_dedup'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 10000 SUPPORT gpujoin_support;
CREATE FUNCTION gpu_spanning_tree(
    tbl regclass, min_points bigint DEFAULT 5, id_column name DEFAULT NULL,
    vector_columns anycompatible DEFAULT NULL, metric text DEFAULT 'l2')
    RETURNS TABLE (id1 bigint, id2 bigint, distance float8)
    AS 'MODULE_PATHNAME', 'gpujoin_spanning_tree'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 10000 SUPPORT gpujoin_support;
CREATE FUNCTION gpu_hdbscan(
    tbl regclass, min_cluster_size bigint DEFAULT 5, min_points bigint DEFAULT NULL,
    id_column name DEFAULT NULL, vector_columns anycompatible DEFAULT NULL, metric text DEFAULT 'l2')
    RETURNS TABLE (id bigint, cluster bigint, probability float8)
    AS 'MODULE_PATHNAME', 'gpujoin_hdbscan'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 10000 SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_spanning_tree IS
    'the edges of the smallest spanning tree of the rows of a table by mutual reachability distance, shortest first';
COMMENT ON FUNCTION gpu_hdbscan IS
    'rows of a table, each with its cluster by HDBSCAN, and how surely it belongs to it';
COMMENT ON FUNCTION gpu_dedup IS
    'rows of a table that a better row within eps makes superfluous, each with the nearest such row that stays';
COMMENT ON FUNCTION gpu_density IS
    'rows of a table, each with the number of rows whose vectors are within eps of its own, itself included';
COMMENT ON FUNCTION gpu_components(bigint[], bigint[]) IS
    'ids of pairs, each with the group of ids that chains of pairs connect it with';
COMMENT ON FUNCTION gpu_cluster_dbscan IS
    'the cluster, by DBSCAN, of a row among those of its partition; NULL of noise';
COMMENT ON FUNCTION gpu_postgis_clusters IS
    'what the planner calls in the place of a window function of PostGIS';
COMMENT ON FUNCTION gpu_components(regclass, float8, name, anycompatible, text, name) IS
    'rows of a table, each with the group of rows that chains of steps of at most eps connect it with';
COMMENT ON FUNCTION gpu_dbscan IS
    'rows of a table, each with its cluster by DBSCAN, and whether it is a core row, a border row or noise';

-- Axis-aligned boxes that intersect, or are within eps.

CREATE FUNCTION gpu_box_join(
    left_tbl regclass, right_tbl regclass, eps float8 DEFAULT 0,
    left_id_column name DEFAULT NULL, right_id_column name DEFAULT NULL,
    left_box_columns anycompatible DEFAULT NULL, right_box_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2', pairs text DEFAULT 'all')
    RETURNS TABLE (id1 bigint, id2 bigint)
    AS 'MODULE_PATHNAME', 'gpujoin_box_join'
    LANGUAGE C STABLE PARALLEL RESTRICTED COST 10000 ROWS 100000 SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_box_join IS 'pairs of rows of two tables whose boxes intersect, or are within eps';

-- Distances between two values.

CREATE FUNCTION gpu_distance(float4[], float4[]) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpujoin_distance_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_distance(float8[], float8[]) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpujoin_distance_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;

CREATE OPERATOR <-> (
    FUNCTION = gpu_distance, LEFTARG = float4[], RIGHTARG = float4[], COMMUTATOR = <->);
CREATE OPERATOR <-> (
    FUNCTION = gpu_distance, LEFTARG = float8[], RIGHTARG = float8[], COMMUTATOR = <->);
COMMENT ON FUNCTION gpu_distance(float4[], float4[]) IS 'implementation of <-> operator';
COMMENT ON FUNCTION gpu_distance(float8[], float8[]) IS 'implementation of <-> operator';
COMMENT ON OPERATOR <-> (float4[], float4[]) IS 'L2 distance';
COMMENT ON OPERATOR <-> (float8[], float8[]) IS 'L2 distance';

CREATE FUNCTION gpu_within(a float4[], b float4[], eps float8) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gpujoin_within_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_within(a float8[], b float8[], eps float8) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gpujoin_within_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_within(a point, b point, eps float8) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gpujoin_within_point' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_within(float4[], float4[], float8) IS 'L2 distance is at most eps';
COMMENT ON FUNCTION gpu_within(float8[], float8[], float8) IS 'L2 distance is at most eps';
COMMENT ON FUNCTION gpu_within(point, point, float8) IS 'L2 distance is at most eps';

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

-- Other metrics: pgvector's operators, by meaning, on arrays; and by name.

CREATE FUNCTION gpu_cosine_distance(float4[], float4[]) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpujoin_cosine_distance_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_cosine_distance(float8[], float8[]) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpujoin_cosine_distance_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_l1_distance(float4[], float4[]) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpujoin_l1_distance_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_l1_distance(float8[], float8[]) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpujoin_l1_distance_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE OPERATOR <=> (
    FUNCTION = gpu_cosine_distance, LEFTARG = float4[], RIGHTARG = float4[], COMMUTATOR = <=>);
CREATE OPERATOR <=> (
    FUNCTION = gpu_cosine_distance, LEFTARG = float8[], RIGHTARG = float8[], COMMUTATOR = <=>);
CREATE OPERATOR <+> (
    FUNCTION = gpu_l1_distance, LEFTARG = float4[], RIGHTARG = float4[], COMMUTATOR = <+>);
CREATE OPERATOR <+> (
    FUNCTION = gpu_l1_distance, LEFTARG = float8[], RIGHTARG = float8[], COMMUTATOR = <+>);
CREATE FUNCTION gpu_cosine_distance(int2[], int2[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <=> $2::float8[];
CREATE FUNCTION gpu_cosine_distance(int4[], int4[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <=> $2::float8[];
CREATE FUNCTION gpu_cosine_distance(int8[], int8[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <=> $2::float8[];
CREATE FUNCTION gpu_cosine_distance(numeric[], numeric[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <=> $2::float8[];
CREATE FUNCTION gpu_l1_distance(int2[], int2[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <+> $2::float8[];
CREATE FUNCTION gpu_l1_distance(int4[], int4[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <+> $2::float8[];
CREATE FUNCTION gpu_l1_distance(int8[], int8[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <+> $2::float8[];
CREATE FUNCTION gpu_l1_distance(numeric[], numeric[]) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN $1::float8[] <+> $2::float8[];
CREATE OPERATOR <=> (
    FUNCTION = gpu_cosine_distance, LEFTARG = int2[], RIGHTARG = int2[], COMMUTATOR = <=>);
CREATE OPERATOR <=> (
    FUNCTION = gpu_cosine_distance, LEFTARG = int4[], RIGHTARG = int4[], COMMUTATOR = <=>);
CREATE OPERATOR <=> (
    FUNCTION = gpu_cosine_distance, LEFTARG = int8[], RIGHTARG = int8[], COMMUTATOR = <=>);
CREATE OPERATOR <=> (
    FUNCTION = gpu_cosine_distance, LEFTARG = numeric[], RIGHTARG = numeric[], COMMUTATOR = <=>);
CREATE OPERATOR <+> (
    FUNCTION = gpu_l1_distance, LEFTARG = int2[], RIGHTARG = int2[], COMMUTATOR = <+>);
CREATE OPERATOR <+> (
    FUNCTION = gpu_l1_distance, LEFTARG = int4[], RIGHTARG = int4[], COMMUTATOR = <+>);
CREATE OPERATOR <+> (
    FUNCTION = gpu_l1_distance, LEFTARG = int8[], RIGHTARG = int8[], COMMUTATOR = <+>);
CREATE OPERATOR <+> (
    FUNCTION = gpu_l1_distance, LEFTARG = numeric[], RIGHTARG = numeric[], COMMUTATOR = <+>);
CREATE FUNCTION gpu_distance(a float4[], b float4[], metric text) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpujoin_distance_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_within(a float4[], b float4[], eps float8, metric text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gpujoin_within_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_distance(a float8[], b float8[], metric text) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpujoin_distance_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_within(a float8[], b float8[], eps float8, metric text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gpujoin_within_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_distance(a point, b point, metric text) RETURNS float8
    AS 'MODULE_PATHNAME', 'gpujoin_distance_point' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_within(a point, b point, eps float8, metric text) RETURNS boolean
    AS 'MODULE_PATHNAME', 'gpujoin_within_point' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_distance(a int2[], b int2[], metric text) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_distance(a::float8[], b::float8[], metric);
CREATE FUNCTION gpu_within(a int2[], b int2[], eps float8, metric text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_within(a::float8[], b::float8[], eps, metric);
CREATE FUNCTION gpu_distance(a int4[], b int4[], metric text) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_distance(a::float8[], b::float8[], metric);
CREATE FUNCTION gpu_within(a int4[], b int4[], eps float8, metric text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_within(a::float8[], b::float8[], eps, metric);
CREATE FUNCTION gpu_distance(a int8[], b int8[], metric text) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_distance(a::float8[], b::float8[], metric);
CREATE FUNCTION gpu_within(a int8[], b int8[], eps float8, metric text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_within(a::float8[], b::float8[], eps, metric);
CREATE FUNCTION gpu_distance(a numeric[], b numeric[], metric text) RETURNS float8
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_distance(a::float8[], b::float8[], metric);
CREATE FUNCTION gpu_within(a numeric[], b numeric[], eps float8, metric text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN gpu_within(a::float8[], b::float8[], eps, metric);
COMMENT ON FUNCTION gpu_cosine_distance(float4[], float4[]) IS 'implementation of <=> operator';
COMMENT ON OPERATOR <=> (float4[], float4[]) IS 'cosine distance: 1 - cos of the angle';
COMMENT ON FUNCTION gpu_cosine_distance(float8[], float8[]) IS 'implementation of <=> operator';
COMMENT ON OPERATOR <=> (float8[], float8[]) IS 'cosine distance: 1 - cos of the angle';
COMMENT ON FUNCTION gpu_cosine_distance(int2[], int2[]) IS 'implementation of <=> operator';
COMMENT ON OPERATOR <=> (int2[], int2[]) IS 'cosine distance: 1 - cos of the angle';
COMMENT ON FUNCTION gpu_cosine_distance(int4[], int4[]) IS 'implementation of <=> operator';
COMMENT ON OPERATOR <=> (int4[], int4[]) IS 'cosine distance: 1 - cos of the angle';
COMMENT ON FUNCTION gpu_cosine_distance(int8[], int8[]) IS 'implementation of <=> operator';
COMMENT ON OPERATOR <=> (int8[], int8[]) IS 'cosine distance: 1 - cos of the angle';
COMMENT ON FUNCTION gpu_cosine_distance(numeric[], numeric[]) IS 'implementation of <=> operator';
COMMENT ON OPERATOR <=> (numeric[], numeric[]) IS 'cosine distance: 1 - cos of the angle';
COMMENT ON FUNCTION gpu_l1_distance(float4[], float4[]) IS 'implementation of <+> operator';
COMMENT ON OPERATOR <+> (float4[], float4[]) IS 'L1 distance';
COMMENT ON FUNCTION gpu_l1_distance(float8[], float8[]) IS 'implementation of <+> operator';
COMMENT ON OPERATOR <+> (float8[], float8[]) IS 'L1 distance';
COMMENT ON FUNCTION gpu_l1_distance(int2[], int2[]) IS 'implementation of <+> operator';
COMMENT ON OPERATOR <+> (int2[], int2[]) IS 'L1 distance';
COMMENT ON FUNCTION gpu_l1_distance(int4[], int4[]) IS 'implementation of <+> operator';
COMMENT ON OPERATOR <+> (int4[], int4[]) IS 'L1 distance';
COMMENT ON FUNCTION gpu_l1_distance(int8[], int8[]) IS 'implementation of <+> operator';
COMMENT ON OPERATOR <+> (int8[], int8[]) IS 'L1 distance';
COMMENT ON FUNCTION gpu_l1_distance(numeric[], numeric[]) IS 'implementation of <+> operator';
COMMENT ON OPERATOR <+> (numeric[], numeric[]) IS 'L1 distance';
COMMENT ON FUNCTION gpu_distance(float4[], float4[], text) IS 'distance by a metric: l2, l1, linf, cosine or haversine';
COMMENT ON FUNCTION gpu_within(float4[], float4[], float8, text) IS 'distance by a metric is at most eps';
COMMENT ON FUNCTION gpu_distance(float8[], float8[], text) IS 'distance by a metric: l2, l1, linf, cosine or haversine';
COMMENT ON FUNCTION gpu_within(float8[], float8[], float8, text) IS 'distance by a metric is at most eps';
COMMENT ON FUNCTION gpu_distance(point, point, text) IS 'distance by a metric: l2, l1, linf, cosine or haversine';
COMMENT ON FUNCTION gpu_within(point, point, float8, text) IS 'distance by a metric is at most eps';
COMMENT ON FUNCTION gpu_distance(int2[], int2[], text) IS 'distance by a metric: l2, l1, linf, cosine or haversine';
COMMENT ON FUNCTION gpu_within(int2[], int2[], float8, text) IS 'distance by a metric is at most eps';
COMMENT ON FUNCTION gpu_distance(int4[], int4[], text) IS 'distance by a metric: l2, l1, linf, cosine or haversine';
COMMENT ON FUNCTION gpu_within(int4[], int4[], float8, text) IS 'distance by a metric is at most eps';
COMMENT ON FUNCTION gpu_distance(int8[], int8[], text) IS 'distance by a metric: l2, l1, linf, cosine or haversine';
COMMENT ON FUNCTION gpu_within(int8[], int8[], float8, text) IS 'distance by a metric is at most eps';
COMMENT ON FUNCTION gpu_distance(numeric[], numeric[], text) IS 'distance by a metric: l2, l1, linf, cosine or haversine';
COMMENT ON FUNCTION gpu_within(numeric[], numeric[], float8, text) IS 'distance by a metric is at most eps';

-- Vectors that are stored as text or JSON: '[1, 2.5]' or '{1,2.5}'; null is NULL.

CREATE FUNCTION gpu_vector(text) RETURNS float8[]
    AS 'MODULE_PATHNAME', 'gpujoin_vector_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_vector(json) RETURNS float8[]
    AS 'MODULE_PATHNAME', 'gpujoin_vector_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50
    SUPPORT gpujoin_support;
CREATE FUNCTION gpu_vector(jsonb) RETURNS float8[]
    AS 'MODULE_PATHNAME', 'gpujoin_vector_jsonb' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50
    SUPPORT gpujoin_support;
COMMENT ON FUNCTION gpu_vector(text) IS 'the vector that is written as a list of numbers in brackets or braces';
COMMENT ON FUNCTION gpu_vector(json) IS 'the vector that is an array of numbers';
COMMENT ON FUNCTION gpu_vector(jsonb) IS 'the vector that is an array of numbers';

-- Cells to partition and distribute points by. Put each row of a into its gpu_cell(), and a copy of each row of b into
-- every cell of its gpu_halo(). Then a.cell = b.cell AND a.v <-> b.v <= eps finds each pair once.

CREATE FUNCTION gpu_cell(v anyelement, width float8, dimensions int DEFAULT 2) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gpujoin_cell' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION gpu_halo(v anyelement, width float8, eps float8, dimensions int DEFAULT 2) RETURNS bigint[]
    AS 'MODULE_PATHNAME', 'gpujoin_halo' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION gpu_cell(anyelement, float8, int) IS 'key of the cell of a width that a point lies in';
COMMENT ON FUNCTION gpu_halo(anyelement, float8, float8, int) IS
    'keys of the cells of a width in which points within eps of a point may lie';

-- What the machine has, and what the last join of this session did.

CREATE FUNCTION gpu_devices(
    OUT engine text, OUT device int, OUT name text, OUT parallelism int, OUT memory_bytes bigint,
    OUT detail text, OUT available boolean, OUT reason text,
    OUT used_bytes bigint, OUT table_bytes bigint, OUT join_bytes bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gpujoin_devices' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 2;
COMMENT ON FUNCTION gpu_devices() IS 'engines and devices that joins can run on, and why not';

CREATE FUNCTION gpu_last_join(
    OUT function text, OUT engine text, OUT fallback text, OUT metric text, OUT pair_selection text,
    OUT eps float8, OUT left_rows bigint, OUT right_rows bigint, OUT dimensions int,
    OUT index text, OUT indexed_columns int[], OUT sort_column int, OUT access_pattern text,
    OUT cell_order text, OUT estimated_candidates float8, OUT estimated_pairs float8,
    OUT strategy_reason text, OUT topk_method text, OUT topk_rounds int, OUT box_method text,
    OUT threads int, OUT instruction_set text,
    OUT threads_per_point int, OUT streams int, OUT batch_pairs bigint,
    OUT pin_ms_per_mb float8, OUT batch_ms float8, OUT batches bigint,
    OUT candidate_pairs bigint, OUT rechecked_pairs bigint, OUT pairs bigint,
    OUT memory_bytes bigint, OUT device_memory_bytes bigint,
    OUT read_ms float8, OUT index_ms float8, OUT join_ms float8,
    OUT complete boolean, OUT joined_in text, OUT service_fallback text,
    OUT devices text)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gpujoin_last_join' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 1;
COMMENT ON FUNCTION gpu_last_join() IS 'what the last join of this session did';

CREATE FUNCTION gpu_session_joins(
    OUT joins bigint, OUT engine_fallbacks bigint, OUT topk_fallbacks bigint, OUT nested_loops bigint,
    OUT service_fallbacks bigint)
    RETURNS record
    AS 'MODULE_PATHNAME', 'gpujoin_session_joins' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpu_session_joins() IS
    'how many joins this session has run, and of these on the CPU for want of a device, over all pairs for want of the first, '
    'with the condition evaluated for every pair, and in the session where the service was to run them';

-- What the joins of all sessions did, and what those at work are at: for monitoring.

CREATE FUNCTION gpu_join_counts(
    OUT datid oid, OUT joins bigint, OUT service_joins bigint, OUT device_joins bigint, OUT cancels bigint, OUT rows bigint,
    OUT pairs bigint, OUT candidates bigint, OUT table_blocks bigint, OUT blocks_read bigint, OUT engine_fallbacks bigint,
    OUT topk_fallbacks bigint, OUT nested_loops bigint, OUT service_fallbacks bigint, OUT read_ms float8, OUT index_ms float8,
    OUT join_ms float8, OUT stats_reset timestamptz, OUT missed_joins bigint, OUT searches bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gpujoin_join_counts' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gpu_join_counts() IS 'what the joins of each database did';
CREATE VIEW pg_stat_gpujoin AS SELECT d.datname, c.* FROM gpu_join_counts() c LEFT JOIN pg_database d ON d.oid = c.datid;
COMMENT ON VIEW pg_stat_gpujoin IS 'what the joins of each database did';
GRANT SELECT ON pg_stat_gpujoin TO PUBLIC;
COMMENT ON COLUMN pg_stat_gpujoin.datname IS 'database; NULL: it has been dropped';
COMMENT ON COLUMN pg_stat_gpujoin.datid IS 'OID of the database';
COMMENT ON COLUMN pg_stat_gpujoin.joins IS 'joins that ran';
COMMENT ON COLUMN pg_stat_gpujoin.service_joins IS 'joins of these that ran in the service';
COMMENT ON COLUMN pg_stat_gpujoin.device_joins IS 'joins of these that ran on a GPU';
COMMENT ON COLUMN pg_stat_gpujoin.cancels IS 'joins that were cancelled or timed out';
COMMENT ON COLUMN pg_stat_gpujoin.rows IS 'rows that joins compared, both sides together';
COMMENT ON COLUMN pg_stat_gpujoin.pairs IS 'pairs that joins found';
COMMENT ON COLUMN pg_stat_gpujoin.candidates IS 'pairs that joins compared, counted as pairs are';
COMMENT ON COLUMN pg_stat_gpujoin.table_blocks IS 'blocks of tables that the service kept, at each join on them';
COMMENT ON COLUMN pg_stat_gpujoin.blocks_read IS 'blocks of these that were read again';
COMMENT ON COLUMN pg_stat_gpujoin.engine_fallbacks IS 'joins that ran on the CPU because a GPU could not be used';
COMMENT ON COLUMN pg_stat_gpujoin.topk_fallbacks IS 'joins that found all pairs because the first ones alone could not be found';
COMMENT ON COLUMN pg_stat_gpujoin.nested_loops IS 'joins that evaluated their condition for every pair';
COMMENT ON COLUMN pg_stat_gpujoin.service_fallbacks IS 'joins that ran in the session because the service could not be used';
COMMENT ON COLUMN pg_stat_gpujoin.read_ms IS 'milliseconds that reading rows took';
COMMENT ON COLUMN pg_stat_gpujoin.index_ms IS 'milliseconds that building indexes took';
COMMENT ON COLUMN pg_stat_gpujoin.join_ms IS 'milliseconds that comparing rows took';
COMMENT ON COLUMN pg_stat_gpujoin.stats_reset IS 'time of the last gpu_reset_join_counts()';
COMMENT ON COLUMN pg_stat_gpujoin.missed_joins IS 'distances over more than 100 million pairs that queries were planned for without the node';
COMMENT ON COLUMN pg_stat_gpujoin.searches IS 'searches of one table for the rows near one value';

CREATE FUNCTION gpu_reset_join_counts() RETURNS boolean
    AS 'MODULE_PATHNAME', 'gpujoin_reset_join_counts' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpu_reset_join_counts() IS 'begin pg_stat_gpujoin anew for this database';
REVOKE ALL ON FUNCTION gpu_reset_join_counts() FROM PUBLIC;

CREATE FUNCTION gpu_running_joins(
    OUT pid int, OUT datid oid, OUT phase text, OUT engine text, OUT since timestamptz, OUT left_rows bigint, OUT right_rows bigint,
    OUT candidates bigint, OUT pairs bigint, OUT work bigint, OUT work_done bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gpujoin_running_joins' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gpu_running_joins() IS 'joins at work';
CREATE VIEW pg_stat_progress_gpujoin AS
    SELECT r.pid, r.datid, d.datname, r.phase, r.engine, r.since, r.left_rows, r.right_rows, r.candidates, r.pairs, r.work, r.work_done
    FROM gpu_running_joins() r LEFT JOIN pg_database d ON d.oid = r.datid;
COMMENT ON VIEW pg_stat_progress_gpujoin IS 'joins at work';
GRANT SELECT ON pg_stat_progress_gpujoin TO PUBLIC;

-- Tables whose rows stay in the service, for monitoring; and how to be rid of one.

CREATE FUNCTION gpu_resident_tables(
    OUT relation regclass, OUT columns name[], OUT rows bigint, OUT host_bytes bigint, OUT device_bytes bigint,
    OUT hits bigint, OUT blocks_read bigint)
    RETURNS SETOF record
    AS 'MODULE_PATHNAME', 'gpujoin_resident_tables' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION gpu_resident_tables() IS 'tables of this database whose columns stay in the gpujoin service';
REVOKE ALL ON FUNCTION gpu_resident_tables() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION gpu_resident_tables() TO pg_monitor;
CREATE VIEW gpu_resident AS SELECT * FROM gpu_resident_tables();
COMMENT ON VIEW gpu_resident IS 'tables of this database whose columns stay in the gpujoin service';
GRANT SELECT ON gpu_resident TO pg_monitor;

CREATE FUNCTION gpu_prewarm(
    tbl regclass, eps float8 DEFAULT NULL, id_column name DEFAULT NULL, vector_columns anycompatible DEFAULT NULL,
    metric text DEFAULT 'l2', score_column name DEFAULT NULL, box_columns anycompatible DEFAULT NULL, keep boolean DEFAULT false)
    RETURNS bigint
    AS 'MODULE_PATHNAME', 'gpujoin_prewarm' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpu_prewarm IS
    'makes the gpujoin service keep and index the vectors of a table for searches, its vectors for joins of a radius, or its boxes; returns the number of rows';

-- The arguments of calls with keep => true, which are made again whenever the service starts.

CREATE TABLE gpu_prewarmed (
    relation regclass NOT NULL, eps float8, id_column name, vector_columns text, metric text, score_column name, box_columns text);
COMMENT ON TABLE gpu_prewarmed IS 'what gpu_prewarm(keep => true) brings back to the gpujoin service after a restart';
GRANT SELECT ON gpu_prewarmed TO PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('gpu_prewarmed', '');

CREATE FUNCTION gpu_evict(tbl regclass) RETURNS bigint
    AS 'MODULE_PATHNAME', 'gpujoin_evict' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION gpu_evict(regclass) IS
    'makes the gpujoin service forget the columns of a table; returns how many sets of columns it had';

-- Only gpujoin's own functions load the library: a session that has called none of them joins by other operators without
-- it. So show how to preload it. Scripts run with client_min_messages = warning; a stricter setting is the user's own, and
-- stays. Scripts of pg_dump, which turn row_security off, stay quiet. The statement keeps what the database preloads.

DO LANGUAGE plpgsql $$
DECLARE
  preloaded text;
BEGIN
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  SELECT substring(setting FROM 'session_preload_libraries=(.*)') INTO preloaded
    FROM pg_db_role_setting, unnest(setconfig) setting
    WHERE setrole = 0 AND setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND setting LIKE 'session\_preload\_libraries=%';
  preloaded := coalesce(preloaded, current_setting('session_preload_libraries'));
  IF current_setting('client_min_messages') = 'warning' AND current_setting('row_security') = 'on'
      AND concat_ws(',', preloaded, current_setting('session_preload_libraries'),
        current_setting('shared_preload_libraries'), current_setting('local_preload_libraries')) !~ '\mgpujoin\M' THEN
    PERFORM set_config('client_min_messages', 'notice', true);
    RAISE NOTICE 'gpujoin is not preloaded: new sessions join by operators of point, bit, cube, PostGIS or pgvector without it'
      USING HINT = format('ALTER DATABASE %I SET session_preload_libraries = %s;', current_database(),
        (SELECT string_agg(quote_literal(btrim(library, ' "')), ', ' ORDER BY place)
         FROM unnest(array_append(string_to_array(preloaded, ','), 'gpujoin')) WITH ORDINALITY AS libraries (library, place)));
    PERFORM set_config('client_min_messages', 'warning', true);
  END IF;
END $$;

-- The <-> operator and gpu_within(): the definition of distance, one pair at a time.
SET extra_float_digits = 1;
SELECT '{0,0}'::float8[] <-> '{3,4}'::float8[] AS five, '{0,0}'::float4[] <-> '{3,4}'::float4[] AS five4;
SELECT '{0.1}'::float8[] <-> '{0.7}'::float8[] AS wide, '{0.1}'::float4[] <-> '{0.7}'::float4[] AS narrow;
SELECT '{1}'::float8[] <-> NULL AS nothing;
SELECT a, b, a::float8[] <-> b::float8[] AS distance FROM (VALUES
  ('{NaN}', '{1}'), ('{Infinity}', '{Infinity}'), ('{Infinity}', '{-Infinity}'), ('{Infinity}', '{0}'), ('{-0}', '{0}'),
  ('{1e200}', '{-1e200}'), ('{5e-324}', '{0}'), ('{1e-160}', '{0}'), ('{1e16,1}', '{1e16,3}')) t(a, b);

-- Sums are taken in column order, without fused multiply-add: these differ from other orders in the last bit.
SELECT '{0.1,0.9,1.3}'::float8[] <-> '{0,0,0}'::float8[] AS one_order, '{0.9,1.3,0.1}'::float8[] <-> '{0,0,0}'::float8[] AS another;

SELECT gpu_within('{0,0}'::float8[], '{3,4}', 5), gpu_within('{0,0}'::float8[], '{3,4}', 4.999999999999999);
SELECT gpu_within('{0,0}'::float4[], '{3,4}', 5), gpu_within('{0,0}'::float4[], '{3,4}', 4.999999999999999);
SELECT gpu_within(point(0, 0), point(3, 4), 5), gpu_within(point(0, 0), point(3, 4), 4.999999999999999);
SELECT gpu_within('{NaN}'::float8[], '{NaN}', 1e308), gpu_within('{Infinity}'::float8[], '{0}', 1e308);
SELECT gpu_within(NULL::float8[], '{1}', 1), gpu_within('{1}'::float8[], '{1}', NULL);
SELECT gpu_within('{1}'::float8[], '{1}', 0), gpu_within('{1}'::float8[], '{1.0000000000000002}', 0);

-- Whatever eps is, and however it changes from row to row, gpu_within() agrees with the operator.
SELECT count(*), count(*) FILTER (WHERE gpu_within(a, b, eps) <> (a <-> b <= eps)) AS disagree
FROM (SELECT ARRAY[i * 31 % 97 / 9.7, i * 57 % 89 / 8.9]::float8[] AS a,
             ARRAY[i * 71 % 83 / 8.3, i * 41 % 79 / 7.9]::float8[] AS b,
             (i % 17 / 2.0)::float8 AS eps
      FROM generate_series(1, 2000) i) t;
SELECT count(*) FILTER (WHERE NOT gpu_within(a, b, a <-> b)) AS outside_own_distance
FROM (SELECT ARRAY[i * 31 % 97 / 9.7, i * 57 % 89 / 8.9]::float8[] AS a,
             ARRAY[i * 71 % 83 / 8.3, i * 41 % 79 / 7.9]::float8[] AS b
      FROM generate_series(1, 2000) i) t;

-- The operator commutes.
SELECT oprname, oprleft::regtype, oprcom::regoperator FROM pg_operator
WHERE oprcode::text LIKE '%gpu_distance%' ORDER BY 2;

"""The queries of SpatialBench in one text for PostgreSQL with PostGIS, DuckDB and SedonaDB; DIALECTS has what differs.
Degrees stand for metres as there: 0.009 for a kilometre. A query is measured by a summary of its rows: their number, and a sum
that the engines have to agree on."""
from typing import NamedTuple

TABLES = {
    'trip': {'t_tripkey': 'bigint', 't_custkey': 'bigint', 't_pickuptime': 'timestamp', 't_dropofftime': 'timestamp',
             't_fare': 'numeric(15,5)', 't_tip': 'numeric(15,5)', 't_distance': 'numeric(15,5)', 't_pickuploc': 'geometry',
             't_dropoffloc': 'geometry'},
    'building': {'b_buildingkey': 'bigint', 'b_name': 'text', 'b_boundary': 'geometry'},
    'customer': {'c_custkey': 'bigint', 'c_name': 'text'},
    'zone': {'z_zonekey': 'bigint', 'z_name': 'text', 'z_boundary': 'geometry'}}

# What users of PostGIS would have.
INDEXES = {'trip': 'CREATE INDEX ON trip USING gist (t_pickuploc);\n',
           'building': 'ALTER TABLE building ADD PRIMARY KEY (b_buildingkey);\nCREATE INDEX ON building USING gist (b_boundary);\n',
           'customer': 'ALTER TABLE customer ADD PRIMARY KEY (c_custkey);\n',
           'zone': 'ALTER TABLE zone ADD PRIMARY KEY (z_zonekey);\nCREATE INDEX ON zone USING gist (z_boundary);\n'}

NEAREST = """SELECT t_tripkey, b_buildingkey, ST_Distance(t_pickuploc, b_boundary) AS distance FROM trip
CROSS JOIN LATERAL (SELECT b_buildingkey, b_boundary FROM building ORDER BY {nearer} LIMIT 5) nearest"""

ONCE = 'a.b_buildingkey < b.b_buildingkey'

# DuckDB takes its spatial join only where no comparison stands beside the spatial condition: hence the difference of the keys.
DIALECTS = {
    'PostgreSQL': {'once': ONCE, 'collect': 'ST_Collect(t_dropoffloc)',
                   'nearest': NEAREST.format(nearer='t_pickuploc <-> b_boundary')},
    'DuckDB': {'once': 'a.b_buildingkey - b.b_buildingkey < 0', 'collect': 'ST_Collect(list(t_dropoffloc))',
               'nearest': NEAREST.format(nearer='ST_Distance(t_pickuploc, b_boundary)')},
    'SedonaDB': {'once': ONCE, 'collect': 'ST_Collect_Agg(t_dropoffloc)',
                 'nearest': 'SELECT t_tripkey, b_buildingkey, ST_Distance(t_pickuploc, b_boundary) AS distance '
                            'FROM trip JOIN building ON ST_KNN(t_pickuploc, b_boundary, 5, false)'}}

CENTRE = 'ST_Point(-111.761, 34.8697)'
BOX = "ST_GeomFromText('POLYGON((-111.906 34.7347, -111.616 34.7347, -111.616 35.0047, -111.906 35.0047, -111.906 34.7347))')"
REGION = "ST_GeomFromText('POLYGON((-112.2110 34.4197, -111.3110 34.4197, -111.3110 35.3197, -112.2110 35.3197, -112.2110 34.4197))')"
DURATION = "(date_part('epoch', t_dropofftime) - date_part('epoch', t_pickuptime))"
PER_ZONE = f'z_zonekey, z_name, count(*) AS trips, avg(CAST(t_distance AS double precision)) AS distance, avg({DURATION}) AS duration'


class Query(NamedTuple):
    meaning: str
    summary: str
    sql: str
    tables: tuple = ('trip',)


QUERIES = {
    1: Query('trips that begin within 50 km of a point, with their distance', 'sum(distance)',
             f"""SELECT t_tripkey, t_pickuptime, ST_Distance(t_pickuploc, {CENTRE}) AS distance FROM trip
WHERE ST_DWithin(t_pickuploc, {CENTRE}, 0.45)"""),
    2: Query('trips that begin in one county', 'sum(trips)',
             """SELECT count(*) AS trips FROM trip JOIN zone ON ST_Intersects(t_pickuploc, z_boundary)
WHERE z_name = 'Coconino County'""", ('trip', 'zone')),
    3: Query('monthly numbers of the trips that begin within 5 km of a box: how many, how far, how long, how dear',
             'sum(trips) + sum(distance) + sum(duration) + sum(fare)',
             f"""SELECT date_trunc('month', t_pickuptime) AS month, count(*) AS trips,
avg(CAST(t_distance AS double precision)) AS distance, avg({DURATION}) AS duration, avg(CAST(t_fare AS double precision)) AS fare
FROM trip WHERE ST_DWithin(t_pickuploc, {BOX}, 0.045) GROUP BY date_trunc('month', t_pickuptime)"""),
    4: Query('zones of the 1,000 trips with the best tips', 'sum(trips * z_zonekey)',
             """SELECT z_zonekey, z_name, count(*) AS trips FROM zone
JOIN (SELECT t_pickuploc FROM trip ORDER BY t_tip DESC, t_tripkey LIMIT 1000) best ON ST_Within(t_pickuploc, z_boundary)
GROUP BY z_zonekey, z_name""", ('trip', 'zone')),
    5: Query('customers with more than five trips in a month: the area of the convex hull of where these end',
             'sum(trips) + sum(area)',
             """SELECT c_custkey, c_name, date_trunc('month', t_pickuptime) AS month, count(*) AS trips,
ST_Area(ST_ConvexHull({collect})) AS area FROM trip JOIN customer ON t_custkey = c_custkey
GROUP BY c_custkey, c_name, date_trunc('month', t_pickuptime) HAVING count(*) > 5""", ('trip', 'customer')),
    6: Query('numbers of the trips in each zone of a region', 'sum(trips * z_zonekey) + sum(distance) + sum(duration)',
             f"""SELECT {PER_ZONE} FROM trip JOIN zone ON ST_Within(t_pickuploc, z_boundary)
WHERE ST_Intersects(z_boundary, {REGION}) GROUP BY z_zonekey, z_name""", ('trip', 'zone')),
    7: Query('how much longer each trip was than the straight line', 'sum(detour)',
             """SELECT t_tripkey, CAST(t_distance AS double precision) / NULLIF(ST_Distance(t_pickuploc, t_dropoffloc) / 0.000009, 0)
AS detour FROM trip"""),
    8: Query('trips that begin within 500 m of each building', 'sum(trips * b_buildingkey)',
             """SELECT b_buildingkey, b_name, count(*) AS trips FROM trip
JOIN building ON ST_DWithin(t_pickuploc, b_boundary, 0.0045) GROUP BY b_buildingkey, b_name""", ('trip', 'building')),
    9: Query('buildings that overlap, by intersection over union', 'sum(iou)',
             """SELECT key1, key2, overlap / (area1 + area2 - overlap) AS iou FROM (SELECT a.b_buildingkey AS key1,
b.b_buildingkey AS key2, ST_Area(a.b_boundary) AS area1, ST_Area(b.b_boundary) AS area2,
ST_Area(ST_Intersection(a.b_boundary, b.b_boundary)) AS overlap
FROM building a JOIN building b ON ST_Intersects(a.b_boundary, b.b_boundary) AND {once}) pairs""",
             ('building',)),
    10: Query('numbers of all trips in each zone', 'sum(trips * z_zonekey) + sum(distance) + sum(duration)',
              f"""SELECT {PER_ZONE} FROM trip JOIN zone ON ST_Within(t_pickuploc, z_boundary) GROUP BY z_zonekey, z_name""",
              ('trip', 'zone')),
    11: Query('trips that end in another zone than they begin', 'sum(trips)',
              """SELECT count(*) AS trips FROM trip JOIN zone a ON ST_Within(t_pickuploc, a.z_boundary)
JOIN zone b ON ST_Within(t_dropoffloc, b.z_boundary) WHERE a.z_zonekey <> b.z_zonekey""", ('trip', 'zone')),
    12: Query('the five nearest buildings of where each trip begins', 'sum(distance)', '{nearest}', ('trip', 'building'))}


def text(query, dialect):
    """The query as it is measured."""
    return f'SELECT count(*), {query.summary} FROM ({query.sql.format(**DIALECTS[dialect])}) result'

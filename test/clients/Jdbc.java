import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.postgresql.util.PSQLException;

/** JDBC: what is described without being run, statements prepared on the server, fetch sizes, the catalog, errors, cancel. Prints TAP. */
public class Jdbc {
  // The same queries as in dbapi.py.
  static final Map<String, String> QUERIES = new TreeMap<>(Map.of(
      "plain SQL", "SELECT a.id AS id1, b.id AS id2, a.v <-> b.v AS distance FROM points a JOIN points b ON a.id < b.id AND a.v <-> b.v <= ?",
      "function", "SELECT id1, id2, distance FROM gpu_selfjoin_distance('points', ?, pairs => 'unordered')"));
  static final Map<String, String> ENDLESS = new TreeMap<>(Map.of(
      "plain SQL", "SELECT a.id FROM crowd a JOIN crowd b ON a.v <-> b.v <= 9 WHERE a.id + b.id < 0",
      "function", "SELECT id1 FROM gpu_selfjoin('crowd', 9) WHERE id1 + id2 < 0"));
  static final String[] PROBES = {"SELECT * FROM (%s) s WHERE 1=0", "SELECT * FROM (%s) AS virtual_table LIMIT 0",
    "SELECT \"_\".\"id1\", \"_\".\"id2\", \"_\".\"distance\" FROM (SELECT * FROM (%s) AS t) AS \"_\" LIMIT 0"};
  static final String COLUMNS = "[id1 BIGINT, id2 BIGINT, distance DOUBLE]";
  static final double[] RADII = {4.5, 6, 9};
  static final double MOST_SECONDS = 1.5;

  static Connection session;

  static void claim(String name, boolean holds, Object said) {
    System.out.println((holds ? "ok " : "not ok ") + name);
    if (!holds) {
      System.out.println("# " + String.valueOf(said).replace("\n", "\n# "));
    }
  }

  static Connection connect() throws SQLException {
    Properties options = new Properties();
    options.setProperty("user", System.getenv("PGUSER"));
    options.setProperty("socketFactory", "UnixSockets");
    options.setProperty("sslmode", "disable");
    options.setProperty("gssEncMode", "disable");
    return DriverManager.getConnection("jdbc:postgresql://localhost/" + System.getenv("PGDATABASE"), options);
  }

  static String text(String sql) throws SQLException {
    List<String> lines = new ArrayList<>();
    try (Statement statement = session.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
      while (rows.next()) {
        lines.add(rows.getString(1));
      }
    }
    return String.join("\n", lines);
  }

  static String columns(ResultSetMetaData data) throws SQLException {
    List<String> columns = new ArrayList<>();
    for (int i = 1; i <= data.getColumnCount(); i++) {
      int type = data.getColumnType(i);
      columns.add(data.getColumnName(i) + (type == Types.BIGINT ? " BIGINT" : type == Types.DOUBLE ? " DOUBLE" : " " + type));
    }
    return columns.toString();
  }

  /** "number checksum" of the pairs of a statement, as expected() has them. */
  static String summed(ResultSet rows) throws SQLException {
    long count = 0;
    long sum = 0;
    while (rows.next()) {
      count++;
      sum += rows.getLong("id1") * 31 + rows.getLong("id2");
    }
    return count + " " + sum;
  }

  static String expected(double radius) throws SQLException {
    return text("SELECT sum(pairs) || ' ' || sum(ids) FROM expected WHERE radius = " + radius);
  }

  static void probes(String kind, String query) throws SQLException {
    for (String probe : PROBES) {
      try (PreparedStatement statement = session.prepareStatement(String.format(probe, query))) {
        String before = columns(statement.getMetaData());
        statement.setDouble(1, 6);
        try (ResultSet rows = statement.executeQuery()) {
          claim(kind + ": columns by " + String.format(probe, "..."),
              !rows.next() && before.equals(COLUMNS) && columns(rows.getMetaData()).equals(COLUMNS), before);
        }
      }
    }
  }

  static void repeated(String kind, String query) throws SQLException {
    try (PreparedStatement statement = session.prepareStatement(query)) {
      List<String> wrong = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        double radius = RADII[i % 3];
        statement.setDouble(1, radius);
        try (ResultSet rows = statement.executeQuery()) {
          String found = summed(rows);
          if (!found.equals(expected(radius))) {
            wrong.add(radius + ": " + found);
          }
        }
      }
      claim(kind + ": pairs of twenty radii", wrong.isEmpty(), wrong);
      String beginning = query.substring(0, query.indexOf('?')).replace("'", "''");
      String name = text("SELECT name FROM pg_prepared_statements WHERE generic_plans > 0 AND starts_with(statement, '" + beginning + "')");
      claim(kind + ": the last ones by a generic plan", !name.isEmpty(), name);
      String plan = text("EXPLAIN EXECUTE \"" + name + "\"(6)");
      claim(kind + ": which has the node", plan.contains("GpuSimilarityJoin"), plan);
    }
  }

  static void batches(String kind, String query) throws SQLException {
    session.setAutoCommit(false);
    try (PreparedStatement statement = session.prepareStatement(query)) {
      statement.setFetchSize(100);
      statement.setDouble(1, 9);
      try (ResultSet rows = statement.executeQuery()) {
        String portals = text("SELECT count(*) FROM pg_cursors WHERE name LIKE 'C\\_%'");
        String found = summed(rows);
        claim(kind + ": a fetch size gives all rows in batches", portals.equals("1") && found.equals(expected(9)), portals + ", " + found);
      }
    }
    session.commit();
    session.setAutoCommit(true);
  }

  static void cancel(String kind) throws Exception {
    try (Statement statement = session.createStatement()) {
      long[] cancelled = {0};
      Thread later = new Thread(() -> {
        try {
          Thread.sleep(500);
          cancelled[0] = System.nanoTime();
          statement.cancel();
        } catch (Exception failure) {
          System.out.println("not ok cancel: " + failure);
        }
      });
      later.start();
      try {
        statement.executeQuery(ENDLESS.get(kind));
        claim(kind + ": a cancel ends it", false, "it ended by itself");
      } catch (SQLException error) {
        double seconds = (System.nanoTime() - cancelled[0]) / 1e9;
        claim(kind + ": a cancel ends it", cancelled[0] != 0 && error.getSQLState().equals("57014"), error);
        claim(kind + ": within " + MOST_SECONDS + " s", seconds <= MOST_SECONDS, seconds + " s");
      }
      later.join();
    }
    try (PreparedStatement statement = session.prepareStatement(QUERIES.get(kind))) {
      statement.setDouble(1, 6);
      try (ResultSet rows = statement.executeQuery()) {
        String found = summed(rows);
        claim(kind + ": and the session goes on", found.equals(expected(6)), found);
      }
    }
  }

  static void catalog() throws SQLException {
    List<String> columns = new ArrayList<>();
    try (ResultSet rows = session.getMetaData().getColumns(null, "public", "pairs", null)) {
      while (rows.next()) {
        columns.add(rows.getString("COLUMN_NAME") + " " + rows.getString("TYPE_NAME"));
      }
    }
    claim("columns of a view in the catalog", columns.toString().equals("[id1 int8, id2 int8, distance float8, region text]"), columns);
  }

  static void refusal() throws SQLException {
    try (Statement statement = session.createStatement()) {
      statement.executeQuery("SELECT * FROM gpu_selfjoin('points', -3)");
      claim("a radius below zero is refused", false, "it is not");
    } catch (PSQLException error) {
      claim("an error has its SQLSTATE", error.getSQLState().equals("22023"), error);
      String hint = error.getServerErrorMessage().getHint();
      claim("and its hint", hint != null && hint.contains("Pass the largest distance that two rows may have"), hint);
    }
  }

  public static void main(String[] none) throws Exception {
    session = connect();
    for (String kind : QUERIES.keySet()) {
      probes(kind, QUERIES.get(kind));
      repeated(kind, QUERIES.get(kind));
      batches(kind, QUERIES.get(kind));
      cancel(kind);
    }
    catalog();
    refusal();
    session.close();
  }
}

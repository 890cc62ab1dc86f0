/* Writers that append one file each time to one table of Iceberg's own JDBC catalog, each a thread with a catalog of its own.
 *
 *     java -cp JARS JdbcWriters.java JDBC_URL USER PASSWORD WAREHOUSE WRITERS COMMITS
 *
 * No data files exist: what is measured is the commit. Prints one line of JSON. */
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.types.Types;

public class JdbcWriters {
  static final TableIdentifier TABLE = TableIdentifier.of("n", "t");

  static JdbcCatalog open(String[] args) {
    Map<String, String> p = new HashMap<>();
    p.put("uri", args[0]);
    p.put("warehouse", "file:" + args[3]);
    p.put("jdbc.schema-version", "V1");
    p.put("io-impl", "org.apache.iceberg.hadoop.HadoopFileIO");
    if (!args[1].isEmpty()) {
      p.put("jdbc.user", args[1]);
      p.put("jdbc.password", args[2]);
    }
    JdbcCatalog catalog = new JdbcCatalog();
    catalog.setConf(new org.apache.hadoop.conf.Configuration());
    catalog.initialize("bench", p);
    return catalog;
  }

  public static void main(String[] args) throws Exception {
    int writers = Integer.parseInt(args[4]), commits = Integer.parseInt(args[5]);
    JdbcCatalog first = open(args);
    first.createNamespace(Namespace.of("n"));
    first.createTable(TABLE, new Schema(Types.NestedField.required(1, "id", Types.LongType.get())), PartitionSpec.unpartitioned());
    JdbcCatalog[] catalogs = new JdbcCatalog[writers];
    for (int i = 0; i < writers; i++) {
      catalogs[i] = i == 0 ? first : open(args);
    }
    double[][] ms = new double[writers][commits];
    AtomicInteger failed = new AtomicInteger();
    List<Thread> threads = new ArrayList<>();
    long began = System.nanoTime();
    for (int w = 0; w < writers; w++) {
      int writer = w;
      threads.add(new Thread(() -> {
        Table table = catalogs[writer].loadTable(TABLE);
        for (int i = 0; i < commits; i++) {
          long t = System.nanoTime();
          try {
            table.newAppend().appendFile(DataFiles.builder(PartitionSpec.unpartitioned())
                .withPath(args[3] + "/n/t/data/f-" + writer + "-" + i + ".parquet").withFileSizeInBytes(1000).withRecordCount(1).build())
                .commit();
          } catch (RuntimeException e) {
            failed.incrementAndGet();
          }
          ms[writer][i] = (System.nanoTime() - t) / 1e6;
        }
      }));
    }
    for (Thread t : threads) {
      t.start();
    }
    for (Thread t : threads) {
      t.join();
    }
    double seconds = (System.nanoTime() - began) / 1e9;
    double[] all = Arrays.stream(ms).flatMapToDouble(Arrays::stream).sorted().toArray();
    int snapshots = 0;
    for (Object ignored : first.loadTable(TABLE).snapshots()) {
      snapshots++;
    }
    System.out.printf("{\"commits\":%d,\"seconds\":%.3f,\"p50\":%.2f,\"p99\":%.2f,\"failed\":%d,\"snapshots\":%d}%n", all.length, seconds,
        all[all.length / 2], all[all.length * 99 / 100], failed.get(), snapshots);
    System.exit(0);
  }
}

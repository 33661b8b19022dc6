import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** What the drivers share: events, how a match is counted, and what is said of a run. */
final class Common {
    /** Passes before the one that is timed: after fewer, a JVM still compiles. */
    static final int WARM_UP = 6;

    private static final com.sun.management.OperatingSystemMXBean SYSTEM =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Common() {}

    /** Calls back for every line {@code id,kind,key,v}; numbers are read without making strings. */
    static void parse(byte[] csv, java.util.function.Consumer<Event> take) {
        int at = 0;
        int[] fields = new int[4];
        while (csv[at++] != '\n') {} // the header
        while (at < csv.length) {
            for (int field = 0; field < 4; field++) {
                int value = 0;
                for (byte digit = csv[at++]; digit != ',' && digit != '\n'; digit = csv[at++]) {
                    value = 10 * value + digit - '0';
                }
                fields[field] = value;
            }
            take.accept(new Event(fields[0], fields[1], fields[2], fields[3]));
        }
    }

    static Event[] events(byte[] csv) {
        var found = new java.util.ArrayList<Event>();
        parse(csv, found::add);
        return found.toArray(Event[]::new);
    }

    static byte[] read(String path) throws IOException {
        return Files.readAllBytes(Path.of(path));
    }

    /** Processor time of this process, all of its threads: compilers and collectors, too. */
    static double cpu() {
        return SYSTEM.getProcessCpuTime() / 1e9;
    }

    static void say(long matches, long sum, double cpu, double wall, double setup) {
        System.out.printf(
                java.util.Locale.ROOT,
                "{\"matches\": %d, \"sum\": %d, \"cpu\": %.6f, \"wall\": %.6f, \"setup\": %.6f}%n",
                matches, sum, cpu, wall, setup);
    }

    static void say(long matches, long sum, double cpu, double wall, double setup, long[] taken) {
        Arrays.sort(taken);
        System.out.printf(
                java.util.Locale.ROOT,
                "{\"matches\": %d, \"sum\": %d, \"cpu\": %.6f, \"wall\": %.6f, \"setup\": %.6f,"
                        + " \"p50\": %.3f, \"p99\": %.3f}%n",
                matches, sum, cpu, wall, setup,
                taken[taken.length / 2] / 1e3, taken[taken.length * 99 / 100] / 1e3);
    }
}

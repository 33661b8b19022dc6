import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.util.Collector;

/**
 * {@code FlinkDriver FORM EVENTS PATTERN}: Flink CEP in a local environment of parallelism 1, events as beans or as CSV.
 * Time is taken from the first event to the end of the job.
 */
public final class FlinkDriver {
    /** So many events are between two watermarks. */
    private static final int STEP = 1_000;

    static String form;
    static byte[] csv;
    static Event[] events;
    // Several patterns are several tasks, in threads of their own.
    static final AtomicLong matches = new AtomicLong();
    static final AtomicLong sum = new AtomicLong();
    static double cpu;
    static long wall;

    public static void main(String[] arguments) throws Exception {
        form = arguments[0];
        csv = Common.read(arguments[1]);
        String[] pattern = new String(Common.read(arguments[2])).strip().split(" ");
        events = form.equals("csv") ? new Event[0] : Common.events(csv);
        for (int pass = 0; pass <= Common.WARM_UP; pass++) {
            matches.set(0);
            sum.set(0);
            double begin = Common.cpu();
            StreamExecutionEnvironment environment =
                    StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
            environment.getConfig().enableObjectReuse();
            DataStream<Event> stream = environment.addSource(new Source(), "events").returns(Event.class);
            boolean alone = pattern[0].equals("any") || pattern[0].equals("rising");
            KeyedStream<Event, Integer> keyed =
                    stream.keyBy((KeySelector<Event, Integer>) event -> alone ? 0 : event.key);
            for (Pattern<Event, ?> asked : patterns(pattern)) {
                CEP.pattern(keyed, asked).inEventTime().process(new Found()).sinkTo(new DiscardingSink<>());
            }
            System.gc();
            environment.execute();
            double used = Common.cpu() - cpu;
            if (pass == Common.WARM_UP) {
                Common.say(matches.get(), sum.get(), used, (System.nanoTime() - wall) / 1e9, cpu - begin);
            }
        }
        System.exit(0);
    }

    /** Emits all events, each at its time, and a watermark now and then. */
    public static final class Source implements SourceFunction<Event> {
        @Override
        public void run(SourceContext<Event> context) {
            cpu = Common.cpu();
            wall = System.nanoTime();
            java.util.function.Consumer<Event> emit = event -> {
                context.collectWithTimestamp(event, event.id);
                if (event.id % STEP == STEP - 1) {
                    context.emitWatermark(new Watermark(event.id));
                }
            };
            if (form.equals("csv")) {
                Common.parse(csv, emit);
            } else {
                for (Event event : events) {
                    emit.accept(event);
                }
            }
        }

        @Override
        public void cancel() {}
    }

    /** Takes every event out of every match. */
    public static final class Found extends PatternProcessFunction<Event, Integer> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Integer> out) {
            matches.incrementAndGet();
            long of = 0;
            for (List<Event> chosen : match.values()) {
                for (Event event : chosen) {
                    of += event.id;
                }
            }
            sum.addAndGet(of);
        }
    }

    private static List<Pattern<Event, ?>> patterns(String[] asked) {
        Duration within = Duration.ofMillis(Integer.parseInt(asked[1]) + 1);
        var found = new ArrayList<Pattern<Event, ?>>();
        if (asked[0].equals("alerts") || asked[0].equals("first")) {
            for (int i = 0; i < Integer.parseInt(asked[2]); i++) {
                found.add((asked[0].equals("first") ? alertOfFirst(i) : alert(i)).within(within));
            }
            return found;
        }
        AfterMatchSkipStrategy all = AfterMatchSkipStrategy.noSkip();
        Pattern<Event, Event> a = Pattern.<Event>begin("a", all);
        if (!asked[0].equals("v") && !asked[0].equals("kleene")) {
            a = a.where(kind(0)); // which changes ``a`` itself
        }
        Pattern<Event, ?> pattern =
                switch (asked[0]) {
                    case "any" -> a.followedByAny("b").where(kind(1)).followedByAny("c").where(kind(2));
                    case "next" -> a.followedBy("b").where(kind(1)).followedBy("c").where(kind(2));
                    case "strict" -> a.next("b").where(kind(1)).next("c").where(kind(2));
                    case "rising" -> a.followedByAny("b").where(kind(1)).where(above("a"))
                            .followedByAny("c").where(kind(2)).where(above("b"));
                    case "negation" -> a.notFollowedBy("b").where(kind(1)).followedBy("c").where(kind(2));
                    case "v" -> a.next("b").where(below("a")).oneOrMore().consecutive()
                            .next("c").where(above("a"));
                    case "kleene" -> a.followedBy("b").where(below("a")).oneOrMore()
                            .next("c").where(above("a"));
                    default -> throw new IllegalArgumentException(asked[0]);
                };
        found.add(pattern.within(within));
        return found;
    }

    private static Pattern<Event, Event> alert(int i) {
        int share = i / 5;
        int over = 6_000 + 100 * (i % 30);
        int loss = 2_500 + 100 * (i % 7);
        return Pattern.<Event>begin("a", AfterMatchSkipStrategy.noSkip())
                .where(new Condition((event, context) -> event.key == share && event.v > over))
                .followedBy("b")
                .where(new Condition((event, context) ->
                        event.key == share && event.v < first(context, "a").v - loss));
    }

    /** An alert whose constants stand in its first event only. */
    private static Pattern<Event, Event> alertOfFirst(int i) {
        int share = i / 5;
        int over = 6_000 + 100 * (i % 30);
        return Pattern.<Event>begin("a", AfterMatchSkipStrategy.noSkip())
                .where(new Condition((event, context) -> event.key == share && event.v > over))
                .followedBy("b")
                .where(new Condition((event, context) -> event.v < first(context, "a").v - 2_500));
    }

    /** What a condition asks of an event and of those chosen before it. */
    interface Test extends java.io.Serializable {
        boolean holds(Event event, IterativeCondition.Context<Event> context) throws Exception;
    }

    static final class Condition extends IterativeCondition<Event> {
        private final Test test;

        Condition(Test test) {
            this.test = test;
        }

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            return test.holds(event, context);
        }
    }

    private static Condition kind(int kind) {
        return new Condition((event, context) -> event.kind == kind);
    }

    private static Condition above(String name) {
        return new Condition((event, context) -> event.v > first(context, name).v);
    }

    private static Condition below(String name) {
        return new Condition((event, context) -> event.v < first(context, name).v);
    }

    private static Event first(IterativeCondition.Context<Event> context, String name) throws Exception {
        return context.getEventsForPattern(name).iterator().next();
    }
}

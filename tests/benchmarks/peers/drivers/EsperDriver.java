import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompiler;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import com.espertech.esper.runtime.client.UpdateListener;
import java.util.function.Consumer;

/**
 * {@code EsperDriver FORM EVENTS STATEMENTS}: EPL over events as beans, as CSV or one by one. Statements are divided by
 * lines of {@code ---}. One runtime has all passes, a later one at later times, when all partial matches have ended.
 */
public final class EsperDriver {
    private static final long LATER = 100_000_000L;

    private static long matches;
    private static long sum;

    public static void main(String[] arguments) throws Exception {
        String form = arguments[0];
        byte[] csv = Common.read(arguments[1]);
        String[] statements = new String(Common.read(arguments[2])).split("\n---\n");
        double begin = Common.cpu();
        EPRuntime runtime = deployed(statements);
        double setup = Common.cpu() - begin;
        EPEventService service = runtime.getEventService();
        Event[] events = form.equals("csv") ? new Event[0] : Common.events(csv);
        long[] taken = new long[form.equals("push") ? events.length : 0];
        for (int pass = 0; pass <= Common.WARM_UP; pass++) {
            long base = pass * LATER + 1;
            Consumer<Event> send = event -> {
                service.advanceTime(base + event.id);
                service.sendEventBean(event, "E");
            };
            matches = sum = 0;
            System.gc();
            double cpu = Common.cpu();
            long wall = System.nanoTime();
            if (form.equals("csv")) {
                Common.parse(csv, send);
            } else if (form.equals("push")) {
                for (int i = 0; i < events.length; i++) {
                    long before = System.nanoTime();
                    send.accept(events[i]);
                    taken[i] = System.nanoTime() - before;
                }
            } else {
                for (Event event : events) {
                    send.accept(event);
                }
            }
            if (pass == Common.WARM_UP) {
                double used = Common.cpu() - cpu;
                double passed = (System.nanoTime() - wall) / 1e9;
                if (taken.length > 0) {
                    Common.say(matches, sum, used, passed, setup, taken);
                } else {
                    Common.say(matches, sum, used, passed, setup);
                }
            }
        }
        System.exit(0);
    }

    private static EPRuntime deployed(String[] statements) throws Exception {
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("E", Event.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPRuntime runtime = EPRuntimeProvider.getDefaultRuntime(configuration);
        runtime.getEventService().clockExternal();
        runtime.getEventService().advanceTime(0);
        EPCompiler compiler = EPCompilerProvider.getCompiler();
        for (String text : statements) {
            EPCompiled compiled = compiler.compile(text, new CompilerArguments(configuration));
            for (EPStatement statement : runtime.getDeploymentService().deploy(compiled).getStatements()) {
                statement.addListener(listener(statement.getEventType().getPropertyNames()));
            }
        }
        return runtime;
    }

    /** Takes every event out of every match. */
    private static UpdateListener listener(String[] names) {
        return (found, old, statement, runtime) -> {
            for (EventBean match : found) {
                matches++;
                for (String name : names) {
                    Object chosen = match.get(name);
                    if (chosen instanceof Event event) {
                        sum += event.id;
                    } else if (chosen instanceof Event[] several) {
                        for (Event event : several) {
                            sum += event.id;
                        }
                    } else if (chosen instanceof EventBean[] beans) {
                        for (EventBean bean : beans) {
                            sum += ((Event) bean.getUnderlying()).id;
                        }
                    } else if (chosen instanceof EventBean bean) {
                        sum += ((Event) bean.getUnderlying()).id;
                    }
                }
            }
        };
    }
}

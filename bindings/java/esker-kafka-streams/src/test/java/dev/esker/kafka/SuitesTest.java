package dev.esker.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** Runs Kafka's own suites of stores, as they are in its jar of tests, and counts what ran. */
class SuitesTest {
    private static final String PACKAGE = "org.apache.kafka.streams.state.internals.";

    @ParameterizedTest
    @CsvSource({
        "EskerKeyValueStoreSuite, 34",
        "EskerWindowStoreSuite, 28",
        "EskerWindowStoreSuite$Closing, 28",
        "EskerSessionStoreSuite, 34",
        "EskerSessionStoreSuite$Closing, 34",
    })
    void theWholeSuitePasses(String name, long tests) throws ClassNotFoundException {
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                .selectors(selectClass(Class.forName(PACKAGE + name)))
                .build();
        SummaryGeneratingListener listener = new SummaryGeneratingListener();
        LauncherFactory.create().execute(request, listener);
        TestExecutionSummary summary = listener.getSummary();
        StringWriter text = new StringWriter();
        summary.printFailuresTo(new PrintWriter(text), 40);
        assertEquals(tests, summary.getTestsFoundCount(), name);
        assertEquals(tests, summary.getTestsSucceededCount(), text.toString());
        System.out.println(name + ": " + tests + " of " + tests);
    }
}

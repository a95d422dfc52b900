package dev.esker.kafka;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** Runs classes of tests, and prints for each what came of it. It is for a virtual machine of its own. */
final class SuiteRunner {
    static final String RESULT = "RESULT ";
    static final String FAILED = "FAILED ";

    private SuiteRunner() {}

    /** Runs the classes with the names that are given. */
    public static void main(String[] classes) throws Exception {
        AtomicLong asked = (AtomicLong) BuiltInDslStoreSuppliers.class.getField("ASKED").get(null);
        for (String name : classes) {
            long before = asked.get();
            SummaryGeneratingListener listener = new SummaryGeneratingListener();
            LauncherFactory.create()
                    .execute(
                            LauncherDiscoveryRequestBuilder.request()
                                    .selectors(selectClass(Class.forName(name)))
                                    .build(),
                            listener);
            TestExecutionSummary summary = listener.getSummary();
            summary.getFailures().forEach(failure -> {
                String test = failure.getTestIdentifier().getLegacyReportingName();
                System.out.println(FAILED + name + "#" + test);
                failure.getException().printStackTrace(System.out);
            });
            System.out.println(RESULT + name + " " + summary.getTestsFoundCount() + " "
                    + summary.getTestsSucceededCount() + " " + (asked.get() - before));
        }
        // Some of the tests leave threads behind.
        System.exit(0);
    }
}

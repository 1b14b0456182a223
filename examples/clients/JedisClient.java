import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;

public class JedisClient {
    public static void main(String[] arguments) throws Exception {
        KeyStore roots = KeyStore.getInstance(KeyStore.getDefaultType());
        roots.load(null, null);
        try (FileInputStream pem = new FileInputStream(System.getenv("CA"))) {
            roots.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(pem));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(roots);
        SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, trust.getTrustManagers(), null);
        DefaultJedisClientConfig config = DefaultJedisClientConfig.builder()
            .user("app")
            .password(System.getenv("PASSWORD"))
            .ssl(true)
            .sslSocketFactory(tls.getSocketFactory()) // verifies the CA, not the name
            .socketTimeoutMillis(2000)
            .build();
        JedisCluster client = new JedisCluster(
            Set.of(new HostAndPort(System.getenv("HOST"), 6379)), config, 10, Duration.ofSeconds(10),
            new org.apache.commons.pool2.impl.GenericObjectPoolConfig<>());

        long calls = 0, failed = 0, slowest = 0;
        Map<String, Integer> errors = new TreeMap<>();
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        while (System.nanoTime() < end) {
            long began = System.nanoTime();
            try {
                client.set("app:" + calls % 5000, Long.toString(calls));
            } catch (Exception error) {
                failed++;
                errors.merge(error.getClass().getSimpleName(), 1, Integer::sum);
            }
            slowest = Math.max(slowest, System.nanoTime() - began);
            calls++;
            Thread.sleep(2);
        }
        System.out.printf("%d calls, %d errors %s, slowest %.2f s%n", calls, failed, errors, slowest / 1e9);
        System.exit(0);
    }
}

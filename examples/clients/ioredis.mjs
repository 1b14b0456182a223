import { readFileSync } from "node:fs";
import Redis from "ioredis";

const client = new Redis.Cluster([{ host: process.env.HOST, port: 6379 }], {
  redisOptions: {
    username: "app",
    password: process.env.PASSWORD,
    tls: {
      ca: readFileSync(process.env.CA),
      checkServerIdentity: () => undefined, // redirections name addresses of pods
    },
  },
  clusterRetryStrategy: (times) => Math.min(50 * times, 500),
});
client.on("error", () => {});

const errors = {};
let [calls, failed, slowest] = [0, 0, 0];
const end = performance.now() + 1000 * Number(process.argv[2]);
while (performance.now() < end) {
  const began = performance.now();
  try {
    await client.set(`app:${calls % 5000}`, String(calls));
  } catch (error) {
    failed += 1;
    errors[error.message.slice(0, 40)] = (errors[error.message.slice(0, 40)] ?? 0) + 1;
  }
  slowest = Math.max(slowest, performance.now() - began);
  calls += 1;
  await new Promise((done) => setTimeout(done, 2));
}
console.log(`${calls} calls, ${failed} errors ${failed ? JSON.stringify(errors) : ""}, slowest ${(slowest / 1000).toFixed(2)} s`);
process.exit(0);

import { readFileSync } from "node:fs";
import { createCluster } from "redis";

const client = createCluster({
  rootNodes: [{ url: `rediss://${process.env.HOST}:6379` }],
  defaults: {
    username: "app",
    password: process.env.PASSWORD,
    socket: {
      tls: true,
      ca: readFileSync(process.env.CA),
      checkServerIdentity: () => undefined, // redirections name addresses of pods
      reconnectStrategy: (retries) => Math.min(50 * retries, 500),
    },
  },
});
client.on("error", () => {});
client.on("node-error", () => {});
await client.connect();

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

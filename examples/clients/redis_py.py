import os
import sys
import time

from redis.backoff import ExponentialBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

client = RedisCluster(
    host=os.environ["HOST"],
    port=6379,
    username="app",
    password=os.environ["PASSWORD"],
    ssl=True,
    ssl_ca_certs=os.environ["CA"],
    ssl_check_hostname=False,  # redirections name addresses of pods
    retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 10),
    socket_timeout=2,
)

calls, errors, slowest = 0, {}, 0.0
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    began = time.monotonic()
    try:
        client.set(f"app:{calls % 5000}", calls)
    except Exception as error:
        errors[type(error).__name__] = errors.get(type(error).__name__, 0) + 1
    slowest = max(slowest, time.monotonic() - began)
    calls += 1
    time.sleep(0.002)
print(f"{calls} calls, {sum(errors.values())} errors {errors or ''}, slowest {slowest:.2f} s")

import asyncio
import os
import sys
import time

from glide import (
    AdvancedGlideClusterClientConfiguration,
    BackoffStrategy,
    GlideClusterClient,
    GlideClusterClientConfiguration,
    NodeAddress,
    ServerCredentials,
    TlsAdvancedConfiguration,
)


async def main():
    client = await GlideClusterClient.create(
        GlideClusterClientConfiguration(
            addresses=[NodeAddress(os.environ["HOST"], 6379)],
            credentials=ServerCredentials(username="app", password=os.environ["PASSWORD"]),
            use_tls=True,
            request_timeout=2000,
            reconnect_strategy=BackoffStrategy(num_of_retries=10, factor=50, exponent_base=2),
            advanced_config=AdvancedGlideClusterClientConfiguration(
                connection_timeout=2000,
                tls_config=TlsAdvancedConfiguration(use_insecure_tls=True),  # it cannot verify the CA without the name
            ),
        )
    )
    calls, errors, slowest = 0, {}, 0.0
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        began = time.monotonic()
        try:
            await client.set(f"app:{calls % 5000}", str(calls))
        except Exception as error:
            errors[type(error).__name__] = errors.get(type(error).__name__, 0) + 1
        slowest = max(slowest, time.monotonic() - began)
        calls += 1
        await asyncio.sleep(0.002)
    print(f"{calls} calls, {sum(errors.values())} errors {errors or ''}, slowest {slowest:.2f} s")


asyncio.run(main())

#!/usr/bin/env python3
"""web-pictures.py PORT URL FOLDER FORMAT: drives a browser by WebDriver and keeps pictures of the web page."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request

port, url, folder, form = sys.argv[1:]
driver = f"http://127.0.0.1:{port}/session"


def ask(path, body, method="POST"):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(driver + path, data, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]


binary = shutil.which("chromium-headless-shell") or shutil.which("chromium")
arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"]
wanted = {"goog:chromeOptions": {"binary": binary, "args": arguments}}
session = "/" + ask("", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]


def command(name, parameters):
    return ask(session + "/goog/cdp/execute", {"cmd": name, "params": parameters})


def until(expression):
    end = time.time() + 60
    while not ask(session + "/execute/sync", {"script": "return " + expression, "args": []}):
        if time.time() > end:
            sys.exit(f"not in time: {expression}")
        time.sleep(0.05)


def keep(name):
    for width, height in [(360, 800), (1280, 900), (2560, 1300)]:
        for shade in ["light", "dark"]:
            command("Emulation.setDeviceMetricsOverride",
                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
            command("Emulation.setEmulatedMedia", {"features": [
                {"name": "prefers-color-scheme", "value": shade}, {"name": "prefers-reduced-motion", "value": "reduce"}]})
            taken = command("Page.captureScreenshot", {"format": form} | ({"quality": 62} if form == "webp" else {}))
            with open(os.path.join(folder, f"{name}-{width}-{shade}.{form}"), "wb") as file:
                file.write(base64.b64decode(taken["data"]))


try:
    ask(session + "/url", {"url": url})
    until("document.querySelectorAll('.row').length === 4 && document.body.dataset.state === 'live'")
    keep("fleet")
    ask(session + "/url", {"url": url + "c/default/vkc/shop"})
    until("document.querySelector('#members')?.innerText.includes('figures of 6 of 6')")
    subprocess.run(["kubectl", "patch", "vkc", "shop", "--type", "merge", "-p", '{"spec":{"shards":5}}'],
                   check=True, stdout=subprocess.DEVNULL)
    until("document.querySelectorAll('.lane[data-shard]').length === 5 && document.querySelector('#members').innerText.includes('figures of 10 of 10')")
    keep("scale")
finally:
    ask(session, None, "DELETE")

// The page's only script: applies the stream of changes, counts ages, shows moving slots, and says when data is old.
"use strict";

const SILENCE = 1700; // a stream sends something every second; with the tick below a break shows within 2 s
const UNHEARD = 6000; // the server asks the API server every two seconds
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const $ = (id) => document.getElementById(id);

let skew = 0; // the server's clock minus this one's
let last = performance.now(); // of the last message
let old = null; // how old the server's data was then, in ms
let source = null;
let retry = 0;
let moved = null; // the owners before an update of the slots

// Durations as `candor status` writes them.
function since(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const two = (big, b, small, l) => {
    const rest = Math.floor((s % big) / small);
    return Math.floor(s / big) + b + (rest ? rest + l : "");
  };
  const [m, h, d, y] = [60, 3600, 86400, 31536000];
  if (s < 2 * m) return s + "s";
  if (s < 10 * m) return two(m, "m", 1, "s");
  if (s < 3 * h) return Math.floor(s / m) + "m";
  if (s < 8 * h) return two(h, "h", m, "m");
  if (s < 2 * d) return Math.floor(s / h) + "h";
  if (s < 8 * d) return two(d, "d", h, "h");
  if (s < 2 * y) return Math.floor(s / d) + "d";
  if (s < 8 * y) return two(y, "y", d, "d");
  return Math.floor(s / y) + "y";
}

function set(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

// Makes an element equal to a new one and keeps what is the same: focus, selection, opened details, transitions.
function morph(live, fresh) {
  if (live.nodeType !== 1) {
    if (live.data !== fresh.data) live.data = fresh.data;
    return;
  }
  const own = live === document.activeElement || live.tagName === "INPUT" || live.tagName === "SELECT";
  for (const { name } of [...live.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") live.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (live.getAttribute(name) !== value && !(own && name === "value")) live.setAttribute(name, value);
  }
  children(live, [...fresh.childNodes]);
}

const same = (a, b) => a.nodeName === b.nodeName && (a.id || "") === (b.id || "");

function children(live, fresh) {
  const byId = new Map([...live.children].filter((one) => one.id).map((one) => [one.id, one]));
  let at = live.firstChild;
  for (const one of fresh) {
    const known = one.id ? byId.get(one.id) : null;
    if (known && known !== at) {
      live.insertBefore(known, at);
      morph(known, one);
    } else if (at && same(at, one)) {
      morph(at, one);
      at = at.nextSibling;
    } else {
      live.insertBefore(one, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// A list in its new order. An entry without HTML is unchanged.
function arrange(list, entries) {
  const known = new Map([...list.children].map((one) => [one.id, one]));
  let at = list.firstElementChild;
  for (const [id, html] of entries) {
    let one = known.get(id);
    known.delete(id);
    if (!one && html) one = parsed(html);
    else if (one && html) update(one, parsed(html));
    if (!one) continue;
    if (one === at) at = at.nextElementSibling;
    else list.insertBefore(one, at);
  }
  for (const one of known.values()) one.remove();
}

function update(live, fresh) {
  if (live.id === "slots") moved = owners(live.dataset.owners);
  morph(live, fresh);
}

// Slot ranges of each shard: "0:0-5460;1:5461-10922".
function owners(text) {
  const all = new Map();
  for (const part of (text || "").split(";").filter(Boolean)) {
    const [shard, ranges] = part.split(":");
    all.set(shard, (ranges || "").split(",").filter(Boolean).map((range) => {
      const [first, final] = range.split("-").map(Number);
      return [first, final === undefined ? first : final];
    }));
  }
  return all;
}

function lanes() {
  const all = new Map();
  for (const lane of document.querySelectorAll(".lane[data-shard] svg")) {
    all.set(lane.parentElement.dataset.shard, lane.getBoundingClientRect());
  }
  return all;
}

// Ranges that changed their owner fly from lane to lane.
function fly(before, after) {
  const places = lanes();
  const flights = [];
  for (const [to, ranges] of after) {
    for (const [from, old] of before) {
      if (from === to) continue;
      for (const [a, b] of ranges) {
        for (const [c, d] of old) {
          const [first, final] = [Math.max(a, c), Math.min(b, d)];
          if (first <= final) flights.push({ from, to, first, final });
        }
      }
    }
  }
  if (!flights.length) return;
  document.body.dataset.moves = Number(document.body.dataset.moves || 0) + flights.length;
  for (const { from, to, first, final } of flights.slice(0, 40)) {
    const [start, end] = [places.get(from), places.get(to)];
    if (!start || !end) continue;
    if (calm.matches) {
      $("lane-" + to)?.animate([{ outline: "2px solid currentColor" }, { outline: "2px solid transparent" }], 1500);
      continue;
    }
    const mark = document.createElement("div");
    mark.className = "flight s" + (Number(to) % 8);
    mark.style.left = scrollX + start.left + (first / 16384) * start.width + "px";
    mark.style.top = scrollY + start.top + "px";
    mark.style.width = Math.max(2, ((final - first + 1) / 16384) * start.width) + "px";
    mark.style.height = start.height + "px";
    document.body.append(mark);
    const there = `translate(0, ${end.top - start.top}px)`;
    const flight = mark.animate(
      [{ transform: "none", opacity: 1 }, { transform: there, opacity: 1, offset: 0.85 }, { transform: there, opacity: 0 }],
      { duration: 900, easing: "cubic-bezier(.4,0,.2,1)" });
    flight.onfinish = flight.oncancel = () => mark.remove();
  }
}

addEventListener("resize", () => {
  for (const one of document.querySelectorAll(".flight")) one.remove();
});

function take(message) {
  last = performance.now();
  retry = 0;
  skew = message.now - Date.now();
  old = message.old;
  for (const [name, entries] of Object.entries(message.lists)) {
    const list = $(name);
    if (list) arrange(list, entries);
  }
  // When everything has its new place.
  if (moved) fly(moved, owners($("slots")?.dataset.owners));
  moved = null;
  const title = $("answer")?.querySelector("h1")?.textContent;
  if (title) document.title = title.trim().replace(/\s+/g, " ") + " · Candor";
  tick();
}

function connect() {
  source?.close();
  source = new EventSource(document.body.dataset.stream);
  source.onmessage = (event) => take(JSON.parse(event.data));
  source.onerror = () => {
    source.close();
    source = null;
  };
}

// The state of the data, always visible; and ages that count on.
function tick() {
  const silent = performance.now() - last;
  const unheard = old === null ? null : old + silent;
  const broken = silent > SILENCE;
  const stale = !broken && unheard !== null && unheard > UNHEARD;
  const state = broken ? "broken" : stale ? "stale" : "live";
  if (document.body.dataset.state !== state) {
    document.body.dataset.state = state;
    set($("live"), { broken: "Connection lost", stale: "API server does not respond", live: "Live" }[state]);
    const warning = {
      broken: "The connection to candor web is lost. What is shown below is old. Reconnecting.",
      stale: "The API server does not respond. What is shown below is old.",
      live: "",
    };
    set($("alert"), warning[state]);
  }
  set($("fresh"), "data " + since((unheard ?? silent) / 1000) + " old");
  if (!source && silent > retry) {
    retry = silent + 1000;
    connect();
  } else if (source && silent > Math.max(retry, 5000)) {
    retry = silent + 5000; // a stream that is open and silent
    connect();
  }
  const now = Date.now() + skew;
  if (state === "broken") return;
  for (const one of document.querySelectorAll("time[data-age]")) {
    set(one, since((now - Date.parse(one.dateTime)) / 1000));
  }
}

// Filters while a user types; the address keeps the filter.
const filter = $("filter");
if (filter) {
  let wait = 0;
  const apply = () => {
    const query = new URLSearchParams([...new FormData(filter)].filter(([, value]) => value)).toString();
    history.replaceState(null, "", query ? "/?" + query : "/");
    document.body.dataset.stream = query ? "/stream?" + query : "/stream";
    connect();
  };
  filter.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(apply, 150);
  });
  filter.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  filter.querySelector("button").hidden = true;
}

// "/" goes to the filter, as in other lists.
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName);
  if (event.key === "/" && $("q") && !typing) {
    event.preventDefault();
    $("q").focus();
  }
});

if (document.body.dataset.stream) {
  connect();
  setInterval(tick, 250);
}

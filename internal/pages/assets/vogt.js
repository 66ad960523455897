// The only script of these pages. It signs clicks with a key that it cannot
// read, talks to passkeys, keeps the inbox live, and holds answers back while
// it is not. Everything it shows was written by the server; text that it adds
// comes from "words", the catalog in front of this file.
// The server drops indentation and comment lines, so no literal spans lines.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = s => s;
const policy = window.trustedTypes?.createPolicy("vogt", { createHTML: make }) ?? { createHTML: make };
const body = document.body.dataset;
const wide = matchMedia("(min-width:60rem)");
const armDelay = 600;

// The server's clock, as far as this page knows it.
let skew = Number(body.now) - Date.now();
const now = () => Date.now() + skew;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const clock = t => new Intl.DateTimeFormat(words.lang, { hour: "2-digit", minute: "2-digit", hour12: false }).format(t);

// --- the key that signs clicks -------------------------------------------

const request = r => new Promise((done, fail) => {
  r.onsuccess = () => done(r.result);
  r.onerror = () => fail(r.error);
});

async function keyStore(mode, use) {
  const open = indexedDB.open("vogt", 1);
  open.onupgradeneeded = () => open.result.createObjectStore("keys");
  const db = await request(open);
  try {
    return await request(use(db.transaction("keys", mode).objectStore("keys")));
  } finally {
    db.close();
  }
}

const base64 = bytes => btoa(String.fromCharCode(...new Uint8Array(bytes)));

async function newKey() {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
  return { key: pair.privateKey, spki: base64(await crypto.subtle.exportKey("spki", pair.publicKey)) };
}

const keepKey = (key, session) => keyStore("readwrite", s => s.put({ key, session }, "click"));

async function clickKey() {
  const kept = await keyStore("readonly", s => s.get("click")).catch(() => null);
  return kept?.session === body.session ? kept.key : null;
}

// --- calls -----------------------------------------------------------------

async function sign(path, text) {
  const key = await clickKey();
  if (!key) throw { kind: "no-click", text: words.nokey };
  const utf8 = new TextEncoder();
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", utf8.encode(text)));
  const hex = [...sum].map(b => b.toString(16).padStart(2, "0")).join("");
  const issued = Math.round(now());
  const lines = ["vogt-click-v1", location.origin, path, hex, issued].join("\n");
  const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, utf8.encode(lines));
  return issued + "." + base64(signature).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function post(address, data, signed = true) {
  const path = new URL(address, location.href).pathname, text = JSON.stringify(data);
  const headers = { "Content-Type": "application/json" };
  if (signed) headers["Vogt-Click"] = await sign(path, text);
  let r;
  try {
    r = await fetch(path, { method: "POST", headers, body: text });
  } catch {
    throw { kind: "network", text: words.failed };
  }
  const answer = await r.json().catch(() => ({}));
  if (!r.ok) throw { kind: (answer.type ?? "").split(":").pop(), text: answer.detail ?? words.failed };
  return answer;
}

async function load(address) {
  const r = await fetch(address);
  if (r.redirected && new URL(r.url).pathname === "/login") throw { kind: "signed-out", text: words.ended };
  return new DOMParser().parseFromString(policy.createHTML(await r.text()), "text/html");
}

async function passkey(kind, options) {
  try {
    const publicKey = kind === "create"
      ? PublicKeyCredential.parseCreationOptionsFromJSON(options)
      : PublicKeyCredential.parseRequestOptionsFromJSON(options);
    return (await navigator.credentials[kind]({ publicKey })).toJSON();
  } catch (e) {
    throw { kind: "passkey", text: e instanceof DOMException && e.name === "NotAllowedError" ? words.cancelled : words.nopasskey };
  }
}

// --- saying things -----------------------------------------------------------

function say(problem, tone = "") {
  const spot = $(".bar .say") ?? $(".say");
  if (!spot) return;
  spot.hidden = !problem;
  spot.dataset.tone = tone;
  spot.replaceChildren();
  if (!problem) return;
  spot.append(problem.text ?? words.failed);
  if (problem.kind === "no-click" || problem.kind === "signed-out") {
    const link = document.createElement("a");
    link.href = "/login?next=" + encodeURIComponent(location.pathname + location.search);
    link.textContent = words.signin;
    spot.append(" ", link);
  }
}

const failed = e => say(e.kind ? e : { text: words.failed });

// --- times ---------------------------------------------------------------

function zones(root = document) {
  for (const e of $$("time[data-f]", root)) {
    const at = new Date(e.dateTime), [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)$/.exec(e.dateTime);
    if (Number(sign + 1) * (hours * 60 + Number(minutes)) === -at.getTimezoneOffset()) continue;
    const date = e.dataset.f === "full" ? { weekday: "short", day: "numeric", month: "long" } : {};
    e.textContent = new Intl.DateTimeFormat(words.lang, { ...date, hour: "2-digit", minute: "2-digit", hour12: false }).format(at);
  }
}

function countdown() {
  for (const e of $$(".left[data-until]")) {
    const left = Math.max(0, e.dataset.until - now()), total = Number(e.dataset.total);
    const text = left < 60000 ? fill(words["left.seconds"], { n: Math.floor(left / 1000) })
      : left > 7200000 ? fill(words["left.hours"], { n: Math.floor(left / 3600000) })
      : fill(words["left.minutes"], { n: Math.ceil(left / 60000) });
    const shown = $("b", e);
    if (shown.textContent === text) continue;
    shown.textContent = text;
    $(".rest", e).setAttribute("stroke-dasharray", (44 * left / total).toFixed(1) + " 44");
    e.toggleAttribute("data-soon", left < 300000);
    if (!left) sync();
  }
}

// --- holding answers back ------------------------------------------------------

let live = false, busy = false, haveKey = true, inView = false, changed = performance.now();

const form = () => $("form.decide");
const buttons = () => $$("form.decide .pair button");

const watcher = new IntersectionObserver(entries => {
  inView = entries[entries.length - 1].isIntersecting;
  touch();
}, { threshold: .9 });

const armed = () => live && !busy && haveKey && inView && document.visibilityState === "visible" && performance.now() - changed >= armDelay;

function draw() {
  const ready = armed();
  for (const b of buttons()) {
    const possible = b.dataset.answer === "deny" || form().hasAttribute("data-trust") || $("input[name=reach]:checked", form());
    b.disabled = false;
    b.setAttribute("aria-disabled", String(!(ready && possible)));
  }
}

// touch says that something about the open card changed: a press within the
// next moment was meant for what stood there before.
function touch() {
  changed = performance.now();
  draw();
  setTimeout(draw, armDelay + 20);
}

function reach() {
  const f = form(), chosen = f && $("input[name=reach]:checked", f);
  if (!chosen) return;
  const label = chosen.closest("label");
  $("#how").replaceChildren(...[...$(".how", label).childNodes].map(n => n.cloneNode(true)));
  $("#yes").textContent = $(".yes", label).textContent;
}

function opened() {
  watcher.disconnect();
  inView = false;
  const pair = $("form.decide .pair");
  if (pair) watcher.observe(pair);
  const note = $("#note");
  if (note) {
    const kept = sessionStorage.getItem("note " + form().dataset.id);
    if (kept && !note.value) note.value = kept;
  }
  reach();
  enable();
  zones();
  touch();
}

// enable switches on what needs this script.
function enable(root = document) {
  for (const b of $$("[data-post],[data-login],form[data-owner] button", root)) b.disabled = false;
}

// --- answering -------------------------------------------------------------------

async function answer(kind) {
  const f = form();
  if (!f || !armed()) return;
  const trust = f.hasAttribute("data-trust"), chosen = $("input[name=reach]:checked", f);
  if (kind === "allow" && !trust && !chosen) return;
  busy = true;
  draw();
  say({ text: words.sending }, "info");
  try {
    await (trust ? confirm(f, kind) : decide(f, kind, chosen));
    sessionStorage.removeItem("note " + f.dataset.id);
    say(null);
    await closed(f);
  } catch (e) {
    await refused(f, e);
  } finally {
    busy = false;
    touch();
  }
}

async function decide(f, kind, chosen) {
  const narrowest = $("input[name=reach]", f), call = f.dataset.call;
  const pick = kind === "allow" ? chosen : narrowest;
  const choice = { grant_type: pick.value, digest: pick.dataset.digest };
  if (pick.dataset.expires) choice.expires_at = Number(pick.dataset.expires);
  const data = { ...choice, answer: kind, note: $("#note", f).value };
  if (kind === "allow" && "passkey" in pick.dataset) {
    data.assertion = await passkey("get", (await post(call + "/passkey", choice)).options);
  }
  await post(call + "/decision", data);
}

async function confirm(f, kind) {
  const call = f.dataset.call, digest = f.dataset.digest;
  if (kind === "deny") return post(call + "/decline", {});
  const response = await passkey("get", (await post(call + "/passkey", { digest })).options);
  return post(call + "/confirm", { digest, response });
}

async function refused(f, e) {
  if (e.kind === "changed" || e.kind === "closed") {
    try {
      await redraw(f.dataset.page);
    } catch (again) {
      e = again;
    }
  }
  const note = $("#note", f);
  if (note?.value) sessionStorage.setItem("note " + f.dataset.id, note.value);
  failed(e);
}

// closed shows the answered card in the place of the open one.
async function closed(f) {
  await redraw(f.dataset.page);
  $("#outcome")?.focus();
}

// redraw puts the card as it is now in the place of the open one.
async function redraw(page) {
  const note = $("#note")?.value, pane = $("#pane");
  if (pane) {
    swapPane(await load("/?card=" + encodeURIComponent(pane.dataset.card)));
    await sync();
  } else {
    swapPage(await load(page));
  }
  if (note && $("#note")) $("#note").value = note;
}

function swapPage(fresh) {
  document.title = fresh.title;
  document.body.className = fresh.body.className;
  swap($(".top"), $(".top", fresh));
  swap($("#page"), $("#page", fresh));
  counts(fresh);
  liveMarks();
  opened();
}

function swapPane(fresh) {
  const pane = $("#pane", fresh);
  if (!pane) return swapPage(fresh);
  swap($("#pane"), pane);
  opened();
}

const swap = (old, fresh) => old && fresh && old.replaceWith(document.importNode(fresh, true));

function counts(fresh) {
  swap($("#count"), $("#count", fresh));
  swap($(".page-head"), $("#inbox") && $(".page-head", fresh));
  document.title = fresh.title;
}

// --- staying live --------------------------------------------------------------

let syncing = null, again = false;

// sync reads this page anew and takes over what changed. Calls that come
// while it runs make it run once more.
function sync() {
  again = true;
  syncing ??= (async () => {
    try {
      while (again) {
        again = false;
        await refresh();
      }
    } catch (e) {
      if (e.kind === "signed-out") ended();
    } finally {
      syncing = null;
    }
  })();
  return syncing;
}

async function refresh() {
  if (busy && !$("#pane")) return;
  const fresh = await load(location.pathname + location.search);
  if ($("#inbox") && $("#inbox", fresh)) return mergeInbox(fresh);
  if ($("#inbox") || $("#inbox", fresh) && $(".empty")) {
    if ($(".req")) for (const row of $$(".req:not([data-state])")) await closeRow(row);
    if (!$("#pane .card, #pane #outcome")) return swapPage(fresh);
    counts(fresh);
    return mergeOpen(await load("/?card=" + encodeURIComponent($("#pane").dataset.card)));
  }
  counts(fresh);
  if ($("#case")) mergeOpen(fresh);
}

// mergeOpen looks whether the open card was closed or changed meanwhile.
function mergeOpen(fresh) {
  const f = form();
  if (!f || busy) return;
  const theirs = $("form.decide", fresh);
  if (theirs && theirs.dataset.id === f.dataset.id && theirs.dataset.digest === f.dataset.digest) return;
  const note = $("#note")?.value, held = $("#page").contains(document.activeElement) && !document.activeElement.closest(".req");
  if ($("#pane")) swapPane(fresh); else swapPage(fresh);
  if (theirs) {
    if (note && $("#note")) $("#note").value = note;
    say({ kind: "changed", text: words.changed });
  } else if (held) {
    $("#outcome")?.focus();
  }
}

async function mergeInbox(fresh) {
  counts(fresh);
  for (const row of $$(".req:not([data-state])")) {
    if (!$(`.req[data-id="${CSS.escape(row.dataset.id)}"]`, fresh)) await closeRow(row);
  }
  let added = 0;
  for (const row of $$(".req", fresh)) {
    if ($(`.req[data-id="${CSS.escape(row.dataset.id)}"]`)) continue;
    const theirs = row.closest(".group");
    let group = $(`.group[data-agent="${CSS.escape(theirs.dataset.agent)}"]`);
    if (!group) {
      group = document.importNode(theirs, true);
      $$(".req", group).forEach(r => r.remove());
      const id = "g" + crypto.randomUUID();
      group.setAttribute("aria-labelledby", id);
      $("h2", group).id = id;
      $("#inbox").append(group);
    }
    const copy = document.importNode(row, true);
    copy.removeAttribute("aria-current");
    $("ol", group).append(copy);
    added++;
  }
  announce(added);
  zones();
  if ($("#pane")?.dataset.card && form()) mergeOpen(await load("/?card=" + encodeURIComponent($("#pane").dataset.card)));
}

// closeRow keeps a row for a moment with what became of it.
async function closeRow(row) {
  row.dataset.state = "closed";
  const page = await load("/grants/" + encodeURIComponent(row.dataset.id)).catch(() => null);
  const outcome = page && $("#outcome", page);
  if (outcome) $(".sub", row).textContent = outcome.textContent;
  $(".left", row)?.remove();
  setTimeout(() => {
    const group = row.closest(".group");
    row.remove();
    if (group && !$(".req", group)) group.remove();
  }, 5000);
}

let news = 0, newsAt = -Infinity;

// announce tells how many cards came, at most every ten seconds.
function announce(added) {
  const wait = newsAt + 10000 - performance.now();
  if (news) {
    news += added;
    return;
  }
  news = added;
  if (!news) return;
  setTimeout(() => {
    $("#news").textContent = fill(news === 1 ? words.new.one : words.new.other, { n: news });
    newsAt = performance.now();
    news = 0;
  }, Math.max(0, wait));
}

function liveMarks() {
  for (const e of $$("[data-live]")) {
    e.dataset.state = live ? "on" : "off";
    e.textContent = live ? words.live : words.off;
  }
}

let lastContact = 0, source = null;

function setLive(on) {
  if (live === on) return;
  live = on;
  liveMarks();
  const strip = $("#strip");
  strip.hidden = on;
  if (!on) $("span", strip).textContent = fill(words.strip, { time: clock(lastContact || Date.now()) });
  touch();
}

function ended() {
  source?.close();
  source = null;
  setLive(false);
  say({ kind: "signed-out", text: words.ended });
}

function contact(e) {
  const known = JSON.parse(e.data);
  if (known.now) skew = known.now - Date.now();
  lastContact = Date.now();
}

function connect() {
  source?.close();
  source = new EventSource("/p/events");
  source.addEventListener("alive", e => {
    contact(e);
    if (!live) sync();
    setLive(true);
  });
  source.addEventListener("grant", e => {
    contact(e);
    sync();
  });
  source.addEventListener("ended", ended);
  source.onerror = async () => {
    setLive(false);
    if (source?.readyState !== EventSource.CLOSED) return;
    try {
      await load(location.href);
    } catch (e) {
      if (e.kind === "signed-out") return ended();
    }
    setTimeout(() => source && connect(), 3000);
  };
}

setInterval(() => {
  countdown();
  if (live && Date.now() - lastContact > 2.5 * body.beat) setLive(false);
}, 1000);

// --- moving and keys ---------------------------------------------------------------

async function openCard(id, focus) {
  const address = "/?card=" + encodeURIComponent(id), fresh = await load(address);
  const pane = $("#pane", fresh);
  if (!pane || pane.dataset.card !== id) return sync();
  swapPane(fresh);
  for (const row of $$(".req")) row.toggleAttribute("aria-current", row.dataset.id === id);
  $(".req[aria-current]")?.setAttribute("aria-current", "true");
  history.replaceState(null, "", address);
  if (focus) $("#ask, #outcome", $("#pane"))?.focus({ preventScroll: true });
}

function move(step) {
  const rows = $$(".req:not([data-state])");
  if (!rows.length) {
    const link = $(step > 0 ? "a[rel=next]" : "a[rel=prev]");
    if (link) location.assign(link.href);
    return;
  }
  const at = rows.findIndex(r => r.hasAttribute("aria-current"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  $("a", next).focus();
  if (wide.matches && next !== rows[at]) openCard(next.dataset.id, false).catch(failed);
}

const plainEnter = e => {
  if (e.key === "Enter" && !e.ctrlKey && !e.metaKey && e.target.closest(".pair")) e.preventDefault();
};
document.addEventListener("keypress", plainEnter);

document.addEventListener("keydown", e => {
  plainEnter(e);
  if (e.isComposing || e.altKey) return;
  const writing = e.target.closest("textarea,select,input:not([type=radio])"), chord = e.ctrlKey || e.metaKey;
  if (e.repeat) return;
  const keys = body.keys !== "off" && form();
  if (e.key === "Escape" && writing) writing.blur();
  else if (e.key === "Escape" && keys && !chord && !e.shiftKey) answer("deny");
  else if (e.key === "Enter" && chord && keys) {
    e.preventDefault();
    answer("allow");
  } else if ((e.key === "j" || e.key === "k") && !writing && !chord) move(e.key === "j" ? 1 : -1);
});

document.addEventListener("submit", e => {
  if (e.target.matches(".decide")) e.preventDefault();
  if (!e.target.matches("[data-owner]")) return;
  e.preventDefault();
  register(e.target).catch(failed);
});

document.addEventListener("change", e => {
  if (e.target.name !== "reach") return;
  reach();
  touch();
});

document.addEventListener("click", e => {
  const act = e.target.closest("[data-answer],[data-post],[data-login],.req h3 a");
  if (!act || e.button || e.ctrlKey || e.metaKey || e.shiftKey) return;
  if (act.dataset.answer) answer(act.dataset.answer);
  else if ("login" in act.dataset) signIn(act).catch(failed);
  else if (act.dataset.post) run(act).catch(failed);
  else if (wide.matches) {
    e.preventDefault();
    openCard(act.closest(".req").dataset.id, true).catch(failed);
  }
});

// run makes the call of a button and follows its answer.
async function run(button) {
  button.disabled = true;
  try {
    const next = await post(button.dataset.post, JSON.parse(button.dataset.body ?? "{}"), !("plain" in button.dataset));
    if (next.say) sessionStorage.setItem("say", next.say);
    if (next.location) location.assign(next.location); else location.reload();
  } finally {
    button.disabled = false;
  }
}

// --- signing in -----------------------------------------------------------------

async function signIn(button) {
  button.disabled = true;
  say(null);
  try {
    const own = await newKey(), begun = await post("/p/login/options", {}, false);
    const response = await passkey("get", begun.options);
    const done = await post("/p/login/verify", { ceremony: begun.ceremony, response, proof_key: own.spki }, false);
    await keepKey(own.key, done.session);
    location.replace(button.dataset.login);
  } finally {
    button.disabled = false;
  }
}

async function register(f) {
  const button = $("button", f), token = f.dataset.owner;
  button.disabled = true;
  say(null);
  try {
    const own = await newKey();
    const begun = await post("/p/setup/options", { token, name: $("#name").value, email: $("#email").value }, false);
    const response = await passkey("create", begun.options);
    const done = await post("/p/setup/verify", { token, ceremony: begun.ceremony, response, proof_key: own.spki }, false);
    await keepKey(own.key, done.session);
    location.replace("/");
  } finally {
    button.disabled = false;
  }
}

// The set-up page waits for the terminal.
async function awaitTerminal(token) {
  const r = await fetch("/p/setup/state?token=" + encodeURIComponent(token)).catch(() => null);
  if (r?.ok && (await r.json()).state !== "opened") return location.reload();
  setTimeout(awaitTerminal, 500, token);
}

// --- start -------------------------------------------------------------------

// A browser opens few connections to one host. A page that is left, or has not
// been looked at for a minute, gives its own back.
let away = 0;

const leave = () => {
  source?.close();
  source = null;
  setLive(false);
};

const back = () => {
  clearTimeout(away);
  if (body.session && !source) connect();
};

addEventListener("pagehide", leave);
addEventListener("pageshow", e => e.persisted && back());
document.addEventListener("visibilitychange", () => {
  touch();
  if (document.visibilityState === "visible") return back();
  away = setTimeout(leave, 60000);
});
const told = sessionStorage.getItem("say");
if (told) {
  sessionStorage.removeItem("say");
  say({ text: told }, "info");
}
opened();
const setup = $("[data-setup]");
if (setup) awaitTerminal(setup.dataset.setup);
if (body.session) {
  connect();
  haveKey = Boolean(await clickKey());
  draw();
  if (!haveKey && form()) say({ kind: "no-click", text: words.nokey });
}

// What every page's script begins with: the key that signs clicks, calls,
// passkeys, and messages. Everything shown was written by the server; text that
// the script adds comes from "words", the catalog in front of this file.
// The server drops indentation and comment lines, so no literal spans lines.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const body = document.body.dataset;
// The server's clock, as far as this page knows it.
let skew = Number(body.now) - Date.now();
const now = () => Date.now() + skew;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

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
    throw { kind: "network" };
  }
  const answer = await r.json().catch(() => ({}));
  if (!r.ok) throw { kind: (answer.type ?? "").split(":").pop(), text: answer.detail };
  return answer;
}

async function passkey(kind, options) {
  try {
    const read = kind === "create" ? "parseCreationOptionsFromJSON" : "parseRequestOptionsFromJSON";
    const publicKey = PublicKeyCredential[read](options.publicKey ?? options);
    return (await navigator.credentials[kind]({ publicKey })).toJSON();
  } catch (e) {
    throw { kind: "passkey", name: e.name, text: e.name === "NotAllowedError" ? words.cancelled : words.nopasskey };
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
  spot.scrollIntoView({ block: "nearest" });
  if (problem.kind === "no-click" || problem.kind === "signed-out") {
    const link = document.createElement("a");
    link.href = "/login?next=" + encodeURIComponent(location.pathname + location.search);
    link.textContent = words.signin;
    spot.append(" ", link);
  }
}

const failed = e => say(e.kind ? e : {});

// --- times ---------------------------------------------------------------

const clock = (t, more) => new Intl.DateTimeFormat(words.lang, { ...more, hour: "2-digit", minute: "2-digit", hour12: false }).format(t);

function zones(root = document) {
  for (const e of $$("time[data-f]", root)) {
    const at = new Date(e.dateTime), [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)$/.exec(e.dateTime);
    if (Number(sign + 1) * (hours * 60 + Number(minutes)) === -at.getTimezoneOffset()) continue;
    e.textContent = clock(at, e.dataset.f === "full" && { weekday: "short", day: "numeric", month: "long" });
  }
}


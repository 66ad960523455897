// The pages behind the sign-in: answering, the live inbox, moving by keys.
// Answers are held back until the page has its key, is live, is looked at, and
// nothing on it has changed for a moment.

const make = s => s;
const worker = s => s === "/sw.js" ? s : null;
const policy = window.trustedTypes?.createPolicy("vogt", { createHTML: make, createScriptURL: worker }) ?? { createHTML: make, createScriptURL: worker };
const wide = matchMedia("(min-width:60rem)");
const armDelay = 600;

async function load(address) {
  const r = await fetch(address);
  if (r.redirected && new URL(r.url).pathname === "/login") throw { kind: "signed-out", text: words.ended };
  const page = new DOMParser().parseFromString(policy.createHTML(await r.text()), "text/html");
  zones(page);
  return page;
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
    $("circle", e).setAttribute("stroke-dasharray", (44 * left / total).toFixed(1) + " 44");
    e.toggleAttribute("data-soon", left < 300000);
    if (!left) sync();
  }
}

// --- holding answers back ------------------------------------------------------

let live = false, busy = false, haveKey = false, inView = false, changed = performance.now();

const form = () => $("form.decide");
const buttons = () => $$("form.decide .pair button");

const watcher = new IntersectionObserver(entries => {
  inView = entries[entries.length - 1].isIntersecting;
  touch();
}, { threshold: .9 });

// A long command says that its end was not seen, until it was.
const ends = new IntersectionObserver(entries => {
  if (entries.some(e => e.isIntersecting)) $("[data-unseen]")?.remove();
});

const armed = () => live && !busy && haveKey && inView && document.visibilityState === "visible" && performance.now() - changed >= armDelay;

function draw() {
  const ready = armed();
  for (const b of buttons()) {
    const possible = b.dataset.answer === "deny" || form().matches("[data-trust],[data-consent]") || $("input[name=reach]:checked", form());
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
  ends.disconnect();
  if ($("#end")) ends.observe($("#end"));
  const note = $("#note");
  if (note) {
    const kept = sessionStorage.getItem("note " + form().dataset.id);
    if (kept && !note.value) note.value = kept;
  }
  reach();
  for (const b of $$("[data-post]")) b.disabled = false;
  zones();
  touch();
}

// --- answering -------------------------------------------------------------------

async function answer(kind) {
  const f = form();
  if (!f || !armed()) return;
  const trust = f.hasAttribute("data-trust"), asked = f.hasAttribute("data-consent"), chosen = $("input[name=reach]:checked", f);
  if (kind === "allow" && !trust && !asked && !chosen) return;
  busy = true;
  draw();
  say({ text: words.sending }, "info");
  try {
    const next = await (trust ? confirm(f, kind) : asked ? consent(f, kind) : decide(f, kind, chosen));
    sessionStorage.removeItem("note " + f.dataset.id);
    say(null);
    if (next?.location) location.assign(next.location); else await closed(f);
  } catch (e) {
    await refused(f, e);
  } finally {
    busy = false;
    touch();
    // Events that came while it was busy changed nothing on a page of its own.
    sync();
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

const consent = (f, kind) => post(f.dataset.call, { csrfToken: f.dataset.id, action: kind === "allow" ? "approve" : "cancel" });

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
  await redraw(f.dataset.page, () => $("#outcome")?.focus());
}

// redraw puts the card as it is now in the place of the open one. shown is
// called as soon as it is there, before anything further may change it.
async function redraw(page, shown) {
  const note = $("#note")?.value, pane = $("#pane");
  if (pane) {
    swapPane(await load(pageOf(pane.dataset.card)));
    shown?.();
    await sync();
  } else {
    swapPage(await load(page));
    shown?.();
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

const pageOf = id => "/?card=" + encodeURIComponent(id);

let syncing = null, again = false;

// sync reads this page anew, takes over what changed, and tells whether that
// worked. Calls that come while it runs make it run once more.
function sync() {
  again = true;
  syncing ??= (async () => {
    try {
      while (again) {
        again = false;
        await refresh();
      }
      return true;
    } catch (e) {
      if (e.kind === "signed-out") ended();
      return false;
    } finally {
      syncing = null;
    }
  })();
  return syncing;
}

async function refresh() {
  if (busy && !$("#pane")) return;
  const open = $("#pane")?.dataset.card;
  const fresh = await load(open ? pageOf(open) : location.pathname + location.search);
  if (Boolean($("#inbox")) !== Boolean($("#inbox", fresh))) return swapPage(fresh);
  if ($("#inbox")) await mergeInbox(fresh); else counts(fresh);
  mergeOpen(fresh);
  mergeClosed(fresh);
}

// mergeClosed takes over what became of an answered card, and leaves the focus
// where it was.
function mergeClosed(fresh) {
  const at = root => $("#pane", root)?.dataset.card ?? $("#case", root)?.dataset.closed;
  if (at(fresh) !== at(document)) return;
  const name = e => e.id || e.href || e.dataset.post;
  for (const part of [".outcome", "#case aside"]) {
    const mine = $(part), theirs = $(part, fresh), focus = document.activeElement;
    if (!mine || !theirs || mine.textContent === theirs.textContent) continue;
    const held = mine.contains(focus);
    swap(mine, theirs);
    opened();
    if (held) $$("[id],a,button", $(part)).find(e => name(e) === name(focus))?.focus({ preventScroll: true });
  }
}

// mergeOpen looks whether the open card was closed or changed meanwhile.
function mergeOpen(fresh) {
  const f = form(), at = root => $("#pane,#case", root)?.dataset.card;
  if (!f || busy || $("#pane") && at(fresh) !== at(document)) return;
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
  const nothing = $("#inbox .empty");
  if ($(".req")) nothing?.remove();
  else if (!nothing && $("#inbox .empty", fresh)) $("#inbox").append(document.importNode($("#inbox .empty", fresh), true));
  announce(added);
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
    if (!$(".req")) sync();
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
  source.addEventListener("alive", async e => {
    contact(e);
    if (live || await sync()) setLive(true);
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

let opening = 0;

async function openCard(id, focus) {
  if (busy) return;
  const address = pageOf(id), mine = ++opening, fresh = await load(address), pane = $("#pane", fresh);
  if (mine !== opening || busy) return;
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
  const button = $("[data-post]", e.target);
  if (button || e.target.matches(".decide")) e.preventDefault();
  if (button) run(button).catch(failed);
});

document.addEventListener("change", e => {
  if (e.target.name !== "reach") return;
  reach();
  touch();
});

document.addEventListener("click", e => {
  const act = e.target.closest("[data-answer],[data-post],.req h3 a");
  if (!act || e.button || e.ctrlKey || e.metaKey || e.shiftKey) return;
  if (act.dataset.answer) answer(act.dataset.answer);
  else if (act.dataset.post) run(act).catch(failed);
  else if (wide.matches) {
    e.preventDefault();
    openCard(act.closest(".req").dataset.id, true).catch(failed);
  }
});

// run makes the call of a button, with the fields of its form, and follows its
// answer.
async function run(button) {
  const f = button.form;
  if (f && !f.reportValidity()) return;
  const data = f ? Object.fromEntries(new FormData(f)) : JSON.parse(button.dataset.body ?? "{}");
  button.disabled = true;
  try {
    const next = await post(button.dataset.post, data, !("plain" in button.dataset));
    if (next.say) sessionStorage.setItem("say", next.say);
    if (next.location) location.assign(next.location); else location.reload();
  } finally {
    button.disabled = false;
  }
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
  if (!source) connect();
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
connect();
haveKey = Boolean(await clickKey());
$("[data-go]")?.click();
draw();
if (!haveKey && form()) say({ kind: "no-click", text: words.nokey });

// Signing in, set-up and registration.

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

// Another passkey, by a link that its first press spends. A dialogue that was
// closed can be opened again; what it answers can be sent once.
let begun = null;

async function another(button) {
  let sent = false;
  button.disabled = true;
  say(null);
  try {
    const own = await newKey();
    begun ??= await post("/p/register/options", { token: button.dataset.register }, false);
    const { ceremony, options } = begun, response = await passkey("create", options);
    sent = true;
    begun = null;
    const done = await post("/p/register/verify", { ceremony, response, proof_key: own.spki }, false);
    await keepKey(own.key, done.session);
    sessionStorage.setItem("say", button.dataset.done);
    location.replace("/account");
  } catch (e) {
    if (e.kind === "expired" || e.kind === "used") return location.replace(sent ? "/register?late" : location.href);
    const { again, already } = button.dataset;
    throw { ...e, text: { NotAllowedError: again, InvalidStateError: already }[e.name] ?? e.text };
  } finally {
    button.disabled = false;
  }
}

// A lost passkey's place is taken by a new one, after the wait.
async function recover(button) {
  const token = button.dataset.recover ?? button.dataset.cancel;
  button.disabled = true;
  say(null);
  try {
    if ("cancel" in button.dataset) {
      await post("/api/recovery/cancel", { token }, false);
      return location.reload();
    }
    const own = await newKey(), begun = await post("/api/recovery/options", { token }, false);
    const response = await passkey("create", begun.options);
    const done = await post("/api/recovery/verify", { token, challengeToken: begun.challengeToken, response, proofKey: own.spki }, false);
    await keepKey(own.key, done.session);
    location.replace("/account");
  } catch {
    throw { kind: "recovery", text: button.dataset.again };
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


document.addEventListener("click", e => {
  const button = e.target.closest("[data-login],[data-register],[data-recover],[data-cancel]");
  if (button) ("login" in button.dataset ? signIn : "register" in button.dataset ? another : recover)(button).catch(failed);
});

// lost asks for a recovery. What it says is the same for every address.
async function lost(f) {
  await post("/api/recovery/request", { email: $("#lost").value.trim() }, false);
  say({ text: f.dataset.lost }, "info");
}

document.addEventListener("submit", e => {
  if (e.target.matches("[data-lost]")) {
    e.preventDefault();
    lost(e.target).catch(failed);
    return;
  }
  if (!e.target.matches("[data-owner]")) return;
  e.preventDefault();
  register(e.target).catch(failed);
});

for (const b of $$("[data-login],[data-register],[data-recover],[data-cancel],[data-owner] button,[data-lost] button")) b.disabled = false;
zones();
const setup = $("[data-setup]");
if (setup) awaitTerminal(setup.dataset.setup);

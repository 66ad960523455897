// The switch on the account page: whether this browser is told of requests.

const bell = $("[data-push]");

async function bellCall(method, data) {
  const path = "/api/push/subscribe", text = JSON.stringify(data);
  const headers = { "Content-Type": "application/json" };
  headers["Vogt-Click"] = await sign(method === "POST" ? path : method + " " + path, text);
  const r = await fetch(path, { method, headers, body: text });
  if (!r.ok && r.status !== 404) throw { text: bell.dataset.failed };
}

const bellBytes = text => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0));

async function bellNow() {
  const worker = await navigator.serviceWorker.getRegistration("/");
  return await worker?.pushManager.getSubscription();
}

const bellShow = on => {
  bell.textContent = on ? bell.dataset.off : bell.dataset.on;
  bell.dataset.push = on ? "on" : "off";
  bell.disabled = false;
};

async function bellRing(key) {
  if (await Notification.requestPermission() !== "granted") throw { text: bell.dataset.denied };
  await navigator.serviceWorker.register(policy.createScriptURL("/sw.js"), { scope: "/" });
  const worker = await navigator.serviceWorker.ready;
  const made = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bellBytes(key) });
  await bellCall("POST", made.toJSON());
}

async function bellStill() {
  const made = await bellNow();
  if (!made) return;
  await bellCall("DELETE", { endpoint: made.endpoint });
  await made.unsubscribe();
}

if (bell && "serviceWorker" in navigator && "PushManager" in window && "Notification" in window) {
  bell.closest("[hidden]").hidden = false;
  bellShow(Boolean(await bellNow().catch(() => null)));
  bell.addEventListener("click", async () => {
    const on = bell.dataset.push === "on";
    bell.disabled = true;
    say(null);
    try {
      await (on ? bellStill() : bellRing(bell.dataset.key));
      bellShow(!on);
    } catch (e) {
      bellShow(on);
      failed({ kind: e.kind ?? "push", text: e.text ?? bell.dataset.failed });
    }
  });
}

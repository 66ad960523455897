// Shows what the authority says of requests that wait, and opens their cards.

const here = address => {
  try {
    const url = new URL(address);
    if (url.origin === location.origin) return url.href;
  } catch {
    // What is no address leads to the inbox.
  }
  return location.origin + "/";
};

self.addEventListener("push", e => {
  let told = {};
  try {
    told = e.data.json();
  } catch {
    // A browser demands that something is shown.
  }
  e.waitUntil(self.registration.showNotification(String(told.title || "Vogt"), {
    body: String(told.body || ""),
    tag: String(told.grant_id || "vogt"),
    data: here(told.deep_link),
  }));
});

self.addEventListener("notificationclick", e => {
  e.notification.close();
  e.waitUntil((async () => {
    for (const page of await clients.matchAll({ type: "window" })) {
      if (page.url === e.notification.data) return page.focus();
    }
    return clients.openWindow(e.notification.data);
  })());
});

// Before the terminal starts: where its socket is, beside this page, whatever name and port the page was reached by.
document.addEventListener("DOMContentLoaded", () => {
  const socket = new URL("ws", window.location.href);
  socket.protocol = socket.protocol === "https:" ? "wss:" : "ws:";
  document.getElementById("terminal").dataset.sessionWebsocketUrl = socket.href;
  document.getElementById("again").addEventListener("click", () => window.location.reload());
  // Once the first bytes have come, keys belong to the terminal without a click.
  const started = new MutationObserver(() => {
    if (document.body.classList.contains("-first-byte")) {
      started.disconnect();
      document.querySelector("#terminal textarea")?.focus();
    }
  });
  started.observe(document.body, { attributes: true, attributeFilter: ["class"] });
});

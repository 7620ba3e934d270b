// Shows what has changed meanwhile: the page is asked for again, and what is marked as live in it replaces what is shown.
"use strict";

const EVERY = 3000;
const LONGEST = 10000;
const note = document.getElementById("live-note");
const lost = document.getElementById("live-lost");
const toggle = document.getElementById("live-switch");
let isHeld = false;

// What somebody is at, or has marked to copy, is left as it is. Who has only clicked into a table is not at anything in it.
function isInUse(element) {
  const [active, marked] = [document.activeElement, document.getSelection()];
  return (element.contains(active) && !active.matches(".scroll")) || (!marked.isCollapsed && marked.containsNode(element, true));
}

function replace(shown, fresh) {
  if (!fresh || isInUse(shown) || shown.isEqualNode(fresh)) return;
  const place = shown.querySelector(".scroll");
  const left = place ? place.scrollLeft : 0;
  const isFocused = place !== null && place === document.activeElement;
  shown.replaceWith(fresh);
  const now = fresh.querySelector(".scroll");
  if (!now) return;
  now.scrollLeft = left;
  if (isFocused) now.focus({ preventScroll: true });
}

async function update() {
  const answer = await fetch(location.href, { signal: AbortSignal.timeout(LONGEST), cache: "no-store" });
  // The session has ended: the page says so itself.
  if (answer.redirected) return location.reload();
  if (!answer.ok) throw new Error(String(answer.status));
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const shown of document.querySelectorAll(".live")) replace(shown, fresh.getElementById(shown.id));
  if (!("live" in fresh.body.dataset)) {
    delete document.body.dataset.live;
    note.hidden = true;
  }
}

async function go() {
  if (!document.hidden && !isHeld && "live" in document.body.dataset) {
    try {
      await update();
      lost.hidden = true;
    } catch {
      lost.hidden = false;
    }
  }
  setTimeout(go, EVERY);
}

if ("live" in document.body.dataset) {
  note.hidden = false;
  toggle.addEventListener("click", () => {
    isHeld = !isHeld;
    toggle.textContent = isHeld ? "Go on" : "Hold";
    note.firstChild.textContent = isHeld ? "Held. " : "Updates itself. ";
  });
  setTimeout(go, EVERY);
}

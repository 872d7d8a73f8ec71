// One sentence at the bottom of the page, read aloud by screen readers.

const SECONDS = 4;
let timer = 0;

/** A sentence that goes after a while. */
export function hint(sentence) {
  warn(sentence);
  timer = setTimeout(hush, SECONDS * 1000);
}

/** A sentence that stays until something else happens. */
export function warn(sentence) {
  const box = document.getElementById("hint");
  box.textContent = sentence;
  box.classList.add("shown");
  clearTimeout(timer);
}

export function hush() {
  document.getElementById("hint").classList.remove("shown");
}

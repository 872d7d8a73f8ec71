// One sentence beside the buttons, read aloud by screen readers. It covers nothing.

/** An error whose message is for people. */
export class Sentence extends Error {}

/** What people are told of an error: its own sentence, or that the page failed. */
export const told = (error) => (error instanceof Sentence ? error.message : "Something went wrong on this page. Load it again, please.");

const SECONDS = 6;
const USUAL = "Drag the marks, click the floor, or focus a mark and use the arrow keys.";
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
  const box = document.getElementById("hint");
  clearTimeout(timer);
  box.classList.remove("shown");
  box.textContent = USUAL;
}

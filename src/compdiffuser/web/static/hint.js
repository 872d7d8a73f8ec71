// One sentence at the bottom of the page, read aloud by screen readers, gone after a while.

const SECONDS = 4;
let timer = 0;

export function hint(sentence) {
  const box = document.getElementById("hint");
  box.textContent = sentence;
  box.classList.add("shown");
  clearTimeout(timer);
  timer = setTimeout(() => box.classList.remove("shown"), SECONDS * 1000);
}

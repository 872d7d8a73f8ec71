// Light, dark, or what the system says.

const KEY = "compdiffuser-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const NAMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

/** `changed()` is told of a new choice. */
export function setUpTheme(button, changed) {
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    button.textContent = NAMES[theme];
  };
  const stored = localStorage.getItem(KEY);
  apply(stored in NEXT ? stored : "auto");
  button.addEventListener("click", () => {
    const theme = NEXT[document.documentElement.dataset.theme];
    localStorage.setItem(KEY, theme);
    apply(theme);
    changed();
  });
}

/** What the page is about, until someone has read it. */
export function setUpAbout(box, button) {
  const key = "compdiffuser-about";
  box.hidden = localStorage.getItem(key) === "read";
  button.addEventListener("click", () => {
    localStorage.setItem(key, "read");
    box.hidden = true;
  });
}

/** Where the buttons float at the bottom of a screen, the page ends above them. */
export function setUpDock(dock) {
  new ResizeObserver(() => document.body.style.setProperty("--dock", `${dock.offsetHeight}px`)).observe(dock);
}

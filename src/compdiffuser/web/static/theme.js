// Light, dark, or what the system says.

const KEY = "compdiffuser-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const NAMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

export function setUpTheme(button) {
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
  });
}

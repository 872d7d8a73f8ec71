// Taking a plan elsewhere and bringing it back: export, import, and the link.

import { exporters, fromJson } from "./files.js";
import { tooLarge } from "./checked.js";
import { Sentence, hint, told, warn } from "./hint.js";

/** `whole()` gives link and plans, `current()` the pane and a file name, `takeOver(link, plans)` restores both. */
export function setUpSharing({ whole, current, takeOver }) {
  for (const button of document.querySelectorAll("[data-export]")) {
    button.addEventListener("click", () => {
      const { pane, name } = current();
      exporters[button.dataset.export](pane, name, whole);
    });
  }
  const input = document.getElementById("import");
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    try {
      const refusal = tooLarge(file);
      if (refusal) throw new Sentence(refusal);
      const { link, plans } = fromJson(await file.text());
      await takeOver(link, plans);
      hint(`${file.name} was read.`);
    } catch (error) {
      warn(told(error));
    }
    input.value = "";
  });
  document.getElementById("link").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href.split("#")[0] + whole()[0]);
      hint("The link is in the clipboard.");
    } catch {
      hint("The address of this page is the link; copy it from the address bar.");
    }
  });
}

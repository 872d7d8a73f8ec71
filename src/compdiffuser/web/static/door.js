// The token that a server may ask for.

const $ = (id) => document.getElementById(id);

/** Ask for it, with the server's sentence as the title; empty where nothing was given. */
export async function askForToken(sentence) {
  $("door-title").textContent = sentence;
  $("token").value = "";
  $("door").showModal();
  await new Promise((done) => $("door").addEventListener("close", done, { once: true }));
  return $("token").value;
}

// The server, as functions: models, plans that stream in, drives.

import { Sentence } from "./hint.js";

const KEY = "compdiffuser-token";
let askForToken = async () => null;

export const onTokenAsked = (ask) => { askForToken = ask; };

/** Anything the server refuses, in its own sentence. */
export class Refusal extends Sentence {
  constructor(status, sentence, retryAfter) {
    super(sentence);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(token && { authorization: `Bearer ${token}` }) };
  let reply;
  try {
    reply = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "The server cannot be reached.");
  }
  if (reply.status === 401) {
    const { detail } = await reply.json().catch(() => ({ detail: "this server asks for a token" }));
    const given = await askForToken(detail[0].toUpperCase() + detail.slice(1));
    if (!given) throw new Refusal(401, "This server asks for a token.");
    sessionStorage.setItem(KEY, given);
    return ask(path, options);
  }
  if (!reply.ok) {
    const { detail } = await reply.json().catch(() => ({ detail: `the server answered ${reply.status}` }));
    const sentence = detail[0].toUpperCase() + detail.slice(1);
    throw new Refusal(reply.status, sentence, Number(reply.headers.get("retry-after")) || 1);
  }
  return reply;
}

export const models = async () => (await ask("/v1/models")).json();

/** How what moves in a model's world looks. */
export const scene = async (model) => (await ask(`/v1/scene?${new URLSearchParams({ model })}`)).json();

/** Plan, handing each event to its listener; resolves with the plan. */
export async function plan(problem, listeners, signal) {
  const query = new URLSearchParams(Object.entries(problem).flatMap(([key, value]) => [value].flat().map((each) => [key, each])));
  const reply = await ask(`/v1/plan/stream?${query}`, { signal, headers: { accept: "text/event-stream" } });
  return follow(reply, listeners, "plan", signal);
}

/** Follow a plan in the real environment; resolves with how it ended. */
export async function drive(request, listeners, signal) {
  const headers = { "content-type": "application/json" };
  const reply = await ask("/v1/drive", { method: "POST", body: JSON.stringify(request), headers, signal });
  return follow(reply, listeners, "end", signal);
}

async function follow(reply, listeners, last, signal) {
  for await (const { kind, data } of events(reply.body)) {
    signal.throwIfAborted(); // what had come already is not shown any more
    if (kind === "error") throw new Refusal(500, data.detail[0].toUpperCase() + data.detail.slice(1));
    if (kind === last) return data;
    listeners[kind]?.(data);
  }
  throw new Refusal(0, "The server ended the connection.");
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const found = /^event: (\w+)\ndata: (.*)$/s.exec(block);
      if (found) yield { kind: found[1], data: JSON.parse(found[2]) };
    }
  }
}

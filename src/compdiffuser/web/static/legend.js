// What the colours and lines of the map mean.

const ENTRIES = [
  ["start", "start"], ["goal", "goal"], ["chunks", "the plan, chunk by chunk"], ["others", "other candidates"], ["way", "another plan"],
  ["region", "region to avoid"], ["via", "waypoint"],
  ["fault", "where a test failed"], ["driven", "path driven"], ["replanned", "new or repaired plan, red if uncertified"],
];

/** The list for a view; with several things, also what is not the agent. */
export function legend({ things, ground }) {
  const list = document.createElement("ul");
  list.className = "legend";
  const second = things.slice(1).map(({ name }) => ["second", `the ${name}, its plan dashed`]);
  const recorded = ground.points?.length ? [["recorded", "recorded states"]] : [];
  for (const [key, text] of [...ENTRIES, ...second, ...recorded]) {
    const item = document.createElement("li");
    item.innerHTML = `<i class="key ${key}" aria-hidden="true"></i>`;
    item.append(text);
    list.append(item);
  }
  return list;
}

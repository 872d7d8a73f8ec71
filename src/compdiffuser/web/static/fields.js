// Start and goal as numbers: a row for everything that has a place, and one for each further number that must be given.

const AXES = ["x", "y", "z"];

/** The rows of a model: which end, what, and where its numbers stand in the given start or goal. */
function rows(model) {
  return ["start", "goal"].flatMap((end) => {
    const given = model[`${end}_columns`];
    const groups = model.groups.filter(({ columns }) => columns.every((column) => given.includes(column)));
    const placed = new Set(groups.flatMap(({ columns }) => columns));
    const several = model.groups.length > 1;
    const named = groups.map(({ name, columns }, number) => ({
      end, id: number ? `${end}-${name}` : end, second: model.groups.findIndex((group) => group.name === name) > 0,
      label: `${end[0].toUpperCase()}${end.slice(1)}${several ? `, ${name}` : ""}`,
      cells: columns.map((column, axis) => ({ axis: AXES[axis], at: given.indexOf(column) })),
    }));
    const rest = given.filter((column) => !placed.has(column)).map((column) => ({
      end, id: `${end}-${column}`, second: false, label: `${end[0].toUpperCase()}${end.slice(1)}, ${model.names[column]}`,
      cells: [{ axis: "", at: given.indexOf(column) }],
    }));
    return [...named, ...rest];
  });
}

export class Fields {
  /** `change(end, at, values, id)` is told of numbers that were typed. */
  constructor(root, change) {
    Object.assign(this, { root, change, inputs: [] });
  }

  setModel(model) {
    this.inputs = [];
    this.root.replaceChildren(...rows(model).map(({ end, id, label, second, cells }) => {
      const row = document.createElement("div");
      row.className = "end";
      row.innerHTML = `<span class="dot ${end} ${second ? "second" : ""}" aria-hidden="true"></span><span></span>`;
      row.lastChild.textContent = label;
      const inputs = cells.map(({ axis, at }) => {
        const [box, input] = [document.createElement("label"), document.createElement("input")];
        Object.assign(input, { type: "number", step: "any", required: true, id: axis ? `${id}-${axis}` : id });
        input.setAttribute("aria-label", `${label} ${axis}`.trim());
        Object.assign(input.dataset, { end, at });
        box.append(axis, input);
        row.append(box);
        this.inputs.push(input);
        return input;
      });
      for (const input of inputs) {
        input.addEventListener("change", () => {
          const values = inputs.map((each) => Math.round(100 * Number.parseFloat(each.value)) / 100);
          this.change({ id, end, at: cells.map(({ at }) => at), name: label.toLowerCase().replace(", ", " of the ") }, values);
        });
      }
      return row;
    }));
  }

  show(state) {
    for (const input of this.inputs) input.value = state[input.dataset.end][input.dataset.at];
  }
}

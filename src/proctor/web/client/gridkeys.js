// The keys of pages with a grid and a sample panel.

import { updateParams } from "./address.js";

const FAILURES = "failed,error,unscored";

/** Return the handlers; `readParams` returns the current parameters, `show` makes the grid visible. */
export function gridKeys(grid, panel, readParams, show = () => {}) {
  const inGrid = (event, action) => (event.target.closest(".grid-body") ? action() : false);
  const move = (step) => {
    show();
    grid.move(step);
  };
  return {
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: (event) => inGrid(event, () => move(1)),
    ArrowUp: (event) => inGrid(event, () => move(-1)),
    Enter: () => (grid.selected >= 0 ? grid.open(grid.selected) : false),
    Escape: () => {
      const id = readParams().get("sample");
      if (!id) return false;
      panel.close();
      return grid.select(grid.model.findRow(id), { focus: true });
    },
    n: () => {
      show();
      grid.moveToFailure(1);
    },
    p: () => {
      show();
      grid.moveToFailure(-1);
    },
    "[": () => panel.changeConfiguration(-1),
    "]": () => panel.changeConfiguration(1),
    f: () => {
      show();
      updateParams({ outcome: readParams().get("outcome") === FAILURES ? "" : FAILURES });
    },
    d: () => {
      show();
      updateParams({ differ: !readParams().has("differ") });
    },
    c: () => grid.clearFilters(),
    "/": () => {
      show();
      grid.tools.querySelector("input[type=search]")?.focus();
    },
  };
}

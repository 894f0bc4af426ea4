"use strict";
// Adds to a page that is complete without it. Reads nothing but the page and sends nothing.
(() => {
  for (const part of document.querySelectorAll(".scripted")) part.hidden = false;

  // A verdict's sentence for other texts, with how far it goes.
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(button.parentElement.querySelector("span"));
        button.textContent = "Selected";
      }
    });
  }

  // Values: titles of shapes, shown at once instead of after the browser's pause.
  const tip = document.getElementById("tip");
  let lit = null;
  const valueOf = (shape) => {
    const title = shape.querySelector(":scope > title");
    if (title) {
      shape.dataset.tip = title.textContent;
      title.remove();
    }
    return shape.dataset.tip;
  };
  const hide = () => {
    if (lit) lit.classList.remove("lit");
    lit = null;
    tip.hidden = true;
  };
  const show = (shape, x, y) => {
    const text = valueOf(shape);
    if (!text) return;
    hide();
    lit = shape;
    shape.classList.add("lit");
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 4)) + "px";
    tip.style.top = Math.max(4, y - box.height - 12) + "px";
  };
  const shapeAt = (target) => {
    const shape = target.closest && target.closest("path, rect, line");
    return shape && shape.closest("svg.chart") ? shape : null;
  };
  addEventListener("pointermove", (event) => {
    const shape = shapeAt(event.target);
    if (shape && valueOf(shape)) show(shape, event.clientX, event.clientY);
    else if (event.pointerType === "mouse") hide();
  });
  addEventListener("scroll", hide, { passive: true });

  // Keyboard: arrows step through the values of a chart.
  const visible = (shape) => getComputedStyle(shape).visibility !== "hidden";
  for (const chart of document.querySelectorAll("svg.chart")) {
    if (chart.closest(".mark-in-text, button") || !chart.querySelector("title")) continue;
    chart.tabIndex = 0;
    let index = -1;
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const shapes = [...chart.querySelectorAll("path, rect, line")].filter((s) => valueOf(s) && visible(s));
      if (!shapes.length) return;
      index = (index + step + shapes.length) % shapes.length;
      const box = shapes[index].getBoundingClientRect();
      show(shapes[index], box.x + box.width / 2, box.y);
    });
    chart.addEventListener("blur", hide);
  }

  // Paper cannot be unfolded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.meanwhile:not([open]), #why details:not([open])")];
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
  });

  // Series: one switch for all charts.
  for (const button of document.querySelectorAll("[data-series]")) {
    button.addEventListener("click", () => {
      const off = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!off));
      document.body.classList.toggle("off-" + button.dataset.series, off);
    });
  }

  // Time: all charts over time show the same stretch of it.
  const parts = [...document.querySelectorAll("g.stretch")].map((group, number) => {
    const [left, top, width, height, seconds] = ["left", "top", "width", "height", "seconds"].map((name) => Number(group.dataset[name]));
    return { group, number, chart: group.closest("svg.chart"), left, top, width, height, seconds, shapes: null, axis: null };
  });
  const make = (part, name, attributes) => {
    const element = document.createElementNS(part.chart.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const prepare = (part) => {
    if (part.shapes) return;
    const clip = make(part, "clipPath", { id: "stretch-" + part.number });
    clip.append(make(part, "rect", { x: part.left, y: part.top, width: part.width, height: part.height }));
    part.chart.append(clip);
    // Shapes move inside the group, so the group may be cut.
    part.group.setAttribute("clip-path", "url(#stretch-" + part.number + ")");
    part.shapes = [...part.group.children].map((shape) => {
      const data = shape.getAttribute("d") || "";
      const place = shape.getAttribute("x1") || shape.getAttribute("x");
      const width = shape.classList.contains("span") ? Number(shape.getAttribute("width")) : 0;
      const numbers = place ? [Number(place)] : [...data.matchAll(/[ML](-?[\d.]+) /g)].map((match) => Number(match[1]));
      const middle = (Math.min(...numbers) + Math.max(...numbers)) / 2;
      return { shape, data, middle, width, isCurve: shape.classList.contains("curve") };
    });
    part.axis = part.chart.querySelector(".time-axis");
  };
  const nice = (step) => {
    const power = 10 ** Math.floor(Math.log10(step));
    return [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= step * 0.999);
  };
  const drawAxis = (part, from, to, place) => {
    if (part.own) part.own.remove();
    part.own = null;
    const isWhole = from <= 0 && to >= 1;
    part.axis.style.display = isWhole ? "" : "none";
    if (isWhole) return;
    const [begin, end] = [from * part.seconds, to * part.seconds];
    const span = end - begin;
    const [unit, name] = span > 10800 ? [3600, "hours"] : span > 180 ? [60, "minutes"] : [1, "seconds"];
    const step = nice(span / unit / Math.max(2, part.width / 90));
    const bottom = part.top + part.height;
    const own = make(part, "g", {});
    for (let tick = Math.ceil(begin / unit / step) * step; tick * unit <= end; tick += step) {
      const x = place(part.left + (tick * unit / part.seconds) * part.width);
      own.append(make(part, "line", { x1: x, x2: x, y1: part.top + 8, y2: bottom, class: "grid" }));
      const label = make(part, "text", { x, y: bottom + 16, "text-anchor": "middle", class: "tick" });
      label.textContent = String(Number(tick.toFixed(3)));
      own.append(label);
    }
    const label = make(part, "text", { x: part.left + part.width / 2, y: bottom + 31, "text-anchor": "middle", class: "small" });
    label.textContent = name + " since the first load";
    own.append(label);
    part.group.before(own);
    part.own = own;
  };
  let range = [0, 1];
  const stretch = (from, to) => {
    const least = 0.0005;
    if (to - from < least) return;
    range = [Math.max(0, from), Math.min(1, to)];
    const factor = 1 / (range[1] - range[0]);
    for (const part of parts) {
      prepare(part);
      const place = (x) => part.left + ((x - part.left) / part.width - range[0]) * factor * part.width;
      for (const { shape, data, middle, width, isCurve } of part.shapes) {
        if (width) {
          shape.setAttribute("x", place(middle).toFixed(1));
          shape.setAttribute("width", (width * factor).toFixed(1));
        } else if (isCurve) {
          shape.setAttribute("d", data.replace(/([ML])(-?[\d.]+) /g, (_, letter, x) => letter + place(Number(x)).toFixed(1) + " "));
        } else if (Number.isFinite(middle)) {
          shape.setAttribute("transform", "translate(" + (place(middle) - middle).toFixed(1) + ",0)");
        }
      }
      drawAxis(part, range[0], range[1], place);
    }
  };
  const around = (factor) => {
    const middle = (range[0] + range[1]) / 2;
    const half = ((range[1] - range[0]) / 2) * factor;
    stretch(middle - half, middle + half);
  };
  for (const part of parts) {
    const shareAt = (event) => {
      const box = part.chart.getBoundingClientRect();
      const x = ((event.clientX - box.x) / box.width) * part.chart.viewBox.baseVal.width;
      return Math.min(1, Math.max(0, (x - part.left) / part.width));
    };
    let start = null;
    let selection = null;
    part.chart.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      start = shareAt(event);
      selection = make(part, "rect", { class: "selection", y: part.top, height: part.height, x: 0, width: 0 });
      part.chart.append(selection);
    });
    part.chart.addEventListener("pointermove", (event) => {
      if (start === null) return;
      const now = shareAt(event);
      selection.setAttribute("x", part.left + Math.min(start, now) * part.width);
      selection.setAttribute("width", Math.abs(now - start) * part.width);
    });
    addEventListener("pointerup", (event) => {
      if (start === null) return;
      const now = shareAt(event);
      const [low, high] = [Math.min(start, now), Math.max(start, now)];
      start = null;
      selection.remove();
      if (high - low < 0.01) return;
      const length = range[1] - range[0];
      stretch(range[0] + low * length, range[0] + high * length);
    });
    part.chart.addEventListener("dblclick", () => stretch(0, 1));
    part.chart.addEventListener("keydown", (event) => {
      if (event.key === "+") around(0.5);
      else if (event.key === "-") around(2);
      else if (event.key === "0") stretch(0, 1);
    });
  }
})();

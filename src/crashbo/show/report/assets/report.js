"use strict";
(() => {
  const root = document.documentElement;
  const palette = JSON.parse(document.getElementById("palette").textContent);
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const hovers = window.matchMedia("(hover: hover)"); // without a mouse the buttons would always lie over the legend
  let printing = false;

  const isDark = () => !printing && (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  const draw = (div) => {
    let text = document.getElementById(div.dataset.figure).textContent;
    if (isDark()) for (const [light, dark] of palette) text = text.replaceAll(light, dark);
    const figure = JSON.parse(text);
    div.dataset.drawn = "yes";
    Plotly.react(div, figure.data, { ...figure.layout, autosize: true }, {
      responsive: true,
      displaylogo: false,
      displayModeBar: hovers.matches && div.parentElement.classList.contains("single") ? "hover" : false,
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    });
  };

  const plots = [...document.querySelectorAll(".plot")];
  const redraw = () => plots.filter((div) => div.dataset.drawn).forEach(draw);
  const observer = new IntersectionObserver(
    (entries) => entries.filter((one) => one.isIntersecting && !one.target.dataset.drawn).forEach((one) => draw(one.target)),
    { rootMargin: "800px" },
  );
  plots.forEach((div) => observer.observe(div));

  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    redraw();
  });
  system.addEventListener("change", redraw);
  window.addEventListener("beforeprint", () => {
    printing = true;
    plots.filter((div) => !div.closest("[hidden]")).forEach(draw);
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    redraw();
  });

  for (const chooser of document.querySelectorAll("[data-chooser]")) {
    chooser.addEventListener("change", () => {
      const number = chooser.dataset.chooser;
      for (const part of document.querySelectorAll("[data-choice], [data-note]")) {
        const [section, choice] = (part.dataset.choice || part.dataset.note).split("-");
        if (section === number) part.hidden = choice !== chooser.value;
      }
      document.querySelectorAll(`[data-choice="${number}-${chooser.value}"] .plot`).forEach(draw);
    });
  }

  const table = document.getElementById("trials");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const find = document.getElementById("find");
  const outcome = document.getElementById("outcome");
  const matches = document.getElementById("matches");

  const filter = () => {
    const wanted = find.value.trim().toLowerCase();
    let left = 0;
    for (const row of rows) {
      const fits = (!outcome.value || row.dataset.outcome === outcome.value) && row.textContent.toLowerCase().includes(wanted);
      row.hidden = !fits;
      left += fits;
    }
    matches.textContent = `${left} of ${rows.length} trials`;
  };
  find.addEventListener("input", filter);
  outcome.addEventListener("change", filter);

  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const difference = Number(a) - Number(b);
    return Number.isNaN(difference) ? a.localeCompare(b) : difference;
  };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value;
      const empty = (row) => value(row) === "";
      rows.sort((a, b) => (empty(a) || empty(b) ? empty(a) - empty(b) : (down ? -1 : 1) * compare(value(a), value(b))));
      body.append(...rows);
    });
  });
})();

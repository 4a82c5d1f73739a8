// Figures are drawn when they come near the screen, in the colors of the theme; whatever scrolls can
// take the focus, so that the keyboard can scroll it.
"use strict";

const ink = () => getComputedStyle(document.body).getPropertyValue("--color-foreground-primary");

function draw(plot) {
  const figure = JSON.parse(plot.querySelector("script").textContent);
  const surface = plot.querySelector("div");
  figure.config = { ...figure.config, displaylogo: false, responsive: true };
  figure.layout.font = { ...figure.layout.font, color: ink() };
  figure.layout.autosize = true;
  delete figure.layout.width;
  Plotly.newPlot(surface, figure).then(() => plot.classList.add("drawn"));
}

function recolor() {
  for (const surface of document.querySelectorAll(".mpilab-plot.drawn > div")) {
    Plotly.relayout(surface, { "font.color": ink() });
  }
}

function letScrollByKeyboard() {
  for (const box of document.querySelectorAll("pre, .table-wrapper, .output, .math, .mpilab-plot")) {
    if (box.scrollWidth > box.clientWidth + 1 && !box.hasAttribute("tabindex")) {
      box.tabIndex = 0;
    }
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const plots = document.querySelectorAll(".mpilab-plot");
  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((each) => each.isIntersecting)) {
        near.unobserve(entry.target);
        draw(entry.target);
      }
    },
    { rootMargin: "600px" },
  );
  plots.forEach((plot) => near.observe(plot));
  new MutationObserver(recolor).observe(document.body, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
  letScrollByKeyboard();
  window.addEventListener("resize", letScrollByKeyboard);
});

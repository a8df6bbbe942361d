// Curves that can be switched on and off: the entries of a picture's key become buttons.

document.querySelectorAll("figure.curves").forEach((figure) => {
  const series = figure.querySelectorAll("g.series");
  figure.querySelectorAll(".key li").forEach((entry, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(...entry.childNodes);
    entry.append(button);
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      series[i].style.display = shown ? "" : "none";
    });
  });
});

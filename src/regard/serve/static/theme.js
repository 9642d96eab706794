// Before anything is drawn, so that a dark page never flashes light.
(() => {
  try {
    const chosen = localStorage.getItem("regard-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing follows the system.
  }
})();

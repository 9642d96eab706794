/** A button that switches between light and dark, and remembers. */
export function themeButton(button) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const shown = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  const name = () => { button.textContent = shown() === "dark" ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    const chosen = shown() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem("regard-theme", chosen);
    } catch {
      // Then the choice lasts as long as the page.
    }
    name();
  });
  dark.addEventListener("change", name);
  name();
}

// A button on every block of code, which copies its text.
document.addEventListener("DOMContentLoaded", () => {
  const words = document.documentElement.lang.startsWith("zh") ? ["复制", "已复制"] : ["Copy", "Copied"];
  for (const block of document.querySelectorAll("div.highlight")) {
    const code = block.querySelector("pre");
    if (!code || !navigator.clipboard) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy-code";
    button.textContent = words[0];
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.innerText.trimEnd());
      button.textContent = words[1];
      setTimeout(() => (button.textContent = words[0]), 1500);
    });
    block.append(button);
  }
});

// Buttons that copy an address.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const field = button.closest("li").querySelector("input[readonly]");
    let done = true;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch { // without https browsers have no clipboard
      field.select();
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Press Ctrl-C";
    document.getElementById("copied").textContent = done ? "The address was copied." : "Press Ctrl-C to copy the address.";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// The list of studies: the hint of each, one after the other, since each costs the server some work.
for (const study of document.querySelectorAll("[data-hint]")) {
  const place = study.querySelector(".hint");
  try {
    const response = await fetch(study.dataset.hint, { headers: { Accept: "application/json" } });
    const found = await response.json();
    place.textContent = response.ok ? found.hint : found.error.message;
  } catch {
    place.textContent = "not known";
  }
}

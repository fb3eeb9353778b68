// The participants' page: asks, shows, tells.
const place = document.getElementById("study");
const shown = document.getElementById("question");
shown.textContent = `Ready: ${place.dataset.api}`;

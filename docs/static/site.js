// What scrolls inside can be reached with the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".table-wrapper, .highlight pre")) {
    box.tabIndex = 0;
  }
});

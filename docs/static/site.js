// What the theme leaves out for those who do not see the page or use no mouse.
document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".table-wrapper, .highlight pre")) {
    box.tabIndex = 0; // it scrolls
  }
  for (const caption of document.querySelectorAll(".caption[role=heading]")) {
    caption.ariaLevel = "2";
  }
  document.querySelector(".sidebar-drawer").ariaLabel = "All pages";
  document.querySelector(".toc-drawer").ariaLabel = "This page";
  for (const head of document.querySelectorAll("th")) {
    if (head.textContent.trim() === "") {
      head.replaceWith(document.createElement("td"));
    }
  }
});

// In a query a leading dash means "without": whoever types --variant looks for the option.
document.addEventListener("input", (event) => {
  const box = event.target
  if (box.matches(".md-search__input")) box.value = box.value.replace(/(^|\s)-+/g, "$1")
}, true)

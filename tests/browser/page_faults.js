// Gives what is wrong with the page as it stands: names and headings for screen readers, contrast, width.
() => {
  const shown = (selector) => [...document.querySelectorAll(selector)].filter((node) => node.checkVisibility());
  const excerpt = (node) => node.outerHTML.slice(0, 120);

  const nameOf = (node) =>
    node.getAttribute("aria-label") ||
    document.getElementById(node.getAttribute("aria-labelledby"))?.textContent ||
    node.alt ||
    node.title ||
    [...(node.labels ?? [])].map((label) => label.textContent).join("") ||
    (node.matches("a, button") ? node.textContent : "");
  const toBeNamed = "a, button, input, select, textarea, [role=region], nav, aside, img, svg";
  const nameless = shown(toBeNamed).filter((node) => !nameOf(node).trim());

  const parts = (colour) => colour.match(/[\d.]+/g).map(Number);
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) =>
    0.2126 * linear(red / 255) + 0.7152 * linear(green / 255) + 0.0722 * linear(blue / 255);
  const ground = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const colour = parts(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const contrast = (node) => {
    const pair = [luminance(parts(getComputedStyle(node).color)), luminance(ground(node))];
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  };
  const hasText = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const faint = shown("body *").filter(
    (node) => !(node instanceof SVGElement) && hasText(node) && contrast(node) < 4.5,
  );

  const levels = shown("h1, h2, h3, h4, h5, h6").map((node) => Number(node.tagName[1]));
  const skipped = levels.filter((level, at) => level > (levels[at - 1] ?? 0) + 1);

  return [
    ...nameless.map((node) => `no name: ${excerpt(node)}`),
    ...faint.map((node) => `contrast ${contrast(node).toFixed(2)}: ${excerpt(node)}`),
    ...skipped.map((level) => `heading of level ${level} below a much higher one: ${levels}`),
    ...["main", "header", "h1"].filter((name) => shown(name).length !== 1).map((name) => `not one ${name}`),
    ...(document.documentElement.scrollWidth > window.innerWidth ? ["wider than the window"] : []),
  ];
};

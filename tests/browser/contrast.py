"""Contrast of the texts of a page, as the Web Content Accessibility Guidelines define it.

For every text that is seen: its colour with all opacities above it, laid over the grounds behind
it. Least ratio 4.5, or 3 for large text (24 pixels, or 18.66 and bold). Left out: what cannot be
used now (disabled), what is only for the ear, text on pictures, and canvases.
"""

SCRIPT = r"""() => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const read = (colour) => { // any CSS colour as [r, g, b, opacity]
    if (!known.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = ([r, g, b, a], ground) =>
    [r, g, b].map((channel, i) => channel * a + ground[i] * (1 - a));
  const luminance = (channels) => {
    const [r, g, b] = channels.map((channel) => {
      const share = channel / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const line = (element) => {
    const found = [];
    for (let now = element; now; now = now.parentElement) found.push(now);
    return found;
  };
  const isBehind = (element, box) => { // a text may stand outside of what it is part of
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    return x >= left && x <= right && y >= top && y <= bottom;
  };
  const groundOf = (chain, box) => {
    let ground = [255, 255, 255];
    for (const element of chain.slice().reverse()) {
      const style = getComputedStyle(element);
      if (element !== document.body && !isBehind(element, box)) continue;
      if (style.backgroundImage !== 'none') return null;
      const [r, g, b, a] = read(style.backgroundColor);
      ground = over([r, g, b, a * Number(style.opacity)], ground);
    }
    return ground;
  };
  const unused = (element) =>
    element.closest(':disabled, [aria-disabled=true], [disabled], .appca-voice, [hidden]') ||
    element.closest('label, [data-testid=stWidgetLabel]')?.parentElement
      ?.querySelector('input:disabled');
  const bad = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element || unused(element)) continue;
    if (element.closest('style, script, noscript, [data-testid=stIconMaterial]')) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const style = getComputedStyle(element);
    const chain = line(element);
    const ground = groundOf(chain, box);
    if (!ground) continue;
    const colour = read(element instanceof SVGElement ? style.fill : style.color).slice();
    colour[3] *= chain.reduce((all, one) => all * Number(getComputedStyle(one).opacity), 1);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = ratio(over(colour, ground), ground);
    seen += 1;
    if (found < (large ? 3 : 4.5)) {
      bad.push(`${found.toFixed(2)} ${element.tagName}.${element.getAttribute('class') ?? ''} ` +
        `${node.data.trim().slice(0, 40)}`);
    }
  }
  return { seen, bad };
}"""


def too_faint(page) -> tuple[int, list[str]]:
    """Return how many texts of a page were measured, and those that are too faint, with ratios."""
    found = page.evaluate(SCRIPT)
    return found["seen"], found["bad"]

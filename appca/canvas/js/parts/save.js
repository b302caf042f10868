/** The picture as a file. */

import { element } from './dom.js';

/** Save the picture as PNG: both canvases, and the words that stand beside them. @param {import('../stage.js').Stage} stage */
export function savePicture(stage) {
  const made = element('canvas', '');
  [made.width, made.height] = [stage.canvas.width, stage.canvas.height];
  const context = /** @type {CanvasRenderingContext2D} */ (made.getContext('2d'));
  stage.draw(); // what WebGL has drawn lasts until the end of this task
  context.drawImage(stage.canvas, 0, 0);
  context.drawImage(stage.over, 0, 0);
  context.scale(stage.dpr, stage.dpr);
  context.textBaseline = 'middle';
  const root = stage.root.getBoundingClientRect();
  for (const part of stage.root.querySelectorAll(
    '.appca-bar :is(b, .appca-under, .appca-keytitle, .appca-count, .appca-dot)',
  )) {
    const box = part.getBoundingClientRect();
    const look = getComputedStyle(part);
    if (!box.width || part.closest('[hidden]')) continue;
    const [x, y] = [box.left - root.left, box.top - root.top];
    if (part.classList.contains('appca-dot')) {
      context.fillStyle = look.backgroundColor;
      context.beginPath();
      context.arc(x + box.width / 2, y + box.height / 2, box.width / 2, 0, 7);
      context.fill();
    } else {
      context.font = `${look.fontWeight} ${look.fontSize} ${look.fontFamily}`;
      context.fillStyle = look.color;
      context.fillText(part.textContent ?? '', x, y + box.height / 2, box.width);
    }
  }
  const download = `${stage.views.map(({ layout }) => layout.name).join('-')}.png`;
  element('a', '', { href: made.toDataURL(), download }).click();
}

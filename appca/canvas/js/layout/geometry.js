/** Rectangles, a number kept between two others, and the camera over the world, in doubles. */

/** @param {number} value @param {number} low @param {number} high */
export const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

/** Whether a place lies in a rectangle. @param {Rect} rect @param {number} px @param {number} py @param {number} [by] how far outside it may lie */
export const holds = ({ x, y, w, h }, px, py, by = 0) =>
  px >= x - by && px <= x + w + by && py >= y - by && py <= y + h + by;

/** Whether all of one rectangle lies in another. @param {Rect} a @param {Rect} b @param {number} [by] how far inside it must lie */
export const within = (a, b, by = 0) =>
  holds(b, a.x, a.y, -by) && holds(b, a.x + a.w, a.y + a.h, -by);

/** Whether two rectangles share some of the page. @param {Rect} a @param {Rect} b @param {number} [by] how much farther apart they must be not to */
export const touches = (a, b, by = 0) =>
  a.x < b.x + b.w + by && a.x + a.w + by > b.x && a.y < b.y + b.h + by && a.y + a.h + by > b.y;

/** The smallest rectangle around others. @param {Rect[]} rects @returns {Rect} */
export function around(rects) {
  const x = Math.min(...rects.map((rect) => rect.x));
  const y = Math.min(...rects.map((rect) => rect.y));
  return {
    x,
    y,
    w: Math.max(...rects.map((rect) => rect.x + rect.w)) - x,
    h: Math.max(...rects.map((rect) => rect.y + rect.h)) - y,
  };
}

/** @param {Camera} cam @param {Rect} view @param {Rect} world @returns {Rect} */
export function toPage(cam, view, world) {
  return {
    x: (world.x - cam.x) * cam.k + view.x + view.w / 2,
    y: (world.y - cam.y) * cam.k + view.y + view.h / 2,
    w: world.w * cam.k,
    h: world.h * cam.k,
  };
}

/** @param {Camera} cam @param {Rect} view @param {number} x @param {number} y @returns {[number, number]} */
export function toWorld(cam, view, x, y) {
  return [(x - view.x - view.w / 2) / cam.k + cam.x, (y - view.y - view.h / 2) / cam.k + cam.y];
}

/** The camera that shows a part of the world with some air. @param {Rect} world @param {Rect} view @param {number} [air] @returns {Camera} */
export function fitting(world, view, air = 0.03) {
  const k = (1 - air) * Math.min(view.w / world.w, view.h / world.h);
  return { x: world.x + world.w / 2, y: world.y + world.h / 2, k };
}

/** Zoom by a factor about a point of the page that stays where it is. @param {Camera} cam @param {Rect} view @param {number} x @param {number} y @param {number} factor @param {number} least @param {number} most */
export function zoomed(cam, view, x, y, factor, least, most) {
  const [wx, wy] = toWorld(cam, view, x, y);
  const k = clamp(cam.k * factor, least, most);
  return { x: wx - (x - view.x - view.w / 2) / k, y: wy - (y - view.y - view.h / 2) / k, k };
}

/** On the way between two cameras: sizes change evenly, and what is aimed at does not swing out. @param {Camera} a @param {Camera} b @param {number} t @returns {Camera} */
export function between(a, b, t) {
  const rate = Math.log(b.k / a.k);
  const k = a.k * Math.exp(rate * t);
  const share = Math.abs(rate) < 1e-6 ? t : (1 - Math.exp(-rate * t)) / (1 - Math.exp(-rate));
  return { x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share, k };
}

/** How a picture drawn from camera `a` lies in the view of camera `b`. @param {Camera} a @param {Camera} b @param {Rect} view @returns {Rect} */
export function carried(a, b, view) {
  const scale = b.k / a.k;
  const [cx, cy] = [
    view.x + view.w / 2 + (a.x - b.x) * b.k,
    view.y + view.h / 2 + (a.y - b.y) * b.k,
  ];
  return {
    x: cx - (view.w / 2) * scale,
    y: cy - (view.h / 2) * scale,
    w: view.w * scale,
    h: view.h * scale,
  };
}

/** Rectangles of the page or the world, and a number kept between two others. */

/** @typedef {import('../types.js').Rect} Rect */

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
